package jobs

import (
	"encoding/json"
	"time"
)

// Meta is the metadata of a job, stored beside its state (J2). Fields that an older
// version did not write are zero, those that a newer one added are passed over.
type Meta struct {
	Type       string `json:"type"`              // of the job: continuous, debounce
	Name       string `json:"name"`              // of the definition, which is the class
	ID         string `json:"id"`                // of the job, which is the object's name
	CreationID string `json:"life,omitempty"`    // tells this job from earlier ones of the same ID
	Version    string `json:"version,omitempty"` // of the definition that wrote this last
	Status     Status `json:"status"`

	CreatedAt        time.Time `json:"createdAt"`
	UpdatedAt        time.Time `json:"updatedAt"`
	ExecutingAt      time.Time `json:"executingAt,omitzero"` // set exactly while Status is Executing
	ExecutionID      string    `json:"executionID,omitempty"`
	LastSuccessfulAt time.Time `json:"lastSuccessfulAt,omitzero"`
	LastRecoveryAt   time.Time `json:"lastRecoveryAt,omitzero"`

	Attempt          int    `json:"attempt,omitempty"`          // executions of the present run so far
	RecoveryAttempts int    `json:"recoveryAttempts,omitempty"` // crashes without a success between
	RunCount         uint64 `json:"runCount"`                   // runs that were committed
	Failures         int    `json:"failures,omitempty"`         // runs in a row that were given up
	LastError        string `json:"lastError,omitempty"`        // cleared by a success
	LastStack        string `json:"lastStack,omitempty"`        // of the failure in LastError, if it was a panic
	StopReason       string `json:"stopReason,omitempty"`       // why it has ended, is paused (or will be, with Pausing), or rests while stuck

	// EndedAt is when the job came to the status stopped, failed, completed or cancelled.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// StaleAt is when the ended job is stale by its Retention; zero: never. Stale says that it is.
	StaleAt time.Time `json:"staleAt,omitzero"`
	Stale   bool      `json:"stale,omitempty"`
	// RetireAt is when the ended job is gone by its Retention; zero: it is kept.
	RetireAt time.Time `json:"retireAt,omitzero"`
	// PausedUntil is when a paused job resumes by itself; zero: it waits for Resume. With
	// Pausing it is that of the pause to come.
	PausedUntil time.Time `json:"pausedUntil,omitzero"`

	// Run is the progress of the present run; its Number is zero if there is
	// none between two runs.
	Run Run `json:"run,omitzero"`
	// NextAt, if not zero, is when the next run is due, in place of the time that the
	// schedule gives. NextCause says why.
	NextAt    time.Time `json:"nextAt,omitzero"`
	NextCause string    `json:"nextCause,omitempty"`
	// Pausing says that the job will be paused when its execution has ended.
	Pausing bool `json:"pausing,omitempty"`
	// Purging says that the failed job is gone once OnExhausted was called.
	Purging bool `json:"purging,omitempty"`
	// Hooks is how many calls of OnExhausted, or of the hooks of the Retention, are owed or under
	// way.
	Hooks int `json:"hooks,omitempty"`
}

// RestEnd is when a job that rests goes on by itself: a paused one resumes, and one that has
// ended becomes stale or is gone. It is the time of its alarm, unless a call of a hook is owed
// (J3). Zero: it does not rest, or until a verb only.
func (m *Meta) RestEnd() time.Time {
	switch {
	case m.Status == Paused:
		return m.PausedUntil
	case !m.Status.Ended():
		return time.Time{}
	case !m.Stale && !m.StaleAt.IsZero():
		return m.StaleAt
	}
	return m.RetireAt
}

// MetaKey is the key of an object's storage that holds its Meta, as JSON.
const MetaKey = "meta"

// Read decodes the row of an object under MetaKey, and reports whether it is metadata of a
// job. If it is none, m is zero: an object of a user may have a row under the same key, so
// metadata must name the object and have a type and a status. Those that a host with a codec
// of its own has stored are not JSON, so Read does not know them.
func (m *Meta) Read(class, name string, raw []byte) (ok bool) {
	*m = Meta{}
	err := json.Unmarshal(raw, m)
	ok = err == nil && m.Name == class && m.ID == name && m.Type != "" && m.Status.Valid()
	if !ok {
		*m = Meta{}
	}
	return ok
}
