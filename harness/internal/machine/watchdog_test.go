package machine

import (
	"math"
	"strings"
	"testing"
	"time"
)

// watched runs a task under a watchdog that looks each millisecond, and returns what the watchdog said. The
// task gets its crew.
func watched(busyLimits int, task func(c *Crew)) error {
	crew := &Crew{}
	m := New(Config{Crew: crew})
	m.Start(1).Go("step", func() { task(crew) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Drive(Epoch, nil)
		m.Close()
		crew.Close()
	}()
	defer func() { <-done }()
	return crew.watch(waitingLooks*time.Millisecond, busyLimits, done)
}

// A step that is only slow doesn't fail, whether it computes or waits for a goroutine that does.
func TestWatchdogWaitsForASlowStep(t *testing.T) {
	long := func(c *Crew) {
		for c.looks.Load() < 3*waitingLooks {
		}
	}
	for name, step := range map[string]func(c *Crew){
		"computes": long,
		"waits for another": func(c *Crew) {
			ended := make(chan struct{})
			go func() { defer close(ended); long(c) }()
			<-ended
		},
	} {
		if err := watched(math.MaxInt32, step); err != nil {
			t.Errorf("a step that %s: %v", name, err)
		}
	}
}

// A step that never ends is found in the end, although it always has something to do.
func TestWatchdogFindsALoop(t *testing.T) {
	err := watched(busyLimits, func(c *Crew) {
		for !c.stuck.Load() {
		}
	})
	if err == nil || !strings.Contains(err.Error(), `task "step" has not yielded for 300ms`) {
		t.Errorf("watchdog said: %v", err)
	}
}

func TestGoroutinesThatWait(t *testing.T) {
	for state, want := range map[string]bool{
		"chan receive": true, "select, 2 minutes": true, "sync.Mutex.Lock": true, "IO wait": true, "sleep": true, "coroutine": true,
		"chan receive (durable), synctest bubble 1": true,
		"running": false, "runnable": false, "syscall, 3 minutes": false, "GC assist wait": false, "copystack": false,
	} {
		if got := allWait([]string{"goroutine 1 [running]:\nx", "goroutine 2 [" + state + "]:\ny"}); got != want {
			t.Errorf("[%s] counts as waiting: %t", state, got)
		}
	}
	if signals := "goroutine 2 [syscall]:\nos/signal.signal_recv()"; !allWait([]string{"goroutine 1 [running]:", signals}) {
		t.Error("the goroutine that waits for signals counts as busy")
	}
}
