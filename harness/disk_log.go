package harness

import (
	"bytes"
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// logDisk keeps the store in a log. Each process is another machine that takes over: all that it finds is the
// log, and a view of its own that is empty, or has fallen behind.
type logDisk struct {
	log    *memlog.Log
	views  [2]*memstore.Store // of two machines, which take turns
	lives  int
	engine *trackedLog // of the living process; nil: there is none

	takeover bool // each process is a node of its own; see TakeoverStore
}

func newLogDisk() disk { return &logDisk{log: memlog.New()} }

func newTakeoverDisk() disk { return &logDisk{log: memlog.New(), takeover: true} }

// emptyEvery is how many lives share the views of two machines, until a new machine comes.
const emptyEvery = 5

// trackedLog remembers the batches that a crash could lose.
type trackedLog struct {
	*shardlog.Engine
	view     *memstore.Store
	unsynced [][]byte // batches that are in no record
}

func (e *trackedLog) Apply(repr []byte) error {
	if err := e.Engine.Apply(repr); err != nil {
		return err
	}
	e.unsynced = append(e.unsynced, bytes.Clone(repr))
	return nil
}

// landed notes the batches of a record that the log has now. Now and then that is when the view makes a table. The owner may
// die before it learns of the record.
func (e *trackedLog) landed(r shardlog.Record) error {
	err := shardlog.Batches(r.Payload, func([]byte) error {
		e.unsynced = e.unsynced[1:]
		return nil
	})
	if r.At%3 == 0 && len(e.unsynced) == 0 {
		_ = e.view.Sync() // fails once the view is closed, which needs no table
	}
	return err
}

// watchedLog tells a trackedLog of each record.
type watchedLog struct {
	shardlog.Log
	tracked *trackedLog
	last    shardlog.Position
}

func (l *watchedLog) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	err := l.Log.Append(ctx, shard, before, r)
	if err != nil || r.At <= l.last {
		return err
	}
	l.last = r.At
	return l.tracked.landed(r)
}

// openedProbe hides the points of an opening, which the simulation makes before the process has a task.
type openedProbe struct {
	seam.Probe
	opened bool
}

func (p *openedProbe) At(at seam.Point) {
	if p.opened {
		p.Probe.At(at)
	}
}

func (d *logDisk) open(seams seam.Seams) (engine.Engine, error) {
	d.lives++
	view := &d.views[d.lives%len(d.views)]
	if *view == nil || d.lives%emptyEvery == 0 {
		*view = memstore.New()
	}
	*view = (*view).Crash(0)
	probe := &openedProbe{Probe: seams.Probe}
	seams.Probe = probe
	tracked := &trackedLog{view: *view}
	log := &watchedLog{Log: d.log, tracked: tracked}
	owner := "machine"
	if d.takeover {
		owner = fmt.Sprint("machine-", d.lives)
	}
	e, err := shardlog.Open(shardlog.Options{Log: log, Owner: owner, Seams: seams}, *view)
	if err != nil {
		return nil, err
	}
	probe.opened = true
	_ = (*view).Sync() // all of it came from the log
	tracked.Engine, d.engine = e, tracked
	return tracked, nil
}

func (d *logDisk) unsynced() int {
	if d.engine == nil {
		return 0
	}
	return len(d.engine.unsynced)
}

// crash leaves in the log all that it has, and the first batches of the append that was under way.
func (d *logDisk) crash(keep int) {
	if d.engine == nil {
		return
	}
	lost := d.engine.unsynced
	d.engine = nil
	var payload []byte
	for _, repr := range lost[:min(keep, len(lost))] {
		payload = shardlog.AppendBatch(payload, repr)
	}
	if len(payload) == 0 {
		return
	}
	ctx := context.Background()
	head, err := d.log.Head(ctx, 0)
	if err == nil {
		err = d.log.Append(ctx, 0, head.Chain, shardlog.Record{
			At: head.Last + 1, Term: head.Term, Chain: shardlog.Next(head.Chain, payload), Payload: payload,
		})
	}
	if err != nil {
		panic(fmt.Sprintf("harness: the append of a process that died: %v", err))
	}
}

func (d *logDisk) tear(seed uint64, _ *memstore.Store) (int, error) {
	kept := int(seed / 2 % uint64(d.unsynced()+1))
	d.crash(kept)
	return kept, nil
}

// view is what another machine would read from the log, and the batches that the log has yet to get.
func (d *logDisk) view() (*memstore.Store, error) {
	m := memstore.New()
	err := d.log.Read(context.Background(), 0, 1, func(r shardlog.Record) error {
		return shardlog.Batches(r.Payload, m.Apply)
	})
	if err == nil && d.engine != nil {
		for _, repr := range d.engine.unsynced {
			if err := m.Apply(repr); err != nil {
				return nil, err
			}
		}
	}
	return m.Crash(keepAll), err
}

func (d *logDisk) close() {}
