package workerpool

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// The functions of this file read the rows of a partition without its pool, for tools that look
// at a store. They run no turn and need no Config, so they tell only stored facts: how many
// tasks may run at a time, and whether the pool has a Work, is in the Config alone.

// MaxPlace is how far LookTask counts the tasks before a task.
const MaxPlace = 1000

// Look is a partition as its rows tell it.
type Look struct {
	Stats
	// Executions are the open executions of tasks, with the oldest first. Hooks are left out.
	Executions []LookExecution
	Changed    time.Time // when a task or the mode changed last
}

// LookExecution is an open execution of a task.
type LookExecution struct {
	engine.Execution
	Number uint64 // of the task
}

// LookPartition reads the counters and open executions of the partition that o is. It reports
// false if o is another object. It reads one row for each execution.
func LookPartition(s *storage.Store, o storage.Object) (l Look, ok bool, err error) {
	b, ok, err := s.Data(nil, o, countersKey)
	if err != nil || !ok {
		return l, false, err
	}
	c, ok := lookCounters(b)
	if !ok {
		return l, false, nil // an object of a user may have a row under the same key
	}
	l.Stats, l.Changed = c.told(), timeOf(c.changed)
	l.Executions, err = lookExecutions(s, o)
	return l, err == nil, err
}

// IsPartitionRow reports whether a row of an object is the one with the counters, which each
// partition has and which tells it from an object of a user.
func IsPartitionRow(key string, value []byte) bool {
	if key != countersKey {
		return false
	}
	_, ok := lookCounters(value)
	return ok
}

// lookCounters reads the counters of a partition. It reports false for any other value.
func lookCounters(b []byte) (c counters, ok bool) {
	if c.decode(b, &lines{}) != nil {
		return c, false
	}
	stats := c.told()
	return c, stats.Check() == nil
}

// lookExecutions reads the open executions of tasks. Their tokens are in the order of their
// begin.
func lookExecutions(s *storage.Store, o storage.Object) (all []LookExecution, err error) {
	var bad error
	err = s.WalkData(o, "x/", "x0", func(key, value []byte) bool {
		var x engine.Execution
		if x, bad = engine.DecodeExecution(string(key), value); bad != nil {
			return false
		}
		if kind, num := subjectOf(x.Subject); kind == taskSubject {
			all = append(all, LookExecution{x, num})
		}
		return true
	})
	if err == nil {
		err = bad
	}
	return all, err
}

// Spot is where a pending task waits.
type Spot uint8

// The spots of a task. A task that runs or has ended has none.
const (
	NoSpot    Spot = iota
	InQueue        // it is ready, and waits for a worker
	ForTime        // it waits for Status.NotBefore
	BehindKey      // earlier tasks of its key have not ended
)

// TaskLook is a task as its rows tell it.
type TaskLook struct {
	// Status has no Result. State is Pending, Dead, Done or Cancelled; a task with an open
	// execution is Running.
	Status Status[struct{}]
	Run    jobs.Run    // of its last execution
	Reason jobs.Reason // of a dead task
	Spot   Spot
	// Ahead counts the tasks before it: those of its queue, or those of its key. It counts to
	// MaxPlace; More says that there are more.
	Ahead int
	More  bool
	First uint64 // of a task BehindKey: the number of the first unfinished task of its key
}

// LookTask reads a task of the partition that o is. It reports false if there is none, also if it
// was done or cancelled more than Config.Retention ago. It reads up to MaxPlace rows to count the
// tasks before it.
func LookTask(s *storage.Store, o storage.Object, number uint64, executions []LookExecution) (t TaskLook, ok bool, err error) {
	r, err := lookRow(s, o, number)
	if r == nil || err != nil {
		return t, false, err
	}
	partition, _ := strconv.Atoi(o.ID.Name)
	id := TaskID{partition, number}
	t.Status = Status[struct{}]{
		ID: id, State: r.state, Key: r.key, Queue: r.queue, Priority: r.priority, Enqueued: timeOf(r.enqueued), Ended: timeOf(r.endedAt),
		NotBefore: timeOf(r.notBefore), Attempt: max(int(r.attempts), r.begun()), Failures: r.rare.Failures, Cancelling: r.rare.Cancelling,
	}
	t.Run, t.Reason = r.rare.Run, r.rare.Reason
	for _, x := range executions {
		if x.Number == number {
			t.Status.State, t.Status.NotBefore, t.Run = Running, time.Time{}, x.Run
			t.Status.Attempt = x.Run.Failed() + 1
			return t, true, nil
		}
	}
	if r.state != Pending {
		return t, true, nil
	}
	return t, true, t.place(s, o, r)
}

// lookRow reads the row of a task in any state; nil if there is none.
func lookRow(s *storage.Store, o storage.Object, number uint64) (*row, error) {
	b, ok, err := s.Data(nil, o, taskKey(number))
	if !ok && err == nil {
		b, ok, err = s.Data(nil, o, deadKey(number))
	}
	if !ok && err == nil {
		b, _, ok, err = object.NewReader(s).Mark(context.Background(), o.ID, numbered(outcomePrefix, number))
	}
	if !ok || err != nil {
		return nil, err
	}
	return decodeRow(number, b)
}

// place finds where a pending task waits, and counts the tasks before it.
func (t *TaskLook) place(s *storage.Store, o storage.Object, r *row) error {
	if r.key != "" {
		b, ok, err := s.Data(nil, o, chainKey(r.key, r.order))
		if err != nil {
			return err
		}
		if ok && len(b) == 9 && b[0] == 0 {
			t.Spot = BehindKey
			return t.count(s, o, string(chainOf(r.key)), chainKey(r.key, r.order))
		}
	}
	if _, waits, err := s.Data(nil, o, waitKey(waitPlace(r.notBefore, r.order))); waits || err != nil {
		t.Spot = ForTime
		return err
	}
	t.Spot = InQueue
	return t.count(s, o, string(linePrefix(r.queue)), readyKey(r.queue, readyPlace(r.priority, r.order)))
}

// count counts the rows from lower to upper, and notes the task of the first.
func (t *TaskLook) count(s *storage.Store, o storage.Object, lower, upper string) error {
	return s.WalkData(o, lower, upper, func(_, value []byte) bool {
		if t.Ahead == MaxPlace {
			t.More = true
			return false
		}
		if t.Ahead == 0 && t.Spot == BehindKey && len(value) == 9 {
			t.First, _ = decodeNumber(value[1:])
		}
		t.Ahead++
		return true
	})
}
