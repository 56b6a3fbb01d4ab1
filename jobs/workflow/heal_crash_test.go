package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// sickCode is a workflow with code that panics, and the same with the code put right, which
// notes when it is tried.
func sickCode(s *harness.Sim, tries *[]time.Time) (wrong, right *workflow.Workflow[int, string]) {
	wrong, right = workflow.New[int, string]("order", workflow.Config{}), workflow.New[int, string]("order", workflow.Config{})
	wrong.Func(func(*workflow.Context, int) (string, error) { panic("at a loss") })
	right.Func(func(c *workflow.Context, _ int) (string, error) {
		*tries = append(*tries, s.Now())
		return do(s, c, "a")
	})
	return wrong, right
}

// labelled counts the runs with a status.
func labelled(s *harness.Sim, status jobs.Status) (n int) {
	s.OK(s.Retry(func() error {
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			found, err := h.Objects(ctx, "order", object.ObjectsOptions{Label: status.Label(), Limit: object.MaxPage})
			n = len(found)
			return err
		})
	}))
	return n
}

// Proves F10. All of 250 stuck runs are past their trouble within 4 s after the next process has
// begun with the code put right, and not more than 100 a second are tried. If it is killed in the
// midst, the process after it tries the rest, as fast.
func TestNextProcessHealsStuckRuns(t *testing.T) {
	for _, killed := range []bool{false, true} {
		harness.Run(t, func(s *harness.Sim) {
			const n = 250
			var tries []time.Time
			wrong, right := sickCode(s, &tries)
			s.Host(wrong)
			for i := range n {
				start(s, wrong, fmt.Sprint(i), i)
			}
			s.Advance(50 * time.Second) // before the first is tried again by its alarm
			s.Always("all are stuck", labelled(s, jobs.Stuck) == n)
			paced := func() {
				for i, at := range tries {
					s.Always("not too fast", i < 10 || at.Sub(tries[i-10]) >= 100*time.Millisecond, i, at)
				}
				tries = nil
			}
			s.Restart(harness.WithCode(right))
			if killed {
				s.Advance(time.Second)
				healed := labelled(s, jobs.Completed)
				s.Always("in the midst", healed >= 90 && healed <= 120, healed)
				paced()
				s.Crash(harness.Kill)
				s.Restart()
			}
			s.Advance(4 * time.Second)
			s.Always("all are healed", labelled(s, jobs.Completed) == n, labelled(s, jobs.Completed))
			paced()
		}, promises...)
	}
}

// Proves F10. With a crash at any point each stuck run is tried by the process after it, before
// its alarm would wake it, and has its one effect.
func TestCrashHeal(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		const n = 12
		var tries []time.Time
		wrong, right := sickCode(s, &tries)
		s.Host(wrong)
		for i := range n {
			start(s, wrong, fmt.Sprint(i), i)
		}
		s.Advance(20 * time.Second)
		s.Restart(harness.WithCode(right))
		s.Advance(10 * time.Second)
		s.Always("all are healed", labelled(s, jobs.Completed) == n, labelled(s, jobs.Completed))
	}, append(promises, crashes.Budget(300))...)
}

// Proves F10. A process with code that is still wrong tries each stuck run once at its open. That
// counts like the attempt of its alarm: the next wait is the longer one, and nothing more is told.
func TestHealOfWhatStaysStuck(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		tries := 0
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(*workflow.Context, int) (string, error) { tries++; panic("at a loss") })
		s.Host(w)
		start(s, w, "1", 1)
		s.RunUntilIdle()
		for i, wait := range []time.Duration{1, 2, 4, 8, 10, 10} {
			st := status(s, w, "1")
			s.Always("tried once", tries == i+1, tries)
			s.Always("the next wait", st.Meta.Status == jobs.Stuck && st.Meta.Run.Failures == i+1 && st.Due.Sub(s.Now()) > wait*time.Minute-time.Second, i, st)
			s.Restart()
			s.Advance(500 * time.Millisecond)
		}
		s.Always("told once", told(s, w.ID("1"), jobs.EventStuck) == 1)
	}, promises...)
}

// told counts the events of a kind.
func told(s *harness.Sim, id storage.ID, kind string) (n int) {
	s.OK(s.Retry(func() error {
		n = 0
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			events, err := h.Events(ctx, id, 0, 1000)
			for _, e := range events {
				if e.Kind == kind {
					n++
				}
			}
			return err
		})
	}))
	return n
}

// reasonOf is the reason of the newest event of a kind.
func reasonOf(s *harness.Sim, id storage.ID, kind string) (reason string) {
	s.OK(s.Retry(func() error {
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			events, err := h.Events(ctx, id, 0, 1000)
			for _, e := range events {
				var of jobs.Event
				if e.Kind == kind {
					err = errors.Join(err, json.Unmarshal(e.Data, &of))
					reason = of.Reason
				}
			}
			return err
		})
	}))
	return reason
}
