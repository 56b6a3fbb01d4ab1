package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
)

// ErrArmed refuses to replay the dead letter of an alarm, because its object has set another alarm
// meanwhile, which the replay would replace.
var ErrArmed = errors.New("admin: the object has set another alarm meanwhile")

// ReplayDead makes the work of one dead letter due again, with all its attempts: a task or a run by
// the verb of its job type, and an alarm or a message by the host. It returns ErrArmed for an alarm if
// the object has another one, unless replace says that the replayed one takes its place.
//
// It returns object.ErrNoDeadLetter if the letter is gone, object.ErrUseVerb for a job type that the
// program does not define and for a timer, ErrNoProgram, and the errors of the verb and of
// object.Host.ReplayDeadLetter.
func (a *Admin) ReplayDead(ctx context.Context, id storage.ID, seq uint64, replace bool) error {
	if known, err := a.takeDead(ctx, id, seq, true); known || err != nil {
		return err
	}
	if replace {
		return a.host.ReplayDeadLetter(ctx, id, seq)
	}
	replayed, err := a.host.ReplayIfUnarmed(ctx, id, seq)
	if err == nil && !replayed {
		err = fmt.Errorf("%s: %w", id, ErrArmed)
	}
	return err
}

// DiscardDead gives the work of one dead letter up for good: to discard the letter of a run is to
// terminate the run. Its errors are those of ReplayDead without ErrArmed.
func (a *Admin) DiscardDead(ctx context.Context, id storage.ID, seq uint64) error {
	if known, err := a.takeDead(ctx, id, seq, false); known || err != nil {
		return err
	}
	return a.host.DiscardDeadLetter(ctx, id, seq)
}

// takeDead replays or discards a letter that is still there by the verb of its job type. known is
// false, and nothing is done, if no job type knows it.
func (a *Admin) takeDead(ctx context.Context, id storage.ID, seq uint64, replay bool) (known bool, err error) {
	if a.host == nil {
		return false, fmt.Errorf("%w: dead letter %d of %s", ErrNoProgram, seq, id)
	}
	d, err := a.host.DeadLetter(ctx, id, seq)
	if err != nil {
		return false, err
	}
	if table := a.tables[id.Class]; table != nil {
		return table.TakeDead(ctx, a.host, d, replay)
	}
	return false, nil
}
