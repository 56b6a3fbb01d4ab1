package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// errDiverged is the failure of code that does not follow its history.
var errDiverged = errors.New("the code does not follow the history")

// create makes the errand named a.
func (k *errandKind) create(t *testing.T, l *lives) {
	t.Helper()
	if err := k.verb(t, l, "create"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// Proves J20, J18: a job that fails is stuck, with its error and its label. It is tried again
// after one minute, two, four, eight, and then ten, one event tells of it, and a success heals it.
func TestStuckJob(t *testing.T) {
	k := newErrandKind(&errandKind{period: 1000 * time.Hour, work: ends(engine.Result{}, errDiverged), options: engine.JobOptions{Stuck: true}})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		began := time.Now()
		for n, wait := range []time.Duration{1, 2, 4, 8, 10, 10} {
			began = began.Add(wait * time.Minute)
			k.wantMeta(t, l, "stuck", func(m jobs.Meta) bool {
				return m.Status == jobs.Stuck && m.LastError == errDiverged.Error() && m.Run.RetryAt.Equal(began) && m.Run.Failures == n+1 &&
					m.Run.Number == 1 && m.Failures == 0 && m.RunCount == 0 && m.EndedAt.IsZero() && !m.Status.Ended()
			})
			if at := k.alarmOf(t, l); !at.Equal(began) {
				t.Errorf("the alarm is at %v, the retry at %v", at, began)
			}
			if labels := k.labelled(t, l, "stuck"); labels != 1 {
				t.Errorf("%d jobs are labelled stuck", labels)
			}
			time.Sleep(wait * time.Minute)
			synctest.Wait()
		}
		if told, want := k.told(t, l), 7; countOf(told, "failure:") != want || countOf(told, "stuck:"+errDiverged.Error()) != 1 {
			t.Errorf("told is %s", told)
		}
		k.work = ends(engine.Result{}, nil)
		k.wantMeta(t, l, "stuck until the next try", func(m jobs.Meta) bool { return m.Status == jobs.Stuck }) // a turn, so that later turns see the work
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		k.wantMeta(t, l, "healed", func(m jobs.Meta) bool {
			return m.Status == jobs.Running && m.LastError == "" && m.RunCount == 1 && m.Run == (jobs.Run{})
		})
		if k.labelled(t, l, "stuck") != 0 || countOf(k.told(t, l), "stuck") != 1 {
			t.Errorf("told is %s", k.told(t, l))
		}
	}, k)
}

// labelled counts the errands with a label.
func (k *errandKind) labelled(t *testing.T, l *lives, label string) int {
	t.Helper()
	found, err := l.host.Objects(t.Context(), "errand", object.ObjectsOptions{Label: label, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// Proves J20: no failure of a stuck job is the last: not a permanent one, not one that Retry
// refuses, and OnExhausted is not called. RetryAfter sets the time of the next try.
func TestStuckJobIsNotGivenUp(t *testing.T) {
	refuse := jobs.Retry{MaxAttempts: 1, MaxElapsed: time.Second, RetryIf: func(error) bool { return false }, Backoff: jobs.Constant(3 * time.Second)}
	for name, c := range map[string]struct {
		err  error
		wait time.Duration
	}{
		"permanent": {jobs.Permanent(errDiverged), 3 * time.Second}, "refused": {errDiverged, 3 * time.Second},
		"retry after": {jobs.RetryAfter(time.Hour, errDiverged), time.Hour},
	} {
		k := newErrandKind(&errandKind{period: 1000 * time.Hour, work: ends(engine.Result{}, c.err)})
		k.options = engine.JobOptions{Stuck: true, Exhausted: jobs.Purge, Options: engine.Options{Retry: refuse}}
		k.options.OnExhausted = func(context.Context, *jobs.Exhaustion) error { t.Errorf("%s: given up", name); return nil }
		inLives(t, func(t *testing.T, l *lives) {
			k.create(t, l)
			for n := 1; n < 4; n++ {
				k.wantMeta(t, l, name, func(m jobs.Meta) bool {
					return m.Status == jobs.Stuck && m.Run.Failures == n && m.Run.RetryAt.Equal(time.Now().Add(c.wait)) && m.Hooks == 0
				})
				time.Sleep(c.wait)
				synctest.Wait()
			}
		}, k)
	}
}

// Proves J20, J3: Resume of a stuck job begins its run at once under its number, with its
// attempts before it again, so that another failure is told again. RunNow refuses it.
func TestResumeOfAStuckJob(t *testing.T) {
	k := newErrandKind(&errandKind{period: 1000 * time.Hour, work: ends(engine.Result{}, errDiverged), options: engine.JobOptions{Stuck: true}})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		time.Sleep(150 * time.Second)
		var move *jobs.MoveError
		if err := k.verb(t, l, "run"); !errors.As(err, &move) || move.From != jobs.Stuck || err.Error() != "jobs: illegal move of errand/a from stuck to executing: Resume it first" {
			t.Errorf("RunNow of a stuck job: %v", err)
		}
		if err := k.verb(t, l, "resume"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool {
			return m.Status == jobs.Stuck && m.Run.Failures == 1 && m.Run.Failed() == 3 && m.Run.Number == 1 && m.Run.RetryAt.Equal(time.Now().Add(time.Minute))
		})
		if told := k.told(t, l); countOf(told, "resumed") != 1 || countOf(told, "stuck") != 2 {
			t.Errorf("told is %s", told)
		}
	}, k)
}

// Proves J20, J3: a stuck job can be paused, terminated and cancelled, and a paused one that was
// stuck is tried again as soon as it resumes.
func TestPauseOfAStuckJob(t *testing.T) {
	k := newErrandKind(&errandKind{period: 1000 * time.Hour, work: ends(engine.Result{}, errDiverged), options: engine.JobOptions{Stuck: true}})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		if err := k.verb(t, l, "pause"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		k.wantMeta(t, l, "paused", func(m jobs.Meta) bool { return m.Status == jobs.Paused && m.LastError == errDiverged.Error() })
		if at := k.alarmOf(t, l); !at.IsZero() {
			t.Errorf("a paused job has an alarm at %v", at)
		}
		if err := k.verb(t, l, "resume"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool { return m.Status == jobs.Stuck && m.Attempt == 2 })
		if err := k.verb(t, l, "stop"); !errors.Is(err, jobs.ErrIllegalMove) {
			t.Errorf("Stop of a stuck job: %v", err)
		}
		if err := k.verb(t, l, "terminate"); err != nil {
			t.Fatal(err)
		}
		if told := k.told(t, l); countOf(told, "terminated:enough") != 1 {
			t.Errorf("told is %s", told)
		}
	}, k)
}

// Proves J20: a Pause that waits for an execution comes before its failure makes the job stuck.
func TestPauseOfAnExecutionThatFails(t *testing.T) {
	k := newErrandKind(&errandKind{period: 1000 * time.Hour, options: engine.JobOptions{Stuck: true}})
	k.work = func(context.Context, engine.Execution) (engine.Result, error) {
		time.Sleep(time.Second)
		return engine.Result{}, errDiverged
	}
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		if err := k.verb(t, l, "pause"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		k.wantMeta(t, l, "paused", func(m jobs.Meta) bool { return m.Status == jobs.Paused && m.LastError != "" && !m.Pausing })
		if told := k.told(t, l); countOf(told, "stuck") != 0 || countOf(told, "paused") != 1 {
			t.Errorf("told is %s", told)
		}
	}, k)
}

// Proves J20, R4: a job with its recoveries used up is stuck and rests: it has no alarm, keeps
// its run, and its type is not told of an end. Resume begins the run at once, with all
// recoveries before it.
func TestStuckForItsRecoveries(t *testing.T) {
	k := newErrandKind(&errandKind{period: 1000 * time.Hour, work: hangs})
	k.options = engine.JobOptions{Stuck: true}
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		die := func() {
			l.crash()
			l.begin()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		die()
		k.wantMeta(t, l, "repeated", func(m jobs.Meta) bool { return m.Status == jobs.Executing && m.RecoveryAttempts == 1 })
		k.options.MaxRecoveries = -1
		die()
		rests := func(m jobs.Meta) bool {
			return m.Status == jobs.Stuck && m.Run.RetryAt.IsZero() && m.Run.Number == 1 && m.Failures == 0 &&
				m.StopReason == "given up: recoveries" && m.LastError == "jobs: execution was lost: crash"
		}
		for range 2 {
			k.wantMeta(t, l, "spent", rests)
			if at := k.alarmOf(t, l); !at.IsZero() || k.labelled(t, l, "stuck") != 1 {
				t.Errorf("a job that rests has an alarm at %v", at)
			}
			time.Sleep(5 * time.Hour)
			die() // the next process does not begin it either
		}
		k.options.MaxRecoveries = 3
		die()
		if err := k.verb(t, l, "resume"); err != nil {
			t.Fatal(err)
		}
		k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool {
			return m.Status == jobs.Executing && m.Run.Number == 1 && m.RecoveryAttempts == 0 && m.StopReason == "" && !m.Run.Recovering
		})
		die()
		k.wantMeta(t, l, "repeated", func(m jobs.Meta) bool { return m.Status == jobs.Executing && m.RecoveryAttempts == 1 })
		want := "created, recovery:crash:jobs: execution was lost: crash, stuck:given up: recoveries:jobs: execution was lost: crash, resumed, recovery:crash:jobs: execution was lost: crash"
		if got := k.told(t, l); got != want {
			t.Errorf("told is %s\nwant %s", got, want)
		}
	}, k)
}

// Proves J20, J5, J8, R1: with a crash at any point a job that fails twice is stuck, has its
// alarm, is told of once for each failure that is the first of its run, and then heals.
func TestStuckJobSurvivesCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		failures := 0
		k := newErrandKind(&errandKind{period: 1000 * time.Hour, options: engine.JobOptions{Stuck: true}})
		k.work = func(_ context.Context, x engine.Execution) (engine.Result, error) {
			if x.Run.Failures < 2 {
				failures++
				return engine.Result{}, errDiverged
			}
			return engine.Result{Wish: engine.Complete}, nil
		}
		s.Host(k)
		s.OK(s.Retry(func() error {
			_, err := k.do.Call(s.Context(), s, "a", "create", object.Idempotent("create", 0))
			return err
		}))
		s.Advance(10 * time.Minute)
		var m jobs.Meta
		s.OK(s.Retry(func() (err error) { m, err = k.meta.Call(s.Context(), s, "a", 0); return err }))
		s.Always("the job is completed in the end", m.Status == jobs.Completed && m.LastError == "", m)
		s.Always("a failure repeats for a crash only", failures >= 2 && failures <= 2+s.Crashes(), failures)
		s.Always("the events tell of each change once", tellsOnce(s, k.ID("a")), s.Dump(k.ID("a")))
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// tellsOnce reports whether a job was told as created, stuck and completed once each, after
// two failures.
func tellsOnce(s *harness.Sim, id storage.ID) bool {
	var kinds []string
	s.OK(s.Retry(func() error {
		kinds = nil
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			events, err := h.Events(ctx, id, 0, 100)
			for _, e := range events {
				kinds = append(kinds, e.Kind)
			}
			return err
		})
	}))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == jobs.EventStart || kind == jobs.EventRecovery })
	return slices.Equal(kinds, []string{"created", "failure", "retry", "stuck", "failure", "retry", "success", "completed"})
}
