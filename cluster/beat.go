package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

const (
	beatMost    = 2 * time.Second // one call of the directory
	forgetAfter = 7 * 24 * time.Hour
	forgetEvery = time.Hour
	tellEvery   = time.Minute
	version     = 1 // of the records that this package reads and writes
)

// beats tells the others that this node lives and looks at them, until the node has ended.
func (n *Node) beats() {
	defer close(n.beaten)
	defer func() { _ = n.seams.Executor.Wait(context.Background(), n.probes) }()
	var told, forgot time.Time
	for {
		last := n.beatOnce(&told)
		if last {
			return
		}
		if now := n.seams.Steady(); forgot.IsZero() || now.Sub(forgot) >= forgetEvery {
			forgot = now
			n.forget()
		}
		n.probe()
		limit, cancel := n.limit(context.Background(), shardlog.LookEvery)
		_ = n.seams.Executor.Wait(limit, n.hurry)
		cancel()
	}
}

// beatOnce makes one beat and takes its look. It reports whether that was the last.
func (n *Node) beatOnce(told *time.Time) (last bool) {
	row, last := n.next()
	if row.ID == "" {
		return last
	}
	began, before := n.seams.Steady(), n.seams.Clock.Now()
	look, err := n.callBeat(row)
	ended, after := n.seams.Steady(), n.seams.Clock.Now()
	switch {
	case errors.Is(err, shardlog.ErrFenced):
		n.replaced(err)
	case err != nil:
		n.mu.Lock()
		n.watch.silence.Failed(began, ended)
		n.deaf = true
		n.mu.Unlock()
		if told.IsZero() || ended.Sub(*told) >= tellEvery {
			*told = ended
			n.o.Logger.Warn("a beat has failed: this node sees no other", "error", err)
		}
	default:
		n.looked(began, ended, before, after, look)
	}
	return last
}

// next is the row of the next beat, without an id if another process has the row, and whether it is the last.
func (n *Node) next() (row shardlog.Node, last bool) {
	works := n.pulse.works()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fenced {
		return row, n.ended
	}
	if works && !n.deaf {
		n.beat++
	}
	row = shardlog.Node{ID: n.o.ID, Incarnation: n.incarnation, Version: version, Beat: n.beat, Draining: true}
	if !n.ready.IsZero() {
		row.Addr, row.Draining = n.o.Addr, n.ceasing || n.ctx.Err() != nil
	}
	return row, n.ended
}

// callBeat is Directory.Beat with a limit of time.
func (n *Node) callBeat(row shardlog.Node) (shardlog.Look, error) {
	ctx, cancel := n.limited()
	defer cancel()
	return n.o.Log.Beat(ctx, n.o.Shard, row)
}

// limit is a context that ends after d. Unlike that of Seams.WithDeadline it has no time of day, so no jump of the clock makes it longer.
func (n *Node) limit(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	t := n.seams.Clock.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { t.Stop(); cancel(context.Canceled) }
}

// limited is a context for one call of the directory.
func (n *Node) limited() (context.Context, context.CancelFunc) {
	return n.limit(context.Background(), beatMost)
}

// looked takes the look of a beat.
func (n *Node) looked(began, ended, before, after time.Time, look shardlog.Look) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &n.watch
	was := w.skew
	n.deaf = false
	w.looked(began, ended, before, after, look)
	if row, ok := w.row(n.o.ID); ok && n.incarnation == 0 {
		n.incarnation = row.Incarnation
	}
	if w.skew > skewMost && n.engine == nil {
		n.ready = time.Time{} // the others must not take this node for an owner that lives
	}
	if h := n.host.Load(); h != nil && look.State.Term > n.engine.Term() {
		n.ask(h)
	}
	switch {
	case w.skew > skewMost && n.cease != nil:
		n.cease(fmt.Errorf("%w: %v off the clock of the log", ErrClock, w.skew))
	case w.skew > skewTold && was <= skewTold:
		n.o.Logger.Warn("the clock of this machine is off: alarms may ring early or late, and above 5 s the node ceases to serve", "by", w.skew)
	}
	n.changed()
}

// replaced finds out why another process has the row of this node: it has the same id, or it is an operator that drains the
// node (see Drain). While the directory does not tell, the next beat asks again.
func (n *Node) replaced(cause error) {
	ctx, cancel := n.limited()
	defer cancel()
	look, err := n.o.Log.Look(ctx, n.o.Shard)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, row := range look.Nodes {
		if row.ID == n.o.ID && row.Draining && row.Addr != "" {
			n.incarnation = row.Incarnation // the order is for this process, so the row is its own again
			n.o.Logger.Info("this node is being drained from outside")
			n.leave(ErrClosed)
			n.beatNow()
			return
		}
	}
	n.fenced = true
	n.o.Logger.Error("another process has the id of this node: this one ends", "error", cause)
	n.leave(fmt.Errorf("%w: %q: %w", ErrIDUsed, n.o.ID, cause))
}

// forget removes the rows of nodes that have not beaten for a week.
func (n *Node) forget() {
	ctx, cancel := n.limited()
	defer cancel()
	if err := n.o.Log.Forget(ctx, forgetAfter); err != nil {
		n.o.Logger.Warn("rows of nodes that are gone could not be removed: it is tried again in an hour", "error", err)
	}
}
