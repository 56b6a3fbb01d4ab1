package jobs

import (
	"math"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Proves R4, J2: each loss counts as a recovery but for one that is free, and only
// those of a living process count as losses, only crashes as cuts.
func TestLostRunIsCounted(t *testing.T) {
	run := Run{Number: 7, Attempt: 2, Recoveries: 4, Losses: 2, Cuts: 1, CutEpoch: 5}
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
		got := run.lost(noon, tt.l)
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
		m    Meta
		at   time.Time
		want uint64
	}{
		"began":      {Meta{ExecutingAt: began, UpdatedAt: changed, RunCount: 3}, began, 4},
		"changed":    {Meta{UpdatedAt: changed, RunCount: 3, Run: Run{Number: 4}}, changed, 4},
		"no time":    {Meta{Run: Run{Number: 9}}, time.Unix(1, 0), 9},
		"long ago":   {Meta{UpdatedAt: time.Unix(0, 5)}, time.Unix(1, 0), 1},
		"first ever": {Meta{ExecutingAt: began}, began, 1},
	} {
		tt.m.Status, tt.m.ExecutionID = Executing, "t"
		got := tt.m.normal(0)
		want := tt.m
		want.Status, want.ExecutingAt, want.ExecutionID = Running, time.Time{}, ""
		want.Run.RetryAt, want.Run.Number = tt.at, tt.want
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if open := tt.m.normal(1); open != tt.m {
			t.Errorf("%s, with an execution: %+v", name, open)
		}
	}
	for _, status := range []Status{Initializing, Running} {
		if got := (Meta{Status: status, RunCount: 2}).normal(0); got != (Meta{Status: Running, RunCount: 2}) {
			t.Errorf("%s: %+v", status, got)
		}
	}
}

// Proves C2: Skip drops an occurrence that is later than a minute, or than half the way
// to the next one, and none that is exactly as late as that.
func TestSkipAtItsGrace(t *testing.T) {
	for period, grace := range map[time.Duration]time.Duration{
		time.Hour: time.Minute, 2 * time.Minute: time.Minute, 2*time.Minute - 2: time.Minute - 1, 10 * time.Second: 5 * time.Second,
	} {
		due := noon.Add(period)
		for late, want := range map[time.Duration]bool{0: true, grace: true, grace + 1: false} {
			if _, _, run := Rate(period).Take(StartCursor(noon), "a", due.Add(late), Skip); run != want {
				t.Errorf("every %v, %v late: run is %t", period, late, run)
			}
		}
	}
}

// Proves J9: a snooze is no attempt and no recovery, and its time does not count for
// Retry.MaxElapsed.
func TestSnoozedRun(t *testing.T) {
	run := Run{Number: 7, Attempt: 2, Recoveries: 4, Recovering: true, FirstAt: noon}
	want := Run{Number: 7, Attempt: 1, RetryAt: noon.Add(time.Hour)}
	if got := run.snoozed(noon, time.Hour); got != want {
		t.Errorf("without a failure: %+v, want %+v", got, want)
	}
	run.Failures, want.Failures, want.FirstAt = 1, 1, noon.Add(time.Hour)
	if got := run.snoozed(noon, time.Hour); got != want {
		t.Errorf("after a failure: %+v, want %+v", got, want)
	}
}

// Proves J5, A8: a wake-up that fails is tried again without end, and one is cut off ten
// times before it counts as a dead letter, unless the class says otherwise.
func TestClassOptions(t *testing.T) {
	o := ClassOptions(object.ClassOptions{})
	if o.AlarmRetry.MaxRetries != math.MaxInt || o.MaxAlarmCrashes != 10 {
		t.Errorf("defaults: %+v", o)
	}
	o = ClassOptions(object.ClassOptions{AlarmRetry: alarm.Retry{MaxRetries: 1}, MaxAlarmCrashes: 2})
	if o.AlarmRetry.MaxRetries != 1 || o.MaxAlarmCrashes != 2 {
		t.Errorf("given: %+v", o)
	}
}
