package jobs

import (
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Exhausted is the policy for a job after one of its runs was given up (J9). A job that
// was lost in a crash too often fails under each policy (R4).
type Exhausted uint8

const (
	Keep  Exhausted = iota // the schedule goes on; consecutive failures are counted
	Fail                   // the job fails; its state is kept
	Purge                  // the job is gone
)

// Valid reports whether e is one of the policies.
func (e Exhausted) Valid() bool { return e <= Purge }

// Exhaustion is a run that was given up, as the OnExhausted of a definition is told of it.
// It is an object.Caller, so that the hook calls other objects with it.
type Exhaustion struct {
	// Caller is the job's object, as which the hook calls other objects.
	object.Caller `json:"-"`

	ID string `json:"-"` // of the job
	// Key names this giving-up among all of the store; it is the same in each call
	// of the hook for it, for use as an idempotency key.
	Key      string    `json:"key"`
	Run      uint64    `json:"run"`             // its number; see Run.Number
	Attempts int       `json:"attempts"`        // executions of the run
	Reason   Reason    `json:"reason"`          // why there is no further one
	Error    string    `json:"error"`           // of the last, cut to 2 KiB
	Stack    string    `json:"stack,omitempty"` // of the last, if it panicked, cut to object.MaxStackBytes
	At       time.Time `json:"at"`              // when the run was given up
}
