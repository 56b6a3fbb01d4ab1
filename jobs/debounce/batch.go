package debounce

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Add is an event for AddAll.
type Add[E any] struct {
	ID      string // of the object, as in Job.Add
	Event   E
	Options []EventOption
}

// AddResult is the result of one Add of an AddAll.
type AddResult struct {
	Ack Ack
	Err error // nil if the event is stored
}

// AddAll adds many events and returns one result for each, in the order of all.
// Events of the same object are added in that order. Each event is a commit of
// its own, so an event that is refused does not stop the others. AddAll calls
// up to 64 objects concurrently; they share the syncs of the store, so that
// many events take little longer than one. When ctx ends, the events that were
// not added yet get its cause as their error.
func (j *Job[E, S]) AddAll(ctx context.Context, h *object.Host, all []Add[E]) []AddResult {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.ID
	}
	return addAll(ctx, h, names, func(i int) (Ack, error) {
		return j.Add(ctx, h, all[i].ID, all[i].Event, all[i].Options...)
	})
}

// addAll is AddAll for objects with these names.
func addAll(ctx context.Context, h *object.Host, names []string, add func(i int) (Ack, error)) []AddResult {
	results := make([]AddResult, len(names))
	engine.Each(h, names, 0, func(i int) {
		r := &results[i]
		if r.Err = seam.Cause(ctx); r.Err == nil {
			r.Ack, r.Err = add(i)
		}
	})
	return results
}
