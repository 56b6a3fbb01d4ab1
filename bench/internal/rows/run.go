package rows

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Run measures a case: both sides in turn, some rounds. tell is told of each
// round before it begins.
func (c *Case) Run(ctx context.Context, e *Env, rounds int, tell func(round, of int)) (_ *Result, err error) {
	if c.Rounds > 0 {
		rounds = min(rounds, c.Rounds)
	}
	pair, err := c.Prepare(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("%s %s: prepare: %w", c.ID, c.Size, err)
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	var ours, reference []Sample
	for i := range rounds {
		tell(i+1, rounds)
		// Each side goes first in every second round.
		sides := []struct {
			side Side
			to   *[]Sample
		}{{pair.Ours, &ours}, {pair.Reference, &reference}}
		if i%2 == 1 {
			sides[0], sides[1] = sides[1], sides[0]
		}
		for _, s := range sides {
			if s.side == nil {
				continue
			}
			runtime.GC() // neither side pays for garbage of the other
			sample, err := s.side(ctx)
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", c.ID, c.Size, err)
			}
			*s.to = append(*s.to, sample)
		}
	}
	return c.result(ours, reference), nil
}
