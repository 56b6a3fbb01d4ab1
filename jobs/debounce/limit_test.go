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

// Proves J16, J17, D2, Case SC8: flushes keep Concurrency and StartRate, one that waits
// takes the events that come meanwhile, and crashes lose none.
func TestLimitedFlushesSurviveCrashes(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		running, flushed := map[int]int{}, map[string]int{}
		j := debounce.New(debounce.Config[string, struct{}]{
			Name: "limited", Mode: debounce.Window, Window: time.Second, Concurrency: 1,
			Flush: func(_ context.Context, f *debounce.Flush[string, struct{}]) error {
				process := s.Crashes()
				running[process]++
				s.Always("J16: one at a time", running[process] == 1, running)
				s.Sleep(5 * time.Second)
				running[process]--
				for _, e := range f.Events {
					flushed[e+" "+f.Key]++
				}
				return nil
			},
		})
		s.Host(j)
		add := func(id, event string) {
			s.OK(s.Retry(func() error {
				_, err := j.Add(s.Context(), s, id, event, debounce.EventID(event))
				return err
			}))
		}
		add("a", "a1")
		add("b", "b1")
		s.Advance(3 * time.Second)
		if s.Crashes() == 0 {
			st, err := j.Status(s.Context(), s, "b")
			s.Always("b waits", err != nil || st.Waiting && st.Flushing == 0, st, err)
		}
		add("b", "b2")
		s.Finally("each event was in one flush", func() error {
			for _, id := range []string{"a", "b"} {
				var st debounce.Status
				if err := s.Retry(func() (err error) { st, err = j.Status(s.Context(), s, id); return err }); err != nil {
					return err
				}
				if want := map[string]int64{"a": 1, "b": 2}[id]; st.EventsFlushed != want || st.Waiting {
					return fmt.Errorf("%s: %+v", id, st)
				}
			}
			return nil
		})
		s.Advance(20 * time.Second)
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves J16, J17: limits of flushes that make no sense are refused.
func TestFlushLimitsAreChecked(t *testing.T) {
	c := debounce.Config[int, struct{}]{Name: "limited", Quiet: 1, Flush: func(context.Context, *debounce.Flush[int, struct{}]) error { return nil }}
	if c.Concurrency = -1; c.Validate() == nil {
		t.Error("Concurrency -1 is taken")
	}
	c.Concurrency, c.StartRate = 0, object.StartRate{Starts: 1}
	if c.Validate() == nil {
		t.Error("a StartRate without Per is taken")
	}
	c.StartRate.Per = time.Second
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
