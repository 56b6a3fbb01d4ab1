package jobs

import (
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Meta is what is stored of a job beside its state (J2). Fields that an older
// version did not write are zero, those that a newer one added are passed over.
type Meta struct {
	Type    string `json:"type"`              // of the job: continuous, debounce
	Name    string `json:"name"`              // of the definition, which is the class
	ID      string `json:"id"`                // of the job, which is the object's name
	Life    string `json:"life,omitempty"`    // tells this life of the id from earlier ones
	Version string `json:"version,omitempty"` // of the definition that wrote this last
	Status  Status `json:"status"`

	CreatedAt        time.Time `json:"createdAt"`
	UpdatedAt        time.Time `json:"updatedAt"`
	ExecutingAt      time.Time `json:"executingAt,omitzero"` // set exactly while Status is Executing
	ExecutionID      Token     `json:"executionID,omitempty"`
	LastSuccessfulAt time.Time `json:"lastSuccessfulAt,omitzero"`
	LastRecoveryAt   time.Time `json:"lastRecoveryAt,omitzero"`

	Attempt          int    `json:"attempt,omitempty"`          // executions of the present run so far
	RecoveryAttempts int    `json:"recoveryAttempts,omitempty"` // crashes without a success between
	RunCount         uint64 `json:"runCount"`                   // runs that were committed
	Failures         int    `json:"failures,omitempty"`         // runs in a row that were given up
	LastError        string `json:"lastError,omitempty"`        // cleared by a success
	LastStack        string `json:"lastStack,omitempty"`        // of the failure in LastError, if it was a panic
	StopReason       string `json:"stopReason,omitempty"`       // why it is stopped or failed

	// Run is the progress of the present run; its Number is zero if there is
	// none between two runs.
	Run Run `json:"run,omitzero"`
	// NextAt, if not zero, is when the next run is due in place of what the
	// schedule says, and NextCause why.
	NextAt    time.Time `json:"nextAt,omitzero"`
	NextCause string    `json:"nextCause,omitempty"`
	// Pausing says that the job will be paused when its execution has ended.
	Pausing bool `json:"pausing,omitempty"`
	// Purging says that the failed job is gone once OnExhausted was called.
	Purging bool `json:"purging,omitempty"`
	// Hooks is how many calls of OnExhausted are owed or under way.
	Hooks int `json:"hooks,omitempty"`
}

// MetaKey is the key of an object's storage that holds its Meta, as JSON.
const MetaKey = recovery.HeaderKey

// normal returns m as the runtime can go on from it. Metadata that tells of an
// execution which is not open, as an older version may have left it, is that of
// a job whose run is due.
func (m Meta) normal(open int) Meta {
	if m.Status == Executing && open == 0 {
		m.Status = Running
		m.Run.RetryAt = m.ExecutingAt
		if m.Run.RetryAt.IsZero() {
			m.Run.RetryAt = latest(m.UpdatedAt, time.Unix(1, 0))
		}
		if m.Run.Number == 0 {
			m.Run.Number = m.RunCount + 1
		}
		m.ExecutingAt, m.ExecutionID = time.Time{}, ""
	}
	if m.Status == Initializing {
		m.Status = Running
	}
	return m
}

// begun returns m with x open.
func (m Meta) begun(x Execution) Meta {
	m.Status = Executing
	m.ExecutingAt, m.ExecutionID = x.Began, x.Token
	m.Run = x.Run
	return m
}

// ended returns m after the end of x, its status apart.
func (m Meta) ended(x Execution, out Outcome, now time.Time) Meta {
	m.ExecutingAt, m.ExecutionID = time.Time{}, ""
	if out.Err != nil {
		m.LastError, m.LastStack = Shorten(out.Err.Error()), out.Stack()
	}
	switch out.Kind {
	case Done, Quit:
		m.RunCount = x.Run.Number
		m.LastSuccessfulAt = now
		m.Failures, m.LastError, m.LastStack = 0, "", ""
		m.Run = Run{}
		if m.NextAt.IsZero() && !out.Result.NextAt.IsZero() {
			m.NextAt, m.NextCause = storable(out.Result.NextAt), CauseChosen
		}
	case Recover:
		m.LastRecoveryAt = now
		m.Run = out.Run
	case Again, Snoozed:
		m.Run = out.Run
	default:
		m.Failures++
		m.Run = Run{Recoveries: out.Run.Recoveries, Losses: out.Run.Losses}
	}
	return m
}

// storable is the time nearest to t that an alarm can have, from 1970 to 2262.
func storable(t time.Time) time.Time {
	return time.Unix(0, max(alarm.Nanos(t), 1)).UTC()
}

// nextRun returns the run that is due at the given time: the one that waits for
// its next execution, or else a new one.
func (m Meta) nextRun(at time.Time) Run {
	if !m.Run.RetryAt.IsZero() {
		return m.Run
	}
	return Run{
		Number: m.RunCount + 1, Recoveries: m.Run.Recoveries, Losses: m.Run.Losses,
		Scheduled: at, Cause: m.NextCause,
	}
}

// CauseChosen is the Run.Cause of a run whose time the run before it chose.
const CauseChosen = "chosen"
