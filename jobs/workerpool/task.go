package workerpool

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// TaskID names a task of a pool for ever.
type TaskID struct {
	Partition int    // the object that has it
	Number    uint64 // counts the partition's tasks from 1
}

// String is the id as ParseTaskID reads it.
func (id TaskID) String() string {
	return string(id.append(nil))
}

func (id TaskID) append(b []byte) []byte {
	b = append(strconv.AppendInt(b, int64(id.Partition), 10), '-')
	return strconv.AppendUint(b, id.Number, 10)
}

// ParseTaskID is the inverse of TaskID.String. Its error is a jobs.ErrInvalid.
func ParseTaskID(s string) (TaskID, error) {
	partition, number, _ := strings.Cut(s, "-")
	p, err1 := strconv.Atoi(partition)
	n, err2 := strconv.ParseUint(number, 10, 64)
	id := TaskID{p, n}
	if err1 != nil || err2 != nil || id.String() != s || !id.valid() {
		return TaskID{}, jobs.Invalidf("workerpool", "task id %q", s)
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

func (id TaskID) valid() bool {
	return id.Partition >= 0 && id.Partition < maxPartitions && id.Number > 0
}

// object is the name of the object that has the task.
func (id TaskID) object() string { return strconv.Itoa(id.Partition) }

// TaskRef is what Enqueue answers.
type TaskRef struct {
	ID TaskID `json:"id"`
	// Repeated says that the task was there already, under its Idempotent or Unique
	// key.
	Repeated bool `json:"repeated,omitempty"`
}

// State is where a task is in its life.
type State uint8

// The states of a task; the last three are final, but for a replayed dead letter.
const (
	Pending   State = iota // waits for a worker, its time, a retry or its key
	Running                // has an open execution, or is claimed
	Done                   // succeeded
	Dead                   // given up; kept as a dead letter
	Cancelled              // taken back, or dropped by Discard or DiscardDead
)

var stateNames = [...]string{"pending", "running", "done", "dead", "cancelled"}

// String is the name of the state in lower case.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return "state " + strconv.Itoa(int(s))
	}
	return stateNames[s]
}

// MarshalText is String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText. Its error is a jobs.ErrInvalid.
func (s *State) UnmarshalText(b []byte) error { return named(s, stateNames[:], "state", b) }

// named sets v to the place of a name among some.
func named[T ~uint8](v *T, names []string, what string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return jobs.Invalidf("workerpool", "%s %q", what, b)
	}
	*v = T(i)
	return nil
}

// Ended reports whether s is Done, Dead or Cancelled.
func (s State) Ended() bool { return s >= Done }

// Task is a task as its work sees it.
type Task[In any] struct {
	ID       TaskID `json:"id"`
	Key      string `json:"key,omitempty"` // as given to Enqueue
	Queue    string `json:"queue,omitempty"`
	Priority int    `json:"priority,omitempty"`
	Attempt  int    `json:"attempt"` // 1 more than how often it has failed; a crash is no attempt
	// OutsideKey is the same in every attempt of the task and in no other task of
	// the store: an idempotency key for effects outside of it.
	OutsideKey string    `json:"outsideKey"`
	Enqueued   time.Time `json:"enqueued"`
	In         In        `json:"in"`

	pool Submitter[In]
	st   *object.State
}

// Submitter is the part of a Pool that does not depend on its type of output. Its
// methods are those of Pool, and may be called from any task.
type Submitter[In any] interface {
	Enqueue(ctx context.Context, from object.Caller, in In, opts ...Option) (TaskRef, error)
	EnqueueBatch(ctx context.Context, from object.Caller, items []Item[In]) ([]TaskRef, error)
	Cancel(ctx context.Context, from object.Caller, id TaskID) (State, error)
}

// Pool returns the pool that the task belongs to. Config.Work uses it to submit
// further tasks to its own pool; one that names the package-level variable of its own
// pool does not compile, because Go calls that an initialization cycle:
//
//	_, err := t.Pool().Enqueue(ctx, t, next, workerpool.Idempotent(t.OutsideKey, 0))
//
// A task that is repeated makes such a call again, so the submission needs an
// idempotency key. The result is always a *Pool[In, Out]; a type assertion gives its
// other methods. Work must not wait for tasks of its own pool, because all workers
// could wait so, and none would be left to run them. Pool is nil in a Task that a
// program has made by itself.
func (t *Task[In]) Pool() Submitter[In] { return t.pool }

// Invoke makes the task an object.Caller: its work calls other objects with the
// task in place of a host. Each such call is one from outside.
func (t *Task[In]) Invoke(ctx context.Context, r *object.Request) error { return t.st.Invoke(ctx, r) }

// Sleep waits for d on the clock of the host, or until ctx ends, and returns the
// cause of that. In a simulation d is virtual time, so that work which waits
// can be tested with package harness. It is for Config.Work, not for a Claim.
func (t *Task[In]) Sleep(ctx context.Context, d time.Duration) error {
	return t.st.Seams().Sleep(ctx, d)
}

// Info is what the pool knows of a task.
type Info[Out any] struct {
	ID       TaskID    `json:"id"`
	State    State     `json:"state"`
	Key      string    `json:"key,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	Priority int       `json:"priority,omitempty"`
	Enqueued time.Time `json:"enqueued"`
	// NotBefore is when the task may run, or be tried again; zero: any time.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Attempt counts the attempts that have begun. A crash begins none.
	Attempt  int       `json:"attempt,omitempty"`
	Failures []Failure `json:"failures,omitempty"` // the first and the last 50 if there are more than 100
	// Cancelling says that the task runs and was asked to end.
	Cancelling bool      `json:"cancelling,omitempty"`
	Ended      time.Time `json:"ended,omitzero"` // zero until it has
	Result     Out       `json:"result"`         // of a done task
	// Raw is the output as it is stored if it cannot be decoded, and DecodeError
	// says why; Result is zero then.
	Raw         []byte `json:"raw,omitempty"`
	DecodeError string `json:"decodeError,omitempty"`
}

// Failure is one attempt that failed.
type Failure struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Error   string    `json:"error"`
}

// DeadLetter is a task that is not tried any more.
type DeadLetter[In any] struct {
	ID       TaskID      `json:"id"`
	Key      string      `json:"key,omitempty"`
	Queue    string      `json:"queue,omitempty"`
	Priority int         `json:"priority,omitempty"`
	In       In          `json:"in"`
	Failures []Failure   `json:"failures,omitempty"` // all of them, the first and the last 50 if there are more than 100
	Reason   jobs.Reason `json:"reason"`             // why there is no further attempt
	Stack    string      `json:"stack,omitempty"`    // of the last failure if it was a panic, at most object.MaxStackBytes
	Died     time.Time   `json:"died"`
	// Raw is the input as it is stored if it cannot be decoded, and DecodeError says
	// why; In is zero then.
	Raw         []byte `json:"raw,omitempty"`
	DecodeError string `json:"decodeError,omitempty"`
}
