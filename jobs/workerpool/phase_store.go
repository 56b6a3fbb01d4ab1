package workerpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// turn runs fn as a turn of the partition with the phases of the task, while the execution
// of a is open.
func (a *attempt) turn(ctx context.Context, fn func(ctx context.Context, r *phaseRow) error, opts ...object.CallOption) error {
	p := a.part
	return p.st.Do(ctx, func(ctx context.Context) error {
		return p.engine.Turn(ctx, func(ctx context.Context) error {
			if p.executing[a.num].token != a.token {
				return fmt.Errorf("task %s: %w", p.id(a.num), p.engine.Stale(a.token))
			}
			r, err := p.phases(ctx, a.num)
			if err != nil {
				return err
			}
			return fn(ctx, r)
		})
	}, opts...)
}

// spaceEvery is how long a phase waits between two looks whether there is space again.
const spaceEvery = time.Second

// store is turn for a change without which the task cannot go on: while the disk is nearly
// full it waits for space, because the work that is done needs no second attempt. It gives
// up when ctx ends or the host shuts down.
func (a *attempt) store(ctx context.Context, fn func(ctx context.Context, r *phaseRow) error) error {
	for {
		err := a.turn(ctx, fn)
		if !errors.Is(err, object.ErrNoSpace) || a.part.st.Closing() {
			return err
		}
		if a.part.st.Driver().Seams().Sleep(ctx, spaceEvery) != nil {
			return err
		}
	}
}
