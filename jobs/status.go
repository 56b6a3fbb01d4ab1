package jobs

import "slices"

// Status is where a job is in its life (J3).
type Status string

const (
	None         Status = ""             // no such job
	Initializing Status = "initializing" // being created; never stored
	Running      Status = "running"      // waits for its next run, or for an event
	Executing    Status = "executing"    // a run is open
	Paused       Status = "paused"       // no run happens until Resume
	Stopped      Status = "stopped"      // ended by itself or by Stop, state kept
	Terminated   Status = "terminated"   // gone; only its last event remains
	Failed       Status = "failed"       // gave up, state kept
	Completed    Status = "completed"    // did what it was for, state kept
	Cancelled    Status = "cancelled"    // ended because it was asked to, state kept
	Stuck        Status = "stuck"        // cannot go on with this code or in this process; not ended
)

// moves is the whole table: from each status the ones that may follow.
var moves = map[Status][]Status{
	None:         {Initializing},
	Initializing: {Running},
	Running:      {Executing, Paused, Stopped, Terminated, Cancelled},
	Executing:    {Running, Paused, Stopped, Terminated, Failed, Completed, Cancelled, Stuck},
	Paused:       {Running, Stopped, Terminated, Cancelled},
	Stopped:      {Running, Terminated},
	Failed:       {Running, Stopped, Terminated},
	Completed:    {Running, Terminated},
	Cancelled:    {Running, Terminated},
	Stuck:        {Running, Executing, Paused, Terminated, Cancelled},
	Terminated:   {},
}

// CanMove reports whether a job may go from s to the status to.
func (s Status) CanMove(to Status) bool { return slices.Contains(moves[s], to) }

// Move returns nil if a job may go from s to the status to, else a *MoveError.
func (s Status) Move(to Status) error {
	if s.CanMove(to) {
		return nil
	}
	return &MoveError{From: s, To: to}
}

// Ended reports whether no run follows from s unless someone resumes the job.
// A stuck job has not ended.
func (s Status) Ended() bool {
	switch s {
	case Stopped, Terminated, Failed, Completed, Cancelled:
		return true
	}
	return false
}

// Label is the label of a job's object (J18): the status, so that object.Host.Objects lists
// the jobs of a class that have failed, for example. It is empty for a job that is running or
// executing, because that changes with each run.
func (s Status) Label() string {
	if s == Running || s == Executing {
		return ""
	}
	return string(s)
}

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool { _, ok := moves[s]; return ok }

func (s Status) String() string {
	if s == None {
		return "none"
	}
	return string(s)
}
