package object

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Reason says why an activation began.
type Reason int8

// The reasons of an activation (O5).
const (
	// Fresh: nothing of the object is stored.
	Fresh Reason = iota
	// Evicted: this process has committed a turn of the object before.
	Evicted
	// Restarted: the object comes from an earlier process.
	Restarted
	// Crashed: an earlier process died while the object's alarm handler or an
	// execution of it was open.
	Crashed
)

// String is the name of the reason in lower case.
func (r Reason) String() string {
	names := [...]string{"fresh", "evicted", "restarted", "crashed"}
	if r < 0 || int(r) >= len(names) {
		return fmt.Sprintf("reason %d", int(r))
	}
	return names[r]
}

// Activation tells a constructor why it runs.
type Activation struct {
	Reason Reason
	// Opened is when the process opened the store that was cut off, and Crashes
	// how many processes in a row were, up to and with it. They are set if
	// Reason is Crashed.
	Opened  time.Time
	Crashes int
}

// ready runs the constructor if the activation has no instance. What it writes is
// a commit of its own, before the handler runs.
func (a *activation) ready(t *turn) error {
	if a.instance != nil {
		return nil
	}
	c := a.hosted
	if err := c.failing.check(c, a.id.Name); err != nil {
		return named(a.id, err)
	}
	if err := a.locate(); err != nil {
		return c.host.storageError(a.id, err)
	}
	life := newState(a)
	a.mu.Lock()
	gone := a.gone
	if !gone {
		a.life = life
	}
	a.mu.Unlock()
	if gone { // what has ended it found no life to end
		return named(a.id, ErrReset)
	}
	t.life = life

	var instance any
	t.depth++
	err := t.block(t, c.options.BlockLimit, func(ctx context.Context) (err error) {
		instance, err = c.construct(ctx, life)
		return err
	})
	t.depth--
	if err == nil {
		err = t.commit(false)
	}
	if err != nil {
		return a.constructorFailed(t, err)
	}
	c.failing.forget(a.id.Name)
	a.instance = instance
	return nil
}

// notTheCodes tells causes that are not the fault of a constructor or a block: the
// calls that wait meet the same, or find the object as it was.
func notTheCodes(cause error) bool {
	return errors.Is(cause, ErrStorage) || errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrReset)
}

// constructorFailed ends the activation and answers the calls that wait for it
// with the cause (O4).
func (a *activation) constructorFailed(t *turn, cause error) error {
	t.clear()
	t.object = &a.object
	a.reset(cause)
	if notTheCodes(cause) {
		return cause
	}
	if !errors.Is(cause, ErrNoSpace) { // there may be space at any moment
		a.hosted.failing.note(a.hosted, a.id.Name, cause)
	}
	return a.refuseWaiting(cause)
}

// refuseWaiting answers the calls that wait with ErrConstructor, and returns that
// error: the constructor or a block has failed.
func (a *activation) refuseWaiting(cause error) error {
	err := because(a.id, named(a.id, ErrConstructor), cause)
	a.mu.Lock()
	var rest []*Request
	for r := a.pop(); r != nil; r = a.pop() {
		rest = append(rest, r)
	}
	var refused []*Request // calls; requests of the runtime go on with the next activation
	for _, r := range rest {
		if _, ok := r.op.(callable); !ok {
			if r.state.CompareAndSwap(started, waiting) {
				a.push(r)
			} else {
				r.finish(a.hosted.host) // its caller has just gone
			}
			continue
		}
		refused = append(refused, r)
	}
	a.mu.Unlock()
	a.hosted.host.refuse(err, refused...)
	return err
}

// locate reads where the object is and why this activation begins.
func (a *activation) locate() error {
	store := a.hosted.host.store
	if a.located {
		if a.instance == nil && a.object.Number != 0 && a.object.Epoch == store.Epoch() {
			a.reason = Evicted // constructed again after a reset
		}
		return nil
	}
	o, err := store.Find(a.id)
	if err != nil {
		return err
	}
	a.object, a.located = o, true
	raise(&a.last, a.hosted.host.departed.Load())
	a.rowKnown, a.empty = o.Number == 0, o.Number == 0
	switch {
	case o.Number == 0:
		a.reason = Fresh
	case o.Epoch == store.Epoch():
		a.reason = Evicted
	default:
		cut, err := a.cutOff()
		if err != nil {
			return err
		}
		a.reason = Restarted
		if cut {
			a.reason = Crashed
		}
	}
	return nil
}

// cutOff reports whether an earlier process died while the object's alarm
// handler or an execution was open.
func (a *activation) cutOff() (bool, error) {
	if a.hosted.host.store.Previous().Clean {
		return false, nil
	}
	mark, ok, err := a.hosted.host.store.Open(a.object)
	if err != nil {
		return false, err
	}
	if ok {
		m, err := decodeOpenMark(mark)
		return err == nil && m.epoch != a.hosted.host.store.Epoch(), err
	}
	row, err := a.alarm()
	return row != nil && row.Crashes > 0, err
}

// reset ends the life of the activation: its instance is dropped, its works are
// cancelled, and the next turn constructs again. The caller owns the turn.
func (a *activation) reset(cause error) {
	a.mu.Lock()
	life := a.life
	a.life = nil
	a.mu.Unlock()
	a.instance = nil
	if life != nil {
		life.end(cause)
	}
}

// block runs fn with the limit of BlockConcurrencyWhile. If fn is still running
// at the limit the activation is ended under it: waiting calls get
// ErrConstructor, and the next one constructs a new activation.
func (t *turn) block(ctx context.Context, limit time.Duration, fn func(context.Context) error) error {
	a, life := t.act, t.life
	clock := a.hosted.host.seams.Clock
	inner := &limited{Context: ctx, at: clock.Now().Add(limit)}
	timer := clock.AfterFunc(limit, func() {
		inner.expire()
		if t.phase.Load() == phaseOver { // fn runs on a goroutine that has outlived the turn
			return
		}
		err := because(a.id, named(a.id, ErrConstructor), fmt.Errorf("%w: limit %v", ErrTimeout, limit))
		a.end(err, func(rs []*Request) { a.hosted.host.refuse(err, rs...) })
	})
	defer inner.end()
	defer timer.Stop()
	err := t.protect(func() error { return fn(inner) })
	if cause := life.err(); cause != nil && errors.Is(cause, ErrTimeout) {
		return cause
	}
	return err
}

// failing remembers the objects of a class whose constructor fails, so that it
// is not run again at every call.
type failing struct {
	mu    sync.Mutex
	m     map[string]*list.Element // by name
	order list.List                // of failure, the one that failed last at the end
}

type failure struct {
	name  string
	times int
	until time.Time
	cause error
}

const (
	failingFirst = 100 * time.Millisecond // wait after the first failure; doubles
	failingCap   = 30 * time.Second
	failingMax   = 10_000 // objects remembered; beyond it those that failed longest ago are forgotten
)

// check returns the last failure while its wait lasts.
func (f *failing) check(c *hosted, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.m[name]
	if e == nil {
		return nil
	}
	was := e.Value.(failure)
	if !c.host.seams.Clock.Now().Before(was.until) {
		return nil
	}
	return because(c.id(name), ErrConstructor, was.cause)
}

func (f *failing) note(c *hosted, name string, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = make(map[string]*list.Element)
	}
	times := 0
	if e := f.m[name]; e != nil {
		times = e.Value.(failure).times
		f.drop(e)
	}
	if len(f.m) >= failingMax {
		f.drop(f.order.Front())
	}
	wait := min(failingFirst<<min(times, 10), failingCap)
	f.m[name] = f.order.PushBack(failure{name, times + 1, c.host.seams.Clock.Now().Add(wait), cause})
}

// drop forgets a failure, for a caller that holds the lock.
func (f *failing) drop(e *list.Element) {
	delete(f.m, f.order.Remove(e).(failure).name)
}

func (f *failing) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.m[name]; e != nil {
		f.drop(e)
	}
}
