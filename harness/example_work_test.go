package harness_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// worker does one piece of work beside its turns: a begin batch, the work, an end
// batch, and again after a crash. Its bugs are planted.
type worker struct {
	s       *harness.Sim
	st      *object.State
	bug     string
	working bool // this activation has the work under way
}

func (w *worker) start(ctx context.Context, _ struct{}) (bool, error) {
	if done, err := w.st.Storage().GetInto(ctx, "done", new(bool)); done || err != nil {
		return false, err
	}
	return true, w.begin(ctx)
}

func (w *worker) begin(ctx context.Context) error {
	if w.working {
		return nil
	}
	w.working = true
	if err := w.st.Driver().OpenExecution(ctx, nil); err != nil {
		return err
	}
	if w.bug != "no alarm" {
		if err := w.st.SetAlarm(ctx, w.st.Now().Add(30*time.Second)); err != nil {
			return err
		}
	}
	return w.st.Go(ctx, "work", w.work)
}

func (w *worker) work(ctx context.Context) {
	if w.st.Driver().Seams().Sleep(ctx, time.Second) != nil {
		return
	}
	w.s.World().Do("work/"+w.st.Name(), nil)
	_ = w.st.Do(ctx, func(ctx context.Context) error {
		if err := w.st.Storage().Put(ctx, "done", true); err != nil {
			return err
		}
		if err := w.st.DeleteAlarm(ctx); err != nil {
			return err
		}
		return w.st.Driver().CloseExecution(ctx)
	})
}

func (w *worker) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	if w.bug == "no recovery" {
		return w.st.SetAlarm(ctx, w.st.Now().Add(30*time.Second))
	}
	return errors.Join(w.begin(ctx), w.st.SetAlarm(ctx, w.st.Now().Add(30*time.Second)))
}

// workScenario starts a worker that has a bug, or none, and waits for its work.
func workScenario(bug string) harness.Scenario {
	return func(s *harness.Sim) {
		workers := object.Define("worker", func(ctx context.Context, st *object.State) (*worker, error) {
			w := &worker{s: s, st: st, bug: bug}
			if st.Activation().Reason == object.Crashed && bug != "no recovery" {
				return w, st.SetAlarm(ctx, st.Now())
			}
			return w, nil
		})
		start := object.Handle(workers, "start", (*worker).start)
		s.Host(workers)
		s.OK(s.Retry(func() error { _, err := start.Call(s.Context(), s, "one", struct{}{}); return err }))
		s.Advance(10 * time.Second)
	}
}

// found runs a scenario with all its crashes, and prints the finding of the checker.
func found(scenario harness.Scenario, checker harness.Option) {
	_, err := harness.Explore(scenario, checker)
	var f *harness.Failure
	if errors.As(err, &f) {
		fmt.Println(f.Problem)
	}
}

// NeverOrphaned finds work that was begun in one commit and given its alarm in a second
// one: after a crash between the two nothing takes the work up again.
func ExampleNeverOrphaned() {
	found(workScenario("no alarm"), harness.NeverOrphaned)
	// Output: NeverOrphaned: worker/one: an execution is open and no alarm is set (J5)
}

// RecoversWithin finds an execution that is looked after for ever and never done.
func ExampleRecoversWithin() {
	found(workScenario("no recovery"), harness.RecoversWithin(time.Minute))
	// Output: RecoversWithin: 1m0s after the crash the open execution of worker/one is as the crash left it
}

// NoDoubleEffect finds effects that are repeated after a crash.
func ExampleNoDoubleEffect() {
	found(workScenario(""), harness.NoDoubleEffect("work/"))
	// Output: NoDoubleEffect: the effect "work/one" was done twice: at 1s by start 1, and at 2s by start 2
}
