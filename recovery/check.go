package recovery

import (
	"cmp"
	"time"
)

// Limits are the settings of the rules, and of all job types. The zero value of each
// field means its default.
type Limits struct {
	// StaleThreshold is the age from which an execution of this process is recovered
	// if its work is gone (R2). Zero means 30 seconds.
	StaleThreshold time.Duration
	// RecoveryDelay is the time from the opening of the store to the recovery of
	// executions that an earlier process has lost (R2). Zero means 100 ms.
	RecoveryDelay time.Duration
	// MaxRecoveries is how many crashes in a row that are charged to a run it
	// survives (R4). A crash is charged to a run that executed while no other suspect
	// did. It also bounds how often a run may be lost in a living process without a
	// success between. Zero means 3. With a negative number a run that any crash cut
	// off is never repeated.
	MaxRecoveries int
}

// WithDefaults returns l with each zero field set to its default.
func (l Limits) WithDefaults() Limits {
	l.StaleThreshold = cmp.Or(l.StaleThreshold, 30*time.Second)
	l.RecoveryDelay = cmp.Or(l.RecoveryDelay, 100*time.Millisecond)
	l.MaxRecoveries = cmp.Or(l.MaxRecoveries, 3)
	return l
}

// Snapshot is the input of Check: a job, or one of its executions, as it is stored.
type Snapshot struct {
	Now   time.Time
	Epoch uint64    // number of this open of the store
	Began time.Time // when this open was

	// An open execution:
	Open      bool
	OpenEpoch uint64    // number of the open that began it
	Since     time.Time // when it began
	Until     time.Time // if not zero, it belongs to an outside holder until then, in any epoch
	Free      bool      // it was cut off by an orderly shutdown, which costs no attempt
	Charges   int       // crashes that are charged to it, the last one included
	Losses    int       // since the last success: how often it was lost while its process lived
	// OwnerLost says that another node ran it, which this one has replaced, and OwnersLost how often that happened to it
	// in a row before.
	OwnerLost  bool
	OwnersLost int
	// Hold is how long an execution of an earlier open must still wait, because the process that ran it may still do so.
	Hold time.Duration

	// A job without one:
	Due      time.Time // earliest time at which its state has something to do; zero: idle by design
	HasAlarm bool
}

// Verb is the answer of Check.
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
	CauseCrash     Cause = "crash"      // the process that ran it died
	CauseShutdown  Cause = "shutdown"   // an orderly shutdown cut it off
	CauseStale     Cause = "stale"      // its work is gone, though its process lives
	CauseLease     Cause = "lease"      // its outside holder did not renew it
	CauseOrphan    Cause = "orphan"     // something to do and no alarm
	CauseOwnerLost Cause = "owner-lost" // another node ran it, which was replaced
	CauseSuspended Cause = "suspended"  // the host cut it off, because the log did not answer; never an answer of Check
)

// MaxOwnersLost is how many losses of an owner in a row a run or an alarm survives (A8, R4). An owner is also replaced when the
// network has failed, so they are more than crashes. A run that kills each node that takes it over is stopped by it.
const MaxOwnersLost = 20

// Action is a verb with its time and cause.
type Action struct {
	Verb  Verb
	At    time.Time // never before Snapshot.Now, but for Arm
	Cause Cause
}

// Check decides about a job at a wake-up (R2 to R5). It holds both rules: an open execution
// that is lost is repeated or given up, and a job that has something to do and no alarm
// gets one. The caller asks about an open execution only if its work does not run in this
// process. Check is a pure function of its arguments and takes constant time.
func Check(s Snapshot, l Limits) Action {
	if !s.Open {
		return checkIdle(s)
	}
	l = l.WithDefaults()
	at, cause := lostAt(s, l)
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
	case CauseOwnerLost:
		return l.MaxRecoveries < 0 || s.OwnersLost >= MaxOwnersLost
	case CauseCrash:
		return l.MaxRecoveries < 0 || s.Charges > l.MaxRecoveries
	}
	return s.Losses >= l.MaxRecoveries
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
	case !s.Until.IsZero():
		return later(s.Until, s.Now), CauseLease
	case s.OpenEpoch != s.Epoch && s.Free:
		return delayed(s, l), CauseShutdown
	case s.OpenEpoch != s.Epoch && s.OwnerLost:
		return delayed(s, l), CauseOwnerLost
	case s.OpenEpoch != s.Epoch:
		return delayed(s, l), CauseCrash
	default:
		return later(s.Since.Add(l.StaleThreshold), s.Now), CauseStale
	}
}

// delayed is when the delay after the open is over, however many wake-ups come before
// that, because a delay counted from each would have no end if the object
// leaves memory sooner. A clock that was put back makes it no longer. It is not over before Hold is.
func delayed(s Snapshot, l Limits) time.Time {
	at := later(s.Began.Add(l.RecoveryDelay), s.Now)
	if longest := s.Now.Add(l.RecoveryDelay); at.After(longest) {
		at = longest
	}
	return later(at, s.Now.Add(s.Hold))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
