package object

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// shutdownGrace is how long cancelled handlers and works may take to return
// before the store is closed under them.
const shutdownGrace = 200 * time.Millisecond

// Shutdown ends the host in order. New calls are refused with ErrShutdown and
// alarms stop, and so do waits in State.Await; open turns and works may end until
// ctx does, and are cancelled then. With a ctx that never ends Shutdown waits for them
// as long as they run, for ever if one waits for its own context to end; so give it a
// deadline. The store is closed even if user code ignores
// the cancellation; the error names what was still running. What was cut off is
// recovered at the next Open and costs it no attempt. A second call waits for the
// first, until its own ctx ends, and returns the same.
func (h *Host) Shutdown(ctx context.Context) error {
	if !h.life.beginClosing() {
		if err := h.seams.Executor.Wait(ctx, h.life.closed); err != nil {
			return err
		}
		return h.life.closeErr
	}
	h.alarms.Stop()
	h.suspects.close()
	h.closePermits()
	h.expiry.stop()
	h.watch.stop(ErrShutdown)
	h.awaits.end()
	var late error
	if h.awaitIdle(ctx) != nil {
		h.life.cancel(ErrShutdown)
		h.cancelTurns()
		grace, cancel := h.seams.WithDeadline(context.Background(), h.seams.Clock.Now().Add(shutdownGrace), ErrTimeout)
		if h.awaitIdle(grace) != nil {
			late = fmt.Errorf("object: shutdown: still running: %s", strings.Join(h.running(), ", "))
		}
		cancel()
	}
	err := errors.Join(late, h.closeStore())
	h.life.end(ErrShutdown)
	h.life.closeErr = err
	close(h.life.closed)
	return err
}

// beginClosing refuses calls from now on, and reports whether this is the first
// call of Shutdown. A host whose store has failed refuses calls already.
func (l *life) beginClosing() bool {
	l.closing.Store(true)
	return l.shut.CompareAndSwap(false, true)
}

// cutOff reports whether everything that runs has been cancelled.
func (l *life) cutOff() bool { return l.closing.Load() && l.ctx.Err() != nil }

// awaitIdle returns when nothing runs any more, or the cause of ctx's end.
func (h *Host) awaitIdle(ctx context.Context) error {
	for h.life.busy.Load() > 0 {
		if err := h.seams.Executor.Wait(ctx, h.life.idle); err != nil {
			if h.life.busy.Load() == 0 {
				return nil
			}
			return err
		}
	}
	return nil
}

// closeStore closes the store in order if all that ran has ended, and as after a
// crash if the store has failed.
func (h *Host) closeStore() error {
	if err := h.store.Err(); err != nil {
		return errors.Join(err, h.store.Abandon())
	}
	var b storage.Batch
	err := h.store.Metas(flightRow, func(name string, _ []byte) error {
		b.DeleteMeta(name)
		return nil
	})
	if err == nil {
		_, err = h.store.Commit(&b)
	}
	if errors.Is(err, ErrNoSpace) {
		err = nil // the next open drops these rows, and after an end in order they count for nothing
	}
	return errors.Join(err, h.store.Close())
}

// cancelTurns ends the activations that have a turn or a work under way: their
// contexts end, and what they commit later is refused.
func (h *Host) cancelTurns() {
	for a := range h.lru.all() {
		a.mu.Lock()
		life, busy := a.life, a.running || a.holds.Load() > 0
		a.mu.Unlock()
		if busy && life != nil {
			life.end(ErrShutdown)
		}
	}
}

// running names the objects that have a turn or a work under way.
func (h *Host) running() []string {
	var names []string
	for a := range h.lru.all() {
		a.mu.Lock()
		busy := a.running || a.holds.Load() > 0
		a.mu.Unlock()
		if busy {
			names = append(names, a.id.String())
		}
	}
	return names
}
