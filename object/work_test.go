package object_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O8.
func TestReleaseLendsTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var order []string
		var wg sync.WaitGroup
		outside := make(chan struct{})
		wg.Go(func() {
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				if err := th.st.Storage().PutBytes(ctx, "k", []byte("before")); err != nil {
					return nil, err
				}
				err := th.st.Release(ctx, func(rctx context.Context) error {
					if _, _, err := th.st.Storage().Get(rctx, "k"); !errors.Is(err, object.ErrNoTurn) {
						t.Errorf("reading while the turn is lent out: %v", err)
					}
					<-outside
					return nil
				})
				order = append(order, "back")
				v, _, _ := th.st.Storage().Get(ctx, "k")
				order = append(order, string(v))
				return nil, err
			})
		})
		time.Sleep(time.Hour) // a turn that is lent out holds off eviction
		if f.stored("a", "k") != "before" {
			t.Error("Release did not commit first")
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			order = append(order, "between")
			return nil, th.st.Storage().PutBytes(ctx, "k", []byte("between"))
		})
		close(outside)
		wg.Wait()
		if got := strings.Join(order, " "); got != "between back between" {
			t.Errorf("order: %s", got)
		}
	})
}

// Proves O8.
func TestReleaseAfterReset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		outside := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
				err := th.st.Release(ctx, func(context.Context) error { <-outside; return nil })
				_ = th.st.Storage().PutBytes(ctx, "k", []byte("zombie"))
				return nil, err
			})
			if !errors.Is(err, object.ErrReset) {
				t.Errorf("the turn of a former activation: %v", err)
			}
		})
		synctest.Wait()
		if _, err := f.call("a", func(*thing, context.Context) (any, error) { panic("reset") }); !errors.Is(err, object.ErrPanic) {
			t.Error(err)
		}
		close(outside)
		wg.Wait()
		if got := f.must("a", get("k")); got != "" {
			t.Errorf("a former activation stored %q", got)
		}
	})
}

// Proves O8.
func TestDeadlocksFailAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		call := func(name string, then action) action {
			return func(th *thing, ctx context.Context) (any, error) { return f.do.Call(ctx, th.st, name, then) }
		}
		for what, fn := range map[string]action{
			"itself":           call("a", nothing),
			"a chain of three": call("b", call("c", call("a", nothing))),
			"through the host": func(th *thing, ctx context.Context) (any, error) { return f.do.Call(ctx, f.host, "a", nothing) },
			"Do in the turn's ctx": func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Do(ctx, func(context.Context) error { return nil })
			},
		} {
			if _, err := f.call("a", fn); !errors.Is(err, object.ErrDeadlock) {
				t.Errorf("%s: %v", what, err)
			}
		}
		// Two turns that wait for one another: one of them is refused.
		var refused atomic.Int32
		var wg sync.WaitGroup
		meet := make(chan struct{})
		for _, pair := range [][2]string{{"x", "y"}, {"y", "x"}} {
			wg.Go(func() {
				_, err := f.call(pair[0], func(th *thing, ctx context.Context) (any, error) {
					<-meet
					return f.do.Call(ctx, th.st, pair[1], nothing)
				})
				if errors.Is(err, object.ErrDeadlock) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(meet)
		wg.Wait()
		if refused.Load() != 1 {
			t.Errorf("%d of two calls that close a circle were refused, want 1", refused.Load())
		}
		f.must("x", call("y", nothing)) // neither waits any more, so either may call the other
		f.must("y", call("x", nothing))
	})
}

// Proves O9.
func TestWorkBesideTheTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		finish, ended := make(chan struct{}), make(chan error, 1)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "work", func(wctx context.Context) {
				<-finish
				if err := th.st.Storage().PutBytes(wctx, "k", nil); !errors.Is(err, object.ErrNoTurn) {
					t.Errorf("work wrote without Do: %v", err)
				}
				ended <- th.st.Do(wctx, func(ctx context.Context) error { return th.st.Storage().PutBytes(ctx, "k", []byte("done")) })
			})
		})
		time.Sleep(time.Hour) // far beyond IdleAfter: work holds off eviction
		if in, _ := f.host.Inspect(context.Background(), f.id("a")); !in.Live {
			t.Error("an object with work was evicted")
		}
		close(finish)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := f.stored("a", "k"); got != "done" {
			t.Errorf("stored %q", got)
		}
		// A turn that fails starts nothing.
		f.call("a", func(th *thing, ctx context.Context) (any, error) {
			_ = th.st.Go(ctx, "never", func(context.Context) { t.Error("work of a failed turn ran") })
			return nil, errors.New("no")
		})
		synctest.Wait()
	})
}

// An alarm's handler starts a work and then fails. The work never begins, though the
// runtime commits the retry. Proves O6 and O9.
func TestWorkOfAHandlerThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var attempts, works atomic.Int64
		f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
			attempt := attempts.Add(1)
			if err := th.st.Go(ctx, "work", func(context.Context) { works.Add(1) }); err != nil || attempt > 1 {
				return err
			}
			return errors.New("no")
		})
		f.must("a", setAlarm(time.Second))
		pass(2 * time.Second)
		if attempt, begun := attempts.Load(), works.Load(); attempt != 1 || begun != 0 {
			t.Errorf("O6: after a failed attempt (%d) its work has begun %d times", attempt, begun)
		}
		pass(time.Minute)
		if attempt, begun := attempts.Load(), works.Load(); attempt != 2 || begun != 1 {
			t.Errorf("O9: after %d attempts work has begun %d times, want once", attempt, begun)
		}
	})
}

// Proves O9.
func TestWorkIsCancelledByReset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		cause := make(chan error, 2)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "work", func(wctx context.Context) {
				<-wctx.Done()
				cause <- context.Cause(wctx)
				cause <- th.st.Do(context.Background(), func(ctx context.Context) error { return th.st.Storage().PutBytes(ctx, "k", nil) })
			})
		})
		synctest.Wait()
		f.call("a", func(*thing, context.Context) (any, error) { panic("reset") })
		for range 2 {
			if err := <-cause; !errors.Is(err, object.ErrReset) {
				t.Errorf("work of a former activation: %v", err)
			}
		}
	})
}

// Proves O10.
func TestCapOnLiveObjects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.MaxLive = 50
		f.open()
		defer f.close()
		for i := range 500 {
			f.must(fmt.Sprint(i), put("k", fmt.Sprint(i)))
			if i%10 == 0 {
				f.must("hot", nothing)
			}
			time.Sleep(time.Millisecond)
		}
		live := 0
		for i := range 500 {
			if in, _ := f.host.Inspect(context.Background(), f.id(fmt.Sprint(i))); in.Live {
				live++
			}
		}
		if live > 50 {
			t.Errorf("%d objects are in memory, the cap is 50", live)
		}
		for i := range 500 {
			if got := f.must(fmt.Sprint(i), get("k")); got != fmt.Sprint(i) {
				t.Fatalf("object %d holds %q", i, got)
			}
		}
	})
}

// Proves O10: also those that come after all others have left memory.
func TestIdleObjectsLeaveMemoryAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		for _, round := range []string{"first", "second", "third"} {
			f.must("a", put("k", round))
			pass(10 * time.Minute)
			if in, err := f.host.Inspect(context.Background(), f.id("a")); in.Live || err != nil {
				t.Errorf("O10: ten minutes after its %s turn the object is in memory, %v", round, err)
			}
		}
	})
}

// Proves O11. Case 25.
func TestOverload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 3, MailboxAge: 10 * time.Second})
		f.open()
		defer f.close()
		fired := false
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { fired = true; return nil })
		f.must("a", setAlarm(time.Second))
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
		synctest.Wait()
		for range 3 {
			wg.Go(func() { f.must("a", nothing) })
			synctest.Wait()
		}
		if _, err := f.call("a", nothing); !errors.Is(err, object.ErrOverloaded) || !object.Retryable(err) {
			t.Errorf("a call to a full mailbox: %v", err)
		}
		time.Sleep(2 * time.Second) // the alarm comes due, and is exempt
		close(gate)
		wg.Wait()
		synctest.Wait()
		if !fired {
			t.Error("overload shed an alarm")
		}

		gate = make(chan struct{})
		wg.Go(func() { f.must("b", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
		synctest.Wait()
		wg.Go(func() { f.must("b", nothing) })
		time.Sleep(11 * time.Second)
		if _, err := f.call("b", nothing); !errors.Is(err, object.ErrOverloaded) {
			t.Errorf("a call behind one that has waited too long: %v", err)
		}
		close(gate)
		wg.Wait()
	})
}

// Proves O11.
func TestCallWhoseContextEndsWhileItWaitsNeverRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := f.do.Call(ctx, f.host, "a", func(*thing, context.Context) (any, error) { t.Error("it ran"); return nil, nil })
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, object.ErrUnknown) {
			t.Errorf("a call that gave up: %v", err)
		}
		// A call with a turn that has begun has an unknown outcome.
		began := make(chan struct{})
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := f.do.Call(ctx, f.host, "a", func(*thing, context.Context) (any, error) { <-began; return nil, nil })
			if !errors.Is(err, object.ErrUnknown) {
				t.Errorf("a call that gave up in its turn: %v", err)
			}
		})
		synctest.Wait() // it waits in the mailbox, so its turn runs on another task
		close(gate)
		time.Sleep(2 * time.Second)
		close(began)
		wg.Wait()
	})
}

// Proves O14.
func TestShutdownInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				<-gate
				return nil, th.st.Storage().PutBytes(ctx, "k", []byte("v"))
			})
		})
		synctest.Wait()
		wg.Go(func() {
			if err := f.host.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
		synctest.Wait()
		if _, err := f.call("b", nothing); !errors.Is(err, object.ErrShutdown) {
			t.Errorf("a new call: %v", err)
		}
		close(gate)
		wg.Wait()
		<-f.host.Done()
		f.mem = f.mem.Crash(0)
		f.open()
		if got := f.must("a", get("k")); got != "v" {
			t.Errorf("the open turn's commit is lost: %q", got)
		}
		if !f.host.Store().Previous().Clean {
			t.Error("the store was not closed in order")
		}
		f.close()
	})
}

// Proves O14. Case OB13.
func TestShutdownUnderCodeThatIgnoresIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		gate := make(chan struct{})
		polite := make(chan error, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := f.call("stubborn", func(th *thing, ctx context.Context) (any, error) {
				<-gate
				return nil, th.st.Storage().PutBytes(ctx, "k", []byte("late"))
			})
			if err == nil {
				t.Error("a turn that outlived its host was acknowledged")
			}
		})
		wg.Go(func() {
			f.call("polite", func(th *thing, ctx context.Context) (any, error) {
				<-ctx.Done()
				polite <- context.Cause(ctx)
				return nil, ctx.Err()
			})
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := f.host.Shutdown(ctx)
		if err == nil || !strings.Contains(err.Error(), "thing/stubborn") || strings.Contains(err.Error(), "polite") {
			t.Errorf("Shutdown: %v", err)
		}
		if again := f.host.Shutdown(context.Background()); again != err {
			t.Errorf("a second Shutdown: %v", again)
		}
		if err := <-polite; !errors.Is(err, object.ErrShutdown) {
			t.Errorf("the cancelled turn's cause: %v", err)
		}
		close(gate)
		wg.Wait()
	})
}

// Proves O15. Case 27.
func TestFromOutside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		ctx := context.Background()
		for i := range 20 {
			f.must(fmt.Sprintf("n%02d", i), put("k", "v"))
		}
		f.must("n03", setAlarm(time.Hour))
		seen := map[string]bool{}
		after := ""
		for {
			page, err := f.host.Objects(ctx, "thing", object.ObjectsOptions{After: after, Limit: 7})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page {
				if seen[o.ID.Name] {
					t.Errorf("%s is listed twice", o.ID)
				}
				seen[o.ID.Name] = true
				if o.Alarm.IsZero() == (o.ID.Name == "n03") {
					t.Errorf("%s: alarm %v", o.ID, o.Alarm)
				}
				after = o.ID.Name
			}
			if len(page) < 7 {
				break
			}
		}
		if len(seen) != 20 {
			t.Errorf("%d objects are listed, want 20", len(seen))
		}
		// Delete fences the turn that runs, and removes marks too.
		f.must("n03", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Mark(ctx, "seen", nil, time.Hour) })
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := f.call("n03", func(th *thing, ctx context.Context) (any, error) {
				<-gate
				if _, _, err := th.st.Storage().Get(ctx, "k"); !errors.Is(err, object.ErrReset) {
					t.Errorf("O15: the fenced turn reads: %v", err)
				}
				return nil, th.st.Storage().PutBytes(ctx, "k", []byte("zombie"))
			})
			if !errors.Is(err, object.ErrReset) {
				t.Errorf("the fenced turn: %v", err)
			}
		})
		synctest.Wait()
		if err := f.host.Delete(ctx, f.id("n03")); err != nil {
			t.Fatal(err)
		}
		close(gate)
		wg.Wait()
		if in, err := f.host.Inspect(ctx, f.id("n03")); in.Exists || err != nil {
			t.Errorf("after Delete: %+v, %v", in, err)
		}
		f.must("n03", func(th *thing, ctx context.Context) (any, error) {
			if _, ok, err := th.st.Marked(ctx, "seen"); ok || err != nil {
				t.Errorf("a mark outlived its object: %v", err)
			}
			return nil, nil
		})
		if err := f.host.Store().Check(); err != nil {
			t.Error(err)
		}
	})
}

// An object that is deleted while its alarm's handler runs is gone, alarm and all,
// also when the handler then fails. Proves O15.
func TestDeleteWhileTheAlarmsHandlerRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		busy, ran := make(chan struct{}), 0
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error {
			ran++
			<-busy
			return errors.New("no")
		})
		f.must("a", put("k", "v"))
		f.must("a", setAlarm(time.Second))
		pass(2 * time.Second)
		if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
			t.Fatal(err)
		}
		close(busy)
		pass(time.Hour)
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		if in.Exists || in.Alarm != nil || len(in.DeadLetters) > 0 || ran != 1 || err != nil {
			t.Errorf("O15: after Delete and %d runs of the handler: %+v, alarm %+v, %v", ran, in, in.Alarm, err)
		}
		if err := f.host.Store().Check(); err != nil {
			t.Errorf("O15: the handler's end has left a part of it: %v", err)
		}
	})
}

// Proves J11's object side: events are part of the batch and outlive the object.
func TestEvents(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	ctx := context.Background()
	emit := func(kind string, end error) action {
		return func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(th.st.Emit(ctx, kind, 1), end)
		}
	}
	f.must("a", emit("one", nil))
	f.call("a", emit("lost", errors.New("no")))
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		return nil, errors.Join(th.st.Emit(ctx, "two", 2), th.st.Emit(ctx, "three", 3), th.st.Driver().Purge(ctx))
	})
	f.must("ab", emit("other", nil))
	events, err := f.host.Events(ctx, f.id("a"), 0, 100)
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "one two three" || err != nil {
		t.Errorf("events: %s, %v", got, err)
	}
	rest, err := f.host.Events(ctx, f.id("a"), events[0].Seq, 1)
	if err != nil || len(rest) != 1 || rest[0].Kind != "two" {
		t.Errorf("from a cursor: %v, %v", rest, err)
	}
	if in, _ := f.host.Inspect(ctx, f.id("a")); in.Exists {
		t.Error("a purged object exists")
	}
}

// Purge may be followed by Sync: the object is gone then, and the turn goes on.
func TestPurgeThenSync(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", put("k", "v"))
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		th.n = 1
		if err := errors.Join(th.st.Driver().Purge(ctx), th.st.Sync(ctx)); err != nil {
			return nil, err
		}
		if in, _ := f.host.Inspect(context.Background(), f.id("a")); in.Exists {
			t.Error("the object exists after Purge and Sync")
		}
		return nil, nil
	})
	if n := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 0 {
		t.Error("a purged object kept its instance")
	}
}

// Marks and events leave the store when their time is over.
func TestExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.EventRetention = time.Hour
		f.open()
		defer f.close()
		for i := range 600 {
			f.must(fmt.Sprint(i), func(th *thing, ctx context.Context) (any, error) {
				return nil, errors.Join(th.st.Mark(ctx, "m", nil, time.Hour), th.st.Emit(ctx, "e", 1))
			})
		}
		time.Sleep(2 * time.Hour)
		events, err := f.host.Events(context.Background(), f.id("7"), 0, 10)
		if len(events) != 0 || err != nil {
			t.Errorf("events after their time: %v, %v", events, err)
		}
		rows := 0
		it, err := f.mem.NewIter([]byte{0, 0, 4}, []byte{0, 2})
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			if k := it.Key()[2]; k == 4 || k == 5 || k == 6 {
				rows++
			}
		}
		it.Close()
		if rows != 0 {
			t.Errorf("%d rows of marks and events are left", rows)
		}
	})
}

// lateEnds is an Observer that lets all others go first when a turn of Do has ended and its caller does not know of it yet.
type lateEnds struct{ lateEnd }

type lateEnd struct{ op object.Operation }

func (lateEnds) Begin(ctx context.Context, op object.Operation) (context.Context, object.Observation) {
	return ctx, lateEnd{op}
}
func (lateEnd) TurnBegan() {}
func (e lateEnd) TurnEnded(error) {
	if e.op.Method == "work" {
		synctest.Wait()
	}
}
func (lateEnd) Ended(error) {}

// Proves O9: a Do whose turn fails after it wrote gets the error of the turn, although the reset that follows has ended its context.
func TestDoThatEndsItsOwnContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.Observer = lateEnds{}
		f.open()
		defer f.close()
		began, said := make(chan struct{}), make(chan error, 1)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "work", func(wctx context.Context) {
				<-began
				said <- th.st.Do(wctx, func(ctx context.Context) error {
					return errors.Join(th.st.Storage().Put(ctx, "k", "v"), errWrong)
				})
			})
		})
		f.must("a", func(*thing, context.Context) (any, error) {
			close(began)
			synctest.Wait() // until the Do waits in the mailbox, so that its turn is not that of its goroutine
			return nil, nil
		})
		if err := <-said; !errors.Is(err, errWrong) || errors.Is(err, object.ErrUnknown) || errors.Is(err, object.ErrReset) {
			t.Errorf("the error is %v", err)
		}
	})
}
