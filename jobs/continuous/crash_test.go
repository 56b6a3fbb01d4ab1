package continuous_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// tally is the state of the jobs under test: it says which runs it has seen.
type tally struct {
	Runs  uint64
	Trace string
}

// effects is the prefix of the outside effects of a job's runs.
const effects = "counter/"

// ticking is a job that has one outside effect in each run, and counts its runs.
func ticking(s *harness.Sim, c continuous.Config[tally]) *continuous.Job[tally] {
	c.Name = "counter"
	inner := c.Run
	c.Run = func(ctx context.Context, run *continuous.Run[tally]) error {
		s.Always("run n sees the state after run n-1", run.State.Runs == run.Number-1, run.State, run.Number)
		s.World().Do(run.Key, nil)
		run.State.Runs++
		run.State.Trace += fmt.Sprintf(" %d", run.Number)
		if inner != nil {
			return inner(ctx, run)
		}
		return nil
	}
	return continuous.New(c)
}

// start starts the job until the answer is known.
func start(s *harness.Sim, j *continuous.Job[tally], id string) {
	s.OK(s.Retry(func() error {
		_, err := j.Start(s.Context(), s, id, tally{})
		return err
	}))
}

// know reads the status and state of a job.
func know(s *harness.Sim, j *continuous.Job[tally], id string) (st continuous.Status, state tally) {
	s.OK(s.Retry(func() (err error) {
		if st, err = j.Status(s.Context(), s, id); err != nil {
			return err
		}
		state, err = j.State(s.Context(), s, id)
		return err
	}))
	return st, state
}

// counted checks C3 on a job: its state is that of runs 1 to n, in order, and
// each had its effect at least once and at most once more for each crash.
func counted(s *harness.Sim, st continuous.Status, state tally, repeats int) {
	want := ""
	for n := uint64(1); n <= st.Meta.RunCount; n++ {
		want += fmt.Sprintf(" %d", n)
	}
	s.Always("each committed run is in the state once", state.Trace == want && state.Runs == st.Meta.RunCount, state, st.Meta.RunCount)
	times := make(map[string]int)
	for _, e := range s.World().Log() {
		times[e.Key]++
	}
	s.Always("each committed run had its effect", uint64(len(times)) >= st.Meta.RunCount, times, st.Meta.RunCount)
	for key, n := range times {
		s.Always("a run repeats for a crash or a failure only", n <= 1+s.Crashes()+repeats, key, n)
	}
}

var promises = []harness.Option{
	harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned, harness.AtMostOncePerCrash(effects),
	harness.Invariant("C3: runCount is the number of committed runs", committed),
}

// committed holds in each stored state: a job counts exactly the runs that its state has
// seen, and a job that executes has the time since when it does (J2).
func committed(store *storage.Store) error {
	return each(store, func(id storage.ID, m jobs.Meta) error {
		var state tally
		if _, err := harness.Stored(store, id, "state", &state); err != nil {
			return err
		}
		switch {
		case m.RunCount != state.Runs:
			return fmt.Errorf("%s counts %d runs, its state is that after run %d", id, m.RunCount, state.Runs)
		case (m.Status == jobs.Executing) == m.ExecutingAt.IsZero():
			return fmt.Errorf("J2: %s is %s, executingAt is %v", id, m.Status, m.ExecutingAt)
		}
		return nil
	})
}

// each gives the metadata of each job that is stored to f.
func each(store *storage.Store, f func(id storage.ID, m jobs.Meta) error) error {
	var bad error
	err := store.Objects("counter", "", func(o storage.Object) bool {
		var m jobs.Meta
		if _, bad = harness.Stored(store, o.ID, jobs.MetaKey, &m); bad == nil {
			bad = f(o.ID, m)
		}
		return bad == nil
	})
	return cmp.Or(bad, err)
}

// Proves C1, C3, J5, J8, R1, R2, R4, R5, R7: a crash before the start batch leaves
// no job; after it, after B1, in the work, before B2 and after B2 the runs go on,
// each committed once, under the same key. A crash in the recovery itself changes
// nothing of this. Case CR1, Case CR2, Case CR3, Case CR4, Case CR5, Case AJ3.
func TestRunsSurviveCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(30 * time.Minute)})
		s.Host(j)
		start(s, j, "a")
		s.Advance(40 * time.Minute)
		st, state := know(s, j, "a")
		s.Always("both runs are committed", st.Meta.RunCount == 2, st.Meta)
		s.Always("running, with the next run to come", st.Meta.Status == jobs.Running && st.Due.After(s.Now()), st)
		counted(s, st, state, 0)
	}, append(promises, harness.RecoversWithin(patience))...)
}

// patience is how long a job may take to a scheduled or a terminal state (R7):
// twice the stale threshold, as there is no backoff.
const patience = 2 * 30 * time.Second

// Proves J9, C3, Case CR6: in retry backoff a crash changes nothing: the retry comes once,
// at its stored time.
func TestRetrySurvivesCrashes(t *testing.T) {
	boom := errors.New("boom")
	crashes.Try(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Retry:    jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(10 * time.Minute)},
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.Number == 1 && run.LastError == "" {
					return boom
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(9 * time.Minute)
		st, _ := know(s, j, "a")
		s.Always("nothing is committed yet", st.Meta.RunCount == 0 && st.Meta.Run.Failures == 1 && st.Meta.LastError == boom.Error(), st.Meta)
		s.Advance(2 * time.Minute)
		st, state := know(s, j, "a")
		s.Always("the retry was committed", st.Meta.RunCount == 1 && st.Meta.Failures == 0, st.Meta)
		counted(s, st, state, 1)
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves J9, J10, Case CR7: exhaustion is wholly done or wholly not: failed with an event,
// or gone.
func TestExhaustionSurvivesCrashes(t *testing.T) {
	for _, policy := range []jobs.Exhausted{jobs.Keep, jobs.Fail, jobs.Purge} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour), Exhausted: policy,
					Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)},
					Run:   func(context.Context, *continuous.Run[tally]) error { return errors.New("boom") },
				})
				s.Host(j)
				created, err := j.Start(s.Context(), s, "a", tally{})
				s.OK(err)
				if err == nil {
					s.Always("the first start creates", created.Created)
				}
				s.Advance(10 * time.Minute)
				var st continuous.Status
				err = s.Retry(func() (err error) {
					st, err = j.Status(s.Context(), s, "a")
					return err
				})
				switch {
				case errors.Is(err, jobs.ErrNotFound):
					s.Always("only a purge or a lost start leaves nothing", policy == jobs.Purge || s.Crashes() > 0)
				case policy == jobs.Keep:
					s.Always("the schedule goes on", st.Meta.Status == jobs.Running && st.Meta.Failures == 1 && st.Due.After(s.Now()), st)
				case policy == jobs.Fail:
					s.Always("the job failed", st.Meta.Status == jobs.Failed && st.Due.IsZero() && st.Meta.StopReason != "", st)
				default:
					s.Always("the job is gone", false, st)
				}
			}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
		})
	}
}

// Proves J10, Case CR7, Case 5: terminate is wholly done or wholly not, at every crash; the id may
// start again, with keys of its own.
func TestTerminateSurvivesCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(30 * time.Minute)})
		s.Host(j)
		start(s, j, "a")
		err := s.Retry(func() error { return j.Terminate(s.Context(), s, "a", "enough") })
		s.Always("terminated, or found gone by the repeat", err == nil || errors.Is(err, jobs.ErrNotFound), err)
		_, err = j.Status(s.Context(), s, "a")
		s.Always("it is gone", errors.Is(err, jobs.ErrNotFound) || harness.Unknown(err), err)
		s.Advance(time.Hour)
		start(s, j, "a")
		s.Advance(time.Minute)
		st, _ := know(s, j, "a")
		s.Always("the new life begins with run 1", st.Meta.RunCount == 1, st.Meta)
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned, harness.Invariant("J10: the terminal event and the end are one batch", endedOnce))
}

// endedOnce holds in each stored state: a job is gone once its last event is the terminal
// one.
func endedOnce(store *storage.Store) error {
	id := storage.ID{Class: "counter", Name: "a"}
	var last string
	if err := store.Events(id, 0, func(_ uint64, value []byte) bool { last = string(value); return true }); err != nil {
		return err
	}
	there, err := harness.Stored(store, id, jobs.MetaKey, new(jobs.Meta))
	if err == nil && there && strings.Contains(last, jobs.EventTerminated) {
		return fmt.Errorf("%s was told to be gone, and is there: %s", id, last)
	}
	return err
}

// Proves J10: a job that is paused is still paused after a crash, without an
// alarm; resumed, it goes on from the state it had.
func TestPauseSurvivesCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(30 * time.Minute)})
		s.Host(j)
		start(s, j, "a")
		err := s.Retry(func() error { return j.Pause(s.Context(), s, "a") })
		s.Always("paused, or found paused by the repeat", err == nil, err)
		s.Advance(2 * time.Hour)
		st, _ := know(s, j, "a")
		s.Always("paused, nothing due", st.Meta.Status == jobs.Paused && st.Due.IsZero(), st)
		s.Always("at most the first run", st.Meta.RunCount <= 1, st.Meta)
		err = s.Retry(func() error { return j.Resume(s.Context(), s, "a") })
		s.Always("resumed, or found resumed by the repeat", err == nil, err)
		s.Advance(time.Minute)
		st, state := know(s, j, "a")
		s.Always("the overdue run came", st.Meta.RunCount >= 1, st.Meta)
		counted(s, st, state, 0)
	}, promises...)
}

// Proves J10, C1: a job that ends itself does so with its last run, in one batch.
func TestEndOfItselfSurvivesCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Minute),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.Number == 2 {
					run.Stop("all done")
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(10 * time.Minute)
		st, state := know(s, j, "a")
		s.Always("stopped after two runs", st.Meta.Status == jobs.Stopped && st.Meta.RunCount == 2 && st.Meta.StopReason == "all done", st.Meta)
		counted(s, st, state, 0)
	}, promises...)
}

// Proves R2, R4 and R6 over a log. Case CR1: wherever a node dies and another one takes the store over, the run is repeated with its
// number, and the report tells of a lost owner and of no crash. A node that takes over from itself has crashed.
func TestTakeOversOfARun(t *testing.T) {
	for other, store := range map[recovery.Cause]harness.Option{
		recovery.CauseCrash: harness.TakeoverStore(), recovery.CauseOwnerLost: harness.LogStore(),
	} {
		t.Run("not a "+string(other), func(t *testing.T) {
			harness.Exhaust(t, func(s *harness.Sim) {
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour),
					Run:      func(context.Context, *continuous.Run[tally]) error { s.Sleep(5 * time.Second); return nil },
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(time.Minute)
				st, state := know(s, j, "a")
				s.Always("the run is committed", st.Meta.RunCount == 1 && st.Meta.RecoveryAttempts == 0, st.Meta)
				counted(s, st, state, 0)
				s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
					lines, _ := h.Recoveries()
					for _, l := range lines {
						s.Always("R4: a lost owner and a crash are told apart", l.Cause != string(other), l)
					}
					return nil
				}))
			}, store, harness.Seed(1), crashes.Budget(250), harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
		})
	}
}
