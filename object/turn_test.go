package object_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O1.
func TestObjectExistsWhileItHasKeysOrAnAlarm(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	exists := func(name string) bool {
		t.Helper()
		in, err := f.host.Inspect(context.Background(), f.id(name))
		if err != nil {
			t.Fatal(err)
		}
		return in.Exists
	}
	f.must("a", nothing)
	if exists("a") {
		t.Error("an object that stored nothing exists")
	}
	f.must("a", put("k", "v"))
	f.must("b", setAlarm(time.Hour))
	if !exists("a") || !exists("b") {
		t.Error("an object with a key or an alarm does not exist")
	}
	f.must("a", func(th *thing, ctx context.Context) (any, error) { return th.st.Storage().Delete(ctx, "k") })
	f.must("b", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) })
	if exists("a") || exists("b") {
		t.Error("an object without keys and alarm exists")
	}
	f.must("a", put("k", "again"))
	if got := f.must("a", get("k")); got != "again" {
		t.Errorf("the new life holds %q", got)
	}
	if err := f.host.Store().Check(); err != nil {
		t.Error(err)
	}
}

// Proves O1.
func TestNames(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for _, name := range []string{"\x00", "a/b", "ü", strings.Repeat("x", 1024), "a\x00b", " ", "\xf4\x8f\xbf\xbf"} {
		f.must(name, put("k", name))
		if got := f.must(name, get("k")); got != name {
			t.Errorf("name %q holds %q", name, got)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 1025), "\xff", "a\xc0"} {
		if _, err := f.call(name, nothing); !errors.Is(err, object.ErrBadName) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if a, b := f.host.NewName(), f.host.NewName(); a == b || len(a) == 0 {
		t.Errorf("NewName: %q, %q", a, b)
	}
}

// Proves O2, O3.
func TestOneTurnAtATimeInArrivalOrder(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 50 {
				f.must("a", func(th *thing, ctx context.Context) (any, error) {
					if inside.Add(1) != 1 {
						t.Error("two turns of one object overlap")
					}
					th.n++ // the race detector sees an overlap too
					runtime.Gosched()
					inside.Add(-1)
					return nil, nil
				})
			}
		})
	}
	wg.Wait()
	if n := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 64*50 {
		t.Errorf("%v turns ran on one instance, want %d", n, 64*50)
	}
}

// Proves O3.
func TestArrivalOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		gate := make(chan struct{})
		var order []int
		go f.call("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil })
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				f.must("a", func(*thing, context.Context) (any, error) { order = append(order, i); return nil, nil })
			})
			synctest.Wait() // call i waits before call i+1 is made
		}
		close(gate)
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 100 {
			t.Errorf("turns ran in the order %v", order)
		}
	})
}

// Proves O4.
func TestConstructorRunsFirstAndCallsWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		release := make(chan struct{})
		var constructed atomic.Int32
		f.handleConstruct(func(ctx context.Context, th *thing) error {
			<-release
			constructed.Add(1)
			return th.st.Storage().PutBytes(ctx, "made", []byte("yes"))
		})
		f.open()
		defer f.close()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got := f.must("a", get("made")); got != "yes" {
					t.Errorf("a turn ran before the constructor: %q", got)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if constructed.Load() != 1 {
			t.Errorf("%d constructors ran", constructed.Load())
		}
	})
}

// Proves O4.
func TestFailingConstructor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		cause := errors.New("no luck")
		var runs int
		f.handleConstruct(func(ctx context.Context, th *thing) error {
			runs++
			if err := th.st.Storage().PutBytes(ctx, "k", []byte("half")); err != nil {
				return err
			}
			if runs == 2 {
				panic(cause)
			}
			if runs < 3 {
				return cause
			}
			return nil
		})
		f.open()
		defer f.close()
		for range 2 {
			_, err := f.call("a", nothing)
			if !errors.Is(err, object.ErrConstructor) || !errors.Is(err, cause) || !object.Retryable(err) {
				t.Errorf("call of an object whose constructor fails: %v", err)
			}
			if got := f.stored("a", "k"); got != "" {
				t.Errorf("a failed constructor left %q", got)
			}
			before := runs
			if _, err = f.call("a", nothing); !errors.Is(err, cause) || runs != before {
				t.Errorf("the next call at once ran the constructor again: %v", err)
			}
			time.Sleep(time.Second)
		}
		f.must("a", nothing)
	})
}

// Proves O4.
func TestConstructorLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		stuck, first := make(chan struct{}), true
		f.handleConstruct(func(ctx context.Context, th *thing) error {
			if !first {
				return nil
			}
			first = false
			<-stuck // ignores its context
			return th.st.Storage().PutBytes(context.WithoutCancel(ctx), "k", []byte("late"))
		})
		f.open()
		defer f.close()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := f.call("a", nothing); !errors.Is(err, object.ErrReset) && !errors.Is(err, object.ErrConstructor) {
				t.Errorf("the stuck call: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := f.call("a", nothing); !errors.Is(err, object.ErrConstructor) {
				t.Errorf("a call that waited: %v", err)
			}
		})
		time.Sleep(31 * time.Second)
		f.must("a", put("x", "1")) // a new activation serves while the old one is stuck
		close(stuck)
		wg.Wait()
		if got := f.stored("a", "k"); got != "" {
			t.Errorf("the stuck constructor stored %q", got)
		}
	})
}

// Proves O4.
func TestBlockConcurrencyWhile(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	var nest func(th *thing, ctx context.Context, depth int) error
	nest = func(th *thing, ctx context.Context, depth int) error {
		if depth == 0 {
			return nil
		}
		return th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error { return nest(th, ctx, depth-1) })
	}
	f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, nest(th, ctx, 64) })
	if _, err := f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, nest(th, ctx, 65) }); !errors.Is(err, object.ErrTooDeep) {
		t.Errorf("65 deep: %v", err)
	}
	f.must("b", func(th *thing, ctx context.Context) (any, error) { th.n = 7; return nil, nil })
	cause := errors.New("broken")
	_, err := f.call("b", func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error {
			if err := th.st.Storage().PutBytes(ctx, "k", []byte("v")); err != nil {
				return err
			}
			return cause
		})
	})
	if !errors.Is(err, cause) {
		t.Errorf("BlockConcurrencyWhile returned %v", err)
	}
	if n := f.must("b", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 0 {
		t.Error("an error in BlockConcurrencyWhile did not reset the activation")
	}
	if got := f.stored("b", "k"); got != "" {
		t.Errorf("it left %q", got)
	}
}

// Proves O5, O10.
func TestActivationReasons(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		reason := func(th *thing, _ context.Context) (any, error) { return th.st.Activation().Reason, nil }
		f.open()
		if got := f.must("a", reason); got != object.Fresh {
			t.Errorf("first activation: %v", got)
		}
		f.must("a", put("k", "v"))

		time.Sleep(5 * time.Minute)
		if in, _ := f.host.Inspect(context.Background(), f.id("a")); in.Live {
			t.Error("an idle object is still in memory")
		}
		if got := f.must("a", reason); got != object.Evicted {
			t.Errorf("after eviction: %v", got)
		}
		if got := f.must("a", get("k")); got != "v" {
			t.Errorf("eviction changed the stored value: %q", got)
		}

		f.close()
		f.open()
		if got := f.must("a", reason); got != object.Restarted {
			t.Errorf("after a restart in order: %v", got)
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().OpenExecution(ctx, nil) })
		f.crash()
		f.open()
		if got := f.must("a", reason); got != object.Crashed {
			t.Errorf("after a crash with an open execution: %v", got)
		}
		act := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.st.Activation(), nil }).(object.Activation)
		if act.Crashes != 1 || act.Opened.IsZero() {
			t.Errorf("crashed activation: %+v", act)
		}
		f.close()
	})
}

// Proves O5: a reset activation is not fresh, and Wake constructs again.
func TestReasonAfterReset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		reason := func(th *thing, _ context.Context) (any, error) { return th.st.Activation().Reason, nil }
		f.must("a", put("k", "v"))
		f.call("a", func(*thing, context.Context) (any, error) { panic("reset") })
		if got := f.must("a", reason); got != object.Evicted {
			t.Errorf("after a reset: %v", got)
		}
		synctest.Wait() // the turn ends after its answer, and the object is idle then
		runs := 0
		f.handleConstruct(func(context.Context, *thing) error { runs++; return nil })
		if err := f.host.Wake(context.Background(), f.id("a")); err != nil || runs != 1 {
			t.Errorf("Wake ran %d constructors: %v", runs, err)
		}
	})
}

// Proves O6.
func TestTurnIsOneCommit(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", put("k", "old"))
	f.must("a", func(th *thing, _ context.Context) (any, error) { th.n = 1; return nil, nil })
	cause := errors.New("refused")
	fail := func(end func() (any, error)) action {
		return func(th *thing, ctx context.Context) (any, error) {
			th.n = 2
			if err := errors.Join(th.st.Storage().PutBytes(ctx, "k", []byte("new")), th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour))); err != nil {
				return nil, err
			}
			return end()
		}
	}
	check := func(what string) {
		t.Helper()
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		if err != nil || in.Alarm != nil || len(in.Keys) != 1 || f.stored("a", in.Keys[0].Key) != "old" {
			t.Errorf("%s left %+v, %v", what, in, err)
		}
		if n := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 0 {
			t.Errorf("%s left memory that storage does not have: %v", what, n)
		}
	}
	if _, err := f.call("a", fail(func() (any, error) { return nil, cause })); err != cause {
		t.Errorf("the handler's error did not arrive unchanged: %v", err)
	}
	check("an error")
	_, err := f.call("a", fail(func() (any, error) { panic("boom") }))
	var pe *object.PanicError
	if !errors.Is(err, object.ErrPanic) || !errors.As(err, &pe) || pe.Value != "boom" || !strings.Contains(string(pe.Stack), "turn_test.go") {
		t.Errorf("the panic arrived as %v", err)
	}
	check("a panic")
	if _, err := f.call("a", func(th *thing, _ context.Context) (any, error) { th.n = 9; return nil, cause }); err != cause {
		t.Error(err)
	}
	if n := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 9 {
		t.Errorf("a failed turn that wrote nothing reset the activation: %v", n)
	}
}

// Proves O6.
func TestGoexitInHandler(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", nothing)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.call("a", func(th *thing, ctx context.Context) (any, error) {
			_ = th.st.Storage().PutBytes(ctx, "k", []byte("v"))
			runtime.Goexit()
			return nil, nil
		})
	}()
	<-done
	if got := f.must("a", get("k")); got != "" {
		t.Errorf("the turn left %q", got)
	}
}

// Proves O6.
func TestSyncCommitsInTheMiddle(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	cause := errors.New("late")
	_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
		if err := th.st.Storage().PutBytes(ctx, "first", []byte("1")); err != nil {
			return nil, err
		}
		if err := th.st.Sync(ctx); err != nil {
			return nil, err
		}
		if f.mem.Unsynced() != 0 {
			t.Error("Sync returned before its commit was durable")
		}
		if err := th.st.Storage().PutBytes(ctx, "second", []byte("2")); err != nil {
			return nil, err
		}
		return nil, cause
	})
	if err != cause {
		t.Fatal(err)
	}
	if f.stored("a", "first") != "1" || f.stored("a", "second") != "" {
		t.Errorf("stored: first %q, second %q", f.stored("a", "first"), f.stored("a", "second"))
	}
}

// Proves S1, S2.
func TestStorageOutsideOfATurn(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	var kept context.Context
	var st *object.State
	f.must("a", func(th *thing, ctx context.Context) (any, error) { kept, st = ctx, th.st; return nil, nil })
	for _, ctx := range []context.Context{kept, context.Background()} {
		if _, _, err := st.Storage().Get(ctx, "k"); !errors.Is(err, object.ErrNoTurn) {
			t.Errorf("reading outside of a turn: %v", err)
		}
		if err := st.SetAlarm(ctx, st.Now()); !errors.Is(err, object.ErrNoTurn) {
			t.Errorf("setting an alarm outside of a turn: %v", err)
		}
	}
	_, err := f.call("b", func(th *thing, ctx context.Context) (any, error) {
		return nil, st.Storage().PutBytes(ctx, "k", []byte("v")) // another object's storage
	})
	if !errors.Is(err, object.ErrNoTurn) {
		t.Errorf("writing to another object: %v", err)
	}
}

// Proves J1: mistakes in definitions are errors of Open.
func TestDefinitionMistakes(t *testing.T) {
	construct := func(context.Context, *object.State) (*thing, error) { return &thing{}, nil }
	bad := object.Define("bad", construct)
	object.Handle(bad, "m", func(*thing, context.Context, int) (int, error) { return 0, nil })
	object.Handle(bad, "m", func(*thing, context.Context, int) (int, error) { return 0, nil })
	for name, defs := range map[string][]object.Definition{
		"no name":        {object.Define("", construct)},
		"slash":          {object.Define("a/b", construct)},
		"no constructor": {object.Define[thing]("x", nil)},
		"method twice":   {bad},
		"class twice":    {object.Define("x", construct), object.Define("x", construct)},
		"negative":       {object.Define("x", construct, object.ClassOptions{MailboxLimit: -1})},
	} {
		dir := t.TempDir()
		h, err := object.Open(object.Options{Dir: dir}, defs...)
		if err == nil {
			h.Shutdown(context.Background())
			t.Errorf("%s: Open did not complain", name)
		}
	}
	if _, err := object.Open(object.Options{}); err == nil {
		t.Error("Open without a directory did not complain")
	}
}

// Proves J1: Open tells of every mistake of every definition.
func TestAllMistakesAreTold(t *testing.T) {
	construct := func(context.Context, *object.State) (*thing, error) { return &thing{}, nil }
	handle := func(*thing, context.Context, int) (int, error) { return 0, nil }
	bad := object.Define[thing]("bad/name", nil, object.ClassOptions{MailboxLimit: -1}, object.ClassOptions{})
	object.Handle(bad, "m", handle)
	object.Handle(bad, "m", handle)
	object.Handle(bad, "", handle)
	object.Handle[thing, int, int](bad, "n", nil)
	other := object.Define("other", construct, object.ClassOptions{BlockLimit: -1})
	twice := object.Define("twice", construct)
	_, err := object.Open(object.Options{Dir: t.TempDir()}, bad, other, nil, twice, twice)
	if err == nil {
		t.Fatal("Open did not complain")
	}
	for _, want := range []string{
		`"bad/name": class name "bad/name" holds`, `"bad/name": constructor is nil`, `"bad/name": more than one ClassOptions`, `"bad/name": MailboxLimit`,
		`"bad/name": method "m" is defined twice`, `"bad/name": a method has no name`, `"bad/name": method "n" has no function`,
		`"other": BlockLimit`, "definition 3 of 5 is nil", `"twice" is defined twice`,
	} {
		if n := strings.Count(err.Error(), want); n != 1 {
			t.Errorf("the error has %q %d times, want once:\n%v", want, n, err)
		}
	}
}

func TestUnknownClassAndMethod(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	other := object.Define("other", func(context.Context, *object.State) (*thing, error) { return &thing{}, nil })
	m := object.Handle(other, "m", func(*thing, context.Context, int) (int, error) { return 0, nil })
	if _, err := m.Call(context.Background(), f.host, "x", 1); !errors.Is(err, object.ErrUnknownClass) {
		t.Error(err)
	}
	if _, err := f.host.CallBytes(context.Background(), "thing", "x", "nope", nil); !errors.Is(err, object.ErrUnknownMethod) {
		t.Error(err)
	}
}

func TestCallBytes(t *testing.T) {
	f := newFixture(t)
	adder := object.Define("adder", func(context.Context, *object.State) (*thing, error) { return &thing{}, nil })
	object.Handle(adder, "add", func(_ *thing, _ context.Context, a [2]int) (int, error) { return a[0] + a[1], nil })
	f.open(adder)
	defer f.close()
	out, err := f.host.CallBytes(context.Background(), "adder", "x", "add", []byte("[2,3]"))
	if string(out) != "5" || err != nil {
		t.Errorf("CallBytes: %s, %v", out, err)
	}
	if _, err := f.host.CallBytes(context.Background(), "adder", "x", "add", []byte("{")); !errors.Is(err, object.ErrBadArgument) || !strings.Contains(err.Error(), "adder/x: object: cannot decode the argument of add") {
		t.Errorf("bad argument: %v", err)
	}
}

// Two hosts in one process do not know of each other.
func TestTwoHosts(t *testing.T) {
	f, g := newFixture(t), newFixture(t)
	g.class, g.do = f.class, f.do // one class, two hosts
	f.open()
	g.open()
	f.must("a", put("k", "f"))
	if got := g.must("a", get("k")); got != "" {
		t.Errorf("the other host sees %q", got)
	}
	f.close()
	g.must("a", put("k", "g"))
	g.close()
}

// Many objects with alarms live in one host, and idle ones own no goroutine: 10,000, and 100,000 in scripts/prove.
//
// Proves O10.
func TestManyObjects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 10_000
		if prove.Long() {
			n = 100_000
		}
		f := newFixture(t)
		f.options.MaxLive = n / 2
		f.open()
		defer f.close()
		var fired atomic.Int64
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { fired.Add(1); return nil })
		for i := range n {
			if _, err := f.call(fmt.Sprint(i), setAlarm(24*time.Hour), object.Unconfirmed()); err != nil {
				t.Fatal(err)
			}
		}
		if got := runtime.NumGoroutine(); got > 100 {
			t.Errorf("%d goroutines for idle objects", got)
		}
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		if fired.Load() != int64(n) {
			t.Errorf("%d of %d alarms fired", fired.Load(), n)
		}
	})
}
