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
)

// moves is the whole table: from each status the ones that may follow.
var moves = map[Status][]Status{
	None:         {Initializing},
	Initializing: {Running},
	Running:      {Executing, Paused, Stopped, Terminated, Failed},
	Executing:    {Running, Paused, Stopped, Terminated, Failed},
	Paused:       {Running, Stopped, Terminated},
	Stopped:      {Running, Terminated},
	Failed:       {Running, Stopped, Terminated},
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
func (s Status) Ended() bool { return s == Stopped || s == Terminated || s == Failed }

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool { _, ok := moves[s]; return ok }

func (s Status) String() string {
	if s == None {
		return "none"
	}
	return string(s)
}
