package object

import (
	"context"
	"errors"
	"sync"
)

// Await lends the turn to others, as Release does, until something is sent to ch or
// ch is closed: for a handler that waits for what another call will do. Since
// Shutdown takes no new call, Await then ends at once with ErrShutdown; who waits for
// a work of the object, which may end while the host shuts down, uses Release. It
// returns the cause of ctx's end if that comes first, and the errors of Release.
func (s *State) Await(ctx context.Context, ch <-chan struct{}) error {
	h := s.act.hosted.host
	err := s.Release(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		place := h.awaits.enter(cancel)
		defer h.awaits.leave(place)
		return h.seams.Executor.Wait(ctx, ch)
	})
	if errors.Is(err, ErrShutdown) && ctx.Err() == nil {
		return named(s.act.id, ErrShutdown)
	}
	return err
}

// awaits are the calls of Await that are under way.
type awaits struct {
	mu    sync.Mutex
	ended bool
	all   []*awaitPlace // in no order, but in the same for the same calls
}

// awaitPlace is the place of a call of Await among the others.
type awaitPlace struct {
	index  int
	cancel context.CancelCauseFunc
}

func (w *awaits) enter(cancel context.CancelCauseFunc) *awaitPlace {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &awaitPlace{len(w.all), cancel}
	w.all = append(w.all, p)
	if w.ended {
		cancel(ErrShutdown)
	}
	return p
}

func (w *awaits) leave(p *awaitPlace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.all) - 1
	w.all[p.index] = w.all[last]
	w.all[p.index].index = p.index
	w.all[last] = nil
	w.all = w.all[:last]
}

// end ends those under way, and those to come at once.
func (w *awaits) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, p := range w.all {
		p.cancel(ErrShutdown)
	}
}
