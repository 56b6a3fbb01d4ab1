package workerpool

import (
	"context"
	"fmt"
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
		return TaskID{}, fmt.Errorf("workerpool: %w: task id %q", jobs.ErrInvalid, s)
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
	ID TaskID
	// Repeated says that the task was there already, under its idempotency key.
	Repeated bool `json:",omitempty"`
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

// String is the name of the state in lower case.
func (s State) String() string {
	names := [...]string{"pending", "running", "done", "dead", "cancelled"}
	if int(s) >= len(names) {
		return "state " + strconv.Itoa(int(s))
	}
	return names[s]
}

// Ended reports whether s is Done, Dead or Cancelled.
func (s State) Ended() bool { return s >= Done }

// Task is a task as its work sees it.
type Task[In any] struct {
	ID       TaskID
	Key      string // as given to Enqueue
	Queue    string
	Priority int
	Attempt  int // 1 more than how often it has failed; a crash is no attempt
	// OutsideKey is the same in every attempt of the task and in no other task of
	// the store: an idempotency key for effects outside of it.
	OutsideKey string
	Enqueued   time.Time
	In         In

	st *object.State
}

// Invoke makes the task an object.Caller: its work calls other objects with the
// task in place of a host. Each such call is one from outside.
func (t *Task[In]) Invoke(ctx context.Context, r *object.Request) error { return t.st.Invoke(ctx, r) }

// Info is what the pool knows of a task.
type Info[Out any] struct {
	ID       TaskID
	State    State
	Key      string
	Queue    string
	Priority int
	Enqueued time.Time
	// NotBefore is when the task may run, or be tried again; zero: any time.
	NotBefore time.Time
	// Attempt counts the attempts that have begun. A crash begins none.
	Attempt  int
	Failures []Failure
	// Cancelling says that the task runs and was asked to end.
	Cancelling bool
	Ended      time.Time // zero until it has
	Result     Out       // of a done task
}

// Failure is one attempt that failed.
type Failure struct {
	Attempt int
	At      time.Time
	Error   string
}

// DeadLetter is a task that is not tried any more.
type DeadLetter[In any] struct {
	ID       TaskID
	Key      string
	Queue    string
	Priority int
	In       In
	Failures []Failure   // all of them, the first and the last 50 if there are more
	Reason   jobs.Reason // why there is no further attempt
	Died     time.Time
}
