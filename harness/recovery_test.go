package harness_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
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
	if err := w.st.OpenExecution(ctx, nil); err != nil {
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
	if w.st.Seams().Sleep(ctx, time.Second) != nil {
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
		return w.st.CloseExecution(ctx)
	})
}

func (w *worker) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	if w.bug == "no recovery" {
		return w.st.SetAlarm(ctx, w.st.Now().Add(30*time.Second))
	}
	return errors.Join(w.begin(ctx), w.st.SetAlarm(ctx, w.st.Now().Add(30*time.Second)))
}

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

func TestWorkIsRecovered(t *testing.T) {
	done := harness.StateMatches(func(s *harness.Sim) error {
		var done bool
		_, err := harness.Stored(s.Store(), storage.ID{Class: "worker", Name: "one"}, "done", &done)
		if err == nil && (!done || s.World().Count("work/one") > 1+s.Crashes()) {
			s.Errorf("done is %v after %d runs of the work and %d crashes", done, s.World().Count("work/one"), s.Crashes())
		}
		return err
	})
	for _, how := range [][]harness.Option{
		{harness.Depth(2), harness.Workers(2)},
		{harness.Seed(1)},
		{harness.Seed(2), harness.NoTornBatch, harness.PebbleStore()},
	} {
		harness.Exhaust(t, workScenario(""), append(how, done, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned,
			harness.RecoversWithin(35*time.Second), harness.AtMostOncePerCrash("work/"))...)
	}
	mustSay(t, problemOf(t, workScenario("no alarm"), harness.NeverOrphaned), "worker/one: an execution is open and no alarm is set", "J5")
	mustSay(t, problemOf(t, workScenario("no recovery"), harness.RecoversWithin(35*time.Second)), "the open execution", "R7")
}
