package pglog

import (
	"sync"

	"github.com/holdfast-dev/holdfast/seam"
)

// tasks counts the goroutines of a log, so that its Close can wait for them.
type tasks struct {
	seams *seam.Seams

	mu     sync.Mutex
	n      int
	closed bool
	none   chan struct{} // closed when n is 0 after close
}

// start runs f as a task. A task may start others at any time; anything else gets false once the log is closed, and f does not run.
func (t *tasks) start(name string, f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && t.n == 0 {
		return false
	}
	t.n++
	t.seams.Executor.Go(name, func() {
		defer t.end()
		f()
	})
	return true
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.closed && t.n == 0 {
		close(t.none)
	}
}

// close lets no more tasks start but by tasks, and returns a channel that is closed when all have ended. Only the first call gets one.
func (t *tasks) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed, t.none = true, make(chan struct{})
	if t.n == 0 {
		close(t.none)
	}
	return t.none
}
