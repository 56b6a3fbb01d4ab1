package program

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

func absent(err error) bool { return errors.Is(err, jobs.ErrNotFound) }

// left names something that is left to do, or is empty.
func (p *Program) left() (string, error) {
	for i := range timers {
		on := fmt.Sprintf("timer-%d", i)
		if token, err := p.pending.Call(p.ctx, p.host, on, struct{}{}); err != nil || token != 0 {
			return on, err
		}
	}
	for i := range batches {
		on := fmt.Sprintf("batch-%d", i)
		s, err := p.batch.Status(p.ctx, p.host, on)
		if err != nil && !absent(err) || s.Events > 0 || s.Flushing > 0 {
			return on, err
		}
	}
	for i := range loops {
		on := fmt.Sprintf("loop-%d", i)
		s, err := p.loop.Status(p.ctx, p.host, on)
		if err != nil && !absent(err) || s.Meta.Status == jobs.Executing {
			return on, err
		}
	}
	for _, pool := range []*workerpool.Pool[TaskInput, string]{p.pool, p.tray} {
		s, err := pool.Stats(p.ctx, p.host)
		if err != nil || s.Pending+s.Running > 0 {
			return pool.Name(), err
		}
	}
	return p.leftOfPool()
}

// leftOfPool names a partition that has yet to tell of a dead letter: a row "h/"
// is one that waits, an open execution one that is being told of.
func (p *Program) leftOfPool() (string, error) {
	for i := range Partitions {
		in, err := p.host.Inspect(p.ctx, p.pool.ID(strconv.Itoa(i)))
		if err != nil || in.Execution {
			return in.ID.Name, err
		}
		for _, k := range in.Keys {
			if strings.HasPrefix(k.Key, "h/") {
				return in.ID.Name, nil
			}
		}
	}
	return "", nil
}
