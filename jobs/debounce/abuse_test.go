package debounce_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// flood is how many events TestFlood adds to one object.
var flood = flag.Int("flood", 100_000, "events of TestFlood")

// However many events one object gets, each acknowledged event is in exactly one flush,
// and no flush is larger than the limit of pending events. Proves D2.
func TestFlood(t *testing.T) {
	const pending = 2000
	events := *flood
	if testing.Short() {
		events /= 5 // the race detector makes each of them six times as long
	}
	seen, largest := make(map[string]int, events), 0
	var mu sync.Mutex
	all := make(chan struct{})
	job := debounce.New(config{
		Name: "hooks", Quiet: time.Millisecond, MaxEvents: 500, MaxPending: pending,
		Flush: func(_ context.Context, f *flush) error {
			mu.Lock()
			defer mu.Unlock()
			largest = max(largest, len(f.Events))
			for _, e := range f.Events {
				if seen[e.ID]++; len(seen) == events && seen[e.ID] == 1 {
					close(all)
				}
			}
			return nil
		},
	})
	ctx := context.Background()
	h := open(t, t.TempDir(), job)
	const callers = 200
	var calls sync.WaitGroup
	for c := range callers {
		calls.Go(func() {
			for i := c; i < events; i += callers {
				id := fmt.Sprint(i)
				_, err := job.Add(ctx, h, name, event{ID: id}, debounce.EventID(id))
				for errors.Is(err, debounce.ErrFull) || errors.Is(err, object.ErrOverloaded) {
					_, err = job.Add(ctx, h, name, event{ID: id}, debounce.EventID(id))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	calls.Wait()
	if t.Failed() {
		return // else not all events ever come
	}
	<-all
	shut(t, h)
	mu.Lock()
	defer mu.Unlock()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("event %s is in %d flushes", id, n)
		}
	}
	if len(seen) != events || largest > pending {
		t.Errorf("%d events were flushed, at most %d at a time", len(seen), largest)
	}
}
