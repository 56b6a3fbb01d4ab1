package workflowtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/storage"
)

// play executes the workflow in a simulation.
func play[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], in In, around *world) *ending[Out] {
	for _, begin := range around.begins {
		begin()
	}
	s.Host(append(slices.Clone(around.defs), w)...)
	s.OK(s.Retry(func() error {
		_, err := w.Start(s.Context(), s, id, in)
		return err
	}))
	e, began := &ending[Out]{started: s.Crashes() == 0}, s.Now()
	for _, a := range around.acts {
		s.Advance(began.Add(a.after).Sub(s.Now()))
		if err := s.Retry(func() error { return a.do(s, w) }); err != nil {
			around.fail(s, "%s is refused %s after the start: %v", a.what, a.after, err)
		}
	}
	around.untilEnd(s, func() (workflow.Status, error) { return w.Status(s.Context(), s, id) })
	e.err = s.Retry(func() (err error) {
		e.out, err = w.Wait(s.Context(), s, id)
		return err
	})
	for _, look := range around.looks {
		e.outside = append(e.outside, fmt.Sprintf("%+v", look()))
	}
	return e
}

// untilEnd lets time pass until the run has ended: from one stored alarm to the next, because
// nothing happens between them.
func (w *world) untilEnd(s *harness.Sim, look func() (workflow.Status, error)) {
	const longest = 500 // looks
	for looks, quiet := 0, 0; ; looks++ {
		s.RunUntilIdle()
		var st workflow.Status
		s.OK(s.Retry(func() (err error) {
			st, err = look()
			return err
		}))
		next, due := nextAlarm(s)
		w.stuckBeside(s)
		switch {
		case st.Meta.Status.Ended():
			return
		case st.Meta.Status == jobs.Stuck:
			w.stuck(s, "the run", st.Meta.LastError)
		case looks == longest:
			w.fail(s, "the run has not ended after %d waits: it waits for %s", longest, waits(st))
		case due:
			s.Advance(max(next.Sub(s.Now()), time.Second))
			quiet = 0
		case quiet == 3: // minutes, in which a message is tried again
			w.fail(s, "the run waits for %s, and nothing more comes: give Run a workflowtest.Signal", waits(st))
		default:
			s.Advance(time.Minute)
			quiet++
		}
	}
}

// stuck ends the simulation because a run cannot go on.
func (w *world) stuck(s *harness.Sim, run, why string) {
	if s.Crashes() > 0 {
		why += "\n" + remedy
	}
	w.fail(s, "%s is stuck\n%s", run, why)
}

// stuckBeside ends the simulation if a job of With is stuck, such as a child that the run would
// wait for without end.
func (w *world) stuckBeside(s *harness.Sim) {
	view := s.Store()
	for _, d := range w.defs {
		named, ok := d.(interface{ Name() string })
		if !ok {
			continue
		}
		s.OK(view.Objects(named.Name(), "", func(o storage.Object) bool {
			var meta jobs.Meta
			if ok, err := harness.Stored(view, o.ID, jobs.MetaKey, &meta); ok && err == nil && meta.Status == jobs.Stuck { // else it is no job
				w.stuck(s, o.ID.String(), meta.LastError)
			}
			return true
		}))
	}
}

// nextAlarm is the earliest alarm that is stored.
func nextAlarm(s *harness.Sim) (at time.Time, ok bool) {
	alarms, err := s.Store().ScanAlarms(0, 0, 0, 1) // there is one shard
	s.OK(err)
	if len(alarms) == 0 {
		return at, false
	}
	return time.Unix(0, alarms[0].Due), true
}

// waits tells the waits of a run.
func waits(st workflow.Status) string {
	all := make([]string, len(st.Waits))
	for i, w := range st.Waits {
		all[i] = strings.TrimSpace(w.Kind + " " + w.Name)
		if !w.Until.IsZero() {
			all[i] += " until " + w.Until.Format(time.RFC3339)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "a step")
}

// fail ends the simulation with a problem of the run.
func (w *world) fail(s *harness.Sim, format string, args ...any) {
	when := "without a crash"
	if s.Crashes() > 0 {
		when = "after a crash"
	}
	w.problem = fmt.Sprintf(when+" "+format, args...)
	s.Fatalf("%s", w.problem)
}
