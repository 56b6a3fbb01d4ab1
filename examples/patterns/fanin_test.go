package patterns

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

func TestCrashEachClickCountsOnce(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(Clicks, Counters)
		for i := range 3 {
			s.OK(s.Retry(func() error { return Click(s.Context(), s, "home", fmt.Sprint("click ", i), 1) }))
			s.Advance(4 * time.Second)
		}
		s.Advance(time.Minute)
		s.Finally("three clicks", func() error {
			var total int
			_, err := harness.Stored(s.Store(), Counters.ID("home"), "total", &total)
			if err == nil && total != 3 {
				err = fmt.Errorf("%d clicks", total)
			}
			return err
		})
	}, harness.Depth(2), harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned, harness.Downtime(5*time.Hour), harness.Budget(150))
}

func TestCrashEachPageIsTakenOffOnce(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(Books, Printers)
		s.OK(s.Retry(func() error {
			_, err := Print.Call(s.Context(), s, "emma", 3, object.Idempotent("print", time.Hour))
			return err
		}))
		s.Advance(time.Minute)
		s.Finally("the end is told once", func() error {
			told := 0
			id := Books.ID("emma")
			err := s.Store().Events(id, 0, func(uint64, []byte) bool { told++; return true })
			if err != nil || told != 1 {
				return fmt.Errorf("told %d times: %w", told, err)
			}
			st, err := Printers.Stats(s.Context(), s)
			if err == nil && st.Submitted != 3 {
				err = fmt.Errorf("%d tasks for 3 pages", st.Submitted)
			}
			return err
		})
	}, harness.Depth(2), harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned, harness.Budget(150))
}
