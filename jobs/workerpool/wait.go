package workerpool

import (
	"context"
)

// wait returns the task when it has ended. It lends the turn to others meanwhile.
func (p *partition) wait(ctx context.Context, num uint64) (*row, error) {
	for {
		r, err := p.look(ctx, num)
		if err != nil || r.state.Ended() {
			return r, err
		}
		if err := p.await(ctx, num); err != nil {
			return nil, err
		}
	}
}

// waitEmpty returns when no task is pending or running.
func (p *partition) waitEmpty(ctx context.Context, _ struct{}) (struct{}, error) {
	for p.pending+p.running > 0 {
		if err := p.await(ctx, 0); err != nil {
			return struct{}{}, err
		}
	}
	return struct{}{}, nil
}

// await waits until somebody tells of num.
func (p *partition) await(ctx context.Context, num uint64) error {
	told := p.waiters[num]
	if told == nil {
		told = make(chan struct{})
		p.waiters[num] = told
	}
	return p.st.Release(ctx, func(ctx context.Context) error {
		return p.st.Seams().Executor.Wait(ctx, told)
	})
}
