package workerpool

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/object"
)

// wait returns the task when it has ended. It lends the turn to others meanwhile.
// While the host shuts down, it waits for a task that runs in this process, and for
// no other: none will begin, and nobody outside can tell of an end.
func (p *partition) wait(ctx context.Context, num uint64) (*row, error) {
	for {
		r, err := p.look(ctx, num)
		if err != nil || r.state.Ended() {
			return r, err
		}
		if err := p.await(ctx, num, r.state == Running); err != nil {
			return nil, err
		}
	}
}

// waitEmpty returns when no task is pending or running.
func (p *partition) waitEmpty(ctx context.Context, _ struct{}) (struct{}, error) {
	for p.pending+p.running > 0 {
		if err := p.await(ctx, 0, p.pending == 0); err != nil {
			return struct{}{}, err
		}
	}
	return struct{}{}, nil
}

// await waits until somebody tells of num. If that does not run in this process, the
// beginning of a shutdown ends the wait: once without an error, so that the caller
// looks again whether it runs by now, and then with object.ErrShutdown.
func (p *partition) await(ctx context.Context, num uint64, runs bool) error {
	told := p.waiters[num]
	if told == nil {
		told = make(chan struct{})
		p.waiters[num] = told
	}
	if runs && p.set.work != nil {
		return p.st.Release(ctx, func(ctx context.Context) error {
			return p.st.Seams().Executor.Wait(ctx, told)
		})
	}
	began := p.st.Closing()
	err := p.st.Await(ctx, told)
	if errors.Is(err, object.ErrShutdown) && !began {
		return nil
	}
	return err
}
