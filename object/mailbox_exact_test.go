package object_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O11: a call that its caller has left counts neither for the age limit of the
// mailbox nor for its length, at any place in the queue.
func TestCallersThatHaveGoneCountForNothing(t *testing.T) {
	for name, order := range map[string]string{"first": "gl", "last": "lg", "between": "lgl", "all": "gg", "none": "ll"} {
		for _, full := range []bool{true, false} {
			bubble(t, func(t *testing.T) {
				limit := len(order)
				if !full {
					limit = 100
				}
				f := newFixture(t, object.ClassOptions{MailboxLimit: limit, MailboxAge: time.Minute}).open()
				defer f.close()
				f.must("a", nothing)
				gate := make(chan struct{})
				var wg sync.WaitGroup
				wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
				synctest.Wait()
				gone, leave := context.WithCancel(context.Background())
				live, ran, began := 0, 0, time.Now()
				for _, who := range order {
					ctx := context.Background()
					if who == 'g' {
						ctx = gone
					} else {
						live++
					}
					wg.Go(func() {
						_, err := f.do.Call(ctx, f.host, "a", func(*thing, context.Context) (any, error) { ran++; return nil, nil })
						if (err == nil) != (who == 'l') || err != nil && !errors.Is(err, context.Canceled) {
							t.Errorf("O11: a call of %c: %v", who, err)
						}
					})
					pass(10 * time.Second)
				}
				leave()
				old := order[0] == 'l'
				pass(time.Until(began.Add(time.Minute + 1)))
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, err := f.do.Call(ctx, f.host, "a", nothing)
				if refused := errors.Is(err, object.ErrOverloaded); refused != old && live < limit {
					t.Errorf("O11: %s has gone, full %v: one more call: %v", name, full, err)
				}
				close(gate)
				wg.Wait()
				if ran != live {
					t.Errorf("O11: %s has gone: %d calls ran, want %d", name, ran, live)
				}
			})
		}
	}
}
