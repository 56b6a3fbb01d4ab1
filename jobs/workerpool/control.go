package workerpool

import (
	"context"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Mode says what a partition does with tasks.
type Mode uint8

// The modes of a partition. A mode is stored: it outlives the process.
const (
	Open     Mode = iota // takes tasks and runs them
	Paused               // takes tasks and begins none; what runs goes on
	Draining             // takes no tasks and runs what it has
)

var modeNames = [...]string{"open", "paused", "draining"}

// String is the name of the mode in lower case.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return "mode " + strconv.Itoa(int(m))
	}
	return modeNames[m]
}

// MarshalText is String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is the inverse of MarshalText. Its error is a jobs.ErrInvalid.
func (m *Mode) UnmarshalText(b []byte) error { return named(m, modeNames[:], "mode", b) }

// Stats are the tasks of a pool or a partition, since it began:
// Submitted = Pending + Running + Done + Dead + Cancelled.
type Stats struct {
	Mode       Mode   `json:"mode"` // of the partition; of the pool, that of partition 0
	Submitted  uint64 `json:"submitted"`
	Pending    uint64 `json:"pending"`
	Running    uint64 `json:"running"`
	Done       uint64 `json:"done"`
	Dead       uint64 `json:"dead"` // dead letters there are
	Cancelled  uint64 `json:"cancelled"`
	Executions uint64 `json:"executions"` // attempts begun in all
	Lost       uint64 `json:"lost"`       // of these, cut off by a crash, a shutdown or the end of a lease
	// Partitions are the parts of which the others are the sums.
	Partitions []Stats `json:"partitions,omitempty"`
}

func (s *Stats) add(o Stats) {
	s.Submitted += o.Submitted
	s.Pending += o.Pending
	s.Running += o.Running
	s.Done += o.Done
	s.Dead += o.Dead
	s.Cancelled += o.Cancelled
	s.Executions += o.Executions
	s.Lost += o.Lost
}

// Check returns an error if W1 does not hold in s.
func (s Stats) Check() error {
	if sum := s.Pending + s.Running + s.Done + s.Dead + s.Cancelled; sum != s.Submitted {
		return fmt.Errorf("workerpool: %d tasks were submitted and %d are known: %+v", s.Submitted, sum, s)
	}
	for _, part := range s.Partitions {
		if err := part.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) stats(context.Context, struct{}) (Stats, error) {
	return Stats{
		Mode: p.mode, Submitted: p.submitted, Pending: p.pending, Running: p.running,
		Done: p.done, Dead: p.dead, Cancelled: p.cancelled,
		Executions: p.executions, Lost: p.lost,
	}, nil
}

// known tells partition 0 that the pool has n partitions, and returns the most it
// has ever had.
func (p *partition) known(ctx context.Context, n int) (int, error) {
	if uint64(n) <= p.counters.partitions {
		return int(p.counters.partitions), nil
	}
	return turn(ctx, p, func(context.Context) (int, error) {
		p.counters.partitions, p.dirty = uint64(n), true
		return n, nil
	})
}

// setMode moves to a mode. A partition that was never used stays unused when it
// is told to open.
func (p *partition) setMode(ctx context.Context, m Mode) (struct{}, error) {
	if p.mode == m {
		return struct{}{}, nil
	}
	return turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		p.mode, p.dirty = m, true
		return struct{}{}, p.st.Emit(ctx, EventMode, jobs.Event{Reason: m.String()})
	})
}

// cancel takes a pending task back, or asks a running one to end. It returns the
// state of the task after that.
func (p *partition) cancel(ctx context.Context, num uint64) (State, error) {
	if a, runs := p.opened[num]; runs {
		return Running, p.askToEnd(ctx, num, a.token)
	}
	r, ok, err := p.task(ctx, num)
	if err != nil {
		return 0, err
	}
	if !ok {
		r, err := p.ended(ctx, num)
		if err != nil {
			return 0, err
		}
		return r.state, nil
	}
	return turn(ctx, p, func(ctx context.Context) (State, error) {
		return Cancelled, p.dropAll(ctx, []*row{r})
	})
}

func (p *partition) askToEnd(ctx context.Context, num uint64, t jobs.Token) error {
	_, err := turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		r, err := p.rowOf(ctx, num)
		if err != nil || r.rare.Cancelling {
			return struct{}{}, err
		}
		asked := *r
		asked.rare.Cancelling = true
		if err := p.put(ctx, taskKey(num), &asked); err != nil {
			return struct{}{}, err
		}
		p.opened[num] = active{t, &asked}
		p.engine.Cancel(t, ErrCancelled)
		return struct{}{}, nil
	})
	return err
}
