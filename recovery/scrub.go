package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Finding is an object with rows that break a promise.
type Finding struct {
	ID       storage.ID `json:"id"`      // zero: the row does not tell its object
	Promise  string     `json:"promise"` // its number in CONTRACT.md
	Problem  string     `json:"problem"`
	Suspect  bool       `json:"suspect,omitempty"` // the job may be idle by design: only its type knows
	Repaired bool       `json:"repaired,omitempty"`
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s (%s)", f.Problem, f.Promise)
	if f.ID != (storage.ID{}) {
		s = f.ID.String() + ": " + s
	}
	if f.Repaired {
		s += ", repaired"
	}
	return s
}

// Scrubbed is the result of one walk over a store.
type Scrubbed struct {
	Objects  int       `json:"objects"`  // looked at
	Suspects int       `json:"suspects"` // running without an alarm: idle by design, if they are not in Findings
	Findings []Finding `json:"findings,omitempty"`
}

// ScrubOptions say how a live store is walked.
type ScrubOptions struct {
	// Classes are those to walk. Nil means all that the store has.
	Classes []string
	// Repair wakes each object with a finding: the check of the wake-up sets the alarm
	// of an orphan, recovers a lost execution, and gives letters to dead tasks of a
	// version without them. Alarms that are due fire, also if their timer did not ring.
	Repair bool
	// Pause is the wait after each 100 objects. Zero means nine times as long as
	// these took, and at least 10 ms: so the walk takes at most a tenth of one
	// processor from the load, and 10,000 objects a second.
	Pause time.Duration
}

const (
	scrubPage  = 100
	leastPause = 10 * time.Millisecond
)

// pause is the wait after work that took some time.
func (o ScrubOptions) pause(took time.Duration) time.Duration {
	if o.Pause != 0 {
		return o.Pause
	}
	return max(leastPause, 9*took)
}

// Scrub walks the objects of an open host once and looks for those that break A1, J2, J3,
// J5, J18, R3, W1 or W10, jobs and partitions of worker pools alike, and for alarm rows that
// cannot be decoded (S9). It reads beside the turns and stops none. A suspicion counts only if
// a second look finds the same, so that a job in motion is not taken for a broken one.
// Without Repair, a job that is running without an alarm is counted as a suspect
// and not as a finding, since only its type knows whether it is idle by design.
// It ends early, with the result so far and the cause, when ctx does.
func Scrub(ctx context.Context, h *object.Host, o ScrubOptions) (Scrubbed, error) {
	s := scrubber{host: h, store: h.Store(), options: o, rested: h.Seams().Steady()}
	if o.Repair {
		h.RecheckAlarms()
	}
	classes := o.Classes
	if classes == nil {
		var err error
		if classes, err = s.store.Classes(); err != nil {
			return s.seen, err
		}
	}
	for _, class := range classes {
		if err := s.walk(ctx, class); err != nil {
			return s.seen, err
		}
	}
	return s.seen, nil
}

// ScrubStore walks a store that no host has open: first all its rows, as Store.CheckRows does
// (A1, S14), then the jobs as Scrub does, but for those of which the rows have told already. It
// changes nothing; opening a host on the store repairs each job that a wake-up can repair. It
// returns storage.ErrManyFindings with the findings so far if more than storage.MaxFindings
// rows contradict others.
func ScrubStore(store *storage.Store) (Scrubbed, error) {
	return scrubStore(context.Background(), store)
}

// scrubStore is ScrubStore with a context, which it looks at before each object.
func scrubStore(ctx context.Context, store *storage.Store) (Scrubbed, error) {
	s := scrubber{store: store, told: make(map[storage.ID]bool)}
	if err := store.CheckRows(ctx, s.tell); err != nil {
		return s.seen, err
	}
	if err := s.walkAll(ctx); err != nil && (len(s.told) == 0 || !errors.Is(err, storage.ErrCorrupt)) {
		return s.seen, err
	}
	return s.seen, nil
}

// tell makes a finding of a row that contradicts another.
func (s *scrubber) tell(id storage.ID, err error) error {
	if len(s.seen.Findings) == storage.MaxFindings {
		return storage.ErrManyFindings
	}
	s.told[id] = true
	s.seen.Findings = append(s.seen.Findings, Finding{ID: id, Promise: "S14", Problem: err.Error()})
	return nil
}

// walkAll examines all objects of a store at rest. It ends at a row of the store itself that
// cannot be decoded, which tell has told of.
func (s *scrubber) walkAll(ctx context.Context) error {
	classes, err := s.store.Classes()
	for _, class := range classes {
		if err != nil {
			break
		}
		var bad error
		err = errors.Join(s.store.Objects(class, "", func(o storage.Object) bool {
			if bad = seam.Cause(ctx); bad == nil {
				bad = s.examine(ctx, o)
			}
			return bad == nil
		}), bad)
	}
	return err
}

// ScrubEvery scrubs again and again, with the given time between, until ctx ends,
// and gives tell each walk that found something. It returns the cause of ctx's
// end, or the error of the store. A caller runs it as a task of its own.
func ScrubEvery(ctx context.Context, h *object.Host, every time.Duration, o ScrubOptions, tell func(Scrubbed)) error {
	for {
		if err := h.Seams().Sleep(ctx, every); err != nil {
			return err
		}
		seen, err := Scrub(ctx, h, o)
		if len(seen.Findings) > 0 {
			tell(seen)
		}
		if err != nil {
			return err
		}
	}
}

// Examine looks at one object of a store that no host has open, and returns the first
// contradiction between its rows, or nil; an alarm row that cannot be decoded is one. It does
// not look at A1 for the whole store, as Store.Check does.
func Examine(store *storage.Store, o storage.Object) (*Finding, error) {
	f, err := look(store, o)
	if err != nil {
		return nil, err
	}
	return f.finding(o.ID), nil
}

// finding is the first contradiction in the facts of an object, or nil.
func (f facts) finding(id storage.ID) *Finding {
	promise, problem, orphan := f.contradiction()
	if promise == "" {
		return nil
	}
	return &Finding{ID: id, Promise: promise, Problem: problem, Suspect: orphan}
}

// scrubber is one walk.
type scrubber struct {
	host    *object.Host // nil: the store is at rest
	store   *storage.Store
	options ScrubOptions
	seen    Scrubbed
	rested  time.Time           // by the steady clock
	told    map[storage.ID]bool // objects with a row that is a finding already; only of a store at rest
}

// walk examines the objects of a class, page by page.
func (s *scrubber) walk(ctx context.Context, class string) error {
	for after := ""; ; {
		var page []storage.Object
		err := s.store.Objects(class, after, func(o storage.Object) bool {
			page = append(page, o)
			return len(page) < scrubPage
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, o := range page {
			if err := s.examine(ctx, o); err != nil {
				return err
			}
		}
		after = page[len(page)-1].ID.Name
		if err := s.rest(ctx); err != nil {
			return err
		}
	}
}

// rest pauses for nine times as long as the walk has worked since its last rest, so that
// the load keeps most of the processor.
func (s *scrubber) rest(ctx context.Context) error {
	seams := s.host.Seams()
	err := seams.Sleep(ctx, s.options.pause(seams.Steady().Sub(s.rested)))
	s.rested = seams.Steady()
	return err
}

// examine looks at one object.
func (s *scrubber) examine(ctx context.Context, o storage.Object) error {
	s.seen.Objects++
	f, err := look(s.store, o)
	if err != nil {
		return err
	}
	found := f.finding(o.ID)
	if found == nil || s.told[o.ID] {
		return nil
	}
	again, err := s.again(ctx, o, f)
	if err != nil || again != f && again.damage == "" {
		return err
	}
	found = again.finding(o.ID)
	if found.Suspect {
		s.seen.Suspects++
	}
	if s.host != nil && s.options.Repair {
		if found.Repaired, err = s.repair(ctx, o); err != nil {
			return err
		}
	}
	if !found.Suspect || found.Repaired {
		s.seen.Findings = append(s.seen.Findings, *found)
	}
	return nil
}

// again returns the facts that a second look finds; none if the object has ended. A store at
// rest needs none.
func (s *scrubber) again(ctx context.Context, o storage.Object, f facts) (facts, error) {
	if s.host == nil {
		return f, nil
	}
	if err := s.rest(ctx); err != nil {
		return facts{}, err
	}
	now, err := s.store.Find(o.ID)
	if err != nil || now.Number != o.Number {
		return facts{}, err
	}
	return look(s.store, now)
}

// repair wakes an object, and reports whether a look after that finds nothing any
// more.
func (s *scrubber) repair(ctx context.Context, o storage.Object) (bool, error) {
	if err := s.host.Wake(ctx, o.ID); err != nil {
		if errors.Is(err, object.ErrStorage) || errors.Is(err, object.ErrShutdown) || context.Cause(ctx) != nil {
			return false, err
		}
		return false, nil // its class is gone, or its constructor fails: the finding stays
	}
	now, err := s.store.Find(o.ID)
	if err != nil {
		return false, err
	}
	f, err := look(s.store, now)
	left, _, _ := f.contradiction()
	return left == "" && err == nil, err
}
