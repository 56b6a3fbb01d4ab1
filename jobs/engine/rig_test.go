package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// rig is an object over Engine. A test chooses each part of its policy.
type rig struct {
	st     *object.State
	engine *engine.Engine
	kind   *rigKind
}

// rigKind is the definition of a rig. A function that is nil does nothing.
type rigKind struct {
	*object.Class[rig]
	options engine.Options
	next    func() time.Time
	idle    func() time.Time
	due     func(ctx context.Context, r *rig, now time.Time) error
	ended   func(ctx context.Context, r *rig, x engine.Execution, out engine.Outcome) error
	settle  func(ctx context.Context, r *rig) error

	fn   func(ctx context.Context, r *rig) error // the handler of the present call
	call *object.Method[int, int]
}

func newRigKind(k *rigKind) *rigKind {
	k.Class = object.Define("rig", func(ctx context.Context, st *object.State) (*rig, error) {
		r := &rig{st: st, kind: k}
		var err error
		r.engine, err = engine.Attach(ctx, st, k.options, r)
		return r, err
	})
	k.call = object.Handle(k.Class, "call", func(r *rig, ctx context.Context, _ int) (int, error) { return 0, k.fn(ctx, r) })
	return k
}

// do runs fn in a turn of the rig named r.
func (k *rigKind) do(h *object.Host, fn func(ctx context.Context, r *rig) error) error {
	k.fn = fn
	_, err := k.call.Call(context.Background(), h, "r", 0)
	return err
}

// turn runs fn in a turn of the engine of the rig named r.
func (k *rigKind) turn(h *object.Host, fn func(ctx context.Context, r *rig) error) error {
	return k.do(h, func(ctx context.Context, r *rig) error {
		return r.engine.Turn(ctx, func(ctx context.Context) error { return fn(ctx, r) })
	})
}

// begin begins an execution in a turn of its own.
func (k *rigKind) begin(t *testing.T, h *object.Host, s engine.Spec) (x engine.Execution) {
	t.Helper()
	err := k.turn(h, func(ctx context.Context, r *rig) (err error) {
		x, err = r.engine.Begin(ctx, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// open returns the executions that are open.
func (k *rigKind) open(t *testing.T, h *object.Host) (open []engine.Execution) {
	t.Helper()
	err := k.do(h, func(_ context.Context, r *rig) error {
		open = r.engine.Executions()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return open
}

func (r *rig) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return r.engine.Alarm(ctx, info)
}

func (r *rig) Next() (at time.Time) {
	if r.kind.next != nil {
		at = r.kind.next()
	}
	return at
}

func (r *rig) IdleEnd() (at time.Time) {
	if r.kind.idle != nil {
		at = r.kind.idle()
	}
	return at
}

func (r *rig) Due(ctx context.Context, now time.Time) error {
	if r.kind.due == nil {
		return nil
	}
	return r.kind.due(ctx, r, now)
}

func (r *rig) Ended(ctx context.Context, x engine.Execution, out engine.Outcome) error {
	if r.kind.ended == nil {
		return nil
	}
	return r.kind.ended(ctx, r, x, out)
}

func (r *rig) Settle(ctx context.Context, _ time.Time) error {
	if r.kind.settle == nil {
		return nil
	}
	return r.kind.settle(ctx, r)
}

// lives is the processes of one store in memory, one after another, on virtual time.
type lives struct {
	t    *testing.T
	mem  *memstore.Store
	host *object.Host
	defs []object.Definition

	options object.Options // of the next process
}

// inLives runs fn with the first process of a store that has these classes.
func inLives(t *testing.T, fn func(t *testing.T, l *lives), defs ...object.Definition) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lives{t: t, mem: memstore.New(), defs: defs}
		l.begin()
		fn(t, l)
		if l.host != nil { // else the test has shut it down
			l.close()
		}
	})
}

// begin opens the store.
func (l *lives) begin() {
	l.t.Helper()
	o := l.options
	o.Storage = storage.Options{Engine: l.mem, Shards: 1}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h, err := object.Open(o, l.defs...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.host = h
}

// crash ends the process as a power failure does.
func (l *lives) crash() {
	l.t.Helper()
	left := l.mem.Crash(0)
	_ = l.host.Shutdown(cut())
	l.mem = left
}

// close ends the process in order, with the works that are under way cut off.
func (l *lives) close() {
	l.t.Helper()
	_ = l.host.Shutdown(cut())
	synctest.Wait()
}

// hangs is a work that goes on until its context ends.
func hangs(ctx context.Context, _ engine.Execution) (engine.Result, error) {
	<-ctx.Done()
	return engine.Result{}, context.Cause(ctx)
}

// at is a function that returns always the same time.
func at(when time.Time) func() time.Time { return func() time.Time { return when } }
