package object

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// Go starts fn as a task beside the turns, once the present turn's commit is
// durable; if the turn fails, fn never starts. fn touches the object only through
// Do. Its ctx ends when the activation does, and when the context of Host.Shutdown
// ends: the beginning of a shutdown leaves works time to end by themselves. So a
// work that waits for its ctx holds up a Shutdown whose own context never ends; one
// that should end early looks at State.Closing. The object stays in memory while fn
// runs. A panic of fn is logged and ends fn only.
func (s *State) Go(ctx context.Context, name string, fn func(context.Context)) error {
	return s.Start(ctx, new(Work), name, fn)
}

// Start is Go for a task that can be cancelled by itself. It makes w that task. A
// Work can be started only once; a second time is an error.
func (s *State) Start(ctx context.Context, w *Work, name string, fn func(context.Context)) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if w.life != nil {
		return fmt.Errorf("%s: object: work %q was started twice; make another Work", s.act.id, name)
	}
	w.life, w.name, w.fn = s, name, fn
	w.permit, t.permit = t.permit, false
	w.begun = afterwards{work: w, earlier: t.after}
	t.after = &w.begun
	return nil
}

// Work is a task beside the turns, see State.Start. Its methods may be called from
// any task. The zero value is one that has yet to be started.
type Work struct {
	life   *State
	name   string
	fn     func(context.Context)
	begun  afterwards // its place among what waits for the turn's commit
	permit bool       // it has one of the class's permits
	// suspect is not nil if the work is held back at first; see StartSuspect.
	suspect *suspect

	mu    sync.Mutex
	cause error          // why it was cancelled, or has ended; nil until then
	joint *joinedContext // of workContext; nil until it is asked for
}

// Cancel ends the context of w, now or as soon as it begins, unless it has ended.
// A work that is held back begins at once then.
func (w *Work) Cancel(cause error) {
	if j := w.end(cause); j != nil {
		j.cancel(cause)
	}
	if w.suspect != nil {
		w.suspect.release()
	}
}

// CutOff reports whether the activation or the host has ended, and the context of
// w with it. w has been started.
func (w *Work) CutOff() bool {
	return w.life.err() != nil || w.life.act.hosted.host.life.ctx.Err() != nil
}

// end notes why w ends, if nothing ended it before, and returns what has to end
// with it.
func (w *Work) end(cause error) *joinedContext {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil {
		w.cause = cause
	}
	return w.joint
}

// ended tells why w was cancelled or has ended, or nil.
func (w *Work) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

// startWorks starts the works that a turn has begun, when its commit is durable.
func (a *activation) startWorks(works []runner) {
	h := a.hosted.host
	a.holds.Add(int32(len(works)))
	h.life.busy.Add(int64(len(works)))
	h.durably.then(storage.Ticket(a.last.Load()), func(err error) {
		if err == nil {
			h.crew.add(h.suspects.holdWorks(works)...)
			return
		}
		for _, r := range works { // the commit that began them may be lost
			r.(*Work).over()
		}
	})
}

// over is the end of w, also if it has not begun.
func (w *Work) over() {
	if w.permit {
		w.life.act.hosted.permits.over(1)
	}
	w.life.act.workOver()
}

// workOver is the end of a work.
func (a *activation) workOver() {
	a.holds.Add(-1)
	a.hosted.host.lru.idled(a)
	a.hosted.host.life.leave()
}

// run runs the function of w.
func (w *Work) run() {
	s, h := w.life, w.life.act.hosted.host
	defer w.over()
	if w.suspect != nil {
		defer h.suspects.ended(w.suspect.subject)
	}
	defer func() {
		if j := w.end(context.Canceled); j != nil {
			j.end()
		}
	}()
	if h.seams.Probe != nil {
		h.seams.At("work/start", s.act.id.String())
	}
	log := func(err error) { s.Log().Error("work panicked", telling(err, "work", w.name)...) }
	if err := guard(&s.act.id, func() error { w.fn(workContext{w}); return nil }, log); err != nil {
		log(err)
	}
}

// Context returns a context that ends when the activation or the host does, for
// what goes on when the context of a work has ended. release must be called when it
// is no longer needed.
func (s *State) Context() (ctx context.Context, release func()) {
	j := join(s.act.hosted.host.life.ctx, s)
	return j, j.end
}

// workContext is the context of a work: it ends with the work, the activation and
// the host. One that package context can build on costs memory, so it is made when
// it is first asked for.
type workContext struct{ *Work }

func (c workContext) joined() *joinedContext {
	w := c.Work
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.joint == nil {
		w.joint = join(w.life.act.hosted.host.life.ctx, w.life)
		if w.cause != nil {
			w.joint.cancel(w.cause)
			w.joint.ending.forget()
		}
	}
	return w.joint
}

// Done is closed when the context has ended.
func (c workContext) Done() <-chan struct{} { return c.joined().Done() }

// Err tells why Done is closed, or nil.
func (c workContext) Err() error {
	if c.ended() != nil || c.CutOff() {
		return context.Canceled
	}
	return nil
}

// Value has nothing of the user's. Package context asks it for what it builds on.
func (c workContext) Value(key any) any {
	if key == (turnKey{}) {
		return nil // it is beside the turns
	}
	return c.joined().Value(key)
}

// Deadline tells of none.
func (workContext) Deadline() (at time.Time, ok bool) { return at, false }
