package webhook_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// resting calls a function when a relay is about to rest.
type resting struct{ f func() }

func (r *resting) At(p seam.Point) {
	if p.Name == "webhook/rest" {
		r.f()
	}
}

// An event that comes while the relay goes to rest is sent at once, and not with the next one. Proves U1.
func TestEventWhileTheRelayGoesToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent, came atomic.Int64
		hooks := newHooks(t)
		hooks.SetSender(func(context.Context, string, string, []byte, int) (int, error) {
			sent.Add(1)
			return http.StatusOK, nil
		})
		var host *object.Host
		probe := &resting{func() {
			if came.Add(1) == 2 { // the first time the relay has heard of its own beginning
				call(t, host, "alice", paid{Kind: "paid"})
			}
		}}
		var err error
		host, err = object.Open(object.Options{
			Feed: true, Logger: slog.New(slog.DiscardHandler), Storage: storage.Options{Engine: memstore.New()}, Seams: seam.Seams{Probe: probe},
		}, append(hooks.Definitions(), carts)...)
		if err != nil {
			t.Fatal(err)
		}
		defer host.Shutdown(context.Background())
		if _, _, err := hooks.Add(t.Context(), host, webhook.Subscription{URL: "https://example.com"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if sent.Load() != 1 || came.Load() < 2 {
			t.Errorf("%d deliveries within a minute, want 1; the relay went to rest %d times", sent.Load(), came.Load())
		}
	})
}
