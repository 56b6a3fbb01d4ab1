package engine

import (
	"math"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Proves R4, J2: each loss counts as a recovery but for one that is free, and only
// those of a living process count as losses, only crashes as cuts.
func TestLostRunIsCounted(t *testing.T) {
	run := jobs.Run{Number: 7, Attempt: 2, Recoveries: 4, Losses: 2, Cuts: 1, CutEpoch: 5}
	for name, tt := range map[string]struct {
		l                        loss
		recoveries, losses, cuts int
		cutEpoch                 uint64
	}{
		"free":                   {loss{cause: recovery.CauseCrash, free: true, epoch: 6}, 4, 2, 1, 5},
		"crash":                  {loss{cause: recovery.CauseCrash, epoch: 6}, 5, 2, 2, 6},
		"crash after a cleared":  {loss{cause: recovery.CauseCrash, epoch: 6, cleared: 5}, 5, 2, 1, 6},
		"crash that is cleared":  {loss{cause: recovery.CauseCrash, epoch: 6, cleared: 6}, 5, 2, 0, 6},
		"cleared before the cut": {loss{cause: recovery.CauseCrash, epoch: 6, cleared: 4}, 5, 2, 2, 6},
		"stale":                  {loss{cause: recovery.CauseStale}, 5, 3, 1, 5},
		"lease":                  {loss{cause: recovery.CauseLease}, 5, 3, 1, 5},
	} {
		got := lostRun(run, noon, tt.l)
		want := run
		want.Recoveries, want.Losses, want.Cuts, want.CutEpoch = tt.recoveries, tt.losses, tt.cuts, tt.cutEpoch
		want.RetryAt, want.Recovering = noon, true
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// Proves R3, J2: a job that says it executes, and has no execution, is due when that
// began, or else when it changed last, with the number of the run to come.
func TestMetaWithoutItsExecution(t *testing.T) {
	began, changed := noon, noon.Add(time.Minute)
	for name, tt := range map[string]struct {
		m    jobs.Meta
		at   time.Time
		want uint64
	}{
		"began":      {jobs.Meta{ExecutingAt: began, UpdatedAt: changed, RunCount: 3}, began, 4},
		"changed":    {jobs.Meta{UpdatedAt: changed, RunCount: 3, Run: jobs.Run{Number: 4}}, changed, 4},
		"no time":    {jobs.Meta{Run: jobs.Run{Number: 9}}, time.Unix(1, 0), 9},
		"long ago":   {jobs.Meta{UpdatedAt: time.Unix(0, 5)}, time.Unix(1, 0), 1},
		"early":      {jobs.Meta{UpdatedAt: time.Unix(1, 5)}, time.Unix(1, 5), 1},
		"first ever": {jobs.Meta{ExecutingAt: began}, began, 1},
	} {
		tt.m.Status, tt.m.ExecutionID = jobs.Executing, "t"
		got := normal(tt.m, 0)
		want := tt.m
		want.Status, want.ExecutingAt, want.ExecutionID = jobs.Running, time.Time{}, ""
		want.Run.RetryAt, want.Run.Number = tt.at, tt.want
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if open := normal(tt.m, 1); open != tt.m {
			t.Errorf("%s, with an execution: %+v", name, open)
		}
	}
	for _, status := range []jobs.Status{jobs.Initializing, jobs.Running} {
		if got := normal(jobs.Meta{Status: status, RunCount: 2}, 0); got != (jobs.Meta{Status: jobs.Running, RunCount: 2}) {
			t.Errorf("%s: %+v", status, got)
		}
	}
}

// Proves J9: a snooze is no attempt and no recovery, and its time does not count for
// Retry.MaxElapsed.
func TestSnoozedRun(t *testing.T) {
	run := jobs.Run{Number: 7, Attempt: 2, Recoveries: 4, Recovering: true, FirstAt: noon}
	want := jobs.Run{Number: 7, Attempt: 1, RetryAt: noon.Add(time.Hour)}
	if got := snoozedRun(run, noon, time.Hour); got != want {
		t.Errorf("without a failure: %+v, want %+v", got, want)
	}
	run.Failures, want.Failures, want.FirstAt = 1, 1, noon.Add(time.Hour)
	if got := snoozedRun(run, noon, time.Hour); got != want {
		t.Errorf("after a failure: %+v, want %+v", got, want)
	}
}

// Proves J5, A8: a wake-up that fails is tried again without end, and one is cut off ten
// times before it counts as a dead letter, unless the class says otherwise.
func TestClassOptions(t *testing.T) {
	o := ClassOptions(object.ClassOptions{})
	if o.AlarmRetry.MaxAttempts != math.MaxInt || o.MaxAlarmCrashes != 10 {
		t.Errorf("defaults: %+v", o)
	}
	o = ClassOptions(object.ClassOptions{AlarmRetry: alarm.Retry{MaxAttempts: 1}, MaxAlarmCrashes: 2})
	if o.AlarmRetry.MaxAttempts != 1 || o.MaxAlarmCrashes != 2 {
		t.Errorf("given: %+v", o)
	}
}
