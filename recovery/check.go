package recovery

import "time"

// Limits are the settings of Check. The zero value of each means its default.
type Limits struct {
	// StaleAfter is the age from which an execution of this open whose work is
	// not alive is lost. Zero means 30 seconds.
	StaleAfter time.Duration
	// Delay is the time between the opening of the store and the recovery of what
	// an earlier process has lost. Zero means 100 ms.
	Delay time.Duration
	// MaxAttempts is how many losses without a success between are recovered from:
	// crashes that are charged to the execution, or losses in a living process. Zero
	// means 3, a negative number none, whatever the cause of the crash.
	MaxAttempts int
}

// WithDefaults returns l with each zero field set to its default.
func (l Limits) WithDefaults() Limits {
	if l.StaleAfter == 0 {
		l.StaleAfter = 30 * time.Second
	}
	if l.Delay == 0 {
		l.Delay = 100 * time.Millisecond
	}
	if l.MaxAttempts == 0 {
		l.MaxAttempts = 3
	}
	return l
}

// Snapshot is what Check must know of a job, or of one of its executions.
type Snapshot struct {
	Now   time.Time
	Epoch uint64    // number of this open of the store
	Began time.Time // when this open was

	// Of an open execution.
	Open      bool
	OpenEpoch uint64    // number of the open that began it
	Since     time.Time // when it began
	Until     time.Time // if not zero, it belongs to an outside holder till then, whatever the epoch
	Alive     bool      // its work runs in this activation
	Free      bool      // it was cut off by an orderly shutdown, which costs no attempt
	Charges   int       // crashes that are charged to it, the last one included
	Losses    int       // since the last success: how often it was lost while its process lived

	// Of a job without one.
	Due      time.Time // earliest time at which its state has something to do; zero: idle by design
	HasAlarm bool
}

// Verb is what Check asks for.
type Verb string

const (
	Nothing Verb = "nothing" // all is as it should be
	Arm     Verb = "arm"     // no alarm is set: set it to Action.At
	Rerun   Verb = "re-run"  // the execution is lost: at Action.At, run it again
	Fail    Verb = "fail"    // the execution is lost once too often: at Action.At, fail it
)

// Cause is why Check asks for anything.
type Cause string

const (
	CauseNone     Cause = ""
	CauseCrash    Cause = "crash"    // the process that ran it died
	CauseShutdown Cause = "shutdown" // an orderly shutdown cut it off
	CauseStale    Cause = "stale"    // its work is gone, though its process lives
	CauseLease    Cause = "lease"    // its outside holder did not renew it
	CauseOrphan   Cause = "orphan"   // something to do and no alarm
)

// Action is what is to be done about a job, at a time.
type Action struct {
	Verb  Verb
	At    time.Time // never before Snapshot.Now, but for Arm
	Cause Cause
}

// Check says what to do about a job at a wake-up (R2 to R5). It is a pure
// function of its arguments and takes constant time.
func Check(s Snapshot, l Limits) Action {
	if !s.Open {
		return checkIdle(s)
	}
	l = l.WithDefaults()
	at, cause := lostAt(s, l)
	if cause == CauseNone {
		return Action{Verb: Nothing}
	}
	if spent(s, l, cause) {
		return Action{Verb: Fail, At: at, Cause: cause}
	}
	return Action{Verb: Rerun, At: at, Cause: cause}
}

// spent reports whether a loss is one too many. A crash that is not charged to the
// execution may have its cause outside, and is recovered from without a bound.
func spent(s Snapshot, l Limits, cause Cause) bool {
	switch cause {
	case CauseShutdown:
		return false
	case CauseCrash:
		return l.MaxAttempts < 0 || s.Charges > l.MaxAttempts
	}
	return s.Losses >= l.MaxAttempts
}

// checkIdle arms a job that has something to do and nothing to wake it (R3).
// An alarm that is set is never moved.
func checkIdle(s Snapshot) Action {
	if s.Due.IsZero() || s.HasAlarm {
		return Action{Verb: Nothing}
	}
	return Action{Verb: Arm, At: s.Due, Cause: CauseOrphan}
}

// lostAt returns when an open execution is to be taken for lost, and why.
func lostAt(s Snapshot, l Limits) (time.Time, Cause) {
	switch {
	case s.Alive:
		return time.Time{}, CauseNone
	case !s.Until.IsZero():
		return later(s.Until, s.Now), CauseLease
	case s.OpenEpoch != s.Epoch && s.Free:
		return delayed(s, l), CauseShutdown
	case s.OpenEpoch != s.Epoch:
		return delayed(s, l), CauseCrash
	default:
		return later(s.Since.Add(l.StaleAfter), s.Now), CauseStale
	}
}

// delayed is when the delay after the open is over, whatever number of wake-ups
// come before that: a delay counted from each would have no end if the object
// leaves memory sooner. A clock that was put back makes it no longer.
func delayed(s Snapshot, l Limits) time.Time {
	at := later(s.Began.Add(l.Delay), s.Now)
	if longest := s.Now.Add(l.Delay); at.After(longest) {
		return longest
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
