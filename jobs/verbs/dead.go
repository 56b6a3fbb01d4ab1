package verbs

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
)

// Dead says how the dead letters of a job type are replayed and discarded by its verbs.
type Dead struct {
	// Kind is that of the letters, for example workerpool.DeadTask.
	Kind string
	// ID returns the id of the job, or the task, that a letter is of.
	ID func(d object.DeadLetter) (id string, err error)
	// Replay and Discard are the names of verbs without an argument that must be given.
	Replay, Discard string
}

// WithDead returns the table of a job type with dead letters.
func (t *Table) WithDead(d Dead) *Table {
	with := *t
	with.dead = &d
	return &with
}

// TakeDead replays or discards the work of a dead letter by the verb of the job type. known is
// false, and nothing is done, if the type has no letters of the kind. The errors are those of Do.
func (t *Table) TakeDead(ctx context.Context, from object.Caller, d object.DeadLetter, replay bool) (known bool, err error) {
	if t.dead == nil || t.dead.Kind != d.Kind {
		return false, nil
	}
	id, err := t.dead.ID(d)
	if err != nil {
		return true, err
	}
	verb := t.dead.Discard
	if replay {
		verb = t.dead.Replay
	}
	_, err = t.Do(ctx, from, id, verb, nil)
	return true, err
}
