package harness

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// OneAlarm checks in each state that a crash leaves that every alarm row has one
// entry in the time index, and the reverse; and that no row is without its object.
func OneAlarm(c *Config) {
	checker(check{
		name:    "OneAlarm",
		promise: promiseOneAlarm.String(),
		stored:  func(_ *Sim, view *storedState) error { return view.Check() },
	})(c)
}

// NeverOrphaned checks, in each state that a crash leaves, that everything open will be
// taken up again. An object with an open execution has an alarm. A job that is
// executing by its metadata has an open execution. A job at rest has no alarm, and a
// running continuous or debounce job has one; a debounce object without events has it
// for its end (D6), and a continuous job without a schedule needs none. RecoversWithin
// checks that the work then gets done. A stuck workflow is no orphan: NoStuck finds it.
func NeverOrphaned(c *Config) {
	checker(check{
		name:    "NeverOrphaned",
		promise: promiseOrphan.String(),
		stored: func(s *Sim, view *storedState) error {
			return eachObject(view, func(o storage.Object) error { return s.notOrphaned(view, o) })
		},
	})(c)
}

// notOrphaned asks the scrubber, because the rules are those of the scrubber.
func (s *Sim) notOrphaned(view *storedState, o storage.Object) error {
	found, err := recovery.Examine(view, o)
	if err != nil || found == nil || found.Suspect && !s.alwaysArmed(view, o) {
		return err
	}
	return concerning{fmt.Errorf("%s: %s (%s)", o.ID, found.Problem, found.Promise), o.ID.String()}
}

// alwaysArmed reports whether the job is of a type that has its next alarm whenever it
// is running. A continuous job without a schedule in its definition rests until it is
// triggered, and a debounce job may owe calls of a hook that its definition does not
// have any more.
func (s *Sim) alwaysArmed(view *storedState, o storage.Object) bool {
	meta, ok, err := metaOf(view, o)
	if !ok || err != nil {
		return false
	}
	return meta.Type == "continuous" && s.scheduled(o.ID.Class) || meta.Type == "debounce" && meta.Hooks == 0
}

// scheduled reports whether jobs of a class run by a schedule, as far as is known.
func (s *Sim) scheduled(class string) bool {
	for _, d := range s.defs {
		if job, ok := d.(interface {
			Name() string
			Scheduled() bool
		}); ok && job.Name() == class {
			return job.Scheduled()
		}
	}
	return true
}

// RecoversWithin checks that no execution which a crash cut off is left as it was
// d after the crash. The scenario settles for at least as long.
func RecoversWithin(d time.Duration) Option {
	return func(c *Config) {
		c.settle = max(c.settle, d+time.Second)
		checker(check{name: "RecoversWithin", crashed: func(s *Sim, view *storedState) {
			cut, crashes := openMarks(view), s.crashes
			s.m.AfterFunc(d+s.cfg.downtime, func() {
				if s.crashes == crashes && s.alive() {
					s.report("RecoversWithin", promiseRecovered.String(), recovered(cut, openMarks(s.Store()), d))
				}
			})
		}})(c)
	}
}

// recovered compares the executions that a crash interrupted with those that are open
// now.
func recovered(cut, now map[string]string, d time.Duration) error {
	for _, id := range sortedKeys(cut) {
		if now[id] == cut[id] {
			return concerning{fmt.Errorf("%v after the crash the open execution of %s is as the crash left it", d, id), id}
		}
	}
	return nil
}

// openMarks are the open executions of a store: their marks, by object.
func openMarks(view *storedState) map[string]string {
	marks := make(map[string]string)
	_ = eachObject(view, func(o storage.Object) error {
		mark, ok, err := view.OpenMark(o)
		if ok {
			marks[o.ID.String()] = string(mark)
		}
		return err
	})
	return marks
}
