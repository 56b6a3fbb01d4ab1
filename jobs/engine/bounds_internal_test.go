package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves J2, R4: the begin of an execution counts it, and stores the time at which its
// run began. A failure counts too, and sets the counts of crashes in a row to zero.
func TestBegunAndFailedRun(t *testing.T) {
	first := jobs.Run{Number: 7, Failures: 1, RetryAt: noon.Add(-time.Second)}
	want := jobs.Run{Number: 7, Failures: 1, Attempt: 1, FirstAt: noon}
	if got := begunRun(first, noon); got != want {
		t.Errorf("begun: %+v, want %+v", got, want)
	}
	want.Attempt = 2
	if got := begunRun(begunRun(first, noon), noon.Add(time.Hour)); got != want {
		t.Errorf("begun again: %+v, want %+v", got, want)
	}
	run := jobs.Run{Number: 7, Attempt: 2, Failures: 1, Recoveries: 4, Losses: 3, Recovering: true, Cuts: 2, CutEpoch: 5}
	want = jobs.Run{Number: 7, Attempt: 2, Failures: 2, Recoveries: 4, Losses: 3, LastError: "no"}
	if got := failedRun(run, errors.New("no")); got != want {
		t.Errorf("failed: %+v, want %+v", got, want)
	}
}

// Proves C3, R4, J9: the metadata after each kind of end.
func TestMetaAfterAnEnd(t *testing.T) {
	before := jobs.Meta{
		Status: jobs.Executing, ExecutingAt: noon, ExecutionID: "t", RunCount: 6, Failures: 3, LastError: "old", LastStack: "stack",
		Run: jobs.Run{Number: 7, Attempt: 1, Recoveries: 2, Losses: 1},
	}
	x := Execution{Run: before.Run}
	waits := jobs.Run{Number: 7, Attempt: 1, RetryAt: noon}
	now, bad := noon.Add(time.Minute), errors.New("bad")
	ended := before
	ended.ExecutingAt, ended.ExecutionID = time.Time{}, ""
	for _, kind := range []Kind{Done, Quit, Recover, Again, Snoozed, GaveUp, Cancelled} {
		out, want := Outcome{Kind: kind, Run: waits, Err: bad}, ended
		want.LastError, want.LastStack = "bad", ""
		switch kind {
		case Done, Quit:
			out.Err, out.Run = nil, x.Run
			want.RunCount, want.LastSuccessfulAt, want.Failures, want.LastError, want.Run = 7, now, 0, "", jobs.Run{}
		case Recover:
			want.LastRecoveryAt, want.Run = now, waits
		case Again, Snoozed:
			want.Run = waits
		default:
			out.Run = jobs.Run{Number: 7, Attempt: 1, Failures: 1, Recoveries: 2, Losses: 1}
			want.Failures, want.Run = 4, jobs.Run{Recoveries: 2, Losses: 1}
		}
		if got := endedMeta(before, x, out, now); got != want {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
	}
	chosen := Outcome{Kind: Done, Run: x.Run, Result: Result{NextAt: now}}
	if got := endedMeta(before, x, chosen, now); got.NextAt != now || got.NextCause != CauseChosen {
		t.Errorf("a run that chose the next one: %+v", got)
	}
	before.NextAt, before.NextCause = noon, "asked"
	if got := endedMeta(before, x, chosen, now); got.NextAt != noon || got.NextCause != "asked" {
		t.Errorf("a run that was asked for comes first: %+v", got)
	}
}

// Proves J2: a new run has the next number and the crashes before it; one that waits
// stays as it is.
func TestNextRun(t *testing.T) {
	m := jobs.Meta{RunCount: 6, NextCause: "asked", Run: jobs.Run{Recoveries: 2, Losses: 1}}
	if got, want := nextRun(m, noon), (jobs.Run{Number: 7, Recoveries: 2, Losses: 1, Scheduled: noon, Cause: "asked"}); got != want {
		t.Errorf("new: %+v, want %+v", got, want)
	}
	m.Run = jobs.Run{Number: 9, RetryAt: noon}
	if got := nextRun(m, noon); got != m.Run {
		t.Errorf("waiting: %+v", got)
	}
}

// Proves J5: a time is stored as the nearest one that an alarm can have, never as zero.
func TestStorableTimes(t *testing.T) {
	for in, want := range map[time.Time]int64{
		{}: 1, time.Unix(-5, 0): 1, time.Unix(0, 0): 1, time.Unix(0, 1): 1, time.Unix(0, 2): 2, noon: noon.UnixNano(),
		time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC): math.MaxInt64,
	} {
		if got := storable(in); got != time.Unix(0, want).UTC() {
			t.Errorf("%v is stored as %v, want %v", in, got, time.Unix(0, want).UTC())
		}
	}
}

// Proves J7: a lease is extended at each heartbeat, or at each third of the lease if the
// heartbeat is longer. A work is overdue a lease after its timeout.
func TestHeartbeatOfALease(t *testing.T) {
	e := &Engine{o: Options{Heartbeat: 10 * time.Second, Timeout: time.Minute}}
	for lease, want := range map[time.Duration]time.Duration{
		30 * time.Second: 10 * time.Second, 10*time.Second + 1: 10 * time.Second, 9 * time.Second: 3 * time.Second, 10 * time.Second: 10 * time.Second / 3,
	} {
		w := e.newRoutine(&Execution{Began: noon, Lease: noon.Add(lease)}, &Spec{})
		if w.lease != lease || w.heartbeat != want || w.renewAt != noon.Add(want) {
			t.Errorf("lease %v: heartbeat %v, first at %v, want %v", w.lease, w.heartbeat, w.renewAt, want)
		}
		end := noon.Add(time.Minute + lease)
		if w.overdue(end) || !w.start().IsZero() {
			t.Errorf("lease %v: a work that has not run has begun at %v", lease, w.start())
		}
		w.began.Store(noon.UnixNano())
		if w.overdue(end.Add(-1)) || !w.overdue(end) {
			t.Errorf("lease %v: overdue a nanosecond before %v, or not then", lease, end)
		}
		w.timeout = 0
		if w.overdue(end.Add(time.Hour)) {
			t.Errorf("lease %v: overdue without a timeout", lease)
		}
		w.timeout = time.Minute
		w.hold(true)
		w.began.Store(0)
		if w.overdue(end) || !w.start().IsZero() {
			t.Errorf("lease %v: a work that is held back has begun at %v", lease, w.start())
		}
		w.began.Store(end.UnixNano())
		if w.overdue(end) || !w.start().Equal(end) || !w.overdue(end.Add(time.Minute+lease)) {
			t.Errorf("lease %v: a work that is released at %v has begun at %v", lease, end, w.start())
		}
	}
}

// Proves J9: an execution that panicked or used up its time has not snoozed, and an error
// that is no snooze has no wait.
func TestWaitOfAnError(t *testing.T) {
	for want, err := range map[string]error{
		"1m0s true": fmt.Errorf("wait: %w", jobs.Snooze(time.Minute)),
		"0s true":   jobs.Snooze(-1),
		"0s false":  errors.New("other"),
		"0s false ": fmt.Errorf("%w: %w", jobs.ErrTimeout, jobs.Snooze(time.Minute)),
	} {
		d, ok := snoozeOf(err)
		if got := fmt.Sprint(d, ok); got != want && got+" " != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// Proves O13, O17: errors of the runtime fail the turn, and all others the run.
func TestErrorsOfTheRuntime(t *testing.T) {
	for _, err := range []error{object.ErrStorage, object.ErrReset, object.ErrShutdown, object.ErrNoTurn, object.ErrNoSpace, storage.ErrCorrupt} {
		if !OfRuntime(fmt.Errorf("a: %w", err)) {
			t.Errorf("%v fails the run", err)
		}
	}
	for _, err := range []error{errors.New("other"), object.ErrBatchTooLarge, jobs.ErrTimeout, context.Canceled} {
		if OfRuntime(err) {
			t.Errorf("%v fails the turn", err)
		}
	}
}

// Proves R4: a lost run that is spent is given up with its error, and any other is
// repeated at once.
func TestDecisionAboutALoss(t *testing.T) {
	run := jobs.Run{Number: 7, Attempt: 2}
	o := Options{}
	for _, lossIsFailure := range []bool{false, true} {
		o.LossIsFailure = lossIsFailure
		for _, cause := range []recovery.Cause{recovery.CauseCrash, recovery.CauseStale, recovery.CauseLease} {
			for _, spent := range []bool{false, true} {
				out := o.decide(run, end{err: ErrLost, lost: &loss{cause: cause, spent: spent}}, noon, nil)
				want := Recover
				reason := jobs.Reason("")
				switch {
				case lossIsFailure && cause == recovery.CauseLease:
					want, reason = GaveUp, jobs.ReasonAttempts
				case spent:
					want, reason = GaveUp, jobs.ReasonRecoveries
				}
				if out.Kind != want || out.Reason != reason || !out.Lost || out.Err != ErrLost {
					t.Errorf("%s, spent %t, a failure %t: %+v", cause, spent, lossIsFailure, out)
				}
				if want == Recover && (out.Run.RetryAt != noon || !out.Run.Recovering) || want == GaveUp && out.Run.LastError != ErrLost.Error() {
					t.Errorf("%s, spent %t, a failure %t: run %+v", cause, spent, lossIsFailure, out.Run)
				}
			}
		}
	}
}

// Proves J2: each of the last fields of an execution is stored alone too, and times and
// counts at their bounds are read as they were written.
func TestLastFieldsOfAnExecution(t *testing.T) {
	for _, run := range []jobs.Run{{}, {Losses: 1}, {Cuts: 1}, {CutEpoch: 1}, {Earlier: 1}, {Earlier: math.MaxInt32}, {Attempt: 1, Failures: 2, Recoveries: 3}} {
		x := Execution{Token: "t", Began: time.Unix(0, 0).UTC(), Lease: time.Unix(0, 1).UTC(), Run: run}
		got, err := decodeExecution("t", x.append(nil))
		if err != nil || got != x {
			t.Errorf("read %+v, %v; wrote %+v", got, err, x)
		}
	}
	x := Execution{Run: jobs.Run{Earlier: math.MaxInt32 + 1}}
	if got, err := decodeExecution("t", x.append(nil)); err != nil || got.Run.Earlier != math.MaxInt32 {
		t.Errorf("a count beyond 31 bits is read as %d, %v", got.Run.Earlier, err)
	}
}

// Proves J15: a value keeps its version when it is stored again, in the middle of others
// too, and takes no further room.
func TestVersionStoredAgain(t *testing.T) {
	v := Versions("").From(0, "a").From(5, "b")
	for n, want := range map[uint64]Versions{5: v, 6: v, 4: Versions("").From(0, "a").From(4, "b"), 0: Versions("").From(0, "b")} {
		if got := v.From(n, "b"); got != want {
			t.Errorf("from %d on: %x, want %x", n, got, want)
		}
	}
	if got, want := v.From(5, "c"), Versions("").From(0, "a").From(5, "c"); got != want {
		t.Errorf("another version from the last change on: %x, want %x", got, want)
	}
	if back, err := ParseVersions([]byte("\x01\x01a\x02\x01b")); err != nil || back.At(0) != "" || back.At(1) != "a" || back.At(2) != "b" {
		t.Errorf("changes at 1 and 2: %x, %v", back, err)
	}
}
