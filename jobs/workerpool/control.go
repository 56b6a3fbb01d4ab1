package workerpool

import (
	"context"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Mode says whether a partition accepts tasks and whether it begins them.
type Mode uint8

// The modes of a partition. The mode is stored, so it survives a restart.
const (
	Active   Mode = iota // accepts tasks and begins them; its text is "open"
	Paused               // accepts tasks and begins none; running tasks continue
	Draining             // refuses tasks with ErrDraining and runs those it has
)

var modeNames = [...]string{"open", "paused", "draining"}

// String is the text of the mode, "open", "paused" or "draining". Events and JSON have it
// too, so it stays "open" for Active.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return "mode " + strconv.Itoa(int(m))
	}
	return modeNames[m]
}

// MarshalText is String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name of a mode. It returns a jobs.ErrInvalid for any
// other text.
func (m *Mode) UnmarshalText(b []byte) error { return named(m, modeNames[:], "mode", b) }

// Stats counts the tasks of a pool or of one partition since it was first used:
//
//	Submitted = Pending + Running + Done + Dead + Cancelled
type Stats struct {
	Mode       Mode   `json:"mode"` // of the partition; for a pool, that of partition 0
	Submitted  uint64 `json:"submitted"`
	Pending    uint64 `json:"pending"`
	Running    uint64 `json:"running"`
	Done       uint64 `json:"done"`
	Dead       uint64 `json:"dead"` // dead letters now stored; a replayed one is pending again
	Cancelled  uint64 `json:"cancelled"`
	Executions uint64 `json:"executions"` // attempts that have begun
	Lost       uint64 `json:"lost"`       // attempts cut off by a crash, a shutdown or an expired lease
	// Partitions has the counts of each partition; the fields above are their
	// sums.
	Partitions []Stats `json:"partitions,omitempty"`
}

// add adds the counts of a partition to those of the pool.
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

// Check returns an error if the sum above does not hold, in s or in one of its
// partitions. It holds in every stored state (W1), so an error means damage.
func (s Stats) Check() error {
	if sum := s.Pending + s.Running + s.Done + s.Dead + s.Cancelled; sum != s.Submitted {
		return fmt.Errorf("workerpool: %d tasks were submitted, but the states add up to %d: %+v", s.Submitted, sum, s)
	}
	for _, part := range s.Partitions {
		if err := part.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Stats counts the tasks of all partitions. It reads one partition after
// another, so while tasks move the sum is not of one moment.
//
//go:noinline
func (p *control) Stats(ctx context.Context, from object.Caller) (Stats, error) {
	var sum Stats
	err := p.pool.objects(ctx, from, func(name string) error {
		part, err := p.pool.calls.stats(ctx, from, name, struct{}{})
		sum.add(part)
		sum.Partitions = append(sum.Partitions, part)
		return err
	})
	if err == nil {
		sum.Mode = sum.Partitions[0].Mode
	}
	return sum, err
}

// Pause stops tasks from beginning until Resume. Running tasks continue, and
// Enqueue accepts tasks. Pause ends a Drain.
//
//go:noinline
func (p *control) Pause(ctx context.Context, from object.Caller) error {
	return p.pool.setMode(ctx, from, Paused)
}

// Resume ends a Pause or a Drain. It is a call, as all verbs of a whole pool are: with the
// Outbox of a State they return object.ErrNeedsAnswer. A message would wait behind the tasks
// that the pool refuses, and a Resume among them would never come.
//
//go:noinline
func (p *control) Resume(ctx context.Context, from object.Caller) error {
	return p.pool.setMode(ctx, from, Active)
}

// Drain makes the pool refuse tasks with ErrDraining and waits until all stored
// tasks have ended. Resume makes the pool active again. Drain ends a Pause.
//
// If ctx ends first, or if the host shuts down while tasks are pending or
// claimed (object.ErrShutdown), the pool stays draining, and a later Drain
// waits again.
//
//go:noinline
func (p *control) Drain(ctx context.Context, from object.Caller) error {
	if err := p.pool.setMode(ctx, from, Draining); err != nil {
		return err
	}
	return p.pool.objects(ctx, from, func(name string) error {
		_, err := again(func() (struct{}, error) { return p.pool.calls.waitEmpty(ctx, from, name, struct{}{}) })
		return err
	})
}

// setMode sets the mode of all partitions, one after another.
func (p *pool) setMode(ctx context.Context, from object.Caller, m Mode) error {
	return p.objects(ctx, from, func(name string) error {
		_, err := p.calls.mode(ctx, from, name, m)
		return err
	})
}

// Cancel cancels a pending task at once and returns Cancelled. For a running
// task it returns Running: the context of its Work ends with ErrCancelled as
// its cause, a worker that claimed it learns so from Heartbeat, and the task
// ends as done if it succeeds all the same, and as cancelled otherwise. For a
// task that has ended Cancel changes nothing and returns its state. Error:
// jobs.ErrNotFound.
//
// With the Outbox of a State as from, Cancel happens if and only if the turn commits, a
// little later, and returns Sent. It waits behind tasks that its partition refuses; see
// Enqueue. If the task is not known then, the request becomes a dead letter of its partition.
//
//go:noinline
func (p *control) Cancel(ctx context.Context, from object.Caller, id TaskID) (State, error) {
	if !id.valid() { // a partition of that number would refuse each message
		return 0, fmt.Errorf("%s: %w: task %s", p.pool.set.name, jobs.ErrNotFound, id)
	}
	return p.pool.calls.cancel(ctx, from, id.object(), id.Number)
}

// Discard cancels the tasks that are pending now and returns how many it
// cancelled. A task that begins before its turn to be cancelled runs to its
// end.
//
//go:noinline
func (p *control) Discard(ctx context.Context, from object.Caller) (int, error) {
	total := 0
	err := p.pool.objects(ctx, from, func(name string) error {
		for part := (discardPart{}); ; {
			res, err := p.pool.calls.discard(ctx, from, name, part)
			total += res.Count
			if err != nil || res.Last == 0 {
				return err
			}
			part = discardPart{res.After, res.Last}
		}
	})
	return total, err
}

// stats reads the counters of this partition.
func (p *partition) stats(context.Context, struct{}) (Stats, error) { return p.told(), nil }

// told is the counters as users see them.
func (c *counters) told() Stats {
	return Stats{
		Mode: c.mode, Submitted: c.submitted, Pending: c.pending, Running: c.running,
		Done: c.done, Dead: c.dead, Cancelled: c.cancelled,
		Executions: c.executions, Lost: c.lost,
	}
}

// known is called on partition 0: it notes that the pool has n partitions and
// returns the most that it has ever had.
func (p *partition) known(ctx context.Context, n int) (int, error) {
	if uint64(n) <= p.counters.partitions {
		return int(p.counters.partitions), nil
	}
	return turn(ctx, p, func(context.Context) (int, error) {
		p.counters.partitions, p.dirty = uint64(n), true
		return n, nil
	})
}

// setMode stores a new mode. It writes nothing if the mode is the same, so
// Resume leaves a partition unused that was never used.
func (p *partition) setMode(ctx context.Context, m Mode) (struct{}, error) {
	if p.mode == m {
		return struct{}{}, nil
	}
	return turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		if err := p.st.Emit(ctx, EventMode, jobs.Event{Reason: m.String()}); err != nil {
			return struct{}{}, err // the mode is what is stored
		}
		p.mode, p.dirty = m, true
		return struct{}{}, nil
	})
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

// cancel cancels a pending task, or asks a running one to end. It returns the
// state of the task afterwards: a running task stays Running until its Work
// returns.
func (p *partition) cancel(ctx context.Context, num uint64) (State, error) {
	if a, runs := p.executing[num]; runs {
		return Running, p.askToEnd(ctx, num, a.token)
	}
	r, ok, err := p.task(ctx, num)
	if err != nil {
		return 0, err
	}
	if !ok {
		r, err := p.outcome(ctx, num)
		if err != nil {
			return 0, err
		}
		return r.state, nil
	}
	return turn(ctx, p, func(ctx context.Context) (State, error) {
		return Cancelled, p.discardAll(ctx, []*row{r})
	})
}

// askToEnd stores that a running task shall end, and cancels its context. The
// row is stored so that the task is cancelled even if the process dies before
// Work returns.
func (p *partition) askToEnd(ctx context.Context, num uint64, t engine.Token) error {
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
		p.executing[num] = runningTask{t, &asked}
		p.engine.Cancel(t, ErrCancelled)
		return struct{}{}, nil
	})
	return err
}

// discardMax bounds the tasks that one turn discards or replays, because other
// calls of the partition wait for the turn.
const discardMax = 2000

// discardPart is the argument of one turn of Discard: pending tasks with
// numbers greater than After and up to Last. Last is 0 in the first turn, which
// sets it to the newest number, so that Discard ends although new tasks come.
type discardPart struct{ After, Last uint64 }

// discarded is the answer of one turn of Discard. Last is 0 if no tasks are
// left.
type discarded struct {
	Count int
	After uint64
	Last  uint64
}

// discard cancels as many pending tasks of a part as fit in one turn.
func (p *partition) discard(ctx context.Context, part discardPart) (discarded, error) {
	if part.Last == 0 {
		part.Last = p.order
	}
	return turn(ctx, p, func(ctx context.Context) (discarded, error) {
		rows, end, err := p.discardable(ctx, part)
		if err != nil {
			return discarded{}, err
		}
		return end, p.discardAll(ctx, rows)
	})
}

// discardable reads the pending tasks that one turn cancels: up to discardMax
// rows and mergeBytes. Running tasks are skipped.
func (p *partition) discardable(ctx context.Context, part discardPart) (rows []*row, end discarded, err error) {
	seen, bytes := 0, 0
	o := object.ListOptions{Prefix: taskPrefix, StartAfter: taskKey(part.After), End: taskKey(part.Last + 1), Limit: discardMax}
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, end, err
		}
		if bytes += taskBytes + len(item.Value) + p.phaseBytes(); bytes > p.mergeBytes() && seen > 0 {
			end.Last = part.Last
			break
		}
		num, err := numberOf(item.Key)
		if err != nil {
			return nil, end, err
		}
		seen++
		end.After = num
		if _, runs := p.executing[num]; runs {
			continue
		}
		r, err := decodeRow(num, item.Value)
		if err != nil {
			return nil, end, err
		}
		bytes += r.webhookBytes(0)
		rows = append(rows, r)
	}
	if seen == discardMax {
		end.Last = part.Last
	}
	end.Count = len(rows)
	return rows, end, nil
}

// discardAll cancels pending tasks. It removes all of them before it lets other
// tasks of their keys enter, because most of those are in rows too and would be
// removed right after they entered.
func (p *partition) discardAll(ctx context.Context, rows []*row) error {
	var keys []string // in the order of their first tasks
	seen := make(map[string]bool)
	for _, r := range rows {
		if err := p.discardOne(ctx, r); err != nil {
			return err
		}
		if r.key != "" && !seen[r.key] {
			seen[r.key] = true
			keys = append(keys, r.key)
		}
	}
	for _, key := range keys {
		if err := p.enterFirst(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// discardOne cancels one pending task. The caller calls enterFirst for its key.
func (p *partition) discardOne(ctx context.Context, r *row) error {
	if err := p.leave(ctx, r); err != nil {
		return err
	}
	p.pending--
	r.endedAt = p.st.Now().UnixNano()
	if err := p.keepOutcome(ctx, *r, Cancelled); err != nil {
		return err
	}
	if err := p.tellCancelled(ctx, r); err != nil {
		return err
	}
	return p.deleteTask(ctx, r, Cancelled)
}

// mergeBytes bounds the task rows that one turn reads or writes before it
// leaves the rest to the next turn, so that no number of tasks exceeds one
// batch.
func (p *partition) mergeBytes() int { return min(1<<20, p.st.Driver().MaxBatchBytes()/4) }
