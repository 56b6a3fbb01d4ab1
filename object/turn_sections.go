package object

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Release lends the turn to other turns of the object while fn does slow work outside,
// for example a request over the network. It first commits the turn's writes so far and
// waits until they are durable, as Sync does. When fn has ended, Release takes the turn
// back, before calls that wait in the mailbox, and returns fn's error.
//
// fn cannot use the object's State, and after Release other turns may have changed the
// object's memory and its keys, so read them again. Calls that fn makes with
// ctx are calls of this turn, so they can fail with ErrDeadlock; fn should wait for them
// to end.
//
// Over a replicated log fn begins once the log has shown that no other process had taken it over, also in a turn
// without writes. Release returns ErrUnknown, and does not call fn, if the log has not answered for 10 s.
//
// Release returns ErrReset if the instance is gone when fn has ended. It returns an error,
// and does not call fn, in a constructor, in BlockConcurrencyWhile and in a transaction,
// because these keep every other turn out.
func (s *State) Release(ctx context.Context, fn func(context.Context) error) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if t.depth > 0 {
		return fmt.Errorf("%s: object: release inside a constructor or BlockConcurrencyWhile", s.act.object.ID)
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	a := s.act
	if !t.grasp() { // another goroutine of the handler has lent it out, or the handler has returned
		return named(s.act.object.ID, ErrNoTurn)
	}
	key, first := a.answers.lend(t)
	if first != nil {
		defer close(first.back)
	}
	what := a.what
	a.holds.Add(1) // so that an object with a lent turn is not evicted
	defer a.holds.Add(-1)
	a.host.lent.add(a, &lentTurn{turn: t, method: a.method(), since: a.host.seams.Steady()})
	defer a.host.lent.remove(a, t)
	t.phase.Store(phaseLent)
	if m := t.message; m != nil {
		m.lendOut()
	}
	a.yield()
	err = guard(&a.object.ID, func() error { return fn(ctx) }, func(error) {})
	if !a.resume(what) {
		t.pass(phaseLent, phaseLost)
		return named(a.object.ID, ErrReset)
	}
	if !t.pass(phaseLent, phaseBusy) { // the handler has returned
		a.yield()
		return s.inTurn(t)
	}
	t.resumed()
	a.answers.resume(key)
	t.letGo()
	a.host.waits.resumed(t)
	if s.err() != nil {
		return named(a.object.ID, ErrReset)
	}
	return err
}

// lent holds the turns of a host that are lent out, for Host.Explain.
type lent struct {
	mu    sync.Mutex // guards the map; activation.mu is not locked under it
	turns map[*activation]map[*turn]*lentTurn
}

// lentTurn is a turn that Release has lent out. It never changes.
type lentTurn struct {
	turn   *turn
	method string
	since  time.Time // steady
}

// add notes that a turn of a is lent out. The caller owns the turn.
func (l *lent) add(a *activation, t *lentTurn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turns == nil {
		l.turns = make(map[*activation]map[*turn]*lentTurn)
	}
	if l.turns[a] == nil {
		l.turns[a] = make(map[*turn]*lentTurn)
	}
	l.turns[a][t.turn] = t
}

// remove notes that a turn is lent out no more.
func (l *lent) remove(a *activation, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.turns[a], t); len(l.turns[a]) == 0 {
		delete(l.turns, a)
	}
}

// of returns the turns of a that are lent out, in the order of their times.
func (l *lent) of(a *activation) []*lentTurn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.turns[a]), func(x, y *lentTurn) int { return x.since.Compare(y.since) })
}

// resumed brings the draft up to date after other turns of the object have run: it points
// the draft at the activation's object again and forgets the marks that it knew. If
// another turn has replaced the alarm that t handles, the commit of t must not remove the
// new one, so firing is cleared. The caller owns the turn and has grasped it.
func (t *turn) resumed() {
	a := t.act
	t.object = &a.object
	t.forgetMarked()
	if t.firing != nil && (a.row == nil || a.row.Gen != t.firing.Gen) {
		t.firing = nil
	}
}

// handOver is the operation of a request that stands in the mailbox for a turn that was
// lent out and is wanted back. The goroutine that takes the request from the mailbox sends
// to wake, and thereby gives the turn to the goroutine that waits in resume.
type handOver struct{ wake chan struct{} }

// run makes handOver an operation. It is never called, because Run looks for handOver.
func (handOver) run(context.Context, *activation) error { return nil }

// resume gets the turn back for a goroutine that has lent it out, and waits while another
// turn of the object runs. It reports whether the goroutine owns the turn; false means
// that the object has left memory. After a reset of the instance the turn comes back all
// the same, because its end touches fields that only the owner of the turn may touch. It
// takes a.mu, but not while it waits.
func (a *activation) resume(what *string) bool {
	h := handOver{wake: make(chan struct{}, 1)}
	a.mu.Lock()
	switch {
	case a.gone:
		a.mu.Unlock()
		return false
	case !a.running:
		a.begin(what)
		a.mu.Unlock()
		return true
	}
	a.pushFront(&Request{id: a.object.ID, op: h, what: what})
	a.mu.Unlock()
	_ = a.host.seams.Executor.Wait(context.Background(), h.wake)
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.gone
}

// inTurn returns nil while t holds the object, and otherwise why it does not: ErrReset if
// the instance is gone, else ErrNoTurn.
func (s *State) inTurn(t *turn) error {
	switch {
	case s.err() != nil:
		return named(s.act.object.ID, ErrReset)
	case !t.holds():
		return named(s.act.object.ID, ErrNoTurn)
	}
	return nil
}

// Await lends the turn to other turns of the object, as Release does, until something is
// sent to ch or ch is closed. It is for a handler that waits for another call of the same
// object; for example, a worker waits until a call of Put has brought it a task.
//
// During Shutdown Await returns ErrShutdown at once, because the host takes no new call
// that could end the wait. To wait for a routine of the object, which may end while the host
// shuts down, use Release. Await returns the cause of ctx's end if that comes first, and
// the errors of Release.
func (s *State) Await(ctx context.Context, ch <-chan struct{}) error {
	h := s.act.host
	err := s.Release(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		place := h.awaits.enter(cancel)
		defer h.awaits.leave(place)
		return h.seams.Executor.Wait(ctx, ch)
	})
	if errors.Is(err, ErrShutdown) && ctx.Err() == nil {
		return named(s.act.object.ID, ErrShutdown)
	}
	return err
}

// awaits holds the calls of Await that are under way in a host, so that Shutdown can end
// them. The mutex guards all its fields and the index of each place. The calls stand in a
// slice and not in a map, because a simulation must cancel them in the same order each
// time it is run with the same seed.
type awaits struct {
	mu    sync.Mutex
	ended bool // end has been called
	all   []*awaitPlace
}

// awaitPlace is one call of Await: its index in awaits.all, and the function that ends it.
type awaitPlace struct {
	index  int
	cancel context.CancelCauseFunc
}

// enter adds a call of Await, and cancels it at once if the host shuts down. The caller
// calls leave with the place when its wait has ended.
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

// leave takes a call out: the last one moves to its index, so that leaving takes the same
// time however many calls wait.
func (w *awaits) leave(p *awaitPlace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.all) - 1
	w.all[p.index] = w.all[last]
	w.all[p.index].index = p.index
	w.all[last] = nil
	w.all = w.all[:last]
}

// end ends the calls of Await that are under way with ErrShutdown, and later calls as soon
// as they enter. Shutdown calls it once.
func (w *awaits) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, p := range w.all {
		p.cancel(ErrShutdown)
	}
}

// maxBlockDepth bounds the nesting of BlockConcurrencyWhile, so that a recursion by
// mistake ends in ErrTooDeep and does not overflow the counter of a turn.
const maxBlockDepth = 64

// BlockConcurrencyWhile runs fn and keeps every other call and alarm of the object out
// until fn has ended. A turn keeps them out already, so within a turn it adds two things:
//
//   - a limit: fn may take ClassOptions.BlockLimit, and ErrTimeout ends it after that;
//   - a consequence: if fn returns an error, panics or passes the limit, the instance is
//     reset, and the calls that wait get ErrConstructor with fn's error.
//
// So it is for code without which the object cannot go on, for example the load of its
// configuration. It nests up to 64 deep and returns ErrTooDeep beyond. From a routine (see
// Go) it takes a turn for fn, as Do does.
func (s *State) BlockConcurrencyWhile(ctx context.Context, fn func(context.Context) error) error {
	t := turnOf(ctx)
	if t == nil || t.state != s || !t.holds() {
		return s.Do(ctx, func(ctx context.Context) error { return s.BlockConcurrencyWhile(ctx, fn) })
	}
	if t.depth >= maxBlockDepth {
		return named(s.act.object.ID, ErrTooDeep)
	}
	t.depth++
	err := t.block(ctx, s, s.act.hosted.options.BlockLimit, fn)
	t.depth--
	if err == nil {
		return s.inTurn(t)
	}
	if !t.grasp() {
		return errors.Join(err, s.inTurn(t))
	}
	defer t.letGo()
	t.dropWrites()
	t.reset(err)
	if !notTheCodes(err) {
		_ = s.act.refuseWaiting(err)
	}
	return err
}

// block runs fn with the limit of BlockConcurrencyWhile, on the goroutine of its caller. A
// goroutine cannot be stopped from outside, so if fn still runs at the limit, the timer
// takes the activation out of service: no commit of it is applied any more, the calls that
// wait get ErrConstructor, and the next call makes a new activation while fn goes on.
//
// It takes the State and not that of the turn, because a goroutine of the handler may begin
// a block at the very moment at which the handler returns and the turn loses its draft.
func (t *turn) block(ctx context.Context, state *State, limit time.Duration, fn func(context.Context) error) error {
	a := state.act
	clock := a.host.seams.Clock
	inner := &limited{Context: ctx, at: clock.Now().Add(limit)}
	timer := clock.AfterFunc(limit, func() {
		if inner.expire() {
			t.overdue(a, state, limit)
		}
	})
	defer inner.end()
	defer timer.Stop()
	err := t.protect(&a.object.ID, func() error { return fn(inner) })
	if inner.end() {
		t.overdue(a, state, limit) // the timer may be on its way there
	}
	if cause := state.err(); cause != nil && errors.Is(cause, ErrTimeout) {
		return cause
	}
	return err
}

// overdue takes the activation out of service, because a block has reached its limit. It
// may be called twice at a time, and the instance has ended when either call returns. If
// the turn is over it does nothing: the block runs on a goroutine that has outlived it.
func (t *turn) overdue(a *activation, state *State, limit time.Duration) {
	if t.phase.Load() == phaseOver {
		return
	}
	err := because(a.object.ID, named(a.object.ID, ErrConstructor), fmt.Errorf("%w: limit %v", ErrTimeout, limit))
	if !a.end(err, func(rs []*Request) { a.host.refuse(err, rs...) }) {
		state.end(err)
	}
}

// limited is the context of a block, which has a limit of time. The first call of Done
// makes the inner context that can be cancelled, because most blocks never call Done and
// would pay for it with ten allocations. The timer of block calls expire on a goroutine of
// its own while the block runs, so mu guards the inner context and ended.
type limited struct {
	context.Context           // that of the turn
	at              time.Time // the limit

	mu      sync.Mutex
	made    context.Context // the inner context; nil until Done or expire makes it
	cancel  context.CancelCauseFunc
	ended   bool // the block has returned
	expired bool // the limit came before that
}

// Deadline returns the limit, or the deadline of the turn's context if that is earlier.
func (l *limited) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

// Done is closed when the turn's context ends, at the limit, or when the block has
// returned, whichever comes first.
func (l *limited) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.make().Done()
}

// make returns the inner context, and makes it if there is none. The caller holds l.mu.
func (l *limited) make() context.Context {
	if l.made == nil {
		l.made, l.cancel = context.WithCancelCause(l.Context)
		if l.ended {
			l.cancel(context.Canceled)
		}
	}
	return l.made
}

// Err returns why the context has ended, or nil while it lives. It makes no inner context.
func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.made != nil:
		return l.made.Err()
	case l.ended:
		return context.Canceled
	}
	return l.Context.Err()
}

// Value returns the values of the turn's context. Once there is an inner context, that one
// answers, because package context asks Value for the parent to which it attaches a child.
// The mutex is not held during the inner call.
func (l *limited) Value(key any) any {
	l.mu.Lock()
	made := l.made
	l.mu.Unlock()
	if made != nil {
		return made.Value(key)
	}
	return l.Context.Value(key)
}

// expire ends the context at its limit, with the cause ErrTimeout. It reports false, and
// does nothing, if the block has returned before. The timer calls it.
func (l *limited) expire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.expired = true
	l.make()
	l.cancel(ErrTimeout)
	return true
}

// end ends the context when its block has returned, so that no child of it lives on. It
// reports whether the limit came before. A second call has the same result.
func (l *limited) end() (expired bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.made != nil {
		l.cancel(context.Canceled)
	}
	return l.expired
}
