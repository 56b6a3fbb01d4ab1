package webhook

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"
)

// SetSender has f make the attempts, for tests.
func (w *Webhooks) SetSender(f func(ctx context.Context, url, id string, body []byte) (status int, err error)) {
	w.send = func(ctx context.Context, r request) (answer, error) {
		status, err := f(ctx, r.URL, r.ID, r.Body)
		return answer{Status: status}, err
	}
}

// SetRandom sets where secrets and ids come from, for tests.
func (w *Webhooks) SetRandom(r io.Reader) { w.random = r }

// PerStage is how many deliveries of a subscription are under way at a time that have failed equally often.
const PerStage = perStage

// Schedule is how long a delivery waits after each failed attempt.
var Schedule = schedule

// Send makes one attempt as a host does, with a resolver of the test.
func Send(ctx context.Context, c Config, resolver *net.Resolver, url string) (status int, text string, retryAfter time.Duration, err error) {
	a, err := newSenderWith(c, resolver)(ctx, request{URL: url, ID: "msg_1", At: time.Unix(1, 0), Body: []byte("{}"), Secrets: [][]byte{make([]byte, 32)}})
	return a.Status, a.Text, a.RetryAfter, err
}

// CheckAddress returns an error unless an address is public.
func CheckAddress(ip string) error { return checkAddress(netip.MustParseAddr(ip)) }
