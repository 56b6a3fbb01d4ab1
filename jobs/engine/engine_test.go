package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// bag is a small job type over Engine: an object that executes the items which
// are put in it, all at the same time, and writes down how each ended.
type bag struct {
	st      *object.State
	engine  *engine.Engine
	kind    *bagKind
	waiting []item // by time, then name
	settled int    // turns that have changed something
}

// item waits to be executed; it is stored under "item/" and its name.
type item struct {
	Name string   `json:"name"`
	Run  jobs.Run `json:"run"`
}

// bagKind is the definition of a bag.
type bagKind struct {
	*object.Class[bag]
	options engine.Options
	work    func(ctx context.Context, x engine.Execution) (engine.Result, error) // nil: items are held outside

	put    *object.Method[[]string, int]
	ends   *object.Method[int, map[string]string]
	open   *object.Method[int, []engine.Execution]
	cancel *object.Method[string, bool]
	close  *object.Method[string, int]
	renew  *object.Method[engine.Token, time.Time]
	finish *object.Method[engine.Token, int]
}

func newBagKind(k *bagKind) *bagKind {
	k.Class = object.Define("bag", func(ctx context.Context, st *object.State) (*bag, error) { return loadBag(ctx, st, k) })
	k.put = object.Handle(k.Class, "put", (*bag).put)
	k.ends = object.Handle(k.Class, "ends", (*bag).ends)
	k.open = object.Handle(k.Class, "open", func(b *bag, _ context.Context, _ int) ([]engine.Execution, error) {
		return b.engine.Executions(), nil
	})
	k.cancel = object.Handle(k.Class, "cancel", (*bag).cancel)
	k.close = object.Handle(k.Class, "close", (*bag).close)
	k.renew = object.Handle(k.Class, "renew", (*bag).renew)
	k.finish = object.Handle(k.Class, "finish", (*bag).finish)
	return k
}

func loadBag(ctx context.Context, st *object.State, k *bagKind) (*bag, error) {
	b := &bag{st: st, kind: k}
	for found, err := range st.Storage().List(ctx, object.ListOptions{Prefix: "item/"}) {
		if err != nil {
			return nil, err
		}
		var i item
		if err := json.Unmarshal(found.Value, &i); err != nil {
			return nil, err
		}
		b.wait(i)
	}
	var err error
	b.engine, err = engine.Attach(ctx, st, k.options, b)
	return b, err
}

func (b *bag) wait(i item) {
	b.waiting = append(b.waiting, i)
	slices.SortFunc(b.waiting, func(a, b item) int {
		return cmp.Or(a.Run.RetryAt.Compare(b.Run.RetryAt), strings.Compare(a.Name, b.Name))
	})
}

func (b *bag) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return b.engine.Alarm(ctx, info)
}

func (b *bag) Next() time.Time {
	if len(b.waiting) == 0 {
		return time.Time{}
	}
	return cmp.Or(b.waiting[0].Run.RetryAt, time.Unix(1, 0))
}

func (b *bag) Due(ctx context.Context, now time.Time) error {
	for len(b.waiting) > 0 && !b.waiting[0].Run.RetryAt.After(now) {
		i := b.waiting[0]
		if _, err := b.engine.Begin(ctx, engine.Spec{Subject: i.Name, Run: i.Run, Work: b.kind.work}); err != nil {
			return err
		}
		if err := b.st.Storage().Remove(ctx, "item/"+i.Name); err != nil {
			return err
		}
		b.waiting = b.waiting[1:]
	}
	return nil
}

func (b *bag) Ended(ctx context.Context, x engine.Execution, out engine.Outcome) error {
	if out.Kind == engine.Again || out.Kind == engine.Recover {
		i := item{x.Subject, out.Run}
		if err := b.st.Storage().Put(ctx, "item/"+i.Name, i); err != nil {
			return err
		}
		b.wait(i)
		return nil
	}
	return b.st.Storage().Put(ctx, "end/"+x.Subject, fmt.Sprintf("%s after %d", out.Kind, x.Run.Attempt))
}

// Settle counts the turns that end something or begin something.
func (b *bag) Settle(context.Context, time.Time) error { b.settled++; return nil }

func (b *bag) put(ctx context.Context, names []string) (int, error) {
	return 0, b.engine.Turn(ctx, func(ctx context.Context) error {
		for _, name := range names {
			i := item{name, jobs.Run{Number: 1}}
			if err := b.st.Storage().Put(ctx, "item/"+name, i); err != nil {
				return err
			}
			b.wait(i)
		}
		return nil
	})
}

func (b *bag) ends(ctx context.Context, _ int) (map[string]string, error) {
	ends := map[string]string{"turns": fmt.Sprint(b.settled)}
	for found, err := range b.st.Storage().List(ctx, object.ListOptions{Prefix: "end/"}) {
		if err != nil {
			return nil, err
		}
		ends[strings.TrimPrefix(found.Key, "end/")] = strings.Trim(string(found.Value), `"`)
	}
	return ends, nil
}

// token is that of the open execution of an item.
func (b *bag) token(name string) engine.Token {
	for _, x := range b.engine.Executions() {
		if x.Subject == name {
			return x.Token
		}
	}
	return "none"
}

func (b *bag) cancel(_ context.Context, name string) (bool, error) {
	return b.engine.Cancel(b.token(name), errors.New("unwanted")), nil
}

func (b *bag) close(ctx context.Context, name string) (int, error) {
	return 0, b.engine.Turn(ctx, func(ctx context.Context) error { return b.engine.Discard(ctx, b.token(name)) })
}

func (b *bag) renew(ctx context.Context, t engine.Token) (until time.Time, err error) {
	err = b.engine.Turn(ctx, func(ctx context.Context) error {
		until, err = b.engine.Renew(ctx, t, 0)
		return err
	})
	return until, err
}

func (b *bag) finish(ctx context.Context, t engine.Token) (int, error) {
	return 0, b.engine.Turn(ctx, func(ctx context.Context) error { return b.engine.Finish(ctx, t, engine.Result{}, nil) })
}

// endsOf reads how the items of a bag ended.
func endsOf(s *harness.Sim, k *bagKind) (ends map[string]string) {
	s.OK(s.Retry(func() (err error) {
		ends, err = k.ends.Call(s.Context(), s, "b", 0)
		return err
	}))
	return ends
}

// Proves J5, J8, J9, R4: with several executions open in one object, and a crash at any
// point, each ends exactly once. A lost one is repeated.
func TestManyExecutionsSurviveCrashes(t *testing.T) {
	for name, lossIsFailure := range map[string]bool{"recovery": false, "loss is failure": true} {
		t.Run(name, func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				k := newBagKind(&bagKind{
					options: engine.Options{LossIsFailure: lossIsFailure, Retry: jobs.Retry{MaxAttempts: 4, Backoff: jobs.Constant(time.Second)}},
					work: func(_ context.Context, x engine.Execution) (engine.Result, error) {
						s.World().Do("do/"+x.Subject, nil)
						if x.Subject == "flaky" && x.Run.LastError == "" {
							return engine.Result{}, errors.New("boom")
						}
						return engine.Result{}, nil
					},
				})
				s.Host(k)
				s.OK(s.Retry(func() error {
					_, err := k.put.Call(s.Context(), s, "b", []string{"a", "flaky"}, object.Idempotent("put", 0))
					return err
				}))
				s.Advance(time.Minute)
				ends := endsOf(s, k)
				for _, name := range []string{"a", "flaky"} {
					s.Always(name+" is done", strings.HasPrefix(ends[name], string(engine.Done)), ends)
				}
			}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
		})
	}
}

// Proves J6: executions run side by side, and ends that come while another end is
// being stored share a batch.
func TestEndsAreMerged(t *testing.T) {
	const items = 100
	gate, free := make(chan struct{}), make(chan struct{})
	k := newBagKind(&bagKind{work: func(context.Context, engine.Execution) (engine.Result, error) {
		<-gate
		return engine.Result{}, nil
	}})
	hold := object.Handle(k.Class, "hold", func(*bag, context.Context, int) (int, error) {
		<-free
		return 0, nil
	})
	inBubble(t, k, func(h *object.Host, _ *loglines.Recorder) {
		gate, free = make(chan struct{}), make(chan struct{}) // of this bubble
		var names []string
		for n := range items {
			names = append(names, fmt.Sprint(n))
		}
		if _, err := k.put.Call(context.Background(), h, "b", names); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		// The object is busy until all works have returned, so that their ends wait together.
		go func() { _, _ = hold.Call(context.Background(), h, "b", 0) }()
		synctest.Wait()
		close(gate)
		synctest.Wait()
		close(free)
		synctest.Wait()
		ends, err := k.ends.Call(context.Background(), h, "b", 0)
		if turns, _ := strconv.Atoi(ends["turns"]); err != nil || turns > 3 || len(ends) < items {
			t.Errorf("%d turns for %d items, %v", turns, len(ends)-1, err)
		}
	})
}

// Proves J8, O8: a cancelled work ends as Cancelled, or as Done if it succeeds all
// the same; the end of one that was closed is stale and changes nothing.
func TestCancelAndClose(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		k := newBagKind(&bagKind{work: func(ctx context.Context, x engine.Execution) (engine.Result, error) {
			s.Sleep(time.Minute)
			if x.Subject == "stubborn" {
				return engine.Result{}, nil
			}
			return engine.Result{}, context.Cause(ctx)
		}})
		s.Host(k)
		s.Must(k.put.Call(s.Context(), s, "b", []string{"meek", "stubborn", "closed"}))
		for _, name := range []string{"meek", "stubborn"} {
			asked, err := k.cancel.Call(s.Context(), s, "b", name)
			s.Always("cancelled here", err == nil && asked, err)
		}
		s.Must(k.close.Call(s.Context(), s, "b", "closed"))
		_, err := k.close.Call(s.Context(), s, "b", "closed")
		s.Always("a second close is stale", errors.Is(err, jobs.ErrStaleExecution), err)
		s.Advance(2 * time.Minute)
		ends := endsOf(s, k)
		s.Always("ends", ends["meek"] == "cancelled after 1" && ends["stubborn"] == "done after 1" && ends["closed"] == "", ends)
	})
}

// Proves W5, J7, J8: an execution that a caller holds lives as long as its lease,
// also through a crash; renewed it lives on, and when its lease is over it is
// lost, and its old token is refused.
func TestOutsideExecutions(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		k := newBagKind(&bagKind{options: engine.Options{LossIsFailure: true, Retry: jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(0)}}})
		s.Host(k)
		s.Must(k.put.Call(s.Context(), s, "b", []string{"kept", "left"}))
		tokens := func() map[string]engine.Token {
			open, err := k.open.Call(s.Context(), s, "b", 0)
			s.OK(err)
			m := make(map[string]engine.Token)
			for _, x := range open {
				m[x.Subject] = x.Token
			}
			return m
		}
		before := tokens()
		s.Advance(20 * time.Second)
		s.Crash(harness.Kill)
		s.Restart()
		until, err := k.renew.Call(s.Context(), s, "b", before["kept"])
		s.Always("renewed after the crash", err == nil && until.Equal(s.Now().Add(30*time.Second)), until, err)
		s.Advance(15 * time.Second)
		after := tokens()
		s.Always("the other is lost and open again", after["kept"] == before["kept"] && after["left"] != before["left"], before, after)
		_, err = k.finish.Call(s.Context(), s, "b", before["left"])
		s.Always("its old token is stale", errors.Is(err, jobs.ErrStaleExecution), err)
		_, err = k.renew.Call(s.Context(), s, "b", before["left"])
		s.Always("and cannot be renewed", errors.Is(err, jobs.ErrStaleExecution), err)
		s.Must(k.finish.Call(s.Context(), s, "b", after["left"]))
		s.Must(k.finish.Call(s.Context(), s, "b", after["kept"]))
		ends := endsOf(s, k)
		s.Always("ends", ends["kept"] == "done after 1" && ends["left"] == "done after 2", ends)
	})
}

// Proves J7: while a work lives its lease is extended each third of it, as it is
// stored too, and is never over.
func TestLeaseIsExtended(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		k := newBagKind(&bagKind{options: engine.Options{Limits: recovery.Limits{RecoveryDelay: time.Hour}}, work: func(context.Context, engine.Execution) (engine.Result, error) {
			s.Sleep(5 * time.Minute)
			return engine.Result{}, nil
		}})
		s.Host(k)
		s.Must(k.put.Call(s.Context(), s, "b", []string{"long"}))
		left := func() time.Duration {
			open, err := k.open.Call(s.Context(), s, "b", 0)
			s.Always("one execution is open", err == nil && len(open) == 1, open, err)
			return open[0].Lease.Sub(s.Now())
		}
		for range 24 {
			s.Advance(5 * time.Second)
			s.Always("J7: of a lease of 30 s at least two thirds are left", left() >= 20*time.Second, left(), s.Now())
		}
		before := left()
		s.Crash(harness.PowerLoss)
		s.Restart()
		s.Always("J7: the lease is stored as it was extended", left() == before, left(), before)
	})
}

// Proves R2 and R7: a recovery delay that is longer than an idle object stays in
// memory is waited for once, and not anew at each activation.
func TestLongRecoveryDelay(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		k := newBagKind(&bagKind{options: engine.Options{Limits: recovery.Limits{RecoveryDelay: 5 * time.Minute}}, work: func(context.Context, engine.Execution) (engine.Result, error) {
			if s.Crashes() == 0 {
				s.Sleep(time.Hour)
			}
			return engine.Result{}, nil
		}})
		s.Host(k)
		s.Must(k.put.Call(s.Context(), s, "b", []string{"a"}))
		s.Advance(time.Second)
		s.Crash(harness.Kill)
		s.Restart()
		s.Advance(5*time.Minute - time.Second)
		s.Always("R2: not before the delay is over", endsOf(s, k)["a"] == "", endsOf(s, k))
		s.Advance(2 * time.Second)
		s.Always("R7: once the delay is over", endsOf(s, k)["a"] == "done after 2", endsOf(s, k))
	})
}

// Proves J9: an execution that fails is tried again at its time, and given up with
// a reason when its attempts are used up.
func TestAttemptsAreUsedUp(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		k := newBagKind(&bagKind{
			options: engine.Options{Retry: jobs.Retry{MaxAttempts: 3, Backoff: jobs.Linear(time.Second, time.Minute)}},
			work: func(context.Context, engine.Execution) (engine.Result, error) {
				return engine.Result{}, errors.New("boom")
			},
		})
		s.Host(k)
		s.Must(k.put.Call(s.Context(), s, "b", []string{"a"}))
		s.Advance(2500 * time.Millisecond)
		s.Always("not yet", endsOf(s, k)["a"] == "")
		s.Advance(time.Second)
		s.Always("after a second, and two more", endsOf(s, k)["a"] == "gave up after 3", endsOf(s, k))
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, k.ID("b"))
			s.Always("nothing is armed or open", err != nil || in.Alarm == nil && !in.Execution, in)
			return err
		}))
	})
}
