package timers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// occurrences runs timers with schedules and returns the occurrences that they ran for.
func (r *rig) occurrences() func() []string {
	var at []string
	begin := r.Now()
	r.fire = func(_ context.Context, _ *box, t timers.Timer) error {
		at = append(at, fmt.Sprint(t.Scheduled.Sub(begin), "@", r.Now().Sub(begin)))
		return nil
	}
	return func() []string { return at }
}

// on sets a timer with a schedule.
func (r *rig) on(name string, s jobs.Schedule, payload any) {
	r.must(func(ctx context.Context, b *box) error { return b.timers.On(ctx, name, s, payload) })
}

// Proves T1: a timer with a schedule fires at each occurrence, over evictions and restarts.
func TestScheduledTimers(t *testing.T) {
	for _, c := range []struct {
		schedule jobs.Schedule
		want     []string
	}{
		{jobs.Every(time.Hour), []string{"1h0m0s@1h0m0s", "2h0m0s@2h0m0s", "3h0m0s@3h0m0s"}},
		{jobs.Rate(time.Hour), []string{"1h0m0s@1h0m0s", "2h0m0s@2h0m0s", "3h0m0s@3h0m0s"}},
		{jobs.Cron("30 * * * *", "Europe/Paris"), []string{"30m0s@30m0s", "1h30m0s@1h30m0s", "2h30m0s@2h30m0s"}},
	} {
		run(t, timers.Options{}, nil, func(r *rig) {
			seen := r.occurrences()
			r.on("a", c.schedule, nil)
			r.Advance(90 * time.Minute)
			r.Restart()
			r.Advance(105 * time.Minute)
			if got := seen(); !slices.Equal(got, c.want) {
				r.Errorf("%s: %v, want %v", c.schedule, got, c.want)
			}
		})
	}
}

// Proves T1: occurrences that passed while the process was down run once, each or not.
func TestMissedOccurrences(t *testing.T) {
	for _, c := range []struct {
		missed   jobs.Missed
		schedule jobs.Schedule
		want     []string
	}{
		{jobs.RunOnce, jobs.Rate(time.Hour), []string{"1h0m0s@3h10m0s", "4h0m0s@4h0m0s"}},
		{jobs.RunEach, jobs.Rate(time.Hour), []string{"1h0m0s@3h10m0s", "2h0m0s@3h10m0s", "3h0m0s@3h10m0s", "4h0m0s@4h0m0s"}},
		{jobs.Skip, jobs.Rate(time.Hour), []string{"4h0m0s@4h0m0s"}},
		{jobs.Skip, jobs.Every(time.Hour), []string{"1h0m0s@3h10m0s", "4h10m0s@4h10m0s"}},
	} {
		run(t, timers.Options{Missed: c.missed}, nil, func(r *rig) {
			seen := r.occurrences()
			r.on("a", c.schedule, nil)
			r.Shutdown()
			r.Advance(190 * time.Minute)
			r.Restart()
			r.Advance(61 * time.Minute)
			if got := seen(); !slices.Equal(got, c.want) {
				r.Errorf("missed %d, %s: %v, want %v", c.missed, c.schedule, got, c.want)
			}
		})
	}
}

// Case 46. Proves T1: On with the same schedule and payload changes nothing, so that a constructor
// may call it; with others it begins anew.
func TestOnAgain(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		seen := r.occurrences()
		r.on("a", jobs.Rate(time.Hour), 1)
		r.Advance(50 * time.Minute)
		r.on("a", jobs.Rate(time.Hour), 1)
		r.Advance(11 * time.Minute)
		r.on("a", jobs.Rate(time.Hour), 2) // another payload
		r.Advance(60 * time.Minute)
		r.on("a", jobs.Rate(2*time.Hour), 2) // another schedule
		r.Advance(2 * time.Hour)
		r.at("a", time.Minute) // and no schedule any more
		r.Advance(5 * time.Hour)
		want := []string{"1h0m0s@1h0m0s", "2h1m0s@2h1m0s", "4h1m0s@4h1m0s", "4h2m0s@4h2m0s"}
		if got := seen(); !slices.Equal(got, want) {
			r.Errorf("%v, want %v", got, want)
		}
	})
}

// Proves T1, T3: a schedule counts its retries from the failure, keeps its occurrence over them,
// and goes on from there.
func TestRetryOfAnOccurrence(t *testing.T) {
	run(t, thrice, nil, func(r *rig) {
		begin := r.Now()
		var at []string
		r.fire = func(_ context.Context, _ *box, t timers.Timer) error {
			at = append(at, fmt.Sprint(t.Failures, " ", t.Scheduled.Sub(begin), "@", r.Now().Sub(begin)))
			if len(at) < 3 {
				return errNo
			}
			return nil
		}
		r.on("a", jobs.Every(time.Hour), nil)
		r.Advance(2*time.Hour + 2*time.Minute)
		want := []string{"0 1h0m0s@1h0m0s", "1 1h0m0s@1h1m0s", "2 1h0m0s@1h2m0s", "0 2h2m0s@2h2m0s"}
		if !slices.Equal(at, want) {
			r.Errorf("%v, want %v", at, want)
		}
	})
}

// Proves T1: jitter makes a timer later, never earlier, and differs from timer to timer.
func TestJitterOfTimers(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		begin := r.Now()
		late := map[string]time.Duration{}
		r.fire = func(_ context.Context, _ *box, t timers.Timer) error {
			late[t.Name] = r.Now().Sub(begin) - time.Hour
			if !t.Scheduled.Equal(begin.Add(time.Hour)) {
				r.Errorf("%s is for %v", t.Name, t.Scheduled)
			}
			return nil
		}
		for i := range 8 {
			r.on(fmt.Sprint(i), jobs.Rate(time.Hour).WithJitter(time.Minute), nil)
		}
		r.Advance(time.Hour + time.Minute)
		different := map[time.Duration]bool{}
		for _, d := range late {
			different[d] = true
			if d < 0 || d > time.Minute {
				r.Errorf("late by %v", d)
			}
		}
		if len(late) != 8 || len(different) < 4 {
			r.Errorf("late by %v", late)
		}
	})
}

// Proves T3: a schedule that this program cannot read fails and is tried again, and is never
// given up. The others fire.
func TestScheduleThatCannotBeRead(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		r := newRig(s, timers.Options{}, nil)
		r.on("a", jobs.Cron("0 * * * *", "Europe/Paris"), nil)
		r.must(func(ctx context.Context, b *box) error { // as if a program with other zones had stored it
			for item, err := range b.st.Storage().List(ctx, object.ListOptions{Prefix: "\x00t/d/"}) {
				if err != nil {
					return err
				}
				zone := []byte("Europe/Paris")
				i := slices.Index(item.Value, zone[0])
				for string(item.Value[i:i+len(zone)]) != string(zone) {
					i++
				}
				copy(item.Value[i:], "Europe/Parix")
				if err := b.st.Storage().PutBytes(ctx, item.Key, item.Value); err != nil {
					return err
				}
			}
			return nil
		})
		r.at("b", time.Hour)
		r.Advance(2 * time.Hour)
		r.want("a", 0)
		r.want("b", 1)
		r.must(func(ctx context.Context, b *box) error {
			x, ok, err := b.timers.Get(ctx, "a")
			if err != nil || !ok || x.Failures < 20 || x.LastError == "" {
				err = fmt.Errorf("%+v, %t, %w", x, ok, err)
			}
			return err
		})
		r.Always("no letter", len(r.letters()) == 0, r.letters())
	}, harness.OneAlarm, harness.EarliestTimer)
}
