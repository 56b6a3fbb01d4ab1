package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// buoy is an object that fills the outbox of its host with messages to itself, which come later.
type buoy struct{ st *object.State }

var (
	buoys = object.Define("buoy", func(_ context.Context, st *object.State) (*buoy, error) { return &buoy{st}, nil })
	ring  = object.Handle(buoys, "ring", func(*buoy, context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	fill  = object.Handle(buoys, "fill", func(b *buoy, ctx context.Context, n int) (struct{}, error) {
		for range n {
			if err := ring.Send(ctx, b.st, "b", struct{}{}, object.After(fullFor)); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
)

const (
	// outboxRoom is how many messages wait in the store of fullWorld at most.
	outboxRoom = 6
	// fullFor is how long the outbox is full.
	fullFor = 4 * time.Minute
)

// fullWorld is a story: a subscription gets two events, and a task with a URL ends, while so many messages wait. Each delivery is answered
// with an error first.
func fullWorld(t testing.TB, s *harness.Sim, waiting int) {
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32), Waits: []time.Duration{time.Second, time.Second}})
	s.OK(err)
	hooks.SetRandom(bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), 100)))
	sent := map[string]map[string]bool{} // ids by event or task
	hooks.SetSender(func(_ context.Context, _, id string, body []byte, _ int) (int, error) {
		status := http.StatusOK
		return status, s.World().Do("post/"+id, func() {
			if s.World().Count("post/"+id) == 1 {
				status = http.StatusInternalServerError
			}
			what := string(body[strings.Index(string(body), `"data"`):])
			if sent[what] == nil {
				sent[what] = map[string]bool{}
			}
			sent[what][id] = true
		})
	})
	p := thumbPool(t, hooks, 0, "example.com")
	s.Host(append(hooks.Definitions(), p, carts, buoys)...)
	for _, sub := range []webhook.Subscription{{URL: "https://example.com", Class: "cart"}, {Pool: "thumb"}} {
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				list, err := hooks.List(ctx, h, "", 10)
				if err != nil {
					return err
				}
				for _, known := range list { // the answer of the call was lost
					if known.Pool == sub.Pool {
						return nil
					}
				}
				_, _, err = hooks.Add(ctx, h, sub)
				return err
			})
		}))
	}
	s.OK(s.Retry(func() error {
		_, err := fill.Call(s.Context(), s, "b", waiting, object.Idempotent("fill", time.Hour))
		return err
	}))
	for i := range 2 {
		s.OK(s.Retry(func() error {
			_, err := pay.Call(s.Context(), s, "alice", paid{Kind: "paid", Cents: i}, object.Idempotent(fmt.Sprint(i), time.Hour))
			return err
		}))
	}
	s.OK(s.Retry(func() error {
		_, err := p.Enqueue(s.Context(), s, "good", workerpool.Webhook("https://example.com/hook"), workerpool.Idempotent("good", time.Hour))
		return err
	}))
	s.Advance(fullFor / 2)
	s.OK(s.Retry(func() error {
		made, err := hooks.Made(s.Context(), s)
		if full := waiting == outboxRoom; err == nil && (full && made != 0 || !full && made < 3) {
			s.Errorf("U1, U11: %d deliveries with %d messages of at most %d that wait", made, waiting, outboxRoom)
		}
		return err
	}))
	s.Advance(fullFor + 5*time.Minute) // after which a relay that has failed begins again
	s.Finally("each event and outcome is delivered, with one id, and none is missed", func() error {
		if len(sent) != 3 {
			return fmt.Errorf("U1, U11: sent are %v", sent)
		}
		for what, ids := range sent {
			if len(ids) != 1 || strings.Contains(what, `"pool"`) && !strings.Contains(what, `"state":"done"`) {
				return fmt.Errorf("U1, U11, W13: %s has the ids %v", what, ids)
			}
		}
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			list, err := hooks.List(ctx, h, "", 10)
			for _, st := range list {
				want := uint64(2)
				if st.Pool != "" {
					want = 1
				}
				if st.Made != want && (st.Pool == "" || s.Crashes() == 0) || st.Delivered < want || st.Waiting+st.Dead+st.Gaps != 0 {
					err = errors.Join(err, fmt.Errorf("U1, U2, U11: %+v", st))
				}
			}
			return err
		})
	})
}

// While the outbox of the host is full, no delivery is made, and a task with a URL does not end; when there is room again, or with one place left, each
// event and each outcome is delivered. A crash at any point of that loses none, and the task that waits has no failure. Proves U1, U11, W13.
func TestFullOutbox(t *testing.T) {
	room := harness.HostOptions(func(o *object.Options) { o.Feed, o.MaxMessages = true, outboxRoom })
	t.Run("full", func(t *testing.T) {
		harness.Exhaust(t, func(s *harness.Sim) { fullWorld(t, s, outboxRoom) }, room)
	})
	t.Run("one place", func(t *testing.T) {
		harness.Run(t, func(s *harness.Sim) { fullWorld(t, s, outboxRoom-1) }, room)
	})
}
