package continuous_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves C2, Case AJ2, Case 29: a process that was down for hours runs each job once,
// promptly, and then on schedule. With RunEach it runs each missed run, and with Skip
// none.
func TestDownForHours(t *testing.T) {
	for name, tt := range map[string]struct {
		missed jobs.Missed
		want   uint64 // runs ten seconds after the open
	}{
		"once": {jobs.RunOnce, 2}, "each": {jobs.RunEach, 6}, "skip": {jobs.Skip, 1},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				j := ticking(s, continuous.Config[tally]{Schedule: jobs.Rate(time.Hour), Missed: tt.missed})
				s.Host(j)
				start(s, j, "a")
				s.RunUntilIdle()
				s.Crash(harness.PowerLoss)
				s.Advance(5*time.Hour + 30*time.Minute)
				s.Restart()
				s.Advance(10 * time.Second)
				st, state := know(s, j, "a")
				s.Always("runs after the stop", st.Meta.RunCount == tt.want && state.Runs == tt.want, st.Meta)
				s.Always("then as scheduled", st.Due.Equal(s.Now().Add(30*time.Minute-10*time.Second)), st.Due, s.Now())
			})
		})
	}
}

// Proves R2, R4, R6, Case 14, Case AJ4: a run that kills its process each time is
// repeated five times, under the same number and key. Two of the six crashes make it a
// suspect, and the other four are charged to it. Then the job has failed, visibly, with
// no alarm. Resume gives it another chance.
func TestRunThatKillsItsProcess(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		deadly := true
		var attempts []int
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: 2},
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				attempts = append(attempts, run.Attempt)
				s.Always("a recovery knows that it is one", run.Recovering == (run.Attempt > 1), run)
				if deadly {
					s.Sleep(time.Hour)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		for n := range 6 {
			for len(attempts) == n {
				s.Advance(time.Second)
			}
			st, _ := know(s, j, "a")
			s.Always("R4: each recovery is counted before its work starts", st.Meta.Status == jobs.Executing && st.Meta.RecoveryAttempts == n, n, st.Meta)
			s.Crash(harness.Kill)
			s.Restart()
		}
		s.Advance(time.Second)
		st, _ := know(s, j, "a")
		s.Always("six executions of one run", len(attempts) == 6 && attempts[5] == 6 && len(s.World().Log()) == 6, attempts)
		for _, e := range s.World().Log() {
			s.Always("one key", e.Key == s.World().Log()[0].Key, e)
		}
		s.Always("failed", st.Meta.Status == jobs.Failed && st.Meta.RecoveryAttempts == 5 && st.Meta.StopReason == "given up: recoveries", st.Meta)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, j.ID("a"))
			s.Always("no alarm, nothing open", err != nil || in.Alarm == nil && !in.Execution, in)
			lines, total := h.Recoveries()
			s.Always("reported", total == 2 && lines[0].Action == "charged" && lines[0].Attempt == 4 && lines[1].Action == "fail" && lines[1].Cause == "crash" &&
				lines[1].GivenUp, lines)
			return err
		}))
		events := history(s, j, "a")
		s.Always("told", events[len(events)-1] == "failed 0/0 given up: recoveries", events)

		deadly = false
		s.OK(j.Resume(s.Context(), s, "a"))
		s.OK(j.Trigger(s.Context(), s, "a"))
		s.RunUntilIdle()
		st, _ = know(s, j, "a")
		s.Always("well again", st.Meta.Status == jobs.Running && st.Meta.RunCount == 1 && st.Meta.RecoveryAttempts == 0, st.Meta)
	})
}

// Proves R4: a success ends the count of crashes: a job that is lost once in each
// run never fails.
func TestSuccessEndsTheCount(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.Attempt == 1 {
					s.Sleep(30 * time.Minute)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		for n := uint64(1); n <= 6; n++ {
			s.Advance(time.Minute)
			s.Crash(harness.Kill)
			s.Restart()
			s.Advance(time.Second)
			st, _ := know(s, j, "a")
			s.Always("recovered", st.Meta.Status == jobs.Running && st.Meta.RunCount == n && st.Meta.RecoveryAttempts == 0, n, st.Meta)
			s.Advance(st.Due.Sub(s.Now()))
		}
	})
}

// Proves R1, R2, R6, Case 15, Case 28: a lost run of any age begins again 100 ms after
// the open, without a call. The report has it, and its events are those of any run.
func TestRecoveryIsPrompt(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var began []time.Time
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(context.Context, *continuous.Run[tally]) error {
				began = append(began, s.Now())
				s.Sleep(time.Minute)
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		s.Crash(harness.Kill)
		s.Restart()
		opened := s.Now()
		s.Advance(time.Second)
		s.Always("again after the delay", len(began) == 2 && began[1].Sub(opened) == 100*time.Millisecond, began, opened)
		s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
			lines, total := h.Recoveries()
			s.Always("one line", total == 1 && lines[0].ID == j.ID("a") && lines[0].Cause == "crash" &&
				lines[0].Action == "re-run" && lines[0].Attempt == 1 && lines[0].Age >= time.Second, lines)
			return nil
		}))
		sameLines(s, "events", history(s, j, "a"), "created 0/0", "start 1/1", "recovery 1/1 crash", "start 1/2")
	})
}

// Proves O14, R4: a run that an orderly shutdown cut off runs again at the next
// open and has lost neither an attempt nor a recovery.
func TestShutdownCostsNothing(t *testing.T) {
	dir := t.TempDir()
	running := make(chan *continuous.Run[int], 10)
	j := continuous.New(continuous.Config[int]{
		Name: "slow", Schedule: jobs.Every(time.Hour),
		Run: func(ctx context.Context, run *continuous.Run[int]) error {
			running <- run
			if run.Attempt > 4 {
				run.State++
				run.Stop("done")
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		},
	})
	now, cancel := context.WithCancel(t.Context())
	cancel()
	for n := 1; n <= 5; n++ {
		h, err := object.Open(object.Options{Dir: dir}, j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Start(t.Context(), h, "a", 0); err != nil {
			t.Fatal(err)
		}
		if run := <-running; run.Attempt != n || run.Number != 1 || run.Recovering != (n > 1) {
			t.Fatalf("open %d: run %+v", n, run)
		}
		if n == 5 {
			for e, err := range h.Watch(t.Context(), j.ID("a"), 0) {
				if err != nil || e.Kind == jobs.EventStopped {
					break
				}
			}
		}
		st, err := j.Status(t.Context(), h, "a")
		if err != nil || st.Meta.RecoveryAttempts != 0 || st.Meta.Failures != 0 {
			t.Fatalf("open %d: %+v, %v", n, st.Meta, err)
		}
		if err := h.Shutdown(now); err != nil {
			t.Fatal(err)
		}
	}
}

// Proves R2, O6: the activation of a job is reset during a run. The run is looked at
// again when it is stale, and then repeated. The work of the first execution changes
// nothing.
func TestResetActivation(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var began []time.Time
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(context.Context, *continuous.Run[tally]) error {
				began = append(began, s.Now())
				s.Sleep(20 * time.Second)
				return nil
			},
		})
		reset := object.Handle(j.Class, "reset", panics)
		s.Host(j)
		start(s, j, "a")
		s.Advance(5 * time.Second)
		_, err := reset.Call(s.Context(), s, "a", 0)
		s.Always("the handler panicked", errors.Is(err, object.ErrPanic), err)
		s.Advance(time.Minute)
		st, state := know(s, j, "a")
		s.Always("repeated at the threshold", len(began) == 2 && began[1].Sub(began[0]) == 30*time.Second, began)
		s.Always("committed once", st.Meta.RunCount == 1 && state.Runs == 1, st.Meta)
	})
}

func panics[T any](*T, context.Context, int) (int, error) { panic("reset") }

// Proves J12, Case AJ5: a deploy that removes the definition parks the job. One that
// brings it back revives the job with its state, and the runs that were due run.
func TestDefinitionGoneAndBack(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
		other := continuous.New(continuous.Config[int]{
			Name: "other", Run: func(context.Context, *continuous.Run[int]) error { return nil },
		})
		s.Host(j, other)
		start(s, j, "a")
		s.Advance(time.Minute)
		s.Restart(harness.WithCode(other))
		s.Advance(5 * time.Hour)
		s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
			parked, err := h.Parked()
			s.Always("parked visibly", err != nil || len(parked) == 1 && parked[0] == "counter", parked)
			return err
		}))
		s.Restart(harness.WithCode(j, other))
		s.Advance(time.Second)
		st, state := know(s, j, "a")
		s.Always("revived", st.Meta.RunCount == 2 && state.Runs == 2, st.Meta)
	})
}

// Proves J2, R3, Case AJ6: metadata of an older version, with fields missing, is read. A
// job with the status executing runs again, and an orphan is armed.
func TestOldMetadata(t *testing.T) {
	for name, meta := range map[string]map[string]any{
		"executing": {"type": "continuous", "status": "executing", "runCount": 3, "executingAt": "2025-12-31T23:00:00Z"},
		"running":   {"type": "continuous", "status": "running", "runCount": 3},
		"bare":      {"status": "running", "runCount": 3},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				old := object.Define("counter", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
				write := object.Handle(old, "write", func(st *object.State, ctx context.Context, _ int) (int, error) {
					state := tally{Runs: 3, Trace: " 1 2 3"}
					cursor := jobs.StartCursor(s.Now().Add(-3 * time.Hour))
					return 0, st.Storage().PutBatch(ctx, []object.Entry{{Key: "meta", Value: meta}, {Key: "state", Value: state}, {Key: "cursor", Value: cursor}})
				})
				s.Host(old)
				s.Must(write.Call(s.Context(), s, "a", 0))
				j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
				s.Restart(harness.WithCode(j))
				know(s, j, "a") // no alarm and no mark is stored: the first call finds the orphan
				s.Advance(time.Second)
				st, state := know(s, j, "a")
				s.Always("it runs again, once", st.Meta.RunCount == 4 && state.Trace == " 1 2 3 4", st.Meta, state)
			})
		})
	}
}

// Proves J2: a stored Meta has its fields under these names.
func TestMetaNames(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	raw, err := json.Marshal(jobs.Meta{
		Type: "t", Name: "n", ID: "i", Status: jobs.Executing, CreatedAt: now, UpdatedAt: now, ExecutingAt: now, ExecutionID: "x",
		LastSuccessfulAt: now, LastRecoveryAt: now, RecoveryAttempts: 1, Attempt: 2, RunCount: 3, LastError: "e", StopReason: "s", Version: "v",
	})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"type", "name", "id", "status", "createdAt", "updatedAt", "executingAt", "executionID", "lastSuccessfulAt",
		"lastRecoveryAt", "recoveryAttempts", "attempt", "runCount", "lastError", "stopReason", "version",
	} {
		if _, ok := fields[name]; !ok {
			t.Errorf("field %s is not stored", name)
		}
	}
}
