package object_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// slowDisk is an engine that can hold back its syncs, and can fail them.
type slowDisk struct {
	engine.Engine
	hold  atomic.Bool
	gate  chan struct{}
	fail  atomic.Bool
	syncs atomic.Int64
}

var errDisk = errors.New("the disk broke")

func newSlowDisk(e engine.Engine) *slowDisk { return &slowDisk{Engine: e, gate: make(chan struct{})} }

func (d *slowDisk) Sync() error {
	if d.hold.Load() {
		<-d.gate
	}
	if d.fail.Load() {
		return errDisk
	}
	d.syncs.Add(1)
	return d.Engine.Sync()
}

func (f *fixture) slow() *slowDisk {
	d := newSlowDisk(f.mem)
	f.options.Storage.Engine = d
	return d
}

// Proves O7.
func TestNoReplyBeforeTheCommitIsDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		defer f.close()
		f.must("a", nothing)
		d.hold.Store(true)
		var replied [4]atomic.Bool
		var wg sync.WaitGroup
		start := func(i int, name string, fn action) {
			wg.Go(func() { f.must(name, fn); replied[i].Store(true) })
			synctest.Wait()
		}
		start(0, "a", put("k", "v"))
		start(1, "a", get("k")) // the next turn runs, and wrote nothing itself
		start(2, "b", nothing)  // depends on nothing
		start(3, "c", func(th *thing, ctx context.Context) (any, error) {
			return f.do.Call(ctx, th.st, "a", get("k")) // passes the gate inside the store
		})
		for i, want := range []bool{false, false, true, false} {
			if replied[i].Load() != want {
				t.Errorf("call %d: replied %v, want %v", i, replied[i].Load(), want)
			}
		}
		started := false
		wg.Go(func() {
			f.must("w", func(th *thing, ctx context.Context) (any, error) {
				if err := th.st.Storage().PutBytes(ctx, "k", nil); err != nil {
					return nil, err
				}
				return nil, th.st.Go(ctx, "work", func(context.Context) { started = true })
			})
		})
		synctest.Wait()
		if started {
			t.Error("work began before its turn's commit was durable")
		}
		events := make(chan object.Event, 1)
		wg.Go(func() {
			f.must("e", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Emit(ctx, "hello", 1) })
		})
		wg.Go(func() {
			for e, err := range f.host.Watch(context.Background(), f.id("e"), 0) {
				if err == nil {
					events <- e
				}
				return
			}
		})
		synctest.Wait()
		if len(events) != 0 {
			t.Error("an event was told before it was durable")
		}
		d.hold.Store(false)
		close(d.gate)
		wg.Wait()
		synctest.Wait()
		if !started || len(events) != 1 {
			t.Errorf("after the sync: work %v, events %d", started, len(events))
		}
	})
}

// Proves S8.
func TestUnconfirmed(t *testing.T) { bubble(t, testUnconfirmed) }

func testUnconfirmed(t *testing.T) {
	f := newFixture(t).open()
	f.must("a", put("k", "1"))
	f.must("a", put("k", "2"), object.Unconfirmed())
	f.must("a", put("k", "3"), object.Unconfirmed())
	if f.mem.Unsynced() != 2 {
		t.Errorf("%d commits are not durable, want 2", f.mem.Unsynced())
	}
	f.crash()
	f.open()
	if got := f.must("a", get("k")); got != "1" {
		t.Errorf("after the crash: %q", got)
	}
	f.must("a", put("k", "4"), object.Unconfirmed())
	time.Sleep(2 * time.Second)
	if f.mem.Unsynced() != 0 {
		t.Error("an unconfirmed commit is still not durable after 2 s")
	}
	f.must("a", put("k", "5"), object.Unconfirmed())
	time.Sleep(2 * time.Second)
	if f.mem.Unsynced() != 0 {
		t.Error("S8: a later unconfirmed commit is still not durable after 2 s")
	}
	f.must("a", put("k", "2"), object.Unconfirmed())
	f.must("b", put("k", "x")) // confirmed: makes all before it durable
	f.crash()
	f.open()
	if got := f.must("a", get("k")); got != "2" {
		t.Errorf("an unconfirmed commit before a confirmed one was lost: %q", got)
	}
	f.close()
}

// Proves S8: a Do with Unconfirmed does not wait for the disk, and is durable after a second;
// one without waits. Do has no answer for an idempotency key.
func TestUnconfirmedDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.must("a", put("k", "1"))
		do := func(key, value string, opts ...object.CallOption) (err error) {
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				return "", th.st.Go(ctx, "work", func(ctx context.Context) {
					err = th.st.Do(ctx, func(ctx context.Context) error { return th.st.Storage().PutBytes(ctx, key, []byte(value)) }, opts...)
				})
			})
			synctest.Wait()
			return err
		}
		if err := do("k", "2", object.Unconfirmed()); err != nil || f.mem.Unsynced() != 1 {
			t.Errorf("S8: %d commits are not durable, want 1 (%v)", f.mem.Unsynced(), err)
		}
		time.Sleep(2 * time.Second)
		if f.mem.Unsynced() != 0 {
			t.Error("S8: an unconfirmed commit is still not durable after 2 s")
		}
		if err := do("k", "3"); err != nil || f.mem.Unsynced() != 0 {
			t.Errorf("S8: %d commits are not durable after a Do that waits (%v)", f.mem.Unsynced(), err)
		}
		if err := do("k", "4", object.Idempotent("once", 0)); err == nil || f.must("a", get("k")) != "3" {
			t.Errorf("Do took an idempotency key: %v", err)
		}
		f.close()
	})
}

// Proves O13.
func TestStorageErrorEndsTheHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		var fired atomic.Int64
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { fired.Add(1); return nil })
		f.must("a", put("k", "v"))
		f.must("b", setAlarm(time.Minute))
		d.fail.Store(true)
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			_ = th.st.Storage().PutBytes(ctx, "k", []byte("w"))
			_ = th.st.Sync(ctx) // the handler swallows the error
			return nil, nil
		})
		if !errors.Is(err, object.ErrStorage) || !errors.Is(err, errDisk) {
			t.Errorf("a swallowed storage error: %v", err)
		}
		d.fail.Store(false)
		for _, fn := range []action{nothing, put("k", "x"), get("k")} {
			if _, err := f.call("a", fn); !errors.Is(err, object.ErrStorage) {
				t.Errorf("a call after the error: %v", err)
			}
		}
		synctest.Wait()
		select {
		case <-f.host.Done():
		default:
			t.Error("Done is not closed")
		}
		if !errors.Is(f.host.Err(), object.ErrStorage) {
			t.Errorf("Err: %v", f.host.Err())
		}
		time.Sleep(time.Hour)
		if fired.Load() != 0 {
			t.Error("an alarm fired after the error")
		}
		if err := f.host.Shutdown(context.Background()); !errors.Is(err, object.ErrStorage) {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// Proves O13: calls that wait for the sync fail with it.
func TestWaitingCallsFailWithTheSync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		d.hold.Store(true)
		d.fail.Store(true)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := f.call("a", put("k", "v")); !errors.Is(err, object.ErrStorage) {
					t.Errorf("a call whose sync failed: %v", err)
				}
			})
		}
		synctest.Wait()
		close(d.gate)
		wg.Wait()
		f.host.Shutdown(context.Background())
	})
}

// Proves O16.
func TestIdempotencyKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		type answer struct{ N int }
		class := object.Define("counter2", func(ctx context.Context, st *object.State) (*thing, error) {
			th := &thing{st: st}
			_, err := st.Storage().GetInto(ctx, "n", &th.n)
			return th, err
		})
		add := object.Handle(class, "add", func(th *thing, ctx context.Context, n int) (answer, error) {
			if n < 0 {
				return answer{}, errors.New("negative")
			}
			th.n += n
			for range n / 100 * 2 {
				if err := th.st.Release(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return nil }); err != nil {
					return answer{}, err
				}
			}
			return answer{th.n}, th.st.Storage().Put(ctx, "n", th.n)
		})
		f.open(class)
		ctx := context.Background()
		call := func(n int, opts ...object.CallOption) int {
			t.Helper()
			a, err := add.Call(ctx, f.host, "x", n, opts...)
			if err != nil {
				t.Fatal(err)
			}
			return a.N
		}
		key := object.Idempotent("k", time.Hour)
		if _, err := add.Call(ctx, f.host, "x", -1, key); err == nil {
			t.Fatal("no error")
		}
		if a, b, c := call(5, key), call(7, key), call(1); a != 5 || b != 5 || c != 6 {
			t.Errorf("answers %d, %d, %d", a, b, c)
		}
		// Case: the reply was lost with the process.
		f.crash()
		f.open(class)
		if a := call(5, key); a != 5 {
			t.Errorf("after a crash the repeat got %d", a)
		}
		time.Sleep(time.Hour - time.Second)
		if a := call(5, key); a != 5 {
			t.Errorf("O16: just before its time the key gave %d", a)
		}
		time.Sleep(2 * time.Second) // its row is removed a little later
		if a := call(5, key); a != 11 {
			t.Errorf("O16: just after its time the key gave %d", a)
		}
		time.Sleep(30 * time.Minute) // the old row's expiry has passed, and spared the new one
		if a := call(5, key); a != 11 {
			t.Errorf("O16: a key that was used again gave %d half an hour later", a)
		}
		// A repeat while the first has lent its turn out, twice, waits for it.
		slow := object.Idempotent("slow", time.Hour)
		var wg sync.WaitGroup
		var got [2]int
		for i := range got {
			wg.Go(func() { got[i] = call(100, slow) })
			synctest.Wait()
		}
		wg.Wait()
		if got != [2]int{111, 111} {
			t.Errorf("the repeats got %v", got)
		}
		f.close()
	})
}

// Proves O12.
func TestRetryable(t *testing.T) {
	for err, want := range map[error]bool{
		object.ErrOverloaded: true, object.ErrReset: true, object.ErrNoSpace: true, object.ErrConstructor: true,
		object.ErrPanic: false, object.ErrUnknown: false, object.ErrStorage: false, errors.New("own"): false, object.ErrShutdown: false,
	} {
		if got := object.Retryable(errors.Join(err)); got != want {
			t.Errorf("Retryable(%v) = %v", err, got)
		}
	}
}
