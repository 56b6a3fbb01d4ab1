package webhook

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
	"github.com/holdfast-dev/holdfast/object"
)

// SetSender has f make the attempts, for tests.
func (w *Webhooks) SetSender(f func(ctx context.Context, url, id string, body []byte, signatures int) (status int, err error)) {
	w.send = func(ctx context.Context, r request) (answer, error) {
		status, err := f(ctx, r.URL, r.ID, r.Body, len(r.Secrets))
		return answer{Status: status}, err
	}
}

// SetRandom sets where secrets and ids come from, for tests.
func (w *Webhooks) SetRandom(r io.Reader) { w.random = r }

// PerStage is how many deliveries of a subscription are under way at a time that have failed equally often.
const PerStage = perStage

// Schedule is how long a delivery waits after each failed attempt.
var Schedule = schedule

// SetMemory has the attempts made over connections of memnet, for tests.
func (w *Webhooks) SetMemory() { w.send = newSenderOver(w.config, memnet.DialContext) }

// Send makes one attempt as a host does, with a resolver of the test; nil: over connections of memnet.
func Send(ctx context.Context, c Config, resolver *net.Resolver, url string) (status int, text string, retryAfter time.Duration, err error) {
	dial := memnet.DialContext
	if resolver != nil {
		dial = dialer(c, resolver).DialContext
	}
	a, err := newSenderOver(c, dial)(ctx, request{URL: url, ID: "msg_1", At: time.Unix(1, 0), Body: []byte("{}"), Secrets: [][]byte{make([]byte, 32)}})
	return a.Status, a.Text, a.RetryAfter, err
}

// CheckConnection returns an error unless a connection may be made to an address, with the port 443.
func CheckConnection(ip string) error {
	return checkConnection("tcp", netip.AddrPortFrom(netip.MustParseAddr(ip), 443).String(), nil)
}

// ReplayAll makes all dead deliveries pending again.
func (w *Webhooks) ReplayAll(ctx context.Context, from object.Caller) (int, error) {
	return w.pool.ReplayAll(ctx, from)
}

// Made is how many deliveries there have been, and repeats of those that have failed.
func (w *Webhooks) Made(ctx context.Context, from object.Caller) (uint64, error) {
	s, err := w.pool.Stats(ctx, from)
	return s.Submitted, err
}

// SetMaxWaiting has the relays stop at fewer deliveries that wait, for a test that does not run beside others.
func SetMaxWaiting(t *testing.T, n uint64) {
	t.Cleanup(func() { maxWaiting, relayEvents = 100_000, 256 })
	maxWaiting, relayEvents = n, int(n)
}
