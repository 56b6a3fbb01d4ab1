package machine

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// Watch looks at the running task waitingLooks times within its limit, and gives a task that has something
// to do busyLimits of them. The limits count looks and not time, so a machine that stands still costs one.
const (
	waitingLooks = 10
	busyLimits   = 30
)

// Watch returns nil when done is closed, and an error that names the task and the remedy if one step of
// a task does not end. A step that waits fails after limit of real time in which no goroutine of the
// program had anything to do, so a slow machine cannot fail it. While any goroutine runs, the step may
// take busyLimits times as long, to find a loop without end.
func (c *Crew) Watch(limit time.Duration, done <-chan struct{}) error {
	return c.watch(limit, busyLimits, done)
}

func (c *Crew) watch(limit time.Duration, busyLimits int, done <-chan struct{}) error {
	tick := time.NewTicker(limit / waitingLooks)
	defer tick.Stop()
	last, waiting, busy := c.beat.Load(), 0, 0
	for waiting < waitingLooks && busy/waitingLooks < busyLimits {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		c.looks.Add(1)
		switch beat := c.beat.Load(); {
		case beat != last || c.running.Load() == nil:
			last, waiting, busy = beat, 0, 0
		case allWait(stacks()):
			waiting++
		default:
			waiting, busy = 0, busy+1
		}
	}
	name := c.running.Load()
	if name == nil || c.beat.Load() != last {
		return c.watch(limit, busyLimits, done)
	}
	c.stuck.Store(true)
	if err := c.Intruder(); err != nil {
		return err // most likely the task waits for that goroutine
	}
	if waiting < waitingLooks {
		limit *= time.Duration(busyLimits)
	}
	return fmt.Errorf("simulation: task %q has not yielded for %v of real time: it waits where the simulation cannot see it, or never ends.\n"+
		"Remedy: wait through seams (Executor.Wait, Seams.Sleep, State.Await, State.Release) instead of a bare channel, <-ctx.Done(), time.Sleep or a mutex held across a wait.\n\n%s",
		*name, limit, standing(stuckStack(stacks()), isRuntime))
}

// waits are the states of goroutines that only another goroutine, a timer or the network can wake, as
// stacks name them. A goroutine in any other state may still do something by itself.
var waits = []string{"chan receive", "chan send", "select", "semacquire", "sync.", "sleep", "IO wait", "coroutine", "finalizer wait", "cleanup wait", "synctest."}

// allWait reports whether all goroutines wait but the first, which is the caller.
func allWait(all []string) bool {
	for _, g := range all[1:] {
		_, state, _ := strings.Cut(g, "[")
		if !hasAnyPrefix(state, waits) && !strings.Contains(g, "os/signal.signal_recv") {
			return false
		}
	}
	return true
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// stacks returns the stacks of all goroutines at one moment, the caller's first.
func stacks() []string {
	for size := 1 << 20; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return strings.Split(string(buf[:n]), "\n\n")
		}
	}
}

// stuckStack is the stack of the coroutine that runs or blocks, if it can be told.
func stuckStack(all []string) string {
	for _, g := range all {
		head, _, _ := strings.Cut(g, "\n")
		if strings.Contains(g, "machine.(*coroutine).work") && !strings.Contains(head, "[coroutine") {
			return g
		}
	}
	return ""
}

// standing puts before a stack where in the code under test it stands, and why.
func standing(stack string, isOther func(call string) bool) string {
	lines := strings.Split(stack, "\n")
	_, why, _ := strings.Cut(lines[0], "[")
	why, _, _ = strings.Cut(why, "]")
	for i := 1; i+1 < len(lines); i += 2 {
		if !isOther(lines[i]) {
			at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			return fmt.Sprintf("It stands at %s (%s).\n\n%s", at, why, stack)
		}
	}
	return stack
}

// isRuntime tells calls of Go itself and of the seams from code under test.
func isRuntime(call string) bool {
	path, _, _ := strings.Cut(call, "(")
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || !strings.Contains(path, "/") && !strings.HasPrefix(path, "main.") ||
		strings.HasPrefix(path, "github.com/holdfast-dev/holdfast/seam.")
}
