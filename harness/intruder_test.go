package harness_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// A goroutine of the code under test that touches an object, or calls one, is named
// with the line at which it does, and the remedy. Each waits for its goroutine, as
// most such code does.
func TestGoroutineOfOnesOwnIsNamed(t *testing.T) {
	type thing struct{ st *object.State }
	class := object.Define("thing", func(_ context.Context, st *object.State) (*thing, error) { return &thing{st}, nil })
	run := object.Handle(class, "run", func(th *thing, ctx context.Context, do func(context.Context, *object.State)) (int, error) {
		if err := th.st.Storage().Put(ctx, "key", 1); err != nil {
			return 0, err
		}
		var wg sync.WaitGroup
		wg.Go(func() { do(ctx, th.st) })
		wg.Wait()
		return 0, nil
	})
	calling := func(do func(context.Context, *object.State)) harness.Scenario {
		return func(s *harness.Sim) {
			s.Host(class)
			_, _ = run.Call(s.Context(), s, "one", do)
		}
	}
	for name, scenario := range map[string]harness.Scenario{
		"reads":         calling(func(ctx context.Context, st *object.State) { _, _, _ = st.Storage().Get(ctx, "other") }),
		"asks the time": calling(func(_ context.Context, st *object.State) { st.Now() }),
		"sleeps":        calling(func(ctx context.Context, st *object.State) { _ = st.Driver().Seams().Sleep(ctx, time.Second) }),
		"takes a turn": calling(func(_ context.Context, st *object.State) {
			_ = st.Do(context.Background(), func(context.Context) error { return nil })
		}),
		"calls from the scenario": func(s *harness.Sim) {
			s.Host(carts)
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = cartAdd.Call(s.Context(), s, "alice", 1) })
			wg.Wait()
			s.Advance(time.Second)
		},
		"advances": func(s *harness.Sim) {
			var wg sync.WaitGroup
			wg.Go(func() { s.Advance(time.Second) })
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			mustSay(t, problemOf(t, scenario), "a goroutine of the code under test calls into the host", "It stands at ", "intruder_test.go:",
				"Remedy: start it with State.Go", "Sim.Go")
		})
	}
}

// The goroutine is reported, and not a task that waits for it without end.
func TestWaitForAGoroutineOfOnesOwn(t *testing.T) {
	answer, left := make(chan time.Time), make(chan struct{})
	class := object.Define("waits", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	wait := object.Handle(class, "wait", func(st *object.State, _ context.Context, _ int) (int, error) {
		defer close(left)
		go func() { answer <- st.Now() }()
		<-answer
		return 0, nil
	})
	said := problemOf(t, func(s *harness.Sim) {
		s.Host(class)
		_, _ = wait.Call(s.Context(), s, "one", 0)
	}, harness.Watchdog(300*time.Millisecond))
	close(answer)
	<-left
	mustSay(t, said, "a goroutine of the code under test calls into the host", "intruder_test.go:")
}
