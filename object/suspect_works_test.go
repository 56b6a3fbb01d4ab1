package object_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// suspectWorks are objects that begin an execution in their constructor, as a job type
// does with an execution that earlier processes have left open. They hold the work back
// if its suspicion says so.
type suspectWorks struct {
	*fixture
	works map[string]*object.Routine
	known map[string]object.Suspicion
	ran   map[string][]time.Duration // since the opening, with the end of the context
	work  func(ctx context.Context)
}

// setWork sets the work that begins from now on.
func (w *suspectWorks) setWork(work func(ctx context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work = work
}

// cutOffWorks is a host with objects that each have an execution cut off by two crashes.
func cutOffWorks(t *testing.T, names ...string) *suspectWorks {
	w := &suspectWorks{fixture: newFixture(t, object.ClassOptions{IdleAfter: 100 * time.Hour})}
	begin := func(ctx context.Context, th *thing) error {
		name, d := th.st.Name(), th.st.Driver()
		if th.st.Activation().Reason == object.Fresh {
			return d.OpenExecution(ctx, nil)
		}
		s := d.Suspicion("run")
		work := new(object.Routine)
		w.mu.Lock()
		w.known[name], w.works[name] = s, work
		w.mu.Unlock()
		fn := func(ctx context.Context) {
			w.mu.Lock()
			w.ran[name] = append(w.ran[name], time.Since(d.OpenedAt()))
			work := w.work
			w.mu.Unlock()
			work(ctx)
		}
		if s.Held(int(th.st.Activation().Crashes), d.Epoch()-1) {
			return d.StartSuspect(ctx, work, "run", "work", fn)
		}
		return d.Start(ctx, work, "work", fn)
	}
	reset := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.works, w.known, w.ran = map[string]*object.Routine{}, map[string]object.Suspicion{}, map[string][]time.Duration{}
	}
	reset()
	w.setWork(func(ctx context.Context) { <-ctx.Done() })
	w.handleConstruct(begin)
	w.open()
	for _, name := range names {
		w.must(name, nothing)
	}
	for range 2 {
		pass(time.Second)
		survives := w.mem.Crash(0)
		_ = w.host.Shutdown(ended())
		w.mem = survives
		reset()
		w.open()
		synctest.Wait()
	}
	return w
}

// ranAt fails the test unless the work of an object ran at these times.
func (w *suspectWorks) ranAt(step, name string, want ...time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.ran[name]
	if len(got) != len(want) || len(got) == 1 && got[0] != want[0] {
		w.t.Errorf("R4: %s: the work of %s ran at %v, want %v", step, name, got, want)
	}
}

// Proves R4, A8: a work that two crashes have cut off is held back for three seconds, and
// reported. Its suspicion says so from the start until the work has ended.
func TestSuspectWorkIsHeldBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := cutOffWorks(t, "a")
		defer w.close()
		s := w.known["a"]
		if !s.Held(2, w.host.Epoch()-1) || s.Held(1, w.host.Epoch()-1) || s.Charges != 0 || s.Tried || s.Cleared != 0 {
			t.Errorf("R4: after two crashes its suspicion is %+v", s)
		}
		w.setWork(func(context.Context) {})
		pass(3*time.Second - 1)
		w.ranAt("before its time", "a")
		wantValues(t, w.fixture, map[string]float64{"holdfast_busy": 1})
		pass(1)
		w.ranAt("at its time", "a", 3*time.Second)
		if got := w.actions(); got["held back"] != 1 || got["tried alone"] != 1 || len(got) != 2 {
			t.Errorf("R6: the report tells %v", got)
		}
		wantValues(t, w.fixture, map[string]float64{"holdfast_busy": 0})
		if in, err := w.host.Inspect(context.Background(), w.id("a")); err != nil || !in.Live {
			t.Errorf("%+v, %v", in, err)
		}
	})
}

// Proves R4, O9: a work that is held back begins at once when it is cancelled, with a
// context that has ended. It never begins when its activation or the host ends.
func TestSuspectWorkThatEndsBefore(t *testing.T) {
	boom := errors.New("boom")
	for how, begins := range map[string]bool{"cancelled": true, "reset": false, "deleted": false, "shutdown": false} {
		bubble(t, func(t *testing.T) {
			w := cutOffWorks(t, "a", "b")
			var cause error
			w.setWork(func(ctx context.Context) {
				select {
				case <-ctx.Done():
					cause = context.Cause(ctx)
				default:
				}
			})
			pass(time.Second)
			var want []time.Duration
			if begins {
				want = []time.Duration{time.Second}
			}
			switch how {
			case "cancelled":
				w.works["a"].Cancel(boom)
				w.works["a"].Cancel(errors.New("later"))
			case "reset":
				w.handleConstruct(nil)
				_, _ = w.call("a", func(*thing, context.Context) (any, error) { panic("boom") })
			case "deleted":
				if err := w.host.Delete(context.Background(), w.id("a")); err != nil {
					t.Error(err)
				}
			case "shutdown":
				began := time.Now()
				w.close()
				if took := time.Since(began); took != 0 {
					t.Errorf("O14: works that are held back have held up the shutdown for %v", took)
				}
			}
			synctest.Wait()
			w.ranAt(how, "a", want...)
			if begins && !errors.Is(cause, boom) {
				t.Errorf("O9: its context has ended with %v", cause)
			}
			if how == "shutdown" {
				return
			}
			pass(time.Minute)
			w.ranAt(how+" a minute ago", "a", want...)
			w.ranAt("the other", "b", 3*time.Second)
			wantValues(t, w.fixture, map[string]float64{"holdfast_busy": 0})
			w.close()
		})
	}
}

// Proves R4: a work that two crashes in a row have not cut off begins at once.
func TestWorkAfterOneCrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := cutOffWorks(t, "a")
		w.setWork(func(context.Context) {})
		pass(time.Minute) // it has run, and is cleared
		w.close()
		w.ran = map[string][]time.Duration{}
		w.open()
		defer w.close()
		synctest.Wait()
		w.ranAt("after an end in order", "a", 0)
		if s := w.known["a"]; s.Held(2, w.host.Epoch()-1) || s.Cleared != w.host.Epoch()-1 {
			t.Errorf("R4: after an end in order its suspicion is %+v", s)
		}
	})
}
