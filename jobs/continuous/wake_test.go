package continuous_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"pgregory.net/rapid"
)

// Proves R5, Case 16, Case CR5: neither a restart nor a call moves the alarm of a job
// that sleeps, and its run comes at the time set before.
func TestWakeUpKeepsTheAlarm(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		due := s.Now().Add(59 * time.Minute)
		for range 5 {
			s.Crash(harness.PowerLoss)
			s.Advance(10 * time.Minute)
			s.Restart()
			before := s.Store().Applied()
			st, _ := know(s, j, "a")
			s.Always("due as before", st.Due.Equal(due), st.Due, due)
			s.Always("the wake-up wrote nothing", s.Store().Applied() == before)
		}
		s.Advance(due.Sub(s.Now()) - time.Second)
		st, _ := know(s, j, "a")
		s.Always("not before its time", st.Meta.RunCount == 1, st.Meta)
		s.Advance(2 * time.Second)
		st, _ = know(s, j, "a")
		s.Always("at its time", st.Meta.RunCount == 2, st.Meta)
	})
}

// Proves R1, R2, Case 17, Case 23: the activation of a job takes no time and runs
// nothing, if a run is lost or if one is overdue. Each such job then runs once.
func TestConstructorOnlyArms(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.ID == "lost" && run.Attempt == 1 {
					s.Sleep(time.Hour)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "lost")
		start(s, j, "overdue")
		s.Advance(time.Second)
		s.Crash(harness.Kill)
		s.Advance(3 * time.Hour)
		effects := len(s.World().Log())
		s.Restart()
		now := s.Now()
		st, _ := know(s, j, "lost")
		s.Always("the lost run is still open", st.Meta.Status == jobs.Executing && st.Meta.Attempt == 1, st.Meta)
		s.Always("the first call took no time", s.Now().Equal(now), s.Now(), now)
		s.Always("and the lost run has not begun", s.World().Count(s.World().Log()[0].Key) == 1)
		s.Advance(time.Second)
		s.Always("one run each", len(s.World().Log()) == effects+2, s.World().Log())
	})
}

// Proves J3, R3, Case AJ1: a job that is stopped or failed, and an id that has no
// job, have no alarm, and no wake-up writes anything.
func TestAtRest(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Minute), Exhausted: jobs.Fail,
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.ID == "failed" {
					return errors.New("boom")
				}
				return nil
			},
		})
		s.Host(j)
		for _, id := range []string{"stopped", "failed", "terminated"} {
			start(s, j, id)
		}
		s.RunUntilIdle()
		s.OK(j.Stop(s.Context(), s, "stopped", ""))
		s.OK(j.Terminate(s.Context(), s, "terminated", ""))
		s.Restart()
		before := s.Store().Applied()
		s.Advance(time.Hour)
		for _, id := range []string{"stopped", "failed", "terminated", "never"} {
			_, _ = j.Status(s.Context(), s, id)
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				in, err := h.Inspect(ctx, j.ID(id))
				s.Always(id+" has no alarm", err != nil || in.Alarm == nil, in.Alarm)
				return err
			}))
		}
		s.Always("nothing was written", s.Store().Applied() == before, before, s.Store().Applied())
	})
}

// Proves R4, R5, Case AJ3: a crash between the open and the recovery counts once
// with the crash before it, since the work did not run in between.
func TestCrashBeforeRecovery(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.Attempt == 1 {
					s.Sleep(time.Hour)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		for range 10 {
			s.Crash(harness.Kill)
			s.Restart()
			s.Advance(50 * time.Millisecond)
		}
		s.Advance(time.Second)
		st, state := know(s, j, "a")
		s.Always("recovered at the second execution", st.Meta.RunCount == 1 && state.Runs == 1 && len(s.World().Log()) == 2, st.Meta)
	})
}

// Proves C2, Case 24, Case 29: a cron with jitter runs once for each occurrence,
// never before it, also when the job is started again and again.
func TestCronRunsOncePerOccurrence(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var began []time.Time
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Cron("0 */10 * * * *", "").WithJitter(time.Minute), StartLater: true,
			Run: func(context.Context, *continuous.Run[tally]) error {
				began = append(began, s.Now())
				return nil
			},
		})
		s.Host(j)
		s.Advance(time.Second)
		for range 12 {
			start(s, j, "a")
			s.Advance(10 * time.Minute)
			if len(began)%4 == 3 {
				s.Restart()
			}
		}
		s.Advance(time.Minute)
		s.Always("twelve runs", len(began) == 12, began)
		for n, at := range began {
			occurrence := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n+1) * 10 * time.Minute)
			late := at.Sub(occurrence)
			s.Always("in its minute", late >= 0 && late <= time.Minute, n, late)
		}
	})
}

// Proves R7, C3: after any three crashes, in any order of tasks, every job comes
// to a scheduled state within twice the stale threshold and the backoff.
func TestRandomLiveness(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		failures := rapid.IntRange(0, 2).Draw(rt, "failures")
		slow := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(rt, "slow"))
		const backoff = 5 * time.Second
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Retry:    jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(backoff)},
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.Number == 1 && failures > 0 {
					failures--
					return errors.New("boom")
				}
				if run.Number == 1 && run.Attempt == 1 {
					s.Sleep(slow)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(slow + 2*backoff)
		s.Advance(2 * (30*time.Second + backoff))
		st, state := know(s, j, "a")
		s.Always("scheduled", st.Meta.Status == jobs.Running && st.Due.After(s.Now()) && st.Meta.RunCount == 1, st)
		counted(s, st, state, 2)
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// broken is an engine that stops taking batches.
type broken struct {
	*memstore.Store
	fails *atomic.Bool
}

func (b broken) Apply(repr []byte) error {
	if b.fails.Load() {
		return errors.New("disk is gone")
	}
	return b.Store.Apply(repr)
}

// Proves O13, Case 26: a run that swallows an error of the store is not
// acknowledged. The next process repeats it.
func TestSwallowedStorageError(t *testing.T) {
	var fails atomic.Bool
	var attempts atomic.Int64
	notes := object.Define("note", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	write := object.Handle(notes, "write", func(st *object.State, ctx context.Context, v int) (int, error) {
		return v, st.Storage().Put(ctx, "v", v)
	})
	j := continuous.New(continuous.Config[int]{
		Name: "job",
		Run: func(ctx context.Context, run *continuous.Run[int]) error {
			fails.Store(attempts.Add(1) == 1)
			if _, err := write.Call(ctx, run, "n", 1); fails.Load() != errors.Is(err, object.ErrStorage) {
				t.Errorf("the write says %v", err)
			}
			run.State = run.Attempt // the error is swallowed
			return nil
		},
	})
	mem := memstore.New()
	open := func() *object.Host {
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: broken{mem, &fails}}}, j, notes)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := open()
	_, err := j.Start(t.Context(), h, "a", 0)
	if err != nil && !errors.Is(err, object.ErrStorage) {
		t.Fatal(err)
	}
	<-h.Done()
	if err := h.Shutdown(t.Context()); !errors.Is(err, object.ErrStorage) {
		t.Errorf("Shutdown says %v", err)
	}
	mem = mem.Crash(0)
	fails.Store(false)
	h = open()
	for e, err := range h.Watch(t.Context(), j.ID("a"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == jobs.EventSuccess {
			break
		}
	}
	st, err := j.Status(t.Context(), h, "a")
	state, err2 := j.State(t.Context(), h, "a")
	if err := errors.Join(err, err2); err != nil || st.Meta.RunCount != 1 || state != 2 {
		t.Errorf("after the next open: state %d, %+v, %v", state, st.Meta, err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
