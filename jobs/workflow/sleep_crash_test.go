package workflow_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

const day = 24 * time.Hour

// A run sleeps for a year over two deploys, the second after a power loss. The newest code
// goes on, at the exact time.
// Case 33.
func TestCrashYearAsleep(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		code := func(version string) *workflow.Workflow[int, string] {
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				a, err := do(s, c, "a")
				if err != nil {
					return "", err
				}
				if err := workflow.Sleep(c, 365*day); err != nil {
					return "", err
				}
				_, err = do(s, c, "b")
				return a + version, err
			})
			return w
		}
		w := code("1")
		s.Host(w)
		began := s.Now()
		start(s, w, "1", 7)
		s.Advance(100 * day)
		s.Restart(harness.WithCode(code("2")))
		s.Advance(100 * day)
		s.Crash(harness.PowerLoss)
		s.Advance(10 * day)
		w = code("3")
		s.Restart(harness.WithCode(w))
		s.Advance(began.Add(365*day - time.Second).Sub(s.Now()))
		st := status(s, w, "1")
		s.Always("asleep", st.Meta.Status == jobs.Running && len(st.Waits) == 1 && st.Waits[0].Kind == "sleep" && st.Due == st.Waits[0].Until, st)
		s.Always("not early", len(timesOf(s, "order/1", "b", began)) == 0)
		out, err := ends(s, w, "1")
		s.Always("the newest code", err == nil && out == "a3", out, err)
		at := timesOf(s, "order/1", "b", began)
		s.Always("the time", len(at) > 0 && at[0] >= 365*day && at[0] < 365*day+time.Minute, at)
		s.Always("the exact time", s.Crashes() > 1 || at[0] == 365*day, at)
		happened(s, "order/1", "a", "b")
	}, promises...)
}

// A clock that is set back does not let a run sleep again that has gone on, and one that is
// set forward does not skip a step.
func TestCrashClockSetBack(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			for _, name := range []string{"a", "b"} {
				if err := workflow.Sleep(c, 10*day); err != nil {
					return "", err
				}
				if _, err := do(s, c, name); err != nil {
					return "", err
				}
			}
			v, err := approved.Wait(c, 0)
			if err != nil {
				return "", err
			}
			return do(s, c, v)
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.AllowFaults(harness.Faults{ClockJump: 2 * day})
		s.Advance(20*day - time.Hour)
		for waits := status(s, w, "1").Waits; len(waits) == 0 || waits[0].Kind != "signal"; waits = status(s, w, "1").Waits {
			s.Advance(time.Hour)
		}
		s.AllowFaults(harness.Faults{}) // the clock stays where it is
		began := s.Now()
		s.OK(s.Retry(func() error {
			return approved.Send(s.Context(), s, w, "1", "c", object.Idempotent("1", 0))
		}))
		out, err := ends(s, w, "1")
		s.Always("at once", err == nil && out == "c" && (s.Crashes() > 2 || s.Now().Sub(began) < 10*time.Minute), out, err)
		happened(s, "order/1", "a", "b", "c")
	}, promises...)
}
