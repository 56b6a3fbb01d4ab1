package pglog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// load is an owner for each of some shards, all of which append without a pause and repeat each call of unknown outcome.
type load struct {
	t       *testing.T
	log     *Log
	owners  []*owner
	ended   atomic.Bool // owners finish the call under way, because the log must stand still afterwards
	running sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	problem error
}

// owner is one of them. load.mu guards acked and unknown.
type owner struct {
	*shardlogtest.Writer
	acked   []string // payloads
	unknown int      // calls of unknown outcome
}

// begin claims shards from first on and starts their owners.
func begin(t *testing.T, l *Log, shards int) *load {
	t.Helper()
	d := &load{t: t, log: l}
	d.changed = sync.NewCond(&d.mu)
	for i := range shards {
		d.owners = append(d.owners, &owner{Writer: shardlogtest.Claim(t, l, i, fmt.Sprint("owner ", i))})
	}
	for _, o := range d.owners {
		d.running.Go(func() { d.appendAll(o) })
	}
	t.Cleanup(func() { d.stop() })
	return d
}

// appendAll appends until the load ends or a call is refused.
func (d *load) appendAll(o *owner) {
	for !d.ended.Load() {
		r := o.Record(fmt.Sprintf("shard %d record %d", o.Shard, o.State.Last+1))
		err := o.Log.Append(context.Background(), o.Shard, o.State.Chain, r)
		d.mu.Lock()
		switch {
		case err == nil:
			o.State.Last, o.State.Chain = r.At, r.Chain
			o.acked = append(o.acked, string(r.Payload))
		case errors.Is(err, shardlog.ErrUnknown):
			o.unknown++
		default:
			d.problem = errors.Join(d.problem, err)
			d.ended.Store(true)
		}
		d.changed.Broadcast()
		d.mu.Unlock()
	}
}

// until waits until a condition of all owners holds. It fails the test if an owner was refused.
func (d *load) until(holds func(*owner) bool) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.owners {
		for !holds(o) {
			if d.ended.Load() {
				d.t.Fatalf("the load ended: %v", d.problem)
			}
			d.changed.Wait()
		}
	}
}

// progress waits until each owner has n more records acknowledged.
func (d *load) progress(n int) {
	d.t.Helper()
	before := d.counts(func(o *owner) int { return len(o.acked) })
	d.until(func(o *owner) bool { return len(o.acked) >= before[o.Shard]+n })
}

// caught waits until each owner waits for the answer to an append, so none is about to count an answer that it has.
func (d *load) caught() {
	lanes := d.log.lanes
	for n := 0; n < len(d.owners); runtime.Gosched() {
		lanes.mu.Lock()
		n = len(lanes.busy) + len(lanes.waiting)
		lanes.mu.Unlock()
	}
}

// counts is a number of each owner, by its shard.
func (d *load) counts(of func(*owner) int) map[int]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[int]int{}
	for _, o := range d.owners {
		found[o.Shard] = of(o)
	}
	return found
}

// stop ends the owners and returns the number of acknowledged records.
func (d *load) stop() (acked int) {
	d.ended.Store(true)
	d.running.Wait()
	for _, o := range d.owners {
		acked += len(o.acked)
	}
	return acked
}

// check ends the load and finds each acknowledged record in the log, at its place, with nothing behind the last but the record that was under way.
func (d *load) check(l *Log) (acked int) {
	d.t.Helper()
	acked = d.stop()
	if d.problem != nil {
		d.t.Fatal(d.problem)
	}
	for _, o := range d.owners {
		records := shardlogtest.Records(d.t, l, o.Shard)
		if n := len(records) - len(o.acked); n < 0 || n > 1 {
			d.t.Fatalf("shard %d has %d records, %d were acknowledged", o.Shard, len(records), len(o.acked))
		}
		for i, want := range o.acked {
			if got := string(records[i].Payload); got != want {
				d.t.Fatalf("shard %d has %q in the place of %q, which was acknowledged", o.Shard, got, want)
			}
		}
	}
	return acked
}
