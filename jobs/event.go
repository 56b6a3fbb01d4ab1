package jobs

import "time"

// Kinds of the events that all jobs emit, exactly one for each such change, in
// the batch of the change (J11). The first seven are of executions and are emitted
// by Engine; the others are of jobs and are emitted by Life.
const (
	EventStart      = "start"      // an execution began
	EventSuccess    = "success"    // it succeeded, and its result is stored
	EventFailure    = "failure"    // it failed
	EventRetry      = "retry"      // a failed one will be tried again, at Event.At
	EventExhausted  = "exhausted"  // a run was given up, for Event.Reason
	EventRecovery   = "recovery"   // a lost one will be repeated; Event.Reason is the cause
	EventSnooze     = "snooze"     // it asked to be run again, at Event.At
	EventCreated    = "created"    // the job came to be
	EventPaused     = "paused"     // no run happens until it is resumed
	EventResumed    = "resumed"    // it goes on
	EventStopped    = "stopped"    // it ended, its state is kept
	EventFailed     = "failed"     // it gave up, its state is kept
	EventTerminated = "terminated" // it is gone
	EventCompleted  = "completed"  // it did what it was for, its state is kept
	EventCancelled  = "cancelled"  // it ended because it was asked to, its state is kept
	EventStuck      = "stuck"      // it cannot go on at present
	EventStale      = "stale"      // it has failed, or was stopped, long ago; see Retention.StaleAfter

	// EventRetentionFailed tells that a hook of the Retention has failed for the last time, with
	// its name as the Event.Reason. The job goes on without the call.
	EventRetentionFailed = "retention.failed"
)

// Event is the payload of the events of all jobs.
type Event struct {
	Subject string    `json:"subject,omitempty"` // see Execution
	Run     uint64    `json:"run,omitempty"`     // see Run.Number
	Attempt int       `json:"attempt,omitempty"` // see Run.Attempt: that of the execution which the event is about
	At      time.Time `json:"at,omitzero"`       // of a retry or a snooze: when the run is tried again
	Error   string    `json:"error,omitempty"`
	// Reason is why a run was given up, or the job ended. In a recovery it is the cause, in the
	// words of recovery.Cause: crash, shutdown, stale or lease.
	Reason string `json:"reason,omitempty"`
	// Recoveries is, of a recovery, how many the run has had with this one since its last
	// progress, see Run.Recoveries. One after a shutdown is not counted.
	Recoveries int `json:"recoveries,omitempty"`
}

// IdleReason is the Event.Reason of the end of a job that ended by itself, because it
// was idle for long.
const IdleReason = "idle"

// RetentionReason is the Event.Reason of the end of a job that had ended long enough ago;
// see Retention.
const RetentionReason = "retention"
