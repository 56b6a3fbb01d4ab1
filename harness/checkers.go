package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/storage"
)

// check is a checker. Its functions may be nil.
type check struct {
	name    string
	promise string                                // such as "O7: nothing leaves ..."
	stored  func(s *Sim, view *storedState) error // of each state that a crash leaves, and of the last
	crashed func(s *Sim, view *storedState)       // at each crash, with what it leaves
	end     func(s *Sim) error                    // after the scenario has settled
}

func checker(ch check) Option { return func(c *Config) { c.checks = append(c.checks, ch) } }

// NoLostAck checks that no reply is let out before the commit of its turn is
// synced. That an acknowledged change is still there at the end is for
// StateMatches, or the scenario, to say.
func NoLostAck(c *Config) { c.gateCheck = true }

// NoTornBatch checks that a crash leaves what the first commits make, in their
// order and each as a whole. It keeps a second store in a map to compare with.
func NoTornBatch(c *Config) {
	c.shadow = true
	checker(check{
		name:    "NoTornBatch",
		promise: "S9: surviving commits are a prefix of the commit order (and O6: a turn commits as one unit)",
		stored:  func(s *Sim, _ *storedState) error { return s.compareShadow() },
	})(c)
}

// OneAlarm checks in each state that a crash leaves that every alarm row has one
// entry in the time index, and the reverse; and that no row is without its object.
func OneAlarm(c *Config) {
	checker(check{
		name:    "OneAlarm",
		promise: "A1: in every stored state each alarm row has exactly one index entry and the reverse",
		stored:  func(_ *Sim, view *storedState) error { return view.Check() },
	})(c)
}

// NeverOrphaned checks in each state that a crash leaves that an object with an
// open execution has an alarm, so that somebody will look after it.
func NeverOrphaned(c *Config) {
	checker(check{
		name:    "NeverOrphaned",
		promise: "J5: status running or executing without an alarm cannot be stored",
		stored:  func(_ *Sim, view *storedState) error { return eachObject(view, notOrphaned(view)) },
	})(c)
}

func notOrphaned(view *storedState) func(storage.Object) error {
	return func(o storage.Object) error {
		_, open, err := view.Open(o)
		if err != nil || !open {
			return err
		}
		_, armed, err := view.Alarm(o)
		if err == nil && !armed {
			err = fmt.Errorf("%s has an open execution and no alarm", o.ID)
		}
		return err
	}
}

func eachObject(view *storedState, f func(storage.Object) error) error {
	classes, err := view.Classes()
	if err != nil {
		return err
	}
	for _, class := range classes {
		var bad error
		err := view.Objects(class, "", func(o storage.Object) bool {
			bad = f(o)
			return bad == nil
		})
		if bad != nil {
			return bad
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RecoversWithin checks that no execution which a crash cut off is left as it was
// d after the crash. The scenario settles for at least as long.
func RecoversWithin(d time.Duration) Option {
	return func(c *Config) {
		c.settle = max(c.settle, d+time.Second)
		checker(check{crashed: func(s *Sim, view *storedState) {
			cut, crashes := openMarks(view), s.crashes
			s.m.AfterFunc(d+s.cfg.downtime, func() {
				if s.crashes != crashes || !s.alive() {
					return
				}
				now := openMarks(s.Store())
				for mark := range cut {
					if now[mark] {
						s.fail("R7: with faults over, every job reaches a scheduled or a terminal state",
							"RecoversWithin: %v after the crash the open execution %q is as it was", d, mark)
					}
				}
			})
		}})(c)
	}
}

func openMarks(view *storedState) map[string]bool {
	marks := make(map[string]bool)
	_ = view.OpenMarks(func(_ int, value []byte) error {
		marks[string(value)] = true
		return nil
	})
	return marks
}

// NoDoubleEffect checks that no effect whose key begins with prefix was done to
// the World twice.
func NoDoubleEffect(prefix string) Option {
	return checker(check{name: "NoDoubleEffect", end: func(s *Sim) error {
		for key, n := range s.world.counts {
			if strings.HasPrefix(key, prefix) && n > 1 {
				return fmt.Errorf("effect %q was done %d times", key, n)
			}
		}
		return nil
	}})
}

// AtMostOncePerCrash checks that between two crashes no effect whose key begins
// with prefix was done to the World twice: a run may repeat for a crash, and for
// nothing else.
func AtMostOncePerCrash(prefix string) Option {
	return checker(check{name: "AtMostOncePerCrash", end: func(s *Sim) error {
		last := make(map[string]Effect)
		for _, e := range s.world.log {
			if !strings.HasPrefix(e.Key, prefix) {
				continue
			}
			if before, ok := last[e.Key]; ok && before.Crashes == e.Crashes {
				return fmt.Errorf("effect %q was done at %s and again at %s, with no crash between", e.Key, before.Time.Sub(machine.Epoch), e.Time.Sub(machine.Epoch))
			}
			last[e.Key] = e
		}
		return nil
	}})
}

// Invariant adds a check of each state that a crash leaves, and of the last. The
// store is a copy: no code of a host has run on it.
func Invariant(name string, ok func(store *storage.Store) error) Option {
	return checker(check{name: name, stored: func(_ *Sim, view *storedState) error { return ok(view) }})
}

// StateMatches adds a check of the state that a run ends with, against what the
// test knows it must be.
func StateMatches(model func(s *Sim) error) Option {
	return checker(check{name: "StateMatches", end: model})
}

// Stored decodes a value that an object has stored with the default codec, JSON,
// and reports whether there is one.
func Stored(store *storage.Store, id storage.ID, key string, value any) (bool, error) {
	o, err := store.Find(id)
	if err != nil || o.Number == 0 {
		return false, err
	}
	b, ok, err := store.Data(nil, o, key)
	if err != nil || !ok {
		return false, err
	}
	return true, json.Unmarshal(b, value)
}
