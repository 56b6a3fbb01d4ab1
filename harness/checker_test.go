package harness_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// The tests of this file show each checker a bug that it must find. Tests of
// NeverOrphaned and RecoversWithin that need work are in recovery_test.go, those of
// NoLostAck in toy_test.go, those of Linearizable in checker_linearizable_test.go.

// A disk that keeps a later commit without an earlier one.
func TestNoTornBatchFindsATornDisk(t *testing.T) {
	scenario := func(s *harness.Sim) {
		s.Host(carts)
		for i := range 2 {
			_, _ = cartAdd.Call(s.Context(), s, fmt.Sprint(i), 1, object.Unconfirmed())
		}
	}
	harness.Exhaust(t, scenario, harness.PebbleStore(), harness.NoTornBatch)
	mustSay(t, problemOf(t, scenario, harness.TornDisk, harness.NoTornBatch),
		"NoTornBatch: the store lacks", "S9: Surviving commits are a prefix of the commit order")
}

// A program that moves an alarm and leaves its old entry in the time index.
func TestOneAlarmFindsASecondEntry(t *testing.T) {
	scenario := func(forgets bool) harness.Scenario {
		return func(s *harness.Sim) {
			s.Boot(func(_ context.Context, p *harness.Process) error {
				store, err := storage.Open(p.Store)
				if err != nil {
					return err
				}
				return moveTwice(store, forgets)
			})
		}
	}
	harness.Exhaust(t, scenario(false), harness.OneAlarm)
	mustSay(t, problemOf(t, scenario(true), harness.OneAlarm), "OneAlarm: ", "A1: ", "exactly one index entry")
}

// moveTwice sets the alarm of a new object and moves it, in two commits.
func moveTwice(store *storage.Store, forgets bool) error {
	id := storage.ID{Class: "bell", Name: "one"}
	o, err := store.Find(id)
	if err != nil || o.Number != 0 {
		return err
	}
	o.Number = store.NewNumber()
	var from *int64
	for i := range 2 {
		due := time.Duration(i+1) * time.Hour
		at := due.Nanoseconds()
		var b storage.Batch
		b.For(id)
		b.SetHeader(o)
		b.MoveAlarm(o, from, &at, alarm.AppendRow(nil, alarm.Row{Due: time.Unix(0, at), Gen: 1}), alarm.AppendIndex(nil, 1, id.Class, id.Name))
		if _, err := store.Commit(&b); err != nil {
			return err
		}
		if !forgets {
			from = &at
		}
	}
	return nil
}

// Metadata of a job that contradicts the rows beside it.
func TestNeverOrphanedReadsMetadata(t *testing.T) {
	for _, c := range []struct {
		meta jobs.Meta
		want string
	}{
		{jobs.Meta{Type: "continuous", Status: jobs.Running}, "status is running and no alarm is set (R3)"},
		{jobs.Meta{Type: "continuous", Status: jobs.Executing}, "status is executing and no execution is open (J5)"},
		{jobs.Meta{Type: "debounce", Status: jobs.Running}, "status is running and no alarm is set (R3)"},
		{jobs.Meta{Type: "debounce", Status: jobs.Running, Hooks: 1}, ""}, // it owes a call of a hook that its definition no longer has
		{jobs.Meta{Type: "another", Status: jobs.Running}, ""},
		{jobs.Meta{Type: "continuous", Status: jobs.Paused}, ""},
		{jobs.Meta{Type: "no label", Status: jobs.Paused}, "the label is \"\" and status is paused (J18)"},
	} {
		class := object.Define("job", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
		put := object.Handle(class, "put", func(st *object.State, ctx context.Context, m jobs.Meta) (int, error) {
			if m.Type != "no label" {
				if err := st.Driver().SetLabel(ctx, m.Status.Label()); err != nil {
					return 0, err
				}
			}
			m.Name, m.ID = st.ID().Class, st.ID().Name
			return 0, st.Storage().Put(ctx, jobs.MetaKey, m)
		})
		scenario := func(s *harness.Sim) {
			s.Host(class)
			s.Must(put.Call(s.Context(), s, "one", c.meta))
		}
		if c.want == "" {
			harness.Exhaust(t, scenario, harness.NeverOrphaned)
			continue
		}
		mustSay(t, problemOf(t, scenario, harness.NeverOrphaned), "job/one: "+c.want, "job status", string(c.meta.Status))
	}
}

// An alarm that fails after its effect repeats it, with no crash between.
func TestAtMostOncePerCrashFindsARetry(t *testing.T) {
	scenario := func(failing bool) harness.Scenario {
		return func(s *harness.Sim) {
			class := object.Define("sender", func(_ context.Context, st *object.State) (*sender, error) {
				return &sender{s, st, failing}, nil
			})
			on := object.Handle(class, "on", func(x *sender, ctx context.Context, _ int) (int, error) { return 0, x.st.SetAlarm(ctx, x.st.Now()) })
			s.Host(class)
			s.OK(s.Retry(func() error { _, err := on.Call(s.Context(), s, "one", 0); return err }))
			s.Advance(time.Minute)
		}
	}
	once := harness.AtMostOncePerCrash("send/")
	harness.Exhaust(t, scenario(false), once)
	mustSay(t, problemOf(t, scenario(true), once), `the effect "send/one" was done at 0s by start 1, and again at `,
		"with no crash between", "is repeated, except because", "C3: Executions of run n are at most")
}

// A model that knows the rows that must be there.
func TestStateMatchesFindsALoss(t *testing.T) {
	total := harness.StateMatches(func(s *harness.Sim) error {
		var total int
		if _, err := harness.Stored(s.Store(), carts.ID("alice"), "total", &total); err != nil || total != 5 {
			return fmt.Errorf("alice has %d, want 5 (%v)", total, err)
		}
		return nil
	})
	add := func(opts ...object.CallOption) harness.Scenario {
		return func(s *harness.Sim) {
			s.Host(carts)
			s.OK(s.Retry(func() error { _, err := cartAdd.Call(s.Context(), s, "alice", 5, opts...); return err }))
		}
	}
	harness.Exhaust(t, add(object.Idempotent("1", time.Hour)), total)
	mustSay(t, problemOf(t, add(), total), "StateMatches: alice has 10, want 5", "cart/alice", "total")
}

// The forms for a history from elsewhere.
func TestHistoriesOfEffects(t *testing.T) {
	log := []harness.Effect{{Key: "a"}, {Key: "b"}, {Key: "a", Crashes: 1}, {Key: "b", Crashes: 1}, {Key: "b", Crashes: 1}}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{harness.NoDoubleEffectIn(log, "a"), false},
		{harness.NoDoubleEffectIn(log[:2], ""), true},
		{harness.NoDoubleEffectIn(log, "c"), true},
		{harness.AtMostOncePerCrashIn(log, "a"), true},
		{harness.AtMostOncePerCrashIn(log, "b"), false},
		{harness.AtMostOncePerCrashIn(log[:4], "b"), true},
	} {
		if (c.err == nil) != c.want {
			t.Errorf("%v, want none: %v", c.err, c.want)
		}
	}
}
