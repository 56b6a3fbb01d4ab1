package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

const (
	pauseMost  = time.Minute // between two lives of a host that broke
	servedLong = time.Minute // a host that has served so long had a good start: the next pause is the shortest again
	turnMost   = shardlog.LookEvery
	pauseLeast = time.Second
)

// run passes the steps of the node until it is to leave the cluster.
func (n *Node) run() {
	pause := pauseLeast
	for n.ctx.Err() == nil {
		served, err := n.life()
		n.closed(err)
		switch {
		case n.ctx.Err() != nil:
		case !n.hasJoined() || errors.Is(err, shardlog.ErrExported):
			n.leave(err) // Join or Err returns it
		case moved(err):
			pause = pauseLeast
			n.o.Logger.Info("another node has taken over: this one waits", "cause", err)
		default:
			if served >= servedLong {
				pause = pauseLeast
			}
			n.o.Logger.Error("the store cannot be served here: this node tries again", "in", pause, "error", err)
			_ = n.seams.Sleep(n.ctx, pause) // the end of ctx ends the loop
			pause = min(2*pause, pauseMost)
		}
	}
	n.end()
}

// moved reports whether a host has ended because another node has taken over.
func moved(err error) bool {
	return errors.Is(err, shardlog.ErrFenced) && !errors.Is(err, storage.ErrAckedDataLost) && !errors.Is(err, shardlog.ErrHole)
}

// end makes the last beat, and ends the node.
func (n *Node) end() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	if n.hasJoined() {
		n.beatNow()
		_ = n.seams.Executor.Wait(context.Background(), n.beaten)
	}
	n.mu.Lock()
	n.changed()
	n.mu.Unlock()
	close(n.done)
}

// hasJoined reports whether the node has waited for its turn.
func (n *Node) hasJoined() bool {
	select {
	case <-n.joined:
		return true
	default:
		return false
	}
}

// life opens a host, which takes until the node has its turn, and serves until the host ends or is to end. It returns for how long it has
// served, and why it has ended.
func (n *Node) life() (served time.Duration, err error) {
	n.pulse.reset()
	name, err := n.clusterName()
	if err != nil {
		return 0, err
	}
	h, err := n.open(name)
	if errors.Is(err, shardlog.ErrTruncated) || errors.Is(err, storage.ErrNotStore) { // the second is left by a restore that was cut off
		if e := n.restore(); e != nil {
			return 0, errors.Join(err, e)
		}
		h, err = n.open(name)
	}
	if err != nil {
		return 0, err
	}
	began := n.seams.Steady()
	err = n.serve(h)
	return n.seams.Steady().Sub(began), err
}

// open opens a host when the node has its turn. Once it has claimed the log it is bounded as a shutdown is, if the node is to leave meanwhile.
func (n *Node) open(name string) (*object.Host, error) {
	opened, bounded, claimed := make(chan struct{}), make(chan struct{}), false
	h, err := object.Open(n.hostOptions(name, func(e *shardlog.Engine, before shardlog.State) {
		claimed = true
		n.claimed(e, before)
		n.seams.Executor.Go("cluster/opening", func() {
			defer close(bounded)
			n.boundOpening(e, opened)
		})
	}), n.defs...)
	close(opened)
	if claimed {
		_ = n.seams.Executor.Wait(context.Background(), bounded)
	}
	return h, err
}

// boundOpening makes an opening give up that waits for the log when the node is to leave. It returns when the host is open or its opening has failed.
func (n *Node) boundOpening(e *shardlog.Engine, opened <-chan struct{}) {
	if n.seams.Executor.Wait(n.ctx, opened) == nil {
		return
	}
	limit, cancel := n.shutdownLimit()
	defer cancel()
	if n.seams.Executor.Wait(limit, opened) != nil {
		e.GiveUp()
		_ = n.seams.Executor.Wait(context.Background(), opened)
	}
}

// clusterName asks the directory for the name of the cluster, which the view notes. It waits until the directory answers.
func (n *Node) clusterName() (string, error) {
	for {
		ctx, cancel := n.limited()
		name, err := n.o.Log.Cluster(ctx)
		cancel()
		switch {
		case err == nil, errors.Is(err, shardlog.ErrRefused):
			return name, err
		case n.seams.Sleep(n.ctx, shardlog.LookEvery) != nil:
			return "", n.Err()
		}
	}
}

// hostOptions are the options of a host over the log.
func (n *Node) hostOptions(name string, claimed func(*shardlog.Engine, shardlog.State)) object.Options {
	l := n.o.Append
	l.Cluster = name
	l.Log, l.Shard, l.Owner = pulsedLog{n.o.Log, &n.pulse}, n.o.Shard, n.o.ID
	l.Turn, l.Check, l.Claimed, l.Context = n.turn, n.check, claimed, n.ctx
	l.Directory, l.RescueDir, l.Logger = n.o.Log, n.o.in(rescueDir), n.o.Logger
	s := n.o.Storage
	s.Dir, s.Seams, s.Log = n.o.in(viewDir), n.o.Seams, n.o.Logger
	s = l.Storage(s)
	over := s.Over
	s.Over = func(view engine.Engine) (engine.Engine, error) { return over(pulsedView{view, &n.pulse}) }
	h := n.o.Host
	h.Dir, h.Storage, h.Seams, h.Logger = s.Dir, s, n.o.Seams, n.o.Logger
	return h
}

// turn tells the opening of a store whether to claim. It returns when that changes, or after a while.
func (n *Node) turn() (claim bool, seen uint64, err error) {
	n.waits()
	for range 2 {
		changed := n.Changed()
		if err := n.Err(); err != nil {
			return false, 0, err
		}
		if seen, wait := n.claimable(); wait == "" {
			return true, seen, nil
		}
		limit, cancel := n.limit(n.ctx, turnMost)
		timedOut := n.seams.Executor.Wait(limit, changed) != nil
		cancel()
		if timedOut {
			break
		}
	}
	return false, 0, n.Err()
}

// waits notes that the view is open, so that the node could own the log. The first time it begins to beat.
func (n *Node) waits() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready.IsZero() || n.watch.skew > skewMost {
		return
	}
	n.ready, n.trouble = n.seams.Steady(), ""
	n.beatNow()
	if !n.hasJoined() {
		close(n.joined)
		n.seams.Executor.Go("cluster/beats", n.beats)
	}
}

// claimable is the rule of the watch, now.
func (n *Node) claimable() (seen uint64, wait string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.watch.claimable(n.seams.Steady(), n.ready)
}

// check looks at the view before a claim: a store must be able to begin over it, and the disk must have space. All else that object.Open and
// storage.Open refuse, such as a wrong definition or format, they refuse before they open the view.
func (n *Node) check(view engine.Engine) error {
	s, err := storage.OpenReadOnly(storage.Options{Engine: unclosed{view}, Seams: n.o.Seams})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	dir := n.o.Storage.Pebble.Dir(n.o.in(viewDir))
	floor := cmp.Or(n.o.Storage.MinFreeBytes, storage.DefaultMinFreeBytes)
	free, err := dir.FreeBytes()
	if err != nil || int64(free) >= floor { // a file system that cannot tell has no floor, as in package storage
		return nil
	}
	return fmt.Errorf("%w: %s: %d MiB are free, want %d MiB: free some space", storage.ErrNoSpace, dir.Path, free>>20, floor>>20)
}

// unclosed is a view that stays open when a look at it is closed.
type unclosed struct{ engine.Engine }

func (unclosed) Close() error { return nil }

// claimed notes that this node owns the log.
func (n *Node) claimed(e *shardlog.Engine, before shardlog.State) {
	n.mu.Lock()
	n.engine = e
	n.mu.Unlock()
	n.o.Logger.Info("this node has claimed the log", "term", e.Term(), "before", before.Node())
}

// serve lets calls in until the host ends or is to end, and shuts it down. It returns why the host has ended.
func (n *Node) serve(h *object.Host) error {
	ctx, cease := context.WithCancelCause(n.ctx)
	defer cease(nil)
	term := n.serves(h, cease)
	n.o.Logger.Info("this node serves", "term", term)
	snapshots := n.keepSnapshots(ctx, h)
	var cause error
	if n.seams.Executor.Wait(ctx, h.Done()) == nil {
		cause = h.Err()
	} else {
		cause = context.Cause(ctx)
	}
	n.ceases()
	cease(cause)
	_ = n.seams.Executor.Wait(context.Background(), snapshots)
	n.awaitAsked()
	limit, cancel := n.shutdownLimit()
	defer cancel()
	err := h.Shutdown(limit)
	if n.ctx.Err() != nil && !errors.Is(err, cause) {
		n.endErr = err // read after done
	}
	n.o.Logger.Info("this node has ceased to serve", "term", term, "cause", cause, "shutdown", err)
	return cause
}

// serves notes that the host serves, and returns its term.
func (n *Node) serves(h *object.Host, cease context.CancelCauseFunc) (term uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cease = cease
	n.host.Store(h)
	n.changed()
	return n.engine.Term()
}

// ask has the log tell whether this node owns it still, because a look showed a newer term. An owner without a call would not notice: the
// answer ends its host. It is called by the goroutine of beats and makes the call on another one.
func (n *Node) ask(h *object.Host) {
	select {
	case <-n.asks:
	default:
		return // it asks already
	}
	n.seams.Executor.Go("cluster/ask", func() {
		defer func() { n.asks <- struct{}{} }()
		_ = h.Store().WaitSeen(n.ctx) // an error that matters is that of the host
	})
}

// awaitAsked waits until no goroutine asks the log.
func (n *Node) awaitAsked() {
	_ = n.seams.Executor.Wait(context.Background(), n.asks)
	n.asks <- struct{}{}
}

// ceases notes that the host takes no more calls, and tells the other nodes that this one is about to have nothing open.
func (n *Node) ceases() {
	n.host.Store(nil)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cease, n.ceasing = nil, true
	n.changed()
	n.beatNow()
}

// closed notes that nothing is open any more, so that another node may take over at once.
func (n *Node) closed(cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready, n.ceasing, n.engine = time.Time{}, false, nil
	if cause != nil {
		n.trouble = cause.Error()
	}
	n.changed()
	n.beatNow()
}

// shutdownLimit is the limit of a shutdown: that of the caller of Drain, or ten seconds.
func (n *Node) shutdownLimit() (context.Context, context.CancelFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.grace != nil {
		return n.grace, func() {}
	}
	return n.limit(context.Background(), graceMost)
}
