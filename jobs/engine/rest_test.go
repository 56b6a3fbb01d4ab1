package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

// errRefused is why the work of a job ends it as failed or cancelled.
var errRefused = errors.New("refused " + strings.Repeat("é", engine.MaxTextBytes))

// year is how long the errands of these tests have nothing to do.
const year = 365 * 24 * time.Hour

// Proves J21, J3: the wish of the work is the status of its job, with its end, reason and error,
// and one event of it in the end batch. A job that ends so cannot be resumed, but for a failed one.
func TestWishesOfTheWork(t *testing.T) {
	short := engine.Shorten(errRefused.Error())
	for status, c := range map[jobs.Status]struct {
		res     engine.Result
		told    string
		failure string // in the metadata
		resumes bool
	}{
		jobs.Completed: {engine.Result{Wish: engine.Complete, Reason: "shipped"}, "completed:shipped", "", false},
		jobs.Cancelled: {engine.Result{Wish: engine.Cancel, Reason: "by the customer", Err: errRefused}, "cancelled:by the customer:" + short, short, false},
		jobs.Failed:    {engine.Result{Wish: engine.Fail, Reason: "no stock", Err: errRefused}, "failed:no stock:" + short, short, true},
	} {
		k := newErrandKind(&errandKind{period: year, work: ends(c.res, nil)})
		inLives(t, func(t *testing.T, l *lives) {
			k.create(t, l)
			k.wantMeta(t, l, string(status), func(m jobs.Meta) bool {
				return m.Status == status && m.Status.Ended() && m.StopReason == c.res.Reason && m.LastError == c.failure && m.EndedAt.Equal(time.Now()) &&
					m.RetireAt.IsZero() && m.RunCount == 1 && m.Run == (jobs.Run{}) && m.LastSuccessfulAt.IsZero() == (status != jobs.Completed)
			})
			if told, want := k.told(t, l), "created, success, "+c.told; told != want {
				t.Errorf("told is %s, want %s", told, want)
			}
			if at := k.alarmOf(t, l); !at.IsZero() || k.labelled(t, l, string(status)) != 1 {
				t.Errorf("a job that is %s has an alarm at %v", status, at)
			}
			k.work = hangs
			err := k.verb(t, l, "resume")
			if (err == nil) != c.resumes || err != nil && !errors.Is(err, jobs.ErrIllegalMove) {
				t.Errorf("Resume of a job that is %s: %v", status, err)
			}
			if err == nil {
				k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool { return m.Status == jobs.Running && m.EndedAt.IsZero() && m.StopReason == "" })
			}
		}, k)
	}
}

// Proves J21: a job that is given up by its Retry has the time of its end, and is kept without a
// time for its status.
func TestGivenUpWithoutRetention(t *testing.T) {
	for _, keep := range []time.Duration{0, time.Hour} {
		k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{}, errDiverged)})
		k.options = engine.JobOptions{Exhausted: jobs.Fail, Retention: jobs.Retention{Completed: keep}}
		inLives(t, func(t *testing.T, l *lives) {
			k.create(t, l)
			k.wantMeta(t, l, "failed", func(m jobs.Meta) bool {
				return m.Status == jobs.Failed && m.EndedAt.Equal(time.Now()) && m.RetireAt.IsZero()
			})
		}, k)
	}
}

// Proves J21, J3: a job is kept for the Retention of its status, and its alarm is the end of it.
// A nanosecond before that it is there; then it is gone, its type is told first, and a new job
// may have the id.
func TestRetention(t *testing.T) {
	keep := jobs.Retention{Completed: time.Hour, Cancelled: 2 * time.Hour, Failed: 3 * time.Hour}
	for _, lazy := range []bool{false, true} {
		for status, wish := range map[jobs.Status]engine.Wish{jobs.Completed: engine.Complete, jobs.Cancelled: engine.Cancel, jobs.Failed: engine.Fail} {
			var told atomic.Int64
			k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{Wish: wish}, nil), options: engine.JobOptions{Retention: keep}})
			k.options.LazyAlarm = lazy
			k.retiring = func(ctx context.Context, st *object.State) error {
				told.Add(1)
				_, found, err := st.Storage().Get(ctx, "last")
				if !found {
					t.Error("the rows are gone before the type is told")
				}
				return err
			}
			inLives(t, func(t *testing.T, l *lives) {
				k.create(t, l)
				end := time.Now().Add(keep.For(status))
				k.wantMeta(t, l, string(status), func(m jobs.Meta) bool { return m.Status == status && m.RetireAt.Equal(end) })
				if at := k.alarmOf(t, l); !at.Equal(end) {
					t.Errorf("the alarm is at %v, want %v", at, end)
				}
				time.Sleep(keep.For(status) / 2)
				l.crash() // the time counts from the end of the job
				l.begin()
				time.Sleep(keep.For(status)/2 - 1)
				k.wantMeta(t, l, "before its time", func(m jobs.Meta) bool { return m.Status == status })
				if told.Load() != 0 {
					t.Error("the type is told too early")
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				k.wantMeta(t, l, "retired", func(m jobs.Meta) bool { return m.Status == jobs.None })
				if all := k.told(t, l); !strings.HasSuffix(all, ", terminated:retention") || countOf(all, "terminated") != 1 || told.Load() != 1 {
					t.Errorf("the type is told %d times, the events are %s", told.Load(), all)
				}
				if objects, err := l.host.Objects(t.Context(), "errand", object.ObjectsOptions{Limit: 10}); err != nil || len(objects) != 0 {
					t.Errorf("left are %v, %v", objects, err)
				}
				k.create(t, l)
			}, k)
		}
	}
}

// Proves J21: Resume of a failed job forgets its end, and the job stays beyond it.
func TestResumeBeforeTheRetention(t *testing.T) {
	k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{Wish: engine.Fail}, nil), options: engine.JobOptions{Retention: jobs.Retention{Failed: time.Hour}}})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		k.wantMeta(t, l, "failed", func(m jobs.Meta) bool { return m.Status == jobs.Failed && !m.RetireAt.IsZero() && !m.EndedAt.IsZero() })
		k.work = ends(engine.Result{}, nil)
		if err := k.verb(t, l, "resume"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool { return m.Status == jobs.Running && m.RetireAt.IsZero() && m.EndedAt.IsZero() })
	}, k)
}

// Proves J21, J9: a failed job that owes a call of OnExhausted stays until the call is over.
func TestRetentionAfterOwedCalls(t *testing.T) {
	k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{}, errDiverged)})
	k.options = engine.JobOptions{Exhausted: jobs.Fail, Retention: jobs.Retention{Failed: time.Minute}}
	k.options.OnExhausted = func(ctx context.Context, x *jobs.Exhaustion) error { time.Sleep(time.Hour); return nil }
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		time.Sleep(time.Hour - 1)
		k.wantMeta(t, l, "owing", func(m jobs.Meta) bool { return m.Status == jobs.Failed && m.Hooks == 1 })
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		k.wantMeta(t, l, "retired", func(m jobs.Meta) bool { return m.Status == jobs.None })
	}, k)
}

// Proves J10, J21: the type is told before each Terminate, in its turn: an error of the type
// fails the turn, and the job stays.
func TestRetiringThatFails(t *testing.T) {
	fail := errors.New("not now")
	k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{}, nil)})
	k.retiring = func(ctx context.Context, st *object.State) error { return fail }
	inLives(t, func(t *testing.T, l *lives) {
		if err := k.verb(t, l, "terminate"); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("Terminate of no job: %v", err)
		}
		k.create(t, l)
		if err := k.verb(t, l, "terminate"); !errors.Is(err, fail) {
			t.Errorf("Terminate: %v", err)
		}
		k.wantMeta(t, l, "kept", func(m jobs.Meta) bool { return m.Status == jobs.Running })
		fail = nil
		if err := k.verb(t, l, "terminate"); err != nil {
			t.Error(err)
		}
		k.wantMeta(t, l, "gone", func(m jobs.Meta) bool { return m.Status == jobs.None })
	}, k)
}

// Proves J21: a Retention that is negative is refused, and one of zero keeps for ever.
func TestValidateRetention(t *testing.T) {
	for want, r := range map[string]jobs.Retention{
		"":                                {Completed: 1},
		"Retention.Completed must not be": {Completed: -1}, "Retention.Cancelled must not be": {Cancelled: -1}, "Retention.Failed must not be": {Failed: -1},
	} {
		err := engine.JobOptions{Retention: r}.Validate()
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if err := (engine.JobOptions{Options: engine.Options{Timeout: -1}}).Validate(); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("a negative Timeout: %v", err)
	}
	if (jobs.Retention{Completed: 1, Cancelled: 1, Failed: 1}).For(jobs.Stopped) != 0 {
		t.Error("a stopped job is not kept for ever")
	}
}

// pauseUntil pauses the errand named a.
func (k *errandKind) pauseUntil(t *testing.T, l *lives, reason string, until time.Time) {
	t.Helper()
	if err := k.turn(l, func(ctx context.Context, e *errand) error { return e.PauseUntil(ctx, reason, until) }); err != nil {
		t.Fatal(err)
	}
}

// Proves J10, J3: a job that is paused until a time has that as its alarm, also over a restart
// and with a lazy alarm, and resumes then by itself, once. A later PauseUntil counts.
func TestPauseUntil(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		k := newErrandKind(&errandKind{period: 90 * time.Minute, work: ends(engine.Result{}, nil)})
		k.options.LazyAlarm = lazy
		inLives(t, func(t *testing.T, l *lives) {
			k.create(t, l)
			begin := time.Now()
			k.pauseUntil(t, l, "lunch", begin.Add(2*time.Hour))
			k.pauseUntil(t, l, "long lunch", begin.Add(3*time.Hour+time.Nanosecond/2))
			k.pauseUntil(t, l, "long lunch", begin.Add(3*time.Hour))
			k.wantMeta(t, l, "paused", func(m jobs.Meta) bool {
				return m.Status == jobs.Paused && m.StopReason == "long lunch" && m.PausedUntil.Equal(begin.Add(3*time.Hour))
			})
			if at := k.alarmOf(t, l); !at.Equal(begin.Add(3 * time.Hour)) {
				t.Errorf("the alarm is at %v", at)
			}
			time.Sleep(time.Hour)
			l.crash()
			l.begin()
			time.Sleep(2*time.Hour - 1)
			k.wantMeta(t, l, "before its time", func(m jobs.Meta) bool { return m.Status == jobs.Paused && m.RunCount == 1 })
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool {
				return m.Status == jobs.Running && m.RunCount == 2 && m.StopReason == "" && m.PausedUntil.IsZero() && m.LastSuccessfulAt.Equal(begin.Add(3*time.Hour))
			})
			if told, want := k.told(t, l), "created, success, paused:lunch, resumed, success"; told != want {
				t.Errorf("told is %s, want %s", told, want)
			}
		}, k)
	}
}

// Proves J10: Pause of a job that is paused until a time keeps it paused until Resume, which
// comes before the time too. A time that has come resumes at once.
func TestPauseWithoutATime(t *testing.T) {
	k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{}, nil)})
	inLives(t, func(t *testing.T, l *lives) {
		if err := k.verb(t, l, "pause"); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("Pause of no job: %v", err)
		}
		k.create(t, l)
		k.pauseUntil(t, l, "a while", time.Now().Add(time.Hour))
		if err := k.verb(t, l, "pause"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		k.wantMeta(t, l, "paused", func(m jobs.Meta) bool {
			return m.Status == jobs.Paused && m.PausedUntil.IsZero() && m.StopReason == ""
		})
		k.pauseUntil(t, l, "a while", time.Now().Add(time.Hour))
		if err := k.verb(t, l, "resume"); err != nil {
			t.Fatal(err)
		}
		k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool { return m.Status == jobs.Running && m.PausedUntil.IsZero() })
		for _, past := range []time.Time{time.Now(), time.Now().Add(-time.Hour), time.Unix(-5, 0)} {
			k.pauseUntil(t, l, "no while", past)
			k.wantMeta(t, l, "a time that has come", func(m jobs.Meta) bool { return m.Status == jobs.Running && m.PausedUntil.IsZero() })
		}
		if told := k.told(t, l); countOf(told, "resumed") != 4 || countOf(told, "paused") != 4 {
			t.Errorf("told is %s", told)
		}
	}, k)
}

// Proves J10: a PauseUntil of a job that executes waits for the end of the execution, keeps its
// reason until then, and Resume takes it back.
func TestPauseUntilOfAnExecution(t *testing.T) {
	k := newErrandKind(&errandKind{period: year})
	k.work = func(context.Context, engine.Execution) (engine.Result, error) {
		time.Sleep(time.Minute)
		return engine.Result{}, nil
	}
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		until := time.Now().Add(time.Hour)
		pausing := func(m jobs.Meta) bool {
			return m.Status == jobs.Executing && m.Pausing && m.StopReason == "later" && m.PausedUntil.Equal(until)
		}
		k.pauseUntil(t, l, "later", until)
		k.wantMeta(t, l, "pausing", pausing)
		if err := k.verb(t, l, "resume"); err != nil {
			t.Fatal(err)
		}
		k.wantMeta(t, l, "taken back", func(m jobs.Meta) bool {
			return m.Status == jobs.Executing && !m.Pausing && m.StopReason == "" && m.PausedUntil.IsZero()
		})
		k.pauseUntil(t, l, "later", until)
		time.Sleep(2 * time.Minute)
		k.wantMeta(t, l, "paused", func(m jobs.Meta) bool {
			return m.Status == jobs.Paused && !m.Pausing && m.StopReason == "later" && m.PausedUntil.Equal(until)
		})
		time.Sleep(time.Hour)
		k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool { return m.Status == jobs.Running && m.StopReason == "" })
	}, k)
}

// Proves J21, J3: EndNow cancels a job that is running, paused or stuck, with one event, and
// refuses one that executes, that has ended or that is not there, and each other status.
func TestEndNow(t *testing.T) {
	end := func(k *errandKind, l *lives, to jobs.Status) error {
		return k.turn(l, func(ctx context.Context, e *errand) error {
			return e.Turn(ctx, func(ctx context.Context) error { return e.EndNow(ctx, to, "not wanted", errRefused) })
		})
	}
	for _, c := range []struct {
		verb string
		work engine.Work
	}{{"count", ends(engine.Result{}, nil)}, {"pause", ends(engine.Result{}, nil)}, {"count", ends(engine.Result{}, errDiverged)}} {
		k := newErrandKind(&errandKind{period: year, work: hangs, options: engine.JobOptions{Stuck: true, Retention: jobs.Retention{Cancelled: time.Hour}}})
		inLives(t, func(t *testing.T, l *lives) {
			if err := end(k, l, jobs.Cancelled); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("EndNow of no job: %v", err)
			}
			k.create(t, l)
			if err := end(k, l, jobs.Cancelled); !errors.Is(err, jobs.ErrIllegalMove) {
				t.Errorf("EndNow of an executing job: %v", err)
			}
			k.work = c.work
			if err := errors.Join(k.verb(t, l, "terminate"), k.verb(t, l, "create")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, err := k.do.Call(t.Context(), l.host, "a", c.verb); err != nil {
				t.Fatal(err)
			}
			for _, to := range []jobs.Status{jobs.Completed, jobs.Failed, jobs.Terminated, jobs.Running, jobs.Paused, jobs.Stuck, jobs.None} {
				if err := end(k, l, to); !errors.Is(err, jobs.ErrIllegalMove) {
					t.Errorf("EndNow to %s: %v", to, err)
				}
			}
			for try, want := range []error{nil, jobs.ErrIllegalMove} {
				if err := end(k, l, jobs.Cancelled); !errors.Is(err, want) {
					t.Errorf("EndNow number %d: %v", try, err)
				}
			}
			k.wantMeta(t, l, "cancelled", func(m jobs.Meta) bool {
				return m.Status == jobs.Cancelled && m.EndedAt.Equal(time.Now()) && m.RetireAt.Equal(time.Now().Add(time.Hour)) && m.StopReason == "not wanted" &&
					m.LastError == engine.Shorten(errRefused.Error()) && m.Run == (jobs.Run{})
			})
			if told := k.told(t, l); countOf(told, "cancelled:not wanted:refused") != 1 {
				t.Errorf("told is %s", told)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			k.wantMeta(t, l, "retired", func(m jobs.Meta) bool { return m.Status == jobs.None })
		}, k)
	}
}

// Proves R3, J3: a job that rests until a time and has lost its alarm gets it back when it is
// next in memory.
func TestRestIsArmedAgain(t *testing.T) {
	k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{}, nil)})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		until := time.Now().Add(time.Hour)
		k.pauseUntil(t, l, "", until)
		if err := k.turn(l, func(ctx context.Context, e *errand) error { return e.st.Driver().DeleteAlarm(ctx) }); err != nil {
			t.Fatal(err)
		}
		l.crash()
		l.begin()
		if at := k.alarmOf(t, l); !at.Equal(until) {
			t.Errorf("the alarm is at %v, want %v", at, until)
		}
	}, k)
}

// Proves J10, J21, J3: with a crash at any point a job that pauses for a time resumes by itself
// and completes once. It is then there as a whole or gone as a whole, and after its retention
// it is gone. Each of these is told once, and the type is told before the rows go.
func TestRestSurvivesCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		k := newErrandKind(&errandKind{period: 30 * time.Second, options: engine.JobOptions{Retention: jobs.Retention{Completed: time.Minute}}})
		k.work = func(_ context.Context, x engine.Execution) (engine.Result, error) {
			if x.Run.Number == 2 {
				return engine.Result{Wish: engine.Complete}, nil
			}
			return engine.Result{}, nil
		}
		k.retiring = func(ctx context.Context, st *object.State) error { return st.Emit(ctx, "retiring", nil) }
		s.Host(k)
		call := func(verb func() error) { s.OK(s.Retry(verb)) }
		call(func() error {
			_, err := k.do.Call(s.Context(), s, "a", "create", object.Idempotent("create", 0))
			return err
		})
		until := s.Now().Add(20 * time.Second)
		k.fn = func(ctx context.Context, e *errand) error { return e.PauseUntil(ctx, "a while", until) }
		call(func() error {
			_, err := k.act.Call(s.Context(), s, "a", 0, object.Idempotent("pause", 0))
			return err
		})
		s.Advance(3 * time.Minute)
		s.Finally("the job has paused, resumed, completed and gone, once each", func() error {
			var meta jobs.Meta
			if found, err := harness.Stored(s.Store(), k.ID("a"), jobs.MetaKey, &meta); found || err != nil {
				return fmt.Errorf("J21: the job is still there: %+v, %v", meta, err)
			}
			if kinds := movesTold(s, k.ID("a")); kinds != "created paused resumed completed retiring terminated" {
				return fmt.Errorf("J11: told is %s", kinds)
			}
			return nil
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned, harness.Settle(5*time.Minute))
}

// movesTold are the kinds of the events of a job, but those of its executions.
func movesTold(s *harness.Sim, id storage.ID) string {
	var kinds []string
	s.OK(s.Retry(func() error {
		kinds = nil
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			events, err := h.Events(ctx, id, 0, 100)
			for _, e := range events {
				switch e.Kind {
				case jobs.EventStart, jobs.EventSuccess, jobs.EventRecovery:
				default:
					kinds = append(kinds, e.Kind)
				}
			}
			return err
		})
	}))
	return strings.Join(kinds, " ")
}
