package object_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// An alarm that another turn sets while the handler of an alarm is lent out does not end
// with the handler's alarm. Proves A4 and A5.
func TestAlarmSetWhileTheHandlerHasLentItsTurn(t *testing.T) {
	for _, result := range []error{nil, errors.New("no")} {
		t.Run(fmt.Sprint(result), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t).open()
				defer f.close()
				outside, fired := make(chan struct{}), 0
				f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
					if fired++; fired > 1 {
						return nil
					}
					if err := th.st.Release(ctx, func(context.Context) error { <-outside; return nil }); err != nil {
						return err
					}
					return result
				})
				f.must("a", setAlarm(time.Second))
				pass(2 * time.Second)
				f.must("a", setAlarm(time.Hour))
				close(outside)
				synctest.Wait()
				in, err := f.host.Inspect(context.Background(), f.id("a"))
				if err != nil || in.Alarm == nil || in.Alarm.Attempts != 0 || time.Until(in.Alarm.Due) != time.Hour {
					t.Fatalf("the alarm is %+v, %v, want it in an hour", in.Alarm, err)
				}
				pass(2 * time.Hour)
				if fired != 2 {
					t.Errorf("fired %d times, want 2", fired)
				}
			})
		})
	}
}

// An alarm that the handler set and committed with Sync stays when the handler
// then fails: it replaces the retries. Proves A5.
func TestAlarmSyncedByAHandlerThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			if err := th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)); err != nil {
				return err
			}
			return errors.Join(th.st.Sync(ctx), errors.New("no"))
		})
		f.must("a", setAlarm(time.Second))
		pass(2 * time.Second)
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		if err != nil || in.Alarm == nil || in.Alarm.Attempts != 0 || time.Until(in.Alarm.Due) < 50*time.Minute {
			t.Errorf("the alarm is %+v, %v, want the one that the handler set", in.Alarm, err)
		}
	})
}

// An activation is reset while its turn is lent out. That turn ends alone: it touches
// neither the turn nor the memory of the next activation. Proves O3.
func TestFormerTurnLeavesTheNextAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		outside, inside := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
				_ = th.st.Release(ctx, func(context.Context) error { <-outside; return nil })
				panic("late")
			})
			if !errors.Is(err, object.ErrPanic) {
				t.Errorf("the former turn: %v", err)
			}
		})
		synctest.Wait()
		f.call("a", func(*thing, context.Context) (any, error) { panic("reset") })
		f.must("a", func(th *thing, context context.Context) (any, error) { th.n = 7; return nil, nil })
		wg.Go(func() {
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				<-inside
				return nil, th.st.Storage().PutBytes(ctx, "k", []byte("v"))
			})
		})
		synctest.Wait()
		close(outside)
		synctest.Wait()
		close(inside)
		wg.Wait()
		if n := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 7 {
			t.Errorf("memory of the next activation is %v, want 7", n)
		}
	})
}

// An activation holds its first reply back until the commits of an earlier activation are
// durable. Proves O7.
func TestGateAfterEviction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.MaxLive = 1
		constructed := 0
		f.handleConstruct(func(ctx context.Context, th *thing) error {
			if th.st.Name() == "a" {
				constructed++
			}
			return nil
		})
		f.open()
		f.must("a", put("k", "v"), object.Unconfirmed())
		synctest.Wait()      // until no goroutine serves a
		f.must("b", nothing) // evicts a
		if got := f.must("a", get("k")); got != "v" || constructed != 2 {
			t.Fatalf("read %q after %d activations, want v after 2", got, constructed)
		}
		f.crash()
		f.open()
		defer f.close()
		if got := f.stored("a", "k"); got != "v" {
			t.Errorf("after a crash the store holds %q, but v was told", got)
		}
	})
}

// breaking is an engine that fails in Apply from some time on.
type breaking struct {
	*memstore.Store
	left   atomic.Int64 // batches that are still taken
	closed atomic.Int64
}

var errBroken = errors.New("broken")

func (b *breaking) Apply(repr []byte) error {
	if b.left.Add(-1) < 0 {
		return errBroken
	}
	return b.Store.Apply(repr)
}

func (b *breaking) Close() error {
	b.closed.Add(1)
	return b.Store.Close()
}

// After an error of the store watchers are told, and Shutdown still releases the
// store. Proves O13 and O14.
func TestStorageErrorEndsWatchAndReleasesTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		e := &breaking{Store: memstore.New()}
		e.left.Store(1000)
		f.options.Storage.Engine = e
		f.open()
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, err := range f.host.Watch(context.Background(), f.id("a"), 0) {
				if !errors.Is(err, object.ErrStorage) {
					t.Errorf("watch ends with %v", err)
				}
			}
		})
		synctest.Wait()
		e.left.Store(0)
		if _, err := f.call("a", put("k", "v")); !errors.Is(err, object.ErrStorage) {
			t.Error(err)
		}
		wg.Wait()
		if err := f.host.Shutdown(context.Background()); !errors.Is(err, object.ErrStorage) {
			t.Errorf("Shutdown: %v", err)
		}
		if e.closed.Load() == 0 {
			t.Error("the store of a failed host is not released by Shutdown")
		}
	})
}

// A store that fails while the host is opened is an error of Open. Proves O13.
func TestStoreFailsDuringOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { f.mem = f.mem.Crash(1000); return nil })
		f.must("a", setAlarm(time.Second))
		pass(2 * time.Second)
		survives := f.mem // with the row of a flight
		if err := f.host.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		for n := range int64(4) {
			e := &breaking{Store: survives.Crash(0)}
			e.left.Store(n)
			o := f.options
			o.Storage.Engine, o.Storage.Shards = e, 2
			h, err := object.Open(o, f.class)
			if err == nil {
				synctest.Wait()
				h.Shutdown(ended())
			} else if !errors.Is(err, object.ErrStorage) {
				t.Errorf("Open when batch %d fails: %v", n, err)
			}
			synctest.Wait()
		}
	})
}

// A caller may leave while the handler runs. It then reads no field that the turn still
// writes; the race detector would report that. Proves O11.
func TestCallerLeavesWhileTheHandlerRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				_, err := f.do.Call(ctx, f.host, fmt.Sprint(i), func(_ *thing, ctx context.Context) (any, error) {
					<-ctx.Done()
					return nil, nil
				})
				if err != nil && !errors.Is(err, object.ErrUnknown) {
					t.Errorf("the caller that left: %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

// Release cannot let others into a constructor or a block. Proves O4.
func TestNoReleaseInABlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		release := func(th *thing, ctx context.Context) error {
			return th.st.Release(ctx, func(context.Context) error { t.Error("the turn was lent out"); return nil })
		}
		if _, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error { return release(th, ctx) })
		}); err == nil {
			t.Error("Release in BlockConcurrencyWhile succeeds")
		}
		f.handleConstruct(func(ctx context.Context, th *thing) error { return release(th, ctx) })
		if _, err := f.call("b", nothing); !errors.Is(err, object.ErrConstructor) {
			t.Errorf("Release in a constructor: %v", err)
		}
	})
}

// A block that fails inside a transaction fails the call with its own error.
// Proves O4 and S6.
func TestBlockFailsInATransaction(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	no := errors.New("no")
	_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
		if err := errors.Join(
			th.st.Storage().PutBytes(ctx, "large", []byte(strings.Repeat("x", 128<<10))),
			th.st.Emit(ctx, "kind", nil),
		); err != nil {
			return nil, err
		}
		return nil, th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
			return th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return no })
		})
	})
	if !errors.Is(err, no) || errors.Is(err, object.ErrPanic) {
		t.Errorf("the call returned %v", err)
	}
}

// An alarm is tried again in this process if its handler could not be run, or its failure
// could not be stored. Proves A7 and A8.
func TestAlarmIsNotForgotten(t *testing.T) {
	limit := object.ClassOptions{BlockLimit: time.Minute}
	stuck := func(th *thing, ctx context.Context) error {
		return th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	}
	for what, fail := range map[string]func(th *thing, ctx context.Context) error{
		"no space":  func(*thing, context.Context) error { return object.ErrNoSpace },
		"timeout":   stuck,
		"goroutine": func(*thing, context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t, limit).open()
				defer f.close()
				attempts, failed := 0, time.Now()
				f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
					if attempts++; attempts == 1 {
						failed = time.Now()
						return fail(th, ctx)
					}
					if waited := time.Since(failed); what == "no space" && waited != time.Second {
						t.Errorf("the next attempt came after %v, want a second", waited)
					}
					if want := map[string]int{"no space": 1, "timeout": 2, "goroutine": 2}[what]; info.Attempt != want {
						t.Errorf("attempt %d, want %d", info.Attempt, want)
					}
					return nil
				})
				f.must("a", setAlarm(time.Second))
				pass(10 * time.Minute)
				if attempts != 2 {
					t.Errorf("the alarm was tried %d times, want 2", attempts)
				}
			})
		})
	}
}

// The hook of a dead letter runs once the letter is durable. Proves O7.
func TestDeadLetterHookWaitsForTheSync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		told := 0
		f := newFixture(t, object.ClassOptions{OnDeadLetter: func(context.Context, object.DeadLetter) { told++ }})
		d := f.slow()
		f.open()
		defer f.close()
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error {
			d.hold.Store(true)
			return object.Permanent(errors.New("no"))
		})
		f.must("a", setAlarm(time.Second))
		pass(time.Minute)
		if told != 0 {
			t.Error("the hook ran before the dead letter was durable")
		}
		d.hold.Store(false)
		close(d.gate)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times, want once", told)
		}
	})
}

// An alarm is compared by the wall clock alone. Proves A3 and A9.
func TestAlarmTimesAreOfTheWallClock(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	at := f.must("a", func(th *thing, ctx context.Context) (any, error) {
		if err := th.st.SetAlarm(ctx, time.Now().Add(time.Hour)); err != nil {
			return nil, err
		}
		at, _, err := th.st.Alarm(ctx)
		return at, err
	})
	if text := at.(time.Time).String(); strings.Contains(text, " m=") {
		t.Errorf("the alarm is kept at %s, with a monotonic part", text)
	}
}

// Calls that their callers have left do not count as waiting. Proves O11.
func TestAbandonedCallsDoNotOverload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 2}).open()
		defer f.close()
		finish := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { <-finish; return nil, nil }) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		for range 2 {
			wg.Go(func() {
				if _, err := f.do.Call(ctx, f.host, "a", nothing); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		time.Sleep(time.Hour) // beyond MailboxAge
		for range 2 {
			wg.Go(func() { f.must("a", nothing) })
		}
		synctest.Wait()
		if _, err := f.call("a", nothing); !errors.Is(err, object.ErrOverloaded) {
			t.Errorf("a third call that waits: %v", err)
		}
		close(finish)
		wg.Wait()
	})
}

// A program that inspects objects during a shutdown gets an answer or an error, and
// Shutdown closes the store in order. Proves O14.
func TestLookingWhileShuttingDown(t *testing.T) {
	for range 5 {
		h, err := object.Open(object.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}, Counters)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		for i := range 20 {
			if _, err := Add.Call(ctx, h, fmt.Sprint(i), 1); err != nil {
				t.Fatal(err)
			}
		}
		looks := []func() error{
			func() error { _, err := h.Objects(ctx, "counter", object.ObjectsOptions{Limit: 100}); return err },
			func() error { _, err := h.Inspect(ctx, Counters.ID("1")); return err },
			func() error { _, err := h.Events(ctx, Counters.ID("1"), 0, 10); return err },
			func() error {
				_, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
				return err
			},
			func() error { _, err := h.Parked(); return err },
		}
		var wg sync.WaitGroup
		var began atomic.Int32
		ready := make(chan struct{})
		for _, look := range looks {
			wg.Go(func() {
				for n := 0; ; n++ {
					if err := look(); err != nil {
						if !errors.Is(err, object.ErrShutdown) {
							t.Errorf("a look during shutdown: %v", err)
						}
						return
					}
					if n == 0 && int(began.Add(1)) == len(looks) {
						close(ready)
					}
				}
			})
		}
		<-ready
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		wg.Wait()
	}
}

// A work calls another object, and the activation of the work ends meanwhile, for any
// reason. The outcome of the call is unknown, so its error is not retryable. Proves O12.
func TestCallCutOffByAResetIsNotRetryable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		called, finish, got := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "call", func(ctx context.Context) {
				_, err := f.do.Call(ctx, th.st, "b", func(th *thing, ctx context.Context) (any, error) {
					close(called)
					<-finish
					return put("k", "v")(th, ctx)
				})
				got <- err
			})
		})
		<-called
		full := func(th *thing, ctx context.Context) (any, error) {
			_, err := put("k", "v")(th, ctx)
			return nil, errors.Join(err, object.ErrNoSpace)
		}
		if _, err := f.call("a", full); !errors.Is(err, object.ErrNoSpace) {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, object.ErrUnknown) || object.Retryable(err) {
			t.Errorf("the call ended with %v, retryable %t", err, object.Retryable(err))
		}
		close(finish)
		synctest.Wait()
		if f.stored("b", "k") != "v" {
			t.Error("the call did not commit")
		}
	})
}
