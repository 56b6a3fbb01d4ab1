package machine

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
)

// keep is the unsynced bytes that a crash at a step leaves: none, all and a torn part in turn.
func keep(step int) crashfs.Keep {
	switch step % 3 {
	case 0:
		return crashfs.KeepNone
	case 1:
		return crashfs.KeepAll
	}
	return crashfs.Keep(step)
}

// EveryStep crashes a life at its first step, at its second and so on, until one ends without a crash, and calls after with each world that is
// left. Unless all is set, it counts only each fifth step of the engine. A life starts with begin, which is not interrupted.
func EveryStep(t *testing.T, all bool, begin, life func(*World) error, after func(about string, w *World)) {
	t.Helper()
	crashes := 0
	for n := 0; ; n++ {
		w := New(t, -1)
		Must(t, "begin", begin(w))
		w.mu.Lock()
		w.few, w.steps, w.crashAt = !all, 0, n
		w.mu.Unlock()
		err := life(w)
		at, off := w.Off()
		if !off {
			Must(t, "a life without a crash", err)
			after("no crash", w.Crash(crashfs.KeepAll))
			break
		}
		crashes++
		after(fmt.Sprintf("crash at step %d (%s)", n, at), w.Crash(keep(n)))
	}
	t.Logf("%d crashes", crashes)
	if crashes < 15 {
		t.Errorf("only %d crashes: the life no longer does its work in steps", crashes)
	}
}
