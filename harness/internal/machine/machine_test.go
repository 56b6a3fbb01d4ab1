package machine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/seam"
)

// A task that ignores its death costs its goroutine, and nothing else does.
func TestMain(m *testing.M) {
	leaks.Main(m, goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/harness/internal/machine.(*Machine).abandon"))
}

// start makes a machine with one process, and ends both with the test.
func start(t *testing.T, cfg machine.Config) (*machine.Machine, *machine.Process) {
	crew := &machine.Crew{}
	cfg.Crew = crew
	m := machine.New(cfg)
	t.Cleanup(func() { m.Close(); crew.Close() })
	return m, m.Start(1)
}

func TestTimersFireInOrder(t *testing.T) {
	m, p := start(t, machine.Config{})
	var got []string
	add := func(d time.Duration, name string) seam.Timer {
		return p.AfterFunc(d, func() { got = append(got, fmt.Sprintf("%s@%v", name, p.Now().Sub(machine.Epoch))) })
	}
	add(2*time.Second, "c")
	add(time.Second, "a")
	add(time.Second, "b")
	stopped := add(time.Second, "stopped")
	add(-time.Hour, "past")
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop must report true once")
	}
	if out := m.Drive(machine.Epoch.Add(3*time.Second), nil); out != machine.Idle {
		t.Fatalf("outcome %v", out)
	}
	if want := []string{"past@0s", "a@1s", "b@1s", "c@2s"}; !slices.Equal(got, want) {
		t.Errorf("fired %v, want %v", got, want)
	}
	if at := m.Now().Sub(machine.Epoch); at != 3*time.Second {
		t.Errorf("time stands at %v", at)
	}
}

func TestWaitEndsByChannelOrContext(t *testing.T) {
	m, p := start(t, machine.Config{})
	seams := p.Seams()
	cause := errors.New("late")
	ready := make(chan struct{}, 1)
	var got []error
	p.Go("by context", func() {
		ctx, cancel := seams.WithDeadline(context.Background(), p.Now().Add(time.Second), cause)
		defer cancel()
		got = append(got, p.Wait(ctx, make(chan struct{})))
	})
	p.Go("by channel", func() { got = append(got, p.Wait(context.Background(), ready)) })
	p.Go("sleeper", func() {
		got = append(got, seams.Sleep(context.Background(), 2*time.Second))
		ready <- struct{}{}
	})
	m.Drive(machine.Epoch.Add(time.Minute), nil)
	if want := []error{cause, nil, nil}; !slices.EqualFunc(got, want, errors.Is) {
		t.Errorf("waits came to %v, want %v", got, want)
	}
}

// A schedule is a function of the seed.
func TestSeedDecidesOrder(t *testing.T) {
	run := func(seed uint64) (order string) {
		m, p := start(t, machine.Config{Seed: seed, OnPoint: func(*machine.Process, seam.Point) bool { return false }})
		for i := range 6 {
			p.Go("", func() {
				for range 3 {
					p.At(seam.Point{})
					order += fmt.Sprint(i)
				}
			})
		}
		m.Drive(machine.Epoch, nil)
		return order
	}
	if a, b := run(0), "000111222333444555"; a != b {
		t.Errorf("seed 0 ran %s, want first come, first served", a)
	}
	if a, b := run(7), run(7); a != b {
		t.Errorf("seed 7 ran %s, then %s", a, b)
	}
	if a, b := run(7), run(8); a == b {
		t.Errorf("seeds 7 and 8 ran the same: %s", a)
	}
}

// Nothing that a dead process does after its death reaches the outside, even if
// its code recovers from every panic.
func TestDeathEndsEveryTask(t *testing.T) {
	var effects []string
	m, p := start(t, machine.Config{OnPoint: func(_ *machine.Process, at seam.Point) bool { return at.Name == "die" }})
	effect := func(name string) {
		p.Live()
		effects = append(effects, name)
	}
	stubborn := func(f func()) {
		defer func() { _ = recover() }()
		f()
	}
	p.Go("parked", func() {
		defer stubborn(func() { effect("deferred") })
		_ = p.Wait(context.Background(), nil)
		effect("after wait")
	})
	p.Go("recovering", func() {
		stubborn(func() { _ = p.Wait(context.Background(), nil) })
		stubborn(func() { p.Go("child", func() { effect("child") }) })
		stubborn(func() { effect("recovered") })
	})
	p.AfterFunc(time.Second, func() { effect("timer") })
	p.Go("dying", func() {
		effect("before")
		p.At(seam.Point{Name: "die"})
		effect("after")
	})
	p.Go("never run", func() { effect("never") })
	if out := m.Drive(machine.Epoch.Add(time.Minute), nil); out != machine.Died {
		t.Fatalf("outcome %v", out)
	}
	m.Drive(machine.Epoch.Add(time.Minute), nil)
	if !slices.Equal(effects, []string{"before"}) {
		t.Errorf("effects %v", effects)
	}
	if m.Failure() != nil {
		t.Error(m.Failure())
	}
}

func TestPanicInTaskIsAFailure(t *testing.T) {
	m, p := start(t, machine.Config{})
	p.Go("careless", func() { panic("boom") })
	if out := m.Drive(machine.Epoch, nil); out != machine.Failed {
		t.Fatalf("outcome %v", out)
	}
	if err := m.Failure(); !strings.Contains(err.Error(), `task "careless" panicked: boom`) {
		t.Error(err)
	}
}

func TestEndlessLoopIsAFailure(t *testing.T) {
	m, p := start(t, machine.Config{})
	ready := make(chan struct{})
	close(ready)
	var again func()
	again = func() { p.Go("again", again) }
	again()
	if out := m.Drive(machine.Epoch.Add(time.Hour), nil); out != machine.Failed {
		t.Fatalf("outcome %v", out)
	}
}

// A task that the simulation cannot see waiting is named, with the remedy.
func TestWatchdogNamesTheTask(t *testing.T) {
	m, p := start(t, machine.Config{})
	raw := make(chan struct{})
	p.Go("stuck one", func() { <-raw })
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Drive(machine.Epoch, nil)
	}()
	err := m.Crew().Watch(20*time.Millisecond, done)
	close(raw)
	<-done
	if err == nil || !strings.Contains(err.Error(), `task "stuck one"`) || !strings.Contains(err.Error(), "Executor.Wait") ||
		!strings.Contains(err.Error(), "machine_test.go") {
		t.Errorf("watchdog said: %v", err)
	}
}

func BenchmarkTask(b *testing.B) {
	crew := &machine.Crew{}
	m := machine.New(machine.Config{Crew: crew})
	p := m.Start(1)
	for range b.N {
		p.Go("", func() { p.Now() })
		m.Drive(machine.Epoch, nil)
	}
	crew.Close()
}

func BenchmarkSwitch(b *testing.B) {
	crew := &machine.Crew{}
	m := machine.New(machine.Config{Crew: crew})
	p := m.Start(1)
	ch := make(chan struct{}, 1)
	p.Go("", func() {
		for range b.N {
			_ = p.Wait(context.Background(), ch)
		}
	})
	m.Drive(machine.Epoch, func() bool {
		select {
		case ch <- struct{}{}:
		default:
		}
		return false
	})
	m.Close()
	crew.Close()
}
