package recovery

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// facts are the rows of one object that can contradict one another.
type facts struct {
	job    bool // it has metadata
	meta   jobs.Meta
	raw    string    // of the metadata
	alarm  time.Time // the time that it was set to, which its retries leave alone
	armed  bool      // it has an alarm row
	listed bool      // the row has its index entry
	open   bool      // it has an open-execution mark
	label  string
	pool   partition
	damage string // why the alarm row cannot be decoded; empty: it can, or there is none
}

// look reads the facts of an object.
func look(s *storage.Store, o storage.Object) (f facts, err error) {
	raw, _, err := s.Data(nil, o, jobs.MetaKey)
	if err != nil {
		return f, err
	}
	f.label, f.raw = o.Label.String(), string(raw)
	if f.job = f.meta.Read(o.ID.Class, o.ID.Name, raw); !f.job {
		if err := f.lookAtPool(s, o); err != nil {
			return f, err
		}
	}
	if _, f.open, err = s.OpenMark(o); err != nil {
		return f, err
	}
	return f, f.lookAtAlarm(s, o)
}

func (f *facts) lookAtAlarm(s *storage.Store, o storage.Object) error {
	value, ok, err := s.Alarm(o)
	if err != nil || !ok {
		return err
	}
	f.armed = true
	row, err := alarm.DecodeRow(value)
	if err != nil {
		f.damage = fmt.Sprintf("the alarm row cannot be decoded: %v", err)
		return nil
	}
	f.alarm = row.Scheduled
	at, err := s.ScanAlarms(o.Shard, row.Due.UnixNano(), o.Number-1, 1)
	f.listed = len(at) == 1 && at[0].Number == o.Number && at[0].Due == row.Due.UnixNano()
	return err
}

// rests reports whether the job waits for a verb, or until a time that its metadata tells.
func (f facts) rests() bool {
	switch f.meta.Status {
	case jobs.Paused:
		return true
	case jobs.Stuck:
		return f.meta.Run.RetryAt.IsZero()
	}
	return f.meta.Status.Ended()
}

// wrongRest tells how the alarm of a job that rests differs from its metadata; empty: it does
// not.
func (f facts) wrongRest() string {
	switch end := f.meta.RestEnd(); {
	case f.armed != end.IsZero() && f.alarm.Equal(end):
		return ""
	case end.IsZero():
		return "an alarm is set and status is " + string(f.meta.Status)
	case !f.armed:
		return fmt.Sprintf("status is %s until %s and no alarm is set", f.meta.Status, end.Format(time.RFC3339Nano))
	default:
		return fmt.Sprintf("status is %s until %s and the alarm is set to %s",
			f.meta.Status, end.Format(time.RFC3339Nano), f.alarm.Format(time.RFC3339Nano))
	}
}

// contradiction returns the first promise that the facts break, and how. orphan
// is a suspicion: only the job type knows whether the job has nothing to do.
func (f facts) contradiction() (promise, problem string, orphan bool) {
	status := f.meta.Status
	switch {
	case f.damage != "":
		return "S9", f.damage, false
	case f.armed && !f.listed:
		return "A1", "alarm has no entry in the time index", false
	case f.open && !f.armed:
		return "J5", "an execution is open and no alarm is set", false
	case f.pool.is || f.pool.damage != "":
		return f.pool.contradiction(f.armed)
	case !f.job:
		return "", "", false
	case status == jobs.Executing && !f.open:
		return "J5", "status is executing and no execution is open", false
	case status != jobs.Executing && !f.meta.ExecutingAt.IsZero():
		return "J2", "executingAt is set and status is " + string(status), false
	case f.rests() && f.meta.Hooks == 0 && f.wrongRest() != "":
		return "J3", f.wrongRest(), false
	case status == jobs.Stuck && !f.meta.Run.RetryAt.IsZero() && !f.armed:
		return "R3", "status is stuck, a retry is due and no alarm is set", false
	case f.label != status.Label():
		return "J18", fmt.Sprintf("the label is %q and status is %s", f.label, status), false
	case status == jobs.Running && !f.armed:
		return "R3", "status is running and no alarm is set", true
	}
	return "", "", false
}
