package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// ends is a work that ends at once.
func ends(res engine.Result, err error) engine.Work {
	return func(context.Context, engine.Execution) (engine.Result, error) { return res, err }
}

// verb calls a verb of the errand named a.
func (k *errandKind) verb(t *testing.T, l *lives, verb string) error {
	_, err := k.do.Call(t.Context(), l.host, "a", verb)
	return err
}

// metaOf returns the metadata of the errand named a.
func (k *errandKind) metaOf(t *testing.T, l *lives) jobs.Meta {
	t.Helper()
	m, err := k.meta.Call(t.Context(), l.host, "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Proves J3, J15: the metadata has the version of the definition that wrote it last.
func TestVersionInTheMetadata(t *testing.T) {
	k := newErrandKind(&errandKind{period: time.Hour, work: ends(engine.Result{}, nil), options: engine.JobOptions{Version: "7"}})
	inLives(t, func(t *testing.T, l *lives) {
		if err := k.verb(t, l, "create"); err != nil {
			t.Fatal(err)
		}
		if m := k.metaOf(t, l); m.Version != "7" {
			t.Errorf("the metadata is %+v", m)
		}
	}, k)
}

// Proves J9: a call of OnExhausted is not counted as an execution of a run.
func TestCountBesideACall(t *testing.T) {
	k := newErrandKind(&errandKind{period: time.Hour, work: ends(engine.Result{}, errors.New("no"))})
	k.options.OnExhausted = func(ctx context.Context, _ *jobs.Exhaustion) error { <-ctx.Done(); return ctx.Err() }
	inLives(t, func(t *testing.T, l *lives) {
		for want, work := range []engine.Work{k.work, hangs} {
			k.work = work
			if err := k.verb(t, l, []string{"create", "run"}[want]); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n, err := k.do.Call(t.Context(), l.host, "a", "count"); err != nil || n != want {
				t.Errorf("%d executions of runs are open, want %d: %v", n, want, err)
			}
		}
	}, k)
}

// Proves J5, O13: an error of the runtime while a run is prepared fails the turn, and any
// other fails the run.
func TestPrepareThatFails(t *testing.T) {
	for _, fail := range []error{object.ErrStorage, errors.New("no")} {
		k := newErrandKind(&errandKind{period: time.Hour, prepare: func(context.Context, jobs.Run) (engine.Work, error) {
			return nil, fmt.Errorf("prepare: %w", fail)
		}})
		inLives(t, func(t *testing.T, l *lives) {
			err := k.verb(t, l, "create")
			synctest.Wait()
			m := k.metaOf(t, l)
			if fail == object.ErrStorage {
				if !errors.Is(err, fail) || m.Status != jobs.None {
					t.Errorf("an error of the runtime: %v, %+v", err, m)
				}
			} else if err != nil || m.LastError != "prepare: no" || m.Failures != 1 {
				t.Errorf("another error: %v, %+v", err, m)
			}
		}, k)
	}
}

// Proves J5: a run that the job type drops is over once the job type has moved on.
func TestRunThatIsDropped(t *testing.T) {
	var dropped atomic.Int32
	began := time.Time{}
	k := newErrandKind(&errandKind{})
	k.prepare = func(context.Context, jobs.Run) (engine.Work, error) { dropped.Add(1); return nil, nil }
	k.next = func() time.Time {
		if n := dropped.Load(); n < 5 {
			return began.Add(time.Duration(n) * time.Second)
		}
		return time.Time{}
	}
	inLives(t, func(t *testing.T, l *lives) {
		began = time.Now()
		time.Sleep(1500 * time.Millisecond)
		if err := k.verb(t, l, "create"); err != nil || dropped.Load() != 2 {
			t.Errorf("%d runs are dropped, %v", dropped.Load(), err)
		}
		time.Sleep(time.Minute)
		if m := k.metaOf(t, l); m.Status != jobs.Running || dropped.Load() != 5 {
			t.Errorf("%d runs are dropped, %+v", dropped.Load(), m)
		}
	}, k)
}

// Proves D6, J5: an idle job ends at its time if its type lets it go. If the type refuses,
// the end must have moved on; an error of the type fails the turn.
func TestEndOfAnIdleJob(t *testing.T) {
	none := func() time.Time { return time.Time{} }
	for name, test := range map[string]struct {
		leaves bool
		err    error
		moves  bool
		want   string
	}{
		"leaves":             {leaves: true},
		"stays":              {moves: true},
		"neither":            {want: "end of the idle job due at 2000-01-01 00:00:00 +0000 UTC neither came nor moved"},
		"an error":           {err: errors.New("not now"), want: "not now"},
		"an error and moves": {err: errors.New("not now"), moves: true, want: "not now"},
	} {
		var asked atomic.Bool
		k := newErrandKind(&errandKind{next: none})
		k.idleEnd = func(time.Time) time.Time {
			if asked.Load() && test.moves {
				return noonOf2001
			}
			return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		k.leaves = func() (bool, error) { asked.Store(true); return test.leaves, test.err }
		inLives(t, func(t *testing.T, l *lives) {
			err := k.verb(t, l, "create")
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: the turn ends with %v", name, err)
			}
			want := jobs.None
			if test.moves && test.err == nil {
				want = jobs.Running
			}
			if m := k.metaOf(t, l); m.Status != want {
				t.Errorf("%s: %+v", name, m)
			}
		}, k)
	}
}

// Proves J3: the event of a failed job has its error, and no other event of a move has one.
func TestErrorsOfMoves(t *testing.T) {
	k := newErrandKind(&errandKind{period: time.Hour, work: ends(engine.Result{}, errors.New("no luck")), options: engine.JobOptions{Exhausted: jobs.Fail}})
	inLives(t, func(t *testing.T, l *lives) {
		for _, verb := range []string{"create", "resume", "pause", "resume", "stop", "terminate"} {
			if verb == "pause" { // the second run succeeds
				time.Sleep(time.Minute)
			}
			if err := k.verb(t, l, verb); err != nil {
				t.Fatal(verb, err)
			}
			synctest.Wait()
			k.work = ends(engine.Result{}, nil)
		}
		events, err := l.host.Events(t.Context(), k.ID("a"), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range events {
			var ev jobs.Event
			if err := json.Unmarshal(e.Data, &ev); err != nil && len(e.Data) > 0 {
				t.Fatal(err)
			}
			if e.Kind != jobs.EventStart && e.Kind != jobs.EventSuccess {
				got = append(got, strings.Trim(e.Kind+" "+ev.Error, " "))
			}
		}
		want := "created, failure no luck, exhausted no luck, failed no luck, resumed, paused, resumed, stopped, terminated"
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("events are %s, want %s", got, want)
		}
	}, k)
}

// Proves J15: a job that Purge would end fails if something stored of it cannot be read, and
// goes if that is of another object.
func TestPurgeOfWhatCannotBeRead(t *testing.T) {
	for name, want := range map[string]jobs.Status{"a": jobs.Failed, "b": jobs.None} {
		bad := &jobs.DecodeError{Err: errors.New("bad"), Field: "Migrate"}
		fail := bad.Of(storage.ID{Class: "errand", Name: name}, "state")
		k := newErrandKind(&errandKind{period: time.Hour, work: ends(engine.Result{}, fail), options: engine.JobOptions{Exhausted: jobs.Purge}})
		inLives(t, func(t *testing.T, l *lives) {
			if err := k.verb(t, l, "create"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if m := k.metaOf(t, l); m.Status != want {
				t.Errorf("a value of %s: %+v", name, m)
			}
		}, k)
	}
}

// A job that gets another context than that of its turn begins nothing.
func TestJobWithoutATurn(t *testing.T) {
	k := newErrandKind(&errandKind{period: time.Hour, work: ends(engine.Result{}, nil)})
	inLives(t, func(t *testing.T, l *lives) {
		if err := k.verb(t, l, "create"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := k.verb(t, l, "due without a turn"); err != nil {
			t.Errorf("while nothing is due: %v", err)
		}
		k.period = 0
		if err := k.verb(t, l, "due without a turn"); !errors.Is(err, object.ErrNoTurn) {
			t.Errorf("while a run is due: %v", err)
		}
		k.period = time.Hour
	}, k)
}

// Proves S9: a job with metadata, or a call of OnExhausted, that cannot be read answers no
// call.
func TestJobThatCannotBeRead(t *testing.T) {
	for _, key := range []string{jobs.MetaKey, "h/"} {
		k := newErrandKind(&errandKind{period: time.Hour, work: ends(engine.Result{}, errors.New("no"))})
		k.options.OnExhausted = func(ctx context.Context, _ *jobs.Exhaustion) error { <-ctx.Done(); return ctx.Err() }
		spoil := object.Handle(k.Class, "spoil", func(e *errand, ctx context.Context, key string) (int, error) {
			for item, err := range e.st.Storage().List(ctx, object.ListOptions{Prefix: key}) {
				if err != nil {
					return 0, err
				}
				key = item.Key
			}
			return 0, e.st.Storage().PutBytes(ctx, key, []byte("{"))
		})
		inLives(t, func(t *testing.T, l *lives) {
			if err := k.verb(t, l, "create"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, err := spoil.Call(t.Context(), l.host, "a", key); err != nil {
				t.Fatal(err)
			}
			l.crash()
			l.begin()
			if _, err := k.meta.Call(t.Context(), l.host, "a", 0); err == nil {
				t.Errorf("%s is no JSON, and the job answers", key)
			}
		}, k)
	}
}

// Proves J9: a call of OnExhausted that fails is made ten times in all, a second later each
// time, and tells of no start and no success.
func TestCallsThatFail(t *testing.T) {
	var mu sync.Mutex
	var calls []time.Duration
	var began time.Time
	k := newErrandKind(&errandKind{period: 24 * time.Hour, work: ends(engine.Result{}, errors.New("no"))})
	k.options.OnExhausted = func(context.Context, *jobs.Exhaustion) error {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, time.Since(began))
		return errors.New("not now")
	}
	var r loglines.Recorder
	inLives(t, func(t *testing.T, l *lives) {
		l.crash()
		l.options.Logger = r.Logger()
		l.begin()
		began = time.Now()
		if err := k.verb(t, l, "create"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(calls), "[0s 1s 3s 6s 10s 15s 21s 28s 36s 45s]"; got != want {
			t.Errorf("calls are made after %s, want %s", got, want)
		}
		var last string
		for _, line := range r.From(slog.LevelWarn) {
			last = line.String()
		}
		if want := "ERROR run given up class=errand object=a task=OnExhausted run=1 attempt=10 error=not now reason=attempts"; last != want {
			t.Errorf("logged last is\n%s\nwant\n%s", last, want)
		}
		if m := k.metaOf(t, l); m.Hooks != 0 || m.Status != jobs.Running {
			t.Errorf("the metadata is %+v", m)
		}
	}, k)
}
