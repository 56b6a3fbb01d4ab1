package dashboard

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// Pools is the page of all worker pools.
type Pools struct{ Pools []PoolState }

func (Pools) page() (name, title string) { return "pools", "Pools" }

// PoolState is how a pool is.
type PoolState struct {
	Name  string
	Stats workerpool.Stats
	Error string // why it has told nothing; Stats is zero then
}

// Pool is the page of a worker pool.
type Pool struct {
	PoolState
	Queues []Queue
	More   bool // there are more tasks than those that Queues counts
	// EmptyIn is how long the pool takes for its tasks at the rate of the last minutes; zero: it is not known, or under a second.
	EmptyIn time.Duration
	Verbs   []Verb
	// Status, Queue and Key are the filters of Tasks.
	Status, Queue, Key string
	Tasks              []workerpool.TaskInfo
	Next               string // the parameter after of the next page; empty: this is the last
}

func (p Pool) page() (name, title string) { return "pool", "Pool " + Name(p.Name) }

// States are those by which Tasks can be filtered.
func (Pool) States() []workerpool.State {
	return []workerpool.State{workerpool.Pending, workerpool.Running, workerpool.Dead}
}

// Queue counts the tasks of a queue.
type Queue struct {
	Name                     string
	Queued, Waiting, Running int
	Tasks                    Link // the list of them
}

// Task is the page of a task.
type Task struct {
	Pool, ID  string
	Partition string // the object that has it
	Status    workerpool.Status[json.RawMessage]
	Error     string // why it has told nothing; Status is zero then
	Why       why.Answer
	Verbs     []Verb
}

func (t Task) page() (name, title string) { return "task", "Task " + t.ID + " of " + Name(t.Pool) }

// TaskWord is the present state of a task in one word: a pending one is queued, or waiting for its time.
func TaskWord(s workerpool.State, notBefore time.Time) string {
	if s != workerpool.Pending {
		return s.String()
	}
	if notBefore.After(time.Now()) {
		return "waiting"
	}
	return "queued"
}
