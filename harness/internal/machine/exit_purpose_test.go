package machine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
)

// Proves O6: a task that ends its goroutine by seam.Exit does not fail the run. Its deferred functions
// run, may start tasks and wait, and no recover keeps the task alive.
func TestExitOnPurpose(t *testing.T) {
	m, p := start(t, machine.Config{})
	seams := p.Seams()
	var got []string
	tell := func(text string) { got = append(got, fmt.Sprintf("%s@%v", text, p.Now().Sub(machine.Epoch))) }
	p.Go("sleeper", func() {
		defer tell("outer")
		defer func() {
			if v := recover(); v != nil {
				t.Errorf("recovered %v", v)
			}
			_ = seams.Sleep(context.Background(), time.Second)
			p.Go("child", func() { tell("child") })
			tell("inner")
		}()
		seam.Exit(p)
		tell("gone on")
	})
	p.Go("other", func() { tell("other") })
	if out := m.Drive(machine.Epoch.Add(time.Minute), nil); out != machine.Idle || m.Failure() != nil {
		t.Fatalf("outcome %v, failure %v", out, m.Failure())
	}
	if want := []string{"other@0s", "inner@1s", "outer@1s", "child@1s"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

// Proves O6: the coroutine of a task that has exited runs no other task, and a later task that calls
// runtime.Goexit itself fails the run under its own name.
func TestExitOnPurposeHidesNoOther(t *testing.T) {
	m, p := start(t, machine.Config{})
	p.Go("polite", func() { seam.Exit(p) })
	p.Go("ordinary", func() {})
	p.Go("mailer", leave)
	m.Drive(machine.Epoch.Add(time.Second), nil)
	if exit, ok := errors.AsType[*machine.TaskExit](m.Failure()); !ok || exit.Task != "mailer" {
		t.Errorf("failure %v, want that of task mailer", m.Failure())
	}
}

// Proves O6: a task outside of the process, as a scenario is, may not end its goroutine by the
// executor of the process either.
func TestExitOfATaskOutside(t *testing.T) {
	m, p := start(t, machine.Config{})
	m.Spawn("scenario", func() { seam.Exit(p) })
	m.Drive(machine.Epoch.Add(time.Second), nil)
	if exit, ok := errors.AsType[*machine.TaskExit](m.Failure()); !ok || exit.Task != "scenario" {
		t.Errorf("failure %v, want that of task scenario", m.Failure())
	}
}

// Case HN6. Proves O6: a deferred function that panics during an exit, on purpose or not, fails the run with
// the panic, and the driver goes on.
func TestPanicDuringAnExit(t *testing.T) {
	for name, exit := range map[string]func(x seam.Executor){"on purpose": seam.Exit, "else": func(seam.Executor) { runtime.Goexit() }} {
		t.Run(name, func(t *testing.T) {
			m, p := start(t, machine.Config{})
			p.Go("careless", func() {
				defer func() { panic("boom") }()
				exit(p)
			})
			if out := m.Drive(machine.Epoch.Add(time.Second), nil); out != machine.Failed {
				t.Fatalf("outcome %v", out)
			}
			failed, ok := errors.AsType[*machine.TaskPanic](m.Failure())
			if !ok || failed.Task != "careless" || failed.Value != "boom" || !strings.Contains(string(failed.Stack), "TestPanicDuringAnExit") {
				t.Errorf("failure: %v", m.Failure())
			}
		})
	}
}

// A process may die while a task of it exits: at a point that a deferred function passes,
// or while a deferred function waits. The next process runs.
func TestDeathDuringAnExit(t *testing.T) {
	for name, deferred := range map[string]func(p *machine.Process){
		"at a point": func(p *machine.Process) { p.At(seam.Point{Name: "die"}) },
		"in a wait": func(p *machine.Process) {
			p.Go("killer", func() { p.At(seam.Point{Name: "die"}) })
			_ = p.Wait(context.Background(), make(chan struct{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := start(t, machine.Config{OnPoint: func(*machine.Process, seam.Point) bool { return true }})
			after := false
			p.Go("leaver", func() {
				defer func() {
					deferred(p)
					after = true
				}()
				seam.Exit(p)
			})
			if out := m.Drive(machine.Epoch.Add(time.Second), nil); out != machine.Died {
				t.Fatalf("outcome %v", out)
			}
			ran := false
			m.Start(2).Go("next", func() { ran = true })
			m.Drive(machine.Epoch.Add(2*time.Second), nil)
			if after || !ran || m.Failure() != nil {
				t.Errorf("the dead task went on: %t, the next process ran: %t, failure %v", after, ran, m.Failure())
			}
		})
	}
}

// An exit in a process that has died panics with seam.Killed, as each call of its seams does.
func TestExitOfTheDead(t *testing.T) {
	m, p := start(t, machine.Config{})
	var met any
	p.Go("late", func() {
		defer func() {
			defer func() { met = recover() }()
			seam.Exit(p)
		}()
		_ = p.Wait(context.Background(), make(chan struct{}))
	})
	m.Drive(machine.Epoch.Add(time.Second), nil)
	p.Kill()
	if met != any(seam.Killed{}) || m.Failure() != nil {
		t.Errorf("the exit met %v, failure %v", met, m.Failure())
	}
}

// A goroutine that the machine does not know ends at its exit, and is reported. Its exit is
// not taken for that of the task that runs.
func TestExitOfAnIntruder(t *testing.T) {
	for name, c := range map[string]struct {
		task func()
		want string
	}{"alone": {func() {}, "exit_purpose_test.go:"}, "in a task that leaves": {leave, `task "mailer"`}} {
		t.Run(name, func(t *testing.T) {
			m, p := start(t, machine.Config{})
			m.Crew().Lead(func() {
				p.Go("mailer", func() {
					done := make(chan struct{})
					go func() {
						defer close(done)
						seam.Exit(p)
					}()
					<-done
					c.task()
				})
				m.Drive(machine.Epoch.Add(time.Second), nil)
			})
			if err := m.Failure(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("failure %v, want one that says %s", err, c.want)
			}
		})
	}
}

// Ten thousand exits leave no goroutine behind: goroutines in the process after them are as
// many as before, but for the one that has just ended.
func TestManyExitsLeaveNoGoroutine(t *testing.T) {
	const exits = 10_000
	m, p := start(t, machine.Config{})
	p.Go("first", func() {}) // so that the crew has its coroutine
	m.Drive(machine.Epoch, nil)
	before, unwound := runtime.NumGoroutine(), 0
	for range exits {
		p.Go("leaver", func() {
			defer func() { unwound++ }()
			seam.Exit(p)
		})
	}
	m.Drive(machine.Epoch, nil)
	if m.Failure() != nil || unwound != exits {
		t.Fatalf("%d tasks were unwound, failure %v", unwound, m.Failure())
	}
	const ending = 10 // have closed their channel, and are not yet gone
	if after := runtime.NumGoroutine(); after > before+ending {
		t.Errorf("%d goroutines, before the exits %d", after, before)
	}
}
