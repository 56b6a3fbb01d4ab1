package object_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/object"
)

// histogram is the count and the sum of a histogram of the host, as text.
func (f *fixture) histogram(name string) string {
	f.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.host.Collector())
	families, err := registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			h := family.GetMetric()[0].GetHistogram()
			return fmt.Sprint(h.GetSampleCount(), " ", h.GetSampleSum())
		}
	}
	return ""
}

// The metrics of commits, of waiting replies and of late alarms show exactly the time
// that passed.
func TestTimesOfTheMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.open()
		f.must("a", setAlarm(time.Minute))
		f.close()
		pass(time.Hour + time.Minute) // the process is down
		d := f.slow()
		f.open()
		defer f.end()
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return nil })
		pass(time.Second)
		if got := f.histogram("holdfast_alarm_lag_seconds"); got != "1 3600" {
			t.Errorf("count and sum of the lag are %q", got)
		}
		if got := f.histogram("holdfast_commit_seconds"); got != "1 0" {
			t.Errorf("count and sum of the commits are %q", got)
		}
		f.must("b", put("k", "v"))
		before := f.histogram("holdfast_gate_seconds")
		f.must("b", get("k")) // it waits for nothing
		if after := f.histogram("holdfast_gate_seconds"); after != before || after != "1 0" {
			t.Errorf("count and sum of the gate are %q, and %q after a call that waits for nothing", before, after)
		}
		synced := f.histogram("holdfast_sync_seconds")
		d.hold.Store(true)
		var wg sync.WaitGroup
		wg.Go(func() { f.must("b", put("k", "w")) })
		pass(2 * time.Second)
		wg.Go(func() { f.must("b", get("k")) }) // it waits for the commit of the other
		pass(time.Second)
		wantValues(t, f, map[string]float64{"holdfast_commits_not_durable": 1, "holdfast_busy": 2, "holdfast_sync_under_way_seconds": 3})
		d.hold.Store(false)
		close(d.gate)
		wg.Wait()
		if got := f.histogram("holdfast_gate_seconds"); got != "3 4" {
			t.Errorf("count and sum of the gate are %q", got)
		}
		if got := f.histogram("holdfast_sync_seconds"); !strings.HasSuffix(got, " 3") || !strings.HasSuffix(synced, " 0") {
			t.Errorf("count and sum of the syncs are %q, and %q before they were slow", got, synced)
		}
		wantValues(t, f, map[string]float64{"holdfast_sync_under_way_seconds": 0})
	})
}

// Each kind of end of a turn counts once, and a refused call and a turn that holds its
// object for long do too.
func TestCountsOfTheMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 1, HoldLimit: time.Minute}).open()
		defer f.close()
		f.must("a", nothing)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { f.must("a", holdFor(2*time.Minute)) })
			synctest.Wait()
		}
		wantValues(t, f, map[string]float64{"holdfast_calls_waiting": 1, "holdfast_objects_live": 1})
		for range 3 {
			if _, err := f.call("a", nothing); !errors.Is(err, object.ErrOverloaded) {
				t.Error(err)
			}
		}
		pass(90 * time.Second)
		wantValues(t, f, map[string]float64{"holdfast_calls_waiting_age_seconds": 90})
		for range 2 { // the mailbox is too old as well as full
			if _, err := f.call("a", nothing); !errors.Is(err, object.ErrOverloaded) {
				t.Error(err)
			}
		}
		wg.Wait()
		wantValues(t, f, map[string]float64{
			"holdfast_turns_total done": 3, "holdfast_turns_total failed": 0, "holdfast_turns_total panicked": 0,
			"holdfast_calls_overloaded_total": 5, "holdfast_turns_stuck_total": 2, "holdfast_calls_waiting": 0,
		})
	})
}

// The age of the next task of a class is that of the earliest one that is ready, and
// zero while none is.
func TestAgeOfReadyTasks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		set := func(name string, since time.Duration) {
			f.must(name, func(th *thing, _ context.Context) (any, error) {
				tasks := object.Tasks{Pending: 1}
				if since != 0 {
					tasks.ReadySince = th.st.Now().Add(-since).UnixNano()
				}
				th.st.Driver().Backlog().Set(tasks)
				return nil, nil
			})
		}
		for i, step := range []struct {
			name        string
			since, want time.Duration
		}{
			{"none", 0, 0}, {"later", -time.Hour, 0}, {"now", 5 * time.Second, 5 * time.Second}, {"before", 7 * time.Second, 7 * time.Second},
			{"young", time.Second, 7 * time.Second}, {"none again", 0, 7 * time.Second},
		} {
			set(step.name, step.since)
			wantValues(t, f, map[string]float64{"holdfast_tasks_ready_age_seconds": step.want.Seconds(), "holdfast_tasks_pending": float64(i + 1)})
		}
	})
}

// Once its store has ended a host, its metrics show no held alarms, and none that wait
// for a permit.
func TestADeadHostWaitsForNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{WorkLimit: object.WorkLimit{AtOnce: 1}})
		d := f.slow()
		f.open()
		defer func() { _ = f.host.Shutdown(context.Background()) }()
		take := func(th *thing, ctx context.Context) error {
			free, err := th.st.Driver().TakePermit(ctx, false)
			if err != nil || !free {
				return errors.Join(err, th.st.SetAlarm(ctx, th.st.Now()))
			}
			return th.st.Go(ctx, "w", func(ctx context.Context) { <-ctx.Done() })
		}
		for _, name := range []string{"runs", "waits"} {
			f.must(name, func(th *thing, ctx context.Context) (any, error) { return nil, take(th, ctx) })
		}
		synctest.Wait()
		wantValues(t, f, map[string]float64{"holdfast_works_permitted": 1, "holdfast_works_waiting": 1})
		d.fail.Store(true)
		if _, err := f.call("b", put("k", "v")); !errors.Is(err, object.ErrStorage) {
			t.Error(err)
		}
		pass(time.Minute)
		wantValues(t, f, map[string]float64{"holdfast_works_permitted": 0, "holdfast_works_waiting": 0, "holdfast_busy": 0})
	})
}
