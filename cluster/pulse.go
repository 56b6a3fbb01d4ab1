package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// hungAfter is how long a call may be without an answer until the node no longer beats.
const hungAfter = 10 * time.Second

// pulse tells whether the store of a node works: whether the log answers its appends and heads, and the view takes batches. Its
// methods may be called from any goroutine.
type pulse struct {
	seams *seam.Seams

	mu sync.Mutex // guards the fields below
	// since is when the oldest call of the log began among those that no answer of the log has followed. Zero: there is none.
	since time.Time
	// batches is how many the view had taken at the last look, at which a batch was on its way, and busy when that was seen first. Zero: none was.
	batches uint64
	busy    time.Time

	began, ended atomic.Uint64 // batches that the view was given, and has taken
}

// asked notes that a call of the log begins.
func (p *pulse) asked() {
	now := p.seams.Steady()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
}

// answered notes the end of a call. An error that leaves its outcome unknown is no answer.
func (p *pulse) answered(err error) {
	if err != nil && !errors.Is(err, shardlog.ErrFenced) && !errors.Is(err, shardlog.ErrRefused) && !errors.Is(err, shardlog.ErrNoSpace) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}

// reset forgets the calls of an engine that has ended.
func (p *pulse) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.busy = time.Time{}, time.Time{}
}

// works reports whether no call hangs. It is called at each beat, because it finds a batch that hangs by its own looks.
func (p *pulse) works() bool {
	now, ended := p.seams.Steady(), p.ended.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.began.Load() <= ended:
		p.busy = time.Time{}
	case p.busy.IsZero() || p.batches != ended:
		p.batches, p.busy = ended, now
	}
	return !late(p.since, now) && !late(p.busy, now)
}

// late reports whether a call hangs that began at a time, which is zero if there is none.
func late(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= hungAfter }

// pulsedLog is the log of a node, with its pulse.
type pulsedLog struct {
	Log
	pulse *pulse
}

func (l pulsedLog) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	l.pulse.asked()
	err := l.Log.Append(ctx, shard, before, r)
	l.pulse.answered(err)
	return err
}

func (l pulsedLog) Head(ctx context.Context, shard int) (shardlog.State, error) {
	l.pulse.asked()
	state, err := l.Log.Head(ctx, shard)
	l.pulse.answered(err)
	return state, err
}

// pulsedView is the view of a node, with its pulse. Reads are not looked at: they do not wait for the disk when writes do.
type pulsedView struct {
	engine.Engine
	pulse *pulse
}

func (v pulsedView) Apply(repr []byte) error {
	v.pulse.began.Add(1)
	defer v.pulse.ended.Add(1)
	return v.Engine.Apply(repr)
}

// OnDeath implements engine.Mortal.
func (v pulsedView) OnDeath(f func(error)) {
	if m, ok := v.Engine.(engine.Mortal); ok {
		m.OnDeath(f)
	}
}
