package shardlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// # The path of a commit
//
//  1. Apply adds the batch to the round, under a mutex, and then gives it to the view. So batches of the same keys, which never
//     run beside one another, have the same order in both.
//  2. Sync takes the round and appends it, in records of at most Options.MaxRecordBytes. One goroutine at a time appends: the
//     one that has the token. An append of unknown outcome is made again until its outcome is known.
//  3. The barrier opens for the batches of the round: tables of the view may hold them from now on.
//  4. Sync writes the position of the newest round that the view has as a whole into the view, without the token,
//     because that write may wait for a table, which waits for the barrier, which appends.
//
// Invariants: tables of the view hold acknowledged batches only. The position row that a table holds is not newer than
// all of that table's batches, so a replay from it repeats some records and misses none.

// Engine is a storage engine over a view and a Log. It owns the view. A Store closes it.
type Engine struct {
	asker // its calls are owned by the token
	view  engine.Engine
	*barrier
	// appending holds one value, the token, which a goroutine takes to append.
	appending chan struct{}
	giveUp    context.CancelCauseFunc // of the calls; GiveUp calls it
	closed    func()
	// tookOver says that another node had the log before. It never changes once the engine is open.
	tookOver bool

	noSpace atomic.Pointer[error] // why the log has no space; nil: it has
	kept    kept

	// Owned by the token.
	term  uint64   // of the owner; while it opens, that of the last record that was read
	last  Position // of the last record that the log has acknowledged
	chain uint64   // of that record

	tables   place // while it opens, the newest record that a table of the view may have a part of
	compared bool  // the log was found to have that record when it refused an append
}

var _ engine.Fenced = (*Engine)(nil)
var _ engine.Mortal = (*Engine)(nil)

var (
	errClosed  = errors.New("shardlog: closed")
	errGivenUp = errors.New("shardlog: the store ends and does not wait for the log")
)

// Open brings a view up to the end of its log, claims the log, and returns the engine over both. The view must keep nothing
// that a crash could lose and Sync has not made durable, as a memstore.Store. Use Options.Storage for a directory.
//
// With Options.Turn it waits for its turn, and brings the view up to date all the while.
//
// It returns ErrFenced if another process claims the log meanwhile, ErrHole if the records do not follow one another,
// ErrTruncated if the view is older than the log, storage.ErrAckedDataLost if the view has records that the log lacks, ErrOtherCluster if
// it is one of another cluster, and ErrUnknown if the log does not answer. With Options.Turn a claim that is lost and a log that does not answer
// are no errors, and those of Turn and Check are returned. The end of Options.Context is returned with its cause. The view stays the caller's then, and may be opened again.
func Open(o Options, view engine.Engine) (*Engine, error) { return start(o, view, new(barrier)) }

// start is Open with the barrier of the view.
func start(o Options, view engine.Engine, b *barrier) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{view: view, barrier: b, appending: make(chan struct{}, 1), closed: func() {}}
	opening, opened := context.WithCancelCause(o.Context)
	defer opened(nil)
	e.asker = newAsker(o, opening, o.Patience)
	e.full = e.setFull
	b.lead = func() error { return e.flush(false) }
	b.round = new(round)
	before, err := e.own()
	if err != nil {
		err = e.reported(err)
		_ = b.fail(err)
		return nil, fmt.Errorf("shardlog: shard %d: %w", o.Shard, err)
	}
	e.calls, e.giveUp = context.WithCancelCause(context.WithoutCancel(o.Context))
	e.appending <- struct{}{}
	if o.Claimed != nil {
		o.Claimed(e, before)
	}
	return e, nil
}

// Replaced implements engine.Fenced: Options.Owner differs from that of the claim before.
func (e *Engine) Replaced() bool { return e.tookOver }

// Apply implements engine.Engine.
func (e *Engine) Apply(repr []byte) error {
	r, err := e.join(repr)
	if err != nil {
		return err
	}
	if err := e.view.Apply(repr); err != nil {
		return e.fail(err)
	}
	r.left.Add(-1)
	return nil
}

// Sync implements engine.Engine. Without a batch since the last append it asks the log for its head, which shows that
// no other process had taken over when Sync began.
func (e *Engine) Sync() error {
	if err := e.flush(true); err != nil {
		return err
	}
	return e.mark()
}

// mark writes the position of the newest round that the view has as a whole.
func (e *Engine) mark() error {
	r := e.whole()
	if r == nil {
		return nil
	}
	if err := writePosition(e.view, r.last, r.chain); err != nil {
		return e.fail(err)
	}
	return nil
}

// flush appends the round, and opens the barrier for it. If the round is empty and confirm is set, it asks for the head.
func (e *Engine) flush(confirm bool) error {
	_ = e.o.Seams.Executor.Wait(context.Background(), e.appending)
	defer func() { e.appending <- struct{}{} }()
	r, upTo, err := e.take()
	if err != nil {
		return err
	}
	if r == nil {
		if !confirm {
			return nil
		}
		if err := e.confirm(); err != nil {
			return e.ends(err)
		}
		return nil
	}
	for rest := r.frames; len(rest) > 0; {
		var payload []byte
		payload, rest = split(rest, e.o.MaxRecordBytes)
		if err := e.append(payload); err != nil {
			return e.ends(err)
		}
	}
	r.last, r.chain = e.last, e.chain
	e.acknowledge(r, upTo)
	return nil
}

// append stores one record, however often that takes. The caller has the token.
func (e *Engine) append(payload []byte) error {
	r := Record{At: e.last + 1, Term: e.term, Chain: Next(e.chain, payload), Payload: payload}
	e.o.Seams.At("append/before", "")
	unknown := false // of a call before the last, which may have stored the record
	err := e.repeat("append", func(ctx context.Context) error {
		err := e.o.Log.Append(ctx, e.o.Shard, e.chain, r)
		unknown = unknown || isUnknown(err)
		return err
	})
	if err != nil && unknown && !errors.Is(err, ErrUnknown) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if errors.Is(err, ErrFenced) {
		return e.fenced(err)
	}
	if err != nil {
		return err
	}
	e.o.Seams.At("append/after", "")
	e.last, e.chain = r.At, r.Chain
	e.kept.add(r)
	e.progress.acked(r)
	return nil
}

// setFull notes why the log has no space, or nil if it has.
func (e *Engine) setFull(why error) {
	if why == nil {
		e.noSpace.Store(nil)
		return
	}
	stored := why // so that nil takes no memory
	e.noSpace.Store(&stored)
}

// Full implements engine.Fenced.
func (e *Engine) Full() error {
	if err := e.noSpace.Load(); err != nil {
		return *err
	}
	return nil
}

// GiveUp implements engine.Fenced.
func (e *Engine) GiveUp() { e.giveUp(errGivenUp) }

// Get implements engine.Engine.
func (e *Engine) Get(key []byte) ([]byte, io.Closer, error) { return e.view.Get(key) }

// NewIter implements engine.Engine.
func (e *Engine) NewIter(lower, upper []byte) (engine.Iterator, error) {
	return e.view.NewIter(lower, upper)
}

// Usage implements engine.Engine.
func (e *Engine) Usage(lower, upper []byte) (uint64, error) { return e.view.Usage(lower, upper) }

// OnDeath implements engine.Mortal: the engine fails with its view, and when another process takes over.
func (e *Engine) OnDeath(f func(error)) {
	e.onDeath(f)
	if m, ok := e.view.(engine.Mortal); ok {
		m.OnDeath(f)
	}
}

// Close implements engine.Engine. It appends the round, unless the engine has failed or given up, and closes the view. The barrier keeps
// batches that the log does not have out of its tables.
func (e *Engine) Close() error {
	err := e.failed()
	if err == nil {
		if err = e.flush(false); err == nil {
			err = e.mark()
		}
	}
	err = errors.Join(err, e.view.Close())
	_ = e.fail(errClosed)
	e.closed()
	e.giveUp(errClosed)
	return err
}
