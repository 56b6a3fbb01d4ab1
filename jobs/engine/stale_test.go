package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// failedErrand is an errand that fails at once, under a Retention.
func failedErrand(r jobs.Retention) *errandKind {
	return newErrandKind(&errandKind{period: year, work: ends(engine.Result{Wish: engine.Fail, Reason: "no stock"}, nil), options: engine.JobOptions{Retention: r}})
}

// calledHook is a hook of a Retention that notes its calls, and fails as often as it is told.
type calledHook struct {
	fails int
	err   error

	mu    sync.Mutex
	calls []jobs.Retired // guarded by mu
}

// told returns the calls so far.
func (h *calledHook) told() []jobs.Retired {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *calledHook) call(_ context.Context, r *jobs.Retired) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, *r)
	if len(h.calls) <= h.fails {
		return h.err
	}
	return nil
}

// later sleeps and waits until all is at rest.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Proves J22, J3, J18: a failed or stopped job is stale at its time and not a nanosecond before,
// with one event, over a crash. It keeps status and label, and its alarm is that of its next
// step: first stale, then gone. A completed one is never stale.
func TestStale(t *testing.T) {
	keep := jobs.Retention{Failed: 3 * time.Hour, Stopped: 3 * time.Hour, Completed: 3 * time.Hour, StaleAfter: time.Hour}
	for _, lazy := range []bool{false, true} {
		for status, wish := range map[jobs.Status]engine.Wish{jobs.Failed: engine.Fail, jobs.Stopped: engine.Stop, jobs.Completed: engine.Complete} {
			k := newErrandKind(&errandKind{period: year, work: ends(engine.Result{Wish: wish, Reason: "why"}, nil), options: engine.JobOptions{Retention: keep}})
			k.options.LazyAlarm = lazy
			stales := status != jobs.Completed
			inLives(t, func(t *testing.T, l *lives) {
				k.create(t, l)
				end := time.Now()
				first, gone := end.Add(time.Hour), end.Add(3*time.Hour)
				if !stales {
					first = gone
				}
				if at := k.alarmOf(t, l); !at.Equal(first) {
					t.Errorf("the alarm of a job that is %s is at %v, want %v", status, at, first)
				}
				later(30 * time.Minute)
				l.crash()
				l.begin()
				later(30*time.Minute - 1)
				k.wantMeta(t, l, "before", func(m jobs.Meta) bool { return m.Status == status && !m.Stale })
				later(1)
				k.wantMeta(t, l, "stale", func(m jobs.Meta) bool {
					return m.Status == status && m.Stale == stales && m.RetireAt.Equal(gone) && m.EndedAt.Equal(end)
				})
				if n := countOf(k.told(t, l), "stale:why"); (n == 1) != stales || n > 1 || k.labelled(t, l, string(status)) != 1 {
					t.Errorf("a job that is %s is told %d times to be stale", status, n)
				}
				if at := k.alarmOf(t, l); !at.Equal(gone) {
					t.Errorf("the alarm is at %v, want %v", at, gone)
				}
				later(2*time.Hour - 1)
				k.wantMeta(t, l, "before its end", func(m jobs.Meta) bool { return m.Status == status })
				later(1)
				k.wantMeta(t, l, "gone", func(m jobs.Meta) bool { return m.Status == jobs.None })
			}, k)
		}
	}
}

// Proves J22: a job that is stale and over its time at once, after a downtime, is told to be
// stale, and is gone.
func TestStaleAfterADowntime(t *testing.T) {
	k := failedErrand(jobs.Retention{Failed: 2 * time.Hour, StaleAfter: time.Hour})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		l.crash()
		time.Sleep(5 * time.Hour)
		l.begin()
		synctest.Wait()
		if told := k.told(t, l); !strings.HasSuffix(told, "stale:no stock, terminated:retention") {
			t.Errorf("told is %s", told)
		}
	}, k)
}

// Proves J22: Resume of a stale job forgets that it is stale, and it stays.
func TestResumeOfAStaleJob(t *testing.T) {
	k := failedErrand(jobs.Retention{Failed: 2 * time.Hour, StaleAfter: time.Hour})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		later(time.Hour)
		k.work = ends(engine.Result{}, nil)
		if err := k.verb(t, l, "resume"); err != nil {
			t.Fatal(err)
		}
		later(3 * time.Hour)
		k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool {
			return m.Status == jobs.Running && !m.Stale && m.StaleAt.IsZero() && m.RetireAt.IsZero() && m.EndedAt.IsZero()
		})
	}, k)
}

// Proves J23: OnStale and OnDelete are called at their times, with the end of the job. A failed
// call comes again with the same key, up to five times; the job is gone after a call of OnDelete
// that has succeeded, and after five that have not, which one event tells.
func TestHooksOfARetention(t *testing.T) {
	for _, fails := range []int{0, 4, 5} {
		stale, gone := &calledHook{fails: fails, err: errRefused}, &calledHook{fails: fails, err: errRefused}
		k := failedErrand(jobs.Retention{Failed: 2 * time.Hour, StaleAfter: time.Hour, OnStale: stale.call, OnDelete: gone.call})
		inLives(t, func(t *testing.T, l *lives) {
			k.create(t, l)
			end := time.Now()
			waits := time.Duration(0) // 1 s, 2 s, 3 s, 4 s
			for i := 1; i <= min(fails, 4); i++ {
				waits += time.Duration(i) * time.Second
			}
			later(time.Hour - 1)
			if len(stale.told()) != 0 {
				t.Error("OnStale is called too early")
			}
			later(1 + waits)
			k.wantMeta(t, l, "stale", func(m jobs.Meta) bool { return m.Stale && m.Status == jobs.Failed && m.Hooks == 0 })
			if at := k.alarmOf(t, l); !at.Equal(end.Add(2 * time.Hour)) {
				t.Errorf("the alarm is at %v", at)
			}
			later(time.Hour - waits - 1)
			if len(gone.told()) != 0 {
				t.Error("OnDelete is called too early")
			}
			if fails > 0 {
				later(waits)
				k.wantMeta(t, l, "before the last call", func(m jobs.Meta) bool { return m.Status == jobs.Failed && m.Hooks == 1 })
				later(1)
			} else {
				later(1)
			}
			k.wantMeta(t, l, "gone", func(m jobs.Meta) bool { return m.Status == jobs.None })
			for name, h := range map[string]*calledHook{"OnStale": stale, "OnDelete": gone} {
				if len(h.told()) != min(fails+1, 5) {
					t.Errorf("%s is called %d times after %d failures", name, len(h.told()), fails)
				}
				for _, r := range h.told() {
					if r.ID != "a" || r.Key == "" || r.Key != h.told()[0].Key || r.Status != jobs.Failed || !r.EndedAt.Equal(end) || r.Reason != "no stock" || r.Caller == nil {
						t.Errorf("%s is told %+v", name, r)
					}
				}
				if n := countOf(k.told(t, l), "retention.failed:"+name); (n == 1) != (fails == 5) {
					t.Errorf("told is %s", k.told(t, l))
				}
			}
			if stale.told()[0].Key == gone.told()[0].Key {
				t.Error("two calls have one key")
			}
			if told := k.told(t, l); !strings.HasSuffix(told, "terminated:retention") || countOf(told, "stale") != 1 {
				t.Errorf("told is %s", told)
			}
		}, k)
	}
}

// Proves J23: a job that is resumed during a call of OnDelete, or between two of them, stays, and
// the call is not made again. Its next end has a call of its own.
func TestResumeBeforeOnDeleteIsOver(t *testing.T) {
	for _, between := range []bool{false, true} {
		var keys []string
		var errs error
		var goes chan struct{}
		k := failedErrand(jobs.Retention{Failed: time.Hour, OnDelete: func(ctx context.Context, r *jobs.Retired) error {
			keys = append(keys, r.Key)
			if !between {
				<-goes
			}
			return errs
		}})
		if between {
			errs = errRefused
		}
		inLives(t, func(t *testing.T, l *lives) {
			goes = make(chan struct{})
			k.create(t, l)
			again := k.work
			later(time.Hour)
			k.work = ends(engine.Result{}, nil)
			if err := k.verb(t, l, "resume"); err != nil {
				t.Fatal(err)
			}
			close(goes)
			later(time.Hour)
			k.wantMeta(t, l, "resumed", func(m jobs.Meta) bool { return m.Status == jobs.Running && m.Hooks == 0 })
			if len(keys) != 1 || countOf(k.told(t, l), "retention.failed") != 0 {
				t.Errorf("the calls are %v, told is %s", keys, k.told(t, l))
			}
			k.work, errs = again, nil
			if err := k.verb(t, l, "run"); err != nil {
				t.Fatal(err)
			}
			later(time.Hour)
			k.wantMeta(t, l, "gone", func(m jobs.Meta) bool { return m.Status == jobs.None })
			if len(keys) != 2 || keys[0] == keys[1] {
				t.Errorf("the calls are %v", keys)
			}
		}, k)
	}
}

// Proves J23: a call that is owed when its definition has lost the hook is over at once.
func TestHookThatIsTakenAway(t *testing.T) {
	hook := &calledHook{fails: 100, err: errRefused}
	k := failedErrand(jobs.Retention{Failed: time.Hour, OnDelete: hook.call})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		later(time.Hour)
		l.crash()
		k.options.Retention.OnDelete = nil
		l.begin()
		later(time.Minute)
		k.wantMeta(t, l, "gone", func(m jobs.Meta) bool { return m.Status == jobs.None })
		if len(hook.told()) != 1 {
			t.Errorf("%d calls", len(hook.told()))
		}
	}, k)
}

// Proves J21, J3: a changed Retention counts for an ended job once the job is in memory: it is
// kept longer or less long, or until a verb, from its end. The alarm is that time then.
func TestRetentionThatChanges(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		from, to jobs.Retention
		idle     bool // nothing but the alarm wakes it
		want     time.Duration
	}{
		"longer":                  {jobs.Retention{Failed: time.Hour}, jobs.Retention{Failed: day}, false, day},
		"longer, at its alarm":    {jobs.Retention{Failed: time.Hour}, jobs.Retention{Failed: day}, true, day},
		"shorter":                 {jobs.Retention{Failed: day}, jobs.Retention{Failed: time.Hour}, false, time.Hour},
		"for ever":                {jobs.Retention{Failed: time.Hour}, jobs.Retention{}, false, 0},
		"for ever, at its alarm":  {jobs.Retention{Failed: time.Hour}, jobs.Retention{Failed: jobs.Forever}, true, 0},
		"no more for ever":        {jobs.Retention{}, jobs.Retention{Failed: time.Hour}, false, time.Hour},
		"stale, and kept as long": {jobs.Retention{Failed: day}, jobs.Retention{Failed: day, StaleAfter: time.Minute}, false, day},
	} {
		k := failedErrand(c.from)
		inLives(t, func(t *testing.T, l *lives) {
			k.create(t, l)
			end := time.Now()
			time.Sleep(10 * time.Minute)
			l.crash()
			k.options.Retention = c.to
			l.begin()
			if c.idle {
				later(50 * time.Minute)
			}
			k.wantMeta(t, l, name, func(m jobs.Meta) bool { return m.Status == jobs.Failed })
			synctest.Wait()
			k.wantMeta(t, l, name, func(m jobs.Meta) bool {
				return m.RetireAt.IsZero() == (c.want == 0) && (c.want == 0 || m.RetireAt.Equal(end.Add(c.want))) && m.Stale == (c.to.StaleAfter > 0)
			})
			if at := k.alarmOf(t, l); at.IsZero() != (c.want == 0) || c.want != 0 && !at.Equal(end.Add(c.want)) {
				t.Errorf("%s: the alarm is at %v", name, at)
			}
			if c.want == 0 {
				later(year)
				k.wantMeta(t, l, name, func(m jobs.Meta) bool { return m.Status == jobs.Failed })
				return
			}
			later(time.Until(end.Add(c.want)) - 1)
			k.wantMeta(t, l, name, func(m jobs.Meta) bool { return m.Status == jobs.Failed })
			later(1)
			k.wantMeta(t, l, name, func(m jobs.Meta) bool { return m.Status == jobs.None })
		}, k)
	}
}

// Proves R3, J3: an ended job that has lost its alarm gets it back when it is next in memory, at
// its next step.
func TestRetentionIsArmedAgain(t *testing.T) {
	k := failedErrand(jobs.Retention{Failed: 2 * time.Hour, StaleAfter: time.Hour})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		for _, step := range []time.Duration{time.Hour, time.Hour} {
			at := time.Now().Add(step)
			if err := k.turn(l, func(ctx context.Context, e *errand) error { return e.st.Driver().DeleteAlarm(ctx) }); err != nil {
				t.Fatal(err)
			}
			l.crash()
			l.begin()
			if got := k.alarmOf(t, l); !got.Equal(at) {
				t.Errorf("the alarm is at %v, want %v", got, at)
			}
			later(step)
		}
		k.wantMeta(t, l, "gone", func(m jobs.Meta) bool { return m.Status == jobs.None })
	}, k)
}

// retentionCrashes is a story of an ended job: with a crash at any point it is stale once and gone
// once, its hooks are called, and the events of both are told once.
func retentionCrashes(t *testing.T, r jobs.Retention, want string) {
	crashes.Try(t, func(s *harness.Sim) {
		r := r
		called := func(name string, hook func(context.Context, *jobs.Retired) error) func(context.Context, *jobs.Retired) error {
			return func(ctx context.Context, x *jobs.Retired) error {
				s.World().Do(name+" "+x.ID, nil)
				return hook(ctx, x)
			}
		}
		if r.OnStale != nil {
			r.OnStale = called("stale", r.OnStale)
		}
		if r.OnDelete != nil {
			r.OnDelete = called("delete", r.OnDelete)
		}
		k := failedErrand(r)
		s.Host(k)
		s.OK(s.Retry(func() error {
			_, err := k.do.Call(s.Context(), s, "a", "create", object.Idempotent("create", 0))
			return err
		}))
		s.Advance(10 * time.Minute)
		s.Finally("the job was stale and is gone, each told once", func() error {
			var meta jobs.Meta
			if found, err := harness.Stored(s.Store(), k.ID("a"), jobs.MetaKey, &meta); found || err != nil {
				return fmt.Errorf("J21: the job is still there: %+v, %v", meta, err)
			}
			kinds := strings.Fields(movesTold(s, k.ID("a")))
			crashed := !strings.Contains(want, jobs.EventRetentionFailed) && slices.Contains(kinds, jobs.EventRetentionFailed) // R4: too often in a call
			kinds = slices.DeleteFunc(kinds, func(kind string) bool {
				return kind == jobs.EventRetry || kind == jobs.EventFailure || kind == jobs.EventExhausted || crashed && kind == jobs.EventRetentionFailed
			})
			if got := strings.Join(kinds, " "); got != want {
				return fmt.Errorf("J11: told is %s, want %s", got, want)
			}
			for name, hook := range map[string]bool{"stale a": r.OnStale != nil, "delete a": r.OnDelete != nil} {
				if n := s.World().Count(name); hook && n == 0 && !crashed {
					return fmt.Errorf("J23: %s was not called", name)
				}
			}
			return nil
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned, harness.Settle(10*time.Minute))
}

// Proves J22, J21, J3: a stale job survives crashes, and so does its end without a hook.
func TestStaleSurvivesCrashes(t *testing.T) {
	retentionCrashes(t, jobs.Retention{Failed: 2 * time.Minute, StaleAfter: time.Minute}, "created failed stale terminated")
}

// Proves J23, J21: the calls of both hooks survive crashes, and the job is gone after them.
func TestHooksOfARetentionSurviveCrashes(t *testing.T) {
	fine := func(context.Context, *jobs.Retired) error { return nil }
	retentionCrashes(t, jobs.Retention{Failed: 2 * time.Minute, StaleAfter: time.Minute, OnStale: fine, OnDelete: fine}, "created failed stale terminated")
}

// Proves J23: with a hook that fails for good, and crashes, the job is gone all the same.
func TestFailingHookOfARetentionSurvivesCrashes(t *testing.T) {
	refuse := func(context.Context, *jobs.Retired) error { return jobs.Permanent(errors.New("no")) }
	retentionCrashes(t, jobs.Retention{Failed: time.Minute, OnDelete: refuse}, "created failed retention.failed terminated")
}
