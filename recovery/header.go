package recovery

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// HeaderKey is the key of an object's storage under which a job keeps its
// metadata. Of its JSON this package reads what a Header has.
const HeaderKey = "meta"

// Header is what the scrubber reads of a job, of whatever type.
type Header struct {
	Status      string    `json:"status"`
	ExecutingAt time.Time `json:"executingAt"`
	Hooks       int       `json:"hooks"` // calls of the user's hook that are owed, which need an alarm in each status
}

// The statuses of a job as they are stored; see package jobs.
const (
	running   = "running"
	executing = "executing"
)

// resting are the statuses in which a job has no alarm.
var resting = map[string]bool{"paused": true, "stopped": true, "failed": true, "terminated": true}

// facts are what is stored of one object, as far as it can contradict itself.
type facts struct {
	job    bool // it has metadata
	header Header
	raw    string // of the header
	alarm  time.Time
	armed  bool // it has an alarm row
	listed bool // the row has its index entry
	open   bool // it has an open-execution mark
	pool   partition
}

// look reads the facts of an object.
func look(s *storage.Store, o storage.Object) (f facts, err error) {
	raw, ok, err := s.Data(nil, o, HeaderKey)
	if err != nil {
		return f, err
	}
	if f.job, f.raw = ok, string(raw); ok {
		if err := json.Unmarshal(raw, &f.header); err != nil {
			f.job = false // an object of another kind that uses the same key
		}
	}
	if !f.job {
		if err := f.lookAtPool(s, o); err != nil {
			return f, err
		}
	}
	if _, f.open, err = s.Open(o); err != nil {
		return f, err
	}
	return f, f.lookAtAlarm(s, o)
}

func (f *facts) lookAtAlarm(s *storage.Store, o storage.Object) error {
	value, ok, err := s.Alarm(o)
	if err != nil || !ok {
		return err
	}
	row, err := alarm.DecodeRow(value)
	if err != nil {
		return fmt.Errorf("%s: %w", o.ID, err)
	}
	f.armed, f.alarm = true, row.Due
	at, err := s.ScanAlarms(o.Shard, row.Due.UnixNano(), o.Number-1, 1)
	f.listed = len(at) == 1 && at[0].Number == o.Number && at[0].Due == row.Due.UnixNano()
	return err
}

// contradiction returns the first promise that the facts break, and how. orphan
// is a suspicion: only the job type knows whether the job has nothing to do.
func (f facts) contradiction() (promise, problem string, orphan bool) {
	status := f.header.Status
	switch {
	case f.armed && !f.listed:
		return "A1", "alarm has no entry in the time index", false
	case f.open && !f.armed:
		return "J5", "an execution is open and no alarm is set", false
	case f.pool.is:
		return f.pool.contradiction(f.armed)
	case !f.job:
		return "", "", false
	case status == executing && !f.open:
		return "J5", "status is executing and no execution is open", false
	case status != executing && !f.header.ExecutingAt.IsZero():
		return "J2", "executingAt is set and status is " + status, false
	case resting[status] && f.armed && f.header.Hooks == 0:
		return "J3", "an alarm is set and status is " + status, false
	case status == running && !f.armed:
		return "R3", "status is running and no alarm is set", true
	}
	return "", "", false
}
