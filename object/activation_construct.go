package object

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// Reason says why an instance began, and its constructor runs.
type Reason int8

// The reasons of an instance (O5).
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

// String returns the name of the reason in lower case, for example "evicted".
func (r Reason) String() string {
	names := [...]string{"fresh", "evicted", "restarted", "crashed"}
	if r < 0 || int(r) >= len(names) {
		return fmt.Sprintf("reason %d", int(r))
	}
	return names[r]
}

// MarshalText writes String, so that a reason in JSON is its name.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Activation tells a constructor why it runs. State.Activation returns it.
type Activation struct {
	Reason Reason `json:"reason"`
	// Opened is when the crashed process opened the store. It is set if Reason is
	// Crashed.
	Opened time.Time `json:"opened,omitzero"`
	// Crashes is how many processes in a row have crashed, that one included. It is set
	// if Reason is Crashed.
	Crashes int `json:"crashes,omitempty"`
}

// ready runs the constructor if the activation has no instance. The writes of the
// constructor are a commit of their own, before the handler runs, so that a handler
// which fails does not undo them. The steps are:
//
//  1. Refuse, without running user code, while the wait after a failure lasts.
//  2. Read the object's row, which tells the reason of the instance.
//  3. Make a State, and set it under mu, because end must find it to cancel it.
//  4. Run the constructor as a block: nothing else runs in the object, and the time is
//     limited.
//  5. Commit.
//
// The caller owns the turn. An error has the name of the object.
func (a *activation) ready(t *turn) error {
	if a.instance != nil {
		return nil
	}
	c := a.hosted
	if err := c.failing.check(c, a.object.ID.Name); err != nil {
		return named(a.object.ID, err)
	}
	if err := a.locate(); err != nil {
		return c.host.storageError(a.object.ID, err)
	}
	state := newState(a)
	a.mu.Lock()
	gone := a.gone
	if !gone {
		a.state = state
	}
	a.mu.Unlock()
	if gone { // end found no instance to cancel
		return named(a.object.ID, ErrReset)
	}
	t.state = state

	var instance any
	t.depth++
	err := t.block(t, state, c.options.BlockLimit, func(ctx context.Context) (err error) {
		instance, err = c.construct(ctx, state)
		return err
	})
	t.depth--
	if err == nil {
		err = t.commit(false)
	}
	if err != nil {
		return a.constructorFailed(t, err)
	}
	c.failing.forget(a.object.ID.Name)
	a.instance = instance
	return nil
}

// notTheCodes reports whether a constructor or a block failed for a reason outside of
// its code: a dead store, a shutdown, or a reset. The waiting calls are not refused then,
// because they will get the same error by themselves, or succeed.
func notTheCodes(cause error) bool {
	return errors.Is(cause, ErrStorage) || errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrReset)
}

// constructorFailed drops the writes and the instance of a constructor that has failed,
// notes the failure for the waits between attempts, and answers the waiting calls with
// the cause (O4). It returns the error for the call that ran the constructor. The caller
// owns the turn and keeps it.
func (a *activation) constructorFailed(t *turn, cause error) error {
	t.dropWrites()
	t.object = &a.object
	a.reset(cause)
	if notTheCodes(cause) {
		return cause
	}
	if !errors.Is(cause, ErrNoSpace) { // no wait, because there may be space at any moment
		a.hosted.failing.note(a.hosted, a.object.ID.Name, cause)
	}
	return a.refuseWaiting(cause)
}

// refuseWaiting answers the waiting calls with ErrConstructor, and returns that error.
// The constructor or a block has failed, and they would have run on its instance.
// Alarms and turns of the runtime stay in the queue and run on the next instance.
func (a *activation) refuseWaiting(cause error) error {
	err := because(a.object.ID, named(a.object.ID, ErrConstructor), cause)
	a.mu.Lock()
	var rest []*Request
	for r := a.pop(); r != nil; r = a.pop() {
		rest = append(rest, r)
	}
	var refused []*Request
	for _, r := range rest {
		// pop has marked the request started; back in the queue it is waiting again.
		if _, ok := r.op.(callable); !ok {
			if r.progress.CompareAndSwap(started, waiting) {
				a.push(r)
			} else {
				r.finish(a.host) // its caller has just departed
			}
			continue
		}
		refused = append(refused, r)
	}
	a.mu.Unlock()
	a.host.refuse(err, refused...)
	return err
}

// locate reads the object's row and sets the reason of the instance. Only the first
// call of an activation reads the store: the object changes only in its own turns, so
// later calls take the cached row, and set the reason for an instance that is
// constructed again. The caller owns the turn.
func (a *activation) locate() error {
	store := a.host.store
	if a.located {
		switch {
		case a.instance != nil:
		case a.object.Number == 0: // it was deleted meanwhile
			a.reason = Fresh
		case a.object.Epoch == store.Epoch(): // constructed again after a reset
			a.reason = Evicted
		}
		return nil
	}
	o, err := store.Find(a.object.ID)
	if err != nil {
		return err
	}
	a.placed(o)
	a.located = true
	// The row may stem from a commit of an evicted activation that is not durable yet.
	raise(&a.last, a.host.departed.Load())
	a.rowKnown, a.empty = o.Number == 0, o.Number == 0
	switch {
	case o.Number == 0: // Fresh
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

// cutOff reports whether an earlier process crashed while the object's alarm handler ran
// or an execution of it was open. The open-execution mark tells it for executions, and
// the crashes in the alarm's row for handlers, which flightLog.open has counted. After a
// clean end it reads nothing. The caller owns the turn.
func (a *activation) cutOff() (bool, error) {
	if a.host.store.Previous().Clean {
		return false, nil
	}
	mark, ok, err := a.host.store.OpenMark(a.object)
	if err != nil {
		return false, err
	}
	if ok {
		m, err := decodeOpenMark(mark)
		return err == nil && m.epoch != a.host.store.Epoch(), err
	}
	row, err := a.alarm()
	return row != nil && row.Crashes+row.OwnersLost > 0, err
}

// reset ends the instance of the activation for the given cause: its routines are cancelled,
// and the next turn constructs another instance. The mailbox and its requests stay. The
// caller owns the turn.
func (a *activation) reset(cause error) {
	a.mu.Lock()
	state := a.state
	a.state = nil
	a.mu.Unlock()
	a.instance = nil
	if state != nil {
		state.end(cause)
	}
}

// failing remembers the objects of a class that have a failing constructor, so that the
// constructor does not run again at each call. Calls within the wait get the last
// failure. Each hosted class has one; turns of all its objects use it.
type failing struct {
	mu    sync.Mutex
	m     map[string]*list.Element // by name of the object; guarded by mu
	order list.List                // of failure, the one that failed last at the end; guarded by mu
}

// failure is the last failure of one object's constructor.
type failure struct {
	name  string    // of the object
	times int       // failures in a row
	until time.Time // calls are refused before this
	cause error     // of the last one
}

// The waits after failures of one constructor: 100 ms, 200 ms, and so on up to 30 s.
const (
	failingFirst = 100 * time.Millisecond // after the first failure; doubles
	failingCap   = 30 * time.Second
	// failingMax bounds the objects that are remembered. Beyond it the one that failed
	// longest ago is forgotten, and may construct at once.
	failingMax = 10_000
)

// check returns ErrConstructor with the last cause while the wait of the object lasts,
// and nil otherwise.
func (f *failing) check(c *hosted, name string) error {
	was, ok := f.of(name)
	if !ok || !c.host.seams.Clock.Now().Before(was.until) {
		return nil
	}
	return because(c.id(name), ErrConstructor, was.cause)
}

// of returns the last failure of an object's constructor; ok is false if it has none.
func (f *failing) of(name string) (last failure, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.m[name]
	if e == nil {
		return failure{}, false
	}
	return e.Value.(failure), true
}

// note remembers that the constructor of an object failed, and doubles its wait.
func (f *failing) note(c *hosted, name string, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = make(map[string]*list.Element)
	}
	times := 0
	if e := f.m[name]; e != nil {
		times = e.Value.(failure).times
		f.remove(e)
	}
	if len(f.m) >= failingMax {
		f.remove(f.order.Front())
	}
	wait := min(failingFirst<<min(times, 10), failingCap)
	f.m[name] = f.order.PushBack(failure{name, times + 1, c.host.seams.Clock.Now().Add(wait), cause})
}

// remove takes a failure out. The caller holds mu.
func (f *failing) remove(e *list.Element) {
	delete(f.m, f.order.Remove(e).(failure).name)
}

// forget removes the failure of an object, if it has one, because its constructor has
// succeeded.
func (f *failing) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.m[name]; e != nil {
		f.remove(e)
	}
}

// placed notes where the object is stored. It leaves the ID alone, because other
// goroutines read it. The caller owns the turn.
func (a *activation) placed(o storage.Object) {
	a.object.Shard, a.object.Number, a.object.Epoch, a.object.Label = o.Shard, o.Number, o.Epoch, o.Label
}
