package realtime

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// stopwatch notes when things happen, from the begin of a bubble on.
type stopwatch struct {
	began time.Time
	laps  []time.Duration
}

func (w *stopwatch) lap() { w.laps = append(w.laps, time.Since(w.began)) }

// Proves J7, J9: retries, the end of an execution at its timeout and its fencing come
// at exact moments.
func TestMomentsOfRetriesAndTimeouts(t *testing.T) {
	for name, c := range map[string]struct {
		config continuous.Config[int]
		run    func(ctx context.Context) error
		want   []time.Duration // when executions begin
	}{
		"retries count from the failure": {
			continuous.Config[int]{Retry: jobs.Retry{MaxAttempts: 4, Backoff: jobs.Exponential(time.Second, time.Minute)}},
			func(context.Context) error { time.Sleep(10 * time.Second); return errors.New("boom") },
			[]time.Duration{0, 11 * time.Second, 23 * time.Second, 37 * time.Second},
		},
		"a timeout ends the work": {
			continuous.Config[int]{Timeout: 5 * time.Second, Retry: jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Second)}},
			func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
			[]time.Duration{0, 6 * time.Second, 12 * time.Second},
		},
		"a long run is left alone": {
			continuous.Config[int]{Lease: 3 * time.Second, StaleThreshold: time.Second},
			func(context.Context) error { time.Sleep(time.Hour); return nil },
			[]time.Duration{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &stopwatch{began: time.Now()}
				c.config.Name = "job"
				c.config.Run = func(ctx context.Context, _ *continuous.Run[int]) error { w.lap(); return c.run(ctx) }
				j := continuous.New(c.config)
				m := newMachine(t, newMapDisk(), j)
				if _, err := j.Start(t.Context(), m.host, "it", 0); err != nil {
					t.Fatal(err)
				}
				until(w.began.Add(2 * time.Hour))
				if !slices.Equal(w.laps, c.want) {
					t.Errorf("executions began at %v, want %v", w.laps, c.want)
				}
				m.close()
			})
		})
	}
}

// Proves J7: while a work lives its lease is extended each third of it.
func TestMomentsOfLeaseRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := continuous.New(continuous.Config[int]{
			Name: "job", Lease: 30 * time.Second,
			Run: func(context.Context, *continuous.Run[int]) error { time.Sleep(time.Minute); return nil },
		})
		m := newMachine(t, newMapDisk(), j)
		began := time.Now()
		if _, err := j.Start(t.Context(), m.host, "it", 0); err != nil {
			t.Fatal(err)
		}
		for n := range 6 {
			until(began.Add(time.Duration(n)*10*time.Second + time.Millisecond))
			in, err := m.host.Inspect(t.Context(), j.ID("it"))
			next := began.Add(time.Duration(n+1) * 10 * time.Second)
			if err != nil || in.Alarm == nil || !in.Alarm.Due.Equal(next) {
				t.Errorf("after %v the lease is looked at %+v, want %v: %v", time.Since(began), in.Alarm, next, err)
			}
		}
		until(began.Add(time.Minute))
		if in, err := m.host.Inspect(t.Context(), j.ID("it")); err != nil || in.Alarm != nil {
			t.Errorf("the run has ended, and its lease is still looked at: %+v, %v", in.Alarm, err)
		}
		m.close()
	})
}
