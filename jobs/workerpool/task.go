package workerpool

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// TaskID identifies a task within its pool. It is never used again, not even
// after the task has ended, nor by a restored store.
type TaskID struct {
	Partition int    // the object that holds the task
	Number    uint64 // counts the tasks of the partition from 1, in a restored store from a later multiple of 2^32
}

// String returns the id as text, for example "0-17". ParseTaskID reads it.
func (id TaskID) String() string {
	return string(id.append(nil))
}

// append appends the text of the id to b.
func (id TaskID) append(b []byte) []byte {
	b = append(strconv.AppendInt(b, int64(id.Partition), 10), '-')
	return strconv.AppendUint(b, id.Number, 10)
}

// ParseTaskID is the inverse of TaskID.String. It returns a jobs.ErrInvalid for
// any other text.
func ParseTaskID(s string) (TaskID, error) {
	partition, number, _ := strings.Cut(s, "-")
	p, err1 := strconv.Atoi(partition)
	n, err2 := strconv.ParseUint(number, 10, 64)
	id := TaskID{p, n}
	if err1 != nil || err2 != nil || id.String() != s || !id.valid() {
		return TaskID{}, engine.Invalidf("workerpool", "task id %q is not of the form 0-17", s)
	}
	return id, nil
}

// MarshalText is String.
func (id TaskID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is ParseTaskID.
func (id *TaskID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseTaskID(string(b))
	return err
}

// valid reports whether a pool could have issued the id.
func (id TaskID) valid() bool {
	return id.Partition >= 0 && id.Partition < maxPartitions && id.Number > 0
}

// object is the name of the object that holds the task.
func (id TaskID) object() string { return strconv.Itoa(id.Partition) }

// TaskRef is the answer of Enqueue.
type TaskRef struct {
	ID TaskID `json:"id,omitzero"`
	// Repeated is true if nothing was added, because the task of the Idempotent
	// or Unique key exists already.
	Repeated bool `json:"repeated,omitempty"`
	// Sent is true if from was the Outbox of a State; see Pool.Enqueue. The other fields
	// are zero then. The task exists once the turn has committed.
	Sent bool `json:"sent,omitempty"`
}

// State is the state of a task.
type State uint8

// The states of a task. Done, Dead and Cancelled are final, except that Replay
// makes a dead letter pending again.
const (
	Pending   State = iota // waits for a worker, its time, a retry, or earlier tasks of its key
	Running                // executes in this process, or is claimed by an outside worker
	Done                   // its Work returned nil, or it was acknowledged
	Dead                   // failed for good; kept as a dead letter
	Cancelled              // ended by Cancel, Discard or DiscardDead
	// Sent is the answer of a Cancel whose from was the Outbox of a State. It is the state
	// of no task.
	Sent
)

var stateNames = [...]string{"pending", "running", "done", "dead", "cancelled", "sent"}

// String is the name of the state in lower case, for example "pending".
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return "state " + strconv.Itoa(int(s))
	}
	return stateNames[s]
}

// MarshalText is String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of a state. It returns a jobs.ErrInvalid for any
// other text.
func (s *State) UnmarshalText(b []byte) error { return named(s, stateNames[:], "state", b) }

// named sets v to the index of a name.
func named[T ~uint8](v *T, names []string, what string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return engine.Invalidf("workerpool", "%s %q", what, b)
	}
	*v = T(i)
	return nil
}

// Ended reports whether s is Done, Dead or Cancelled.
func (s State) Ended() bool { return s >= Done && s <= Cancelled }

// Task is the task that Config.Work or an outside worker gets.
type Task[In any] struct {
	ID       TaskID `json:"id"`
	Key      string `json:"key,omitempty"` // of the option Key
	Queue    string `json:"queue,omitempty"`
	Priority int    `json:"priority,omitempty"`
	Attempt  int    `json:"attempt"` // the number of failed attempts plus 1; a crash is no failure
	// OutsideKey is the same in each attempt of the task, and no other task of
	// the store has it. Pass it to other systems as an idempotency key, because
	// an attempt may be repeated after a crash.
	OutsideKey string    `json:"outsideKey"`
	Enqueued   time.Time `json:"enqueued"`
	In         In        `json:"in"`

	part    *partition // nil in a Task that the program made itself
	attempt *attempt   // nil unless Config.Work runs the task in a pool with phases
}

// Submitter is the part of a Pool that does not depend on its output type. Its
// methods are those of Pool and are safe for concurrent use.
type Submitter[In any] interface {
	Enqueue(ctx context.Context, from object.Caller, in In, opts ...Option) (TaskRef, error)
	EnqueueBatch(ctx context.Context, from object.Caller, items []Item[In]) ([]TaskRef, error)
	Cancel(ctx context.Context, from object.Caller, id TaskID) (State, error)
}

// Pool returns the task's own pool, so that Work can submit further tasks:
//
//	_, err := t.Pool().Enqueue(ctx, t, next, workerpool.Idempotent(t.OutsideKey, 0))
//
// A Work that names the package-level variable of its own pool does not
// compile, because Go reports an initialization cycle. The submission needs an
// idempotency key, because a repeated task makes the call again. Work must not
// wait for tasks of its own pool: if all workers did, none would be left to run
// them.
//
// The result is a *Pool[In, Out]; a type assertion gives its other methods.
// Pool returns nil for a Task that the program made itself.
func (t *Task[In]) Pool() Submitter[In] {
	if t.part == nil {
		return nil
	}
	p, _ := t.part.set.pool.(Submitter[In])
	return p
}

// Invoke makes a Task an object.Caller: Work passes the task as from to call
// other objects. Such a call counts as one from outside, so it returns when its
// effect is durable.
func (t *Task[In]) Invoke(ctx context.Context, r *object.Request) error {
	return t.part.st.Invoke(ctx, r)
}

// Sleep waits for d on the clock of the host, or until ctx ends, and returns
// the cause of that. In a simulation (package harness) d is virtual time, so
// that tests of waiting work are fast. It is for Config.Work; a Task of a Claim
// cannot sleep.
func (t *Task[In]) Sleep(ctx context.Context, d time.Duration) error {
	return t.part.st.Driver().Seams().Sleep(ctx, d)
}
