package machine

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Lead runs f as the driver of the crew's machines. From then on a goroutine that
// is neither f's nor a task's is found when it calls into a machine: at once in a
// run with Config.Careful, else when its process has died.
//
//go:noinline
func (c *Crew) Lead(f func()) {
	c.led.Store(true)
	f()
	c.led.Store(true) // not a tail call: Lead stays on the stack
}

// Functions at the root of the stacks that may call into a machine.
const (
	leadFunc = "harness/internal/machine.(*Crew).Lead"
	workFunc = "harness/internal/machine.(*coroutine).work"
)

const (
	maxFrames  = 1024 // of a deeper stack nothing is known
	rootFrames = 8    // among so many at the root leadFunc or workFunc stands
)

// isOwn reports whether the calling goroutine is the driver's or a task's. It
// walks the whole stack, which takes some microseconds.
func isOwn() bool {
	var buf [maxFrames]uintptr
	n := runtime.Callers(2, buf[:])
	if n == maxFrames {
		return true
	}
	frames := runtime.CallersFrames(buf[max(n-rootFrames, 0):n])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, leadFunc) || strings.HasSuffix(f.Function, workFunc) {
			return true
		}
		if !more {
			return false
		}
	}
}

// Own ends the calling goroutine, and lets the run fail, if the machine is careful
// and the goroutine is none that it knows.
func (m *Machine) Own() {
	if m.cfg.Careful || m.cfg.Crew.met.Load() {
		m.cfg.Crew.own()
	}
}

func (c *Crew) own() {
	if !c.led.Load() || isOwn() {
		return
	}
	stack := string(debug.Stack())
	err := fmt.Errorf("simulation: a goroutine of the code under test calls into the host, or its seams, and the simulation does not know it.\n"+
		"Remedy: start it with State.Go instead of the go statement, and touch the object in it through State.Do; in a scenario, start clients with Sim.Go.\n\n%s",
		standing(stack, isOurs))
	c.intruder.CompareAndSwap(nil, &err)
	c.met.Store(true)
	runtime.Goexit() // nothing that it does may reach the machine
}

// Intruder returns the description of the first foreign goroutine, and forgets it.
func (c *Crew) Intruder() error {
	if err := c.intruder.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// ours are the packages that a call into a machine passes.
var ours = []string{"alarm", "harness", "jobs", "object", "recovery", "seam", "storage"}

// isOurs tells calls of Go itself and of Holdfast from code under test.
func isOurs(call string) bool {
	if isRuntime(call) {
		return true
	}
	rest, ok := strings.CutPrefix(call, "github.com/holdfast-dev/holdfast/")
	return ok && slices.Contains(ours, rest[:strings.IndexAny(rest+".", "./")])
}
