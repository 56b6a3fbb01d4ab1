package crew

import (
	"context"
	"runtime"
	"testing"
)

// calledTasks is an executor that keeps its tasks, so that a test runs them by hand.
type calledTasks struct{ tasks []func() }

func (e *calledTasks) Go(_ string, f func()) { e.tasks = append(e.tasks, f) }

func (*calledTasks) Wait(context.Context, <-chan struct{}) error { return nil }

func (e *calledTasks) runNext() {
	f := e.tasks[0]
	e.tasks = e.tasks[1:]
	f()
}

// A burst of runners that do not wait takes two tasks, not one for each.
func TestCrewTakesFewTasksForABurst(t *testing.T) {
	e := &calledTasks{}
	c := &Crew{executor: e}
	var order []int
	for i := range 1000 {
		c.Add(Func(func() { order = append(order, i) }))
	}
	if len(e.tasks) != 1 {
		t.Fatalf("%d tasks were called for a queue that no one has looked at", len(e.tasks))
	}
	e.runNext()
	if len(order) != 1000 || len(e.tasks) != 1 {
		t.Fatalf("%d of 1000 were run, %d more tasks were called", len(order), len(e.tasks))
	}
	for i, got := range order {
		if got != i {
			t.Fatalf("runner %d came as number %d", got, i)
		}
	}
	e.runNext() // the spare finds nothing
	if len(e.tasks) != 0 || !c.queue.empty() || c.spare {
		t.Errorf("at rest %d tasks are called, %d runners wait, spare %v", len(e.tasks), len(c.queue.runners), c.spare)
	}
}

// While a runner is at work the next always has a task on its way.
func TestCrewHasASpareWhileRunnersWait(t *testing.T) {
	e := &calledTasks{}
	c := &Crew{executor: e}
	depth := 0
	for range 50 {
		c.Add(Func(func() { // as if each runner waited until the next had run
			if depth++; depth < 50 {
				if len(e.tasks) != 1 {
					t.Fatalf("with %d runners at work %d tasks are on their way, want 1", depth, len(e.tasks))
				}
				e.runNext()
			}
		}))
	}
	e.runNext()
	if depth != 50 {
		t.Errorf("%d of 50 were run", depth)
	}
}

// Alarms and other runners are taken in turn, each in their order.
func TestCrewTakesAlarmsAndOthersInTurn(t *testing.T) {
	e := &calledTasks{}
	c := &Crew{executor: e}
	var order string
	runners := func(names string) (rs []Runner) {
		for _, name := range names {
			rs = append(rs, Func(func() { order += string(name) }))
		}
		return rs
	}
	c.addAlarms(runners("abcde"))
	c.Add(runners("xy")...)
	c.addAlarms(runners("f"))
	e.runNext()
	if want := "xaybcdef"; order != want {
		t.Errorf("taken in the order %s, want %s", order, want)
	}
}

// Running yields the runners at work, each once, and none that has ended, also if it has ended
// its goroutine.
func TestRunningRunners(t *testing.T) {
	e := &calledTasks{}
	c := &Crew{executor: e}
	running := func() (n int) {
		c.Running(func(r Runner) {
			if r == nil {
				t.Error("a member without a runner is at work")
			}
			n++
		})
		return n
	}
	depth := 0
	for range 20 {
		c.Add(Func(func() {
			if depth++; running() != depth {
				t.Errorf("%d runners are told, and %d run", running(), depth)
			}
			if depth < 20 {
				e.runNext()
			}
		}))
	}
	e.runNext()
	for len(e.tasks) > 0 {
		e.runNext()
	}
	if n := running(); n != 0 || depth != 20 {
		t.Errorf("%d of %d runners are told after their end", n, depth)
	}
	done := make(chan struct{})
	c.Add(Func(func() { runtime.Goexit() }))
	go func() {
		defer close(done)
		e.runNext()
	}()
	<-done
	if n := running(); n != 0 || len(c.free) != 20 {
		t.Errorf("%d runners are told after one has ended its goroutine, and %d members are free, want 0 and 20", n, len(c.free))
	}
}

// A burst leaves a bounded number of members behind.
func TestFreeMembersAreBounded(t *testing.T) {
	e := &calledTasks{}
	c := &Crew{executor: e}
	const n = maxFree + 10
	depth := 0
	for range n {
		c.Add(Func(func() {
			if depth++; depth < n {
				e.runNext()
			}
		}))
	}
	for len(e.tasks) > 0 {
		e.runNext()
	}
	if len(c.free) != maxFree || len(c.members) != 0 {
		t.Errorf("%d members are kept, and %d are at work, want %d and 0", len(c.free), len(c.members), maxFree)
	}
}
