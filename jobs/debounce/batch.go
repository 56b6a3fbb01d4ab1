package debounce

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Add is an event to be added by AddAll.
type Add[E any] struct {
	ID      string // of the object
	Event   E
	Options []jobs.EventOption
}

// AddResult is what became of an Add.
type AddResult struct {
	Ack Ack
	Err error // nil: the event is stored, as Ack says
}

// AddAll adds many events, as Add adds one, and returns the results in the order of
// its argument. Events of one object are added in that order. Each event is a commit of
// its own: one that is refused does not concern the others. At most 64 objects are
// called at a time, and they share the syncs of the store, so that many take little
// longer than one. When ctx ends, events that were not added yet get its cause.
func (j *Job[E, S]) AddAll(ctx context.Context, h *object.Host, all []Add[E]) []AddResult {
	names, results := make([]string, len(all)), make([]AddResult, len(all))
	for i, a := range all {
		names[i] = a.ID
	}
	jobs.Each(h, names, 0, func(i int) {
		r := &results[i]
		if r.Err = context.Cause(ctx); r.Err == nil {
			r.Ack, r.Err = j.Add(ctx, h, all[i].ID, all[i].Event, all[i].Options...)
		}
	})
	return results
}
