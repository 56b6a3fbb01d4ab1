package recovery

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Proves R2, R3, R4, R5: the table of a wake-up.
func TestCheck(t *testing.T) {
	const (
		before = 6
		now    = 7
	)
	tests := []struct {
		name string
		s    Snapshot
		want Action
	}{
		{"no job", Snapshot{}, Action{Verb: Nothing}},
		{"idle by design", Snapshot{HasAlarm: false}, Action{Verb: Nothing}},
		{"armed", Snapshot{Due: noon.Add(time.Hour), HasAlarm: true}, Action{Verb: Nothing}},
		{"armed and overdue", Snapshot{Due: noon.Add(-time.Hour), HasAlarm: true}, Action{Verb: Nothing}},
		{"orphan, armed from its schedule and not from now", Snapshot{Due: noon.Add(-time.Hour)},
			Action{Arm, noon.Add(-time.Hour), CauseOrphan}},
		{"earlier process, a moment old", Snapshot{Open: true, OpenEpoch: before, Since: noon},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"earlier process, though a clock says it is to come", Snapshot{Open: true, OpenEpoch: before, Since: noon.Add(time.Hour)},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"earlier process that was shut down", Snapshot{Open: true, OpenEpoch: before, Free: true, Charges: 4, Losses: 3},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseShutdown}},
		{"earlier process, looked at long after the open", Snapshot{Open: true, OpenEpoch: before, Began: noon.Add(-time.Minute)},
			Action{Rerun, noon, CauseCrash}},
		{"earlier process, and the clock was put back", Snapshot{Open: true, OpenEpoch: before, Began: noon.Add(time.Hour)},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"this process, young", Snapshot{Open: true, OpenEpoch: now, Since: noon.Add(-time.Second)},
			Action{Rerun, noon.Add(29 * time.Second), CauseStale}},
		{"this process, stale", Snapshot{Open: true, OpenEpoch: now, Since: noon.Add(-time.Minute)},
			Action{Rerun, noon, CauseStale}},
		{"held outside, lease open", Snapshot{Open: true, OpenEpoch: before, Until: noon.Add(time.Second)},
			Action{Rerun, noon.Add(time.Second), CauseLease}},
		{"held outside, lease over", Snapshot{Open: true, OpenEpoch: now, Until: noon.Add(-time.Second)},
			Action{Rerun, noon, CauseLease}},
		{"crashes that may have their cause outside", Snapshot{Open: true, OpenEpoch: before, Losses: 3},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"three charges", Snapshot{Open: true, OpenEpoch: before, Charges: 3},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"one charge more than the maximum", Snapshot{Open: true, OpenEpoch: before, Charges: 4},
			Action{Fail, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"another node ran it", Snapshot{Open: true, OpenEpoch: before, OwnerLost: true, OwnersLost: 19, Charges: 4, Losses: 3},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseOwnerLost}},
		{"the 21st owner in a row is lost", Snapshot{Open: true, OpenEpoch: before, OwnerLost: true, OwnersLost: 20},
			Action{Fail, noon.Add(100 * time.Millisecond), CauseOwnerLost}},
		{"a crash after 20 owners", Snapshot{Open: true, OpenEpoch: before, OwnersLost: 20},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"another node ran it, and has shut down", Snapshot{Open: true, OpenEpoch: before, OwnerLost: true, OwnersLost: 20, Free: true},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseShutdown}},
		{"the process before may run it", Snapshot{Open: true, OpenEpoch: before, Hold: 3 * time.Second},
			Action{Rerun, noon.Add(3 * time.Second), CauseCrash}},
		{"the process before may run it for less than the delay", Snapshot{Open: true, OpenEpoch: before, Hold: time.Millisecond},
			Action{Rerun, noon.Add(100 * time.Millisecond), CauseCrash}},
		{"this process runs it, and the process before may run others", Snapshot{Open: true, OpenEpoch: now, Since: noon.Add(-time.Minute), Hold: time.Second},
			Action{Rerun, noon, CauseStale}},
		{"lost for the third time in a living process", Snapshot{Open: true, OpenEpoch: now, Since: noon.Add(-time.Minute), Losses: 2},
			Action{Rerun, noon, CauseStale}},
		{"lost once too often in a living process", Snapshot{Open: true, OpenEpoch: now, Since: noon.Add(-time.Minute), Losses: 3},
			Action{Fail, noon, CauseStale}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.s
			s.Now, s.Epoch = noon, now
			if s.Began.IsZero() {
				s.Began = noon
			}
			if got := Check(s, Limits{}); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// Proves R5: once the action of a check is done, the next check finds no action. A check
// never gives a time in the past for a lost execution.
func TestCheckIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) time.Time {
			return noon.Add(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, label)))
		}
		s := Snapshot{
			Now: noon, Epoch: 7,
			Open:      rapid.Bool().Draw(t, "open"),
			OpenEpoch: rapid.Uint64Range(5, 7).Draw(t, "openEpoch"),
			Since:     at("since"),
			Charges:   rapid.IntRange(0, 5).Draw(t, "charges"),
			Losses:    rapid.IntRange(0, 5).Draw(t, "losses"),
			HasAlarm:  rapid.Bool().Draw(t, "hasAlarm"),
		}
		if rapid.Bool().Draw(t, "has something to do") {
			s.Due = at("due")
		}
		a := Check(s, Limits{})
		switch a.Verb {
		case Arm:
			s.HasAlarm = true
		case Rerun, Fail:
			if a.At.Before(s.Now) {
				t.Fatalf("recovery at %s, before now", a.At)
			}
			s.Open, s.HasAlarm = false, true
		}
		if again := Check(s, Limits{}); again.Verb != Nothing {
			t.Fatalf("after %+v still %+v", a, again)
		}
	})
}
