package why

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Source is a store of which reasons are asked: that of an open host, or one that no process has
// open. Make one by Live or Cold. It may be used by many goroutines at a time.
type Source struct {
	store   *storage.Store
	host    *object.Host // nil: cold
	at      time.Time    // of a cold look
	planned map[string]schedule
}

// Live is the store of an open host. definitions may be those of the host, or none: with them the
// answers also tell whether a job has a schedule.
//
// An answer is of the moment: it does not wait for the disk, because a disk that does not answer
// is one of the reasons. So it may tell of a commit that a power failure takes back.
func Live(h *object.Host, definitions ...object.Definition) Source {
	return Source{store: h.Store(), host: h, planned: schedules(definitions)}
}

// Cold is a store that no process has open, as it is at the given time. It should be opened by
// storage.OpenReadOnly, so that the look leaves no trace. For definitions see Live.
func Cold(store *storage.Store, now time.Time, definitions ...object.Definition) Source {
	return Source{store: store, at: now, planned: schedules(definitions)}
}

// schedules are the continuous jobs among the definitions.
func schedules(definitions []object.Definition) map[string]schedule {
	planned := make(map[string]schedule)
	for _, d := range definitions {
		job, ok := d.(interface {
			Name() string
			Scheduled() bool
		})
		switch {
		case !ok, isNil(d): // Open tells of the mistake
		case job.Scheduled():
			planned[job.Name()] = has
		default:
			planned[job.Name()] = hasNone
		}
	}
	return planned
}

// now is the time of a look.
func (s Source) now() time.Time {
	if s.host != nil {
		return s.host.Seams().Clock.Now().Round(0).UTC()
	}
	return s.at
}

// check refuses a Source that Live or Cold has not made.
func (s Source) check() error {
	if s.store == nil {
		return errors.New("why: the Source has no store: make it by Live or Cold")
	}
	return nil
}

// lookLive fills in the facts of the process. A turn that is young is looked at twice, because
// no turn reads a clock: the same turn in both looks has held the object for that long.
func (s Source) lookLive(ctx context.Context, f *facts) error {
	f.store.cold = s.host == nil
	f.store.previous, f.store.dormant = s.store.Previous(), s.store.Dormant()
	if s.host == nil {
		if err := s.store.LookAtSpace(); err != nil {
			f.store.noSpace = err.Error()
		}
		return nil
	}
	e, err := s.host.Explain(ctx, f.id)
	if err != nil {
		return err
	}
	if first := e.Turn; first != nil && first.Since.IsZero() {
		since := e.At
		if err := s.host.Seams().Sleep(ctx, young); err != nil {
			return err
		}
		if e, err = s.host.Explain(ctx, f.id); err != nil {
			return err
		}
		if e.Turn != nil && e.Turn.Number == first.Number && e.Turn.Since.IsZero() {
			e.Turn.Since = since
		}
	}
	f.now = s.now()
	f.live = &e
	f.store.failed, f.store.closing, f.store.noSpace, f.store.parked = e.Failed, e.Closing, e.NoSpace, !e.Registered
	return nil
}

// isNil reports whether a definition is a nil pointer.
func isNil(d object.Definition) bool {
	v := reflect.ValueOf(d)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
