package object

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// expiry removes marks and events whose time is over. It keeps one time for each
// shard, at which the earliest may expire, and one timer.
type expiry struct {
	host *Host

	mu      sync.Mutex
	next    []int64 // by shard; 0: nothing expires
	timer   seam.Timer
	armed   int64 // when the timer fires; 0: it is not armed
	working bool
	stopped bool
}

const (
	// expiryBatch bounds the rows that one commit removes.
	expiryBatch = 256
	// expirySlack is how much later than its time a row may be removed, so that
	// rows that expire closely together go in one batch.
	expirySlack = time.Minute
)

// start reads when the first row of each shard expires.
func (x *expiry) start(h *Host) error {
	x.host = h
	x.next = make([]int64, h.store.Shards())
	for shard := range x.next {
		var b storage.Batch
		_, next, ok, err := h.store.Expired(&b, shard, 0, 1, nil)
		if err != nil {
			return err
		}
		if ok {
			x.next[shard] = next
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.arm()
	return nil
}

func (x *expiry) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopped = true
	if x.timer != nil {
		x.timer.Stop()
	}
}

// note tells that a row of the shard, which is stored, expires at the given time.
func (x *expiry) note(shard int, at int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.next[shard] == 0 || at < x.next[shard] {
		x.next[shard] = at
		x.arm()
	}
}

// arm sets the timer to the earliest time, unless it is set to an earlier one.
func (x *expiry) arm() {
	var first int64
	for _, at := range x.next {
		if at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	if first == 0 || x.working || x.stopped || x.armed != 0 && x.armed <= first {
		return
	}
	if x.timer != nil {
		x.timer.Stop()
	}
	x.armed = first
	now := x.host.seams.Clock.Now()
	x.timer = x.host.seams.Clock.AfterFunc(time.Unix(0, first).Sub(now)+expirySlack, x.sweep)
}

// sweep removes what has expired, one batch of a shard at a time.
func (x *expiry) sweep() {
	if x.host.life.enter(false) != nil {
		return
	}
	defer x.host.life.leave()
	x.mu.Lock()
	x.armed, x.working = 0, true
	now := x.host.seams.Clock.Now().UnixNano()
	x.mu.Unlock()
	for shard := range x.next {
		for x.due(shard, now) && x.sweepShard(shard, now) {
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.working = false
	x.arm()
}

func (x *expiry) due(shard int, now int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.stopped && x.next[shard] != 0 && x.next[shard] <= now
}

// sweepShard removes one batch and reports whether to go on.
func (x *expiry) sweepShard(shard int, now int64) bool {
	h := x.host
	x.mu.Lock()
	x.next[shard] = 0 // what is noted from here on is kept
	x.mu.Unlock()
	lapses := storage.Lapses{Again: now + int64(lapseRetry)}
	_, next, ok, err := h.store.Expire(shard, now, expiryBatch, &lapses)
	if err != nil {
		_ = h.storageError(storage.ID{}, err)
		x.mu.Lock()
		x.next[shard] = now // for lack of space it is done later
		x.mu.Unlock()
		return false
	}
	if ok {
		x.mu.Lock()
		if x.next[shard] == 0 || next < x.next[shard] {
			x.next[shard] = next
		}
		x.mu.Unlock()
	}
	if !x.endLapses(lapses.All) {
		x.note(shard, lapses.Again)
	}
	return true
}
