package debounce_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves D2, Case SC7: a batch adds each event once, also with a crash at any point, and
// those of one object in order. If one event is refused, the others are added.
func TestAddAllSurvivesCrashes(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		j := debounce.New(debounce.Config[int, struct{}]{
			Name: "batch", Quiet: time.Hour,
			Flush: func(context.Context, *debounce.Flush[int, struct{}]) error { return nil },
		})
		s.Host(j)
		var batch []debounce.Add[int]
		for i := range 6 {
			id := debounce.EventID(fmt.Sprint(i))
			batch = append(batch, debounce.Add[int]{ID: []string{"a", "b"}[i%2], Event: i, Options: []debounce.EventOption{id}})
		}
		batch = append(batch, debounce.Add[int]{ID: "a", Options: []debounce.EventOption{debounce.EventID("")}})
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				got := j.AddAll(ctx, h, batch)
				for i, r := range got[:6] {
					if r.Err != nil {
						return r.Err
					}
					s.Always("the place of the event", r.Ack == debounce.Ack{Generation: 1, Events: i/2 + 1}, i, r.Ack)
				}
				s.Always("an empty id is refused", got[6].Err != nil)
				return nil
			})
		}))
		for n, id := range []string{"a", "b"} {
			s.OK(s.Retry(func() error {
				p, err := j.Pending(s.Context(), s, id)
				s.Always("in order", err != nil || fmt.Sprint(p.Events) == fmt.Sprint([]int{n, n + 2, n + 4}), p)
				return err
			}))
		}
	}, harness.NoLostAck, harness.OneAlarm)
}
