package object

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// expiry removes marks, events and rows of the feed that have expired. For each shard, and for the
// feed, it keeps the time at which the first row may expire, and it has one timer for all.
//
// A sweep runs on the goroutine of the timer, and there is only one at a time, because
// arm sets no timer while working is set. Turns call note after their commits. The mutex
// guards all fields below it, and is not held while the sweep reads or writes the store.
type expiry struct {
	host *Host

	mu      sync.Mutex
	next    []int64    // by shard, and then that of the feed, in nanoseconds since 1970; 0: nothing expires
	timer   seam.Timer // the latest one; it may have fired
	armed   int64      // the time that the timer is set for; 0: it is not armed
	working bool       // a sweep is under way, and arms the timer at its end
	stopped bool       // the host ends, so no sweep begins any more
}

const (
	// expiryBatch bounds the rows that one commit removes, so that a sweep of many rows
	// does not hold up the commits of turns.
	expiryBatch = 256
	// expirySlack is how much later than its time a row may be removed, so that
	// rows that expire closely together go in one batch.
	expirySlack = time.Minute
)

// start reads when the first row of each shard expires, and arms the timer. Open calls it
// before any turn runs. Over a dormant store nothing expires.
func (x *expiry) start(h *Host) error {
	x.host, x.stopped = h, h.store.Dormant()
	x.next = make([]int64, h.store.Shards()+1)
	for shard := range h.store.Shards() {
		var b storage.Batch
		_, next, ok, err := h.store.Expired(&b, shard, 0, 1, nil)
		if err != nil {
			return err
		}
		if ok {
			x.next[shard] = next
		}
	}
	next, _, err := h.store.ExpireFeed(0, 1)
	if err != nil {
		return err
	}
	x.next[h.store.Shards()] = next
	x.mu.Lock()
	defer x.mu.Unlock()
	x.arm()
	return nil
}

// stop stops the timer, and ends a sweep after its present batch. Rows that have expired
// and are still stored are removed by a sweep after the next Open.
func (x *expiry) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopped = true
	if x.timer != nil {
		x.timer.Stop()
	}
}

// note says that a stored row of the shard expires at the given time, in nanoseconds since
// 1970. Goroutines of turns call it after the commit.
func (x *expiry) note(shard int, at int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.next[shard] == 0 || at < x.next[shard] {
		x.next[shard] = at
		x.arm()
	}
}

// arm sets the timer to the earliest time of all shards, unless it is set to that or an
// earlier one. The caller holds the mutex.
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

// sweep removes the rows that have expired, shard by shard and batch by batch. The timer
// calls it. It counts as something that the host runs, so Shutdown waits for its end.
func (x *expiry) sweep() {
	if x.host.lifecycle.enter(false) != nil {
		return
	}
	defer x.host.lifecycle.leave()
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

// due reports whether the shard may have a row that has expired at now. It is false after
// stop, so that a sweep ends early.
func (x *expiry) due(shard int, now int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.stopped && x.next[shard] != 0 && x.next[shard] <= now
}

// sweepShard removes one batch of rows of a shard, and ends the objects that have nothing
// left. It reports whether to go on with the shard. The shard's time is cleared before the
// store is read, so that a time that a turn notes meanwhile is not lost.
func (x *expiry) sweepShard(shard int, now int64) bool {
	h := x.host
	x.mu.Lock()
	x.next[shard] = 0 // a time that is noted from here on is kept
	x.mu.Unlock()
	lapses := storage.Lapses{Again: now + int64(lapseRetry)}
	next, ok, err := x.expire(shard, now, &lapses)
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

// expire removes one batch of rows of a shard or, behind the last, of the feed. It returns when the
// next row expires, if there is one.
func (x *expiry) expire(shard int, now int64, lapses *storage.Lapses) (next int64, ok bool, err error) {
	store := x.host.store
	if shard == store.Shards() {
		return store.ExpireFeed(now, expiryBatch)
	}
	_, next, ok, err = store.Expire(shard, now, expiryBatch, lapses)
	return next, ok, err
}

const (
	// lapseRetry is how much later an object is looked at again, if the first look after
	// the removal of its marks has failed.
	lapseRetry = time.Minute
	// lapseWait bounds the wait for the turn of an object that is busy, because the
	// removals of other objects come after it.
	lapseWait = time.Second
)

// endLapses looks at the objects that have lost marks to the expiry, and ends those that
// have nothing left (O1). It reports whether it has looked at all of them. Each has an
// entry in the expiry index until it has been looked at, so a crash between the removal of
// the marks and the look loses none.
func (x *expiry) endLapses(lapses []storage.Lapse) bool {
	h, all := x.host, true
	var seen storage.Batch
	for _, l := range lapses {
		over, err := x.endLapse(&seen, l)
		if err != nil {
			h.options.Logger.Debug("object whose marks have expired is looked at again later",
				"class", l.Object.ID.Class, "object", l.Object.ID.Name, "error", err)
		}
		if over {
			seen.EndLapse(l)
		}
		all = all && err == nil
	}
	if !seen.Empty() {
		if _, err := h.store.Commit(&seen); err != nil {
			_ = h.storageError(storage.ID{}, err)
			return false
		}
	}
	return all
}

// endLapse looks at one object. It reports whether the caller has to remove the lapse's
// entry; it does not if a turn has ended the object, because that turn's batch removes the
// entry. An object with an unregistered class is ended by the batch seen, because no turn
// of it can run; any other is ended in a turn.
func (x *expiry) endLapse(seen *storage.Batch, l storage.Lapse) (over bool, err error) {
	h := x.host
	o, err := h.store.Find(l.Object.ID)
	if err != nil || o.Number != l.Object.Number { // that life has ended
		return err == nil, err
	}
	c := h.hosted[o.ID.Class]
	var live *activation
	if c != nil {
		// This look comes before that at the rows, because a turn that begins after it
		// finds no marks, and ends the object itself.
		live, _ = liveIn(c).Load(o.ID.Name)
	}
	switch rest, err := h.hasRest(o); {
	case err != nil || rest && live == nil:
		return err == nil, err
	case c == nil: // no turn of it can run
		seen.DeleteEmpty(o, nil)
		return true, nil
	}
	return x.lapseTurn(c, l, live == nil)
}

// hasRest reports whether a row is stored that lets the object exist (O1): a key, a mark,
// an alarm or an open-execution mark.
func (h *Host) hasRest(o storage.Object) (bool, error) {
	if rows, err := h.store.HasRows(nil, o); rows || err != nil {
		return rows, err
	}
	if _, ok, err := h.store.Alarm(o); ok || err != nil {
		return ok, err
	}
	_, ok, err := h.store.OpenMark(o)
	return ok, err
}

// lapseTurn looks at the object in a turn, which runs no user code. With evict it then
// takes the object out of memory again, because only this look has brought it in. It waits
// at most lapseWait for a busy object.
func (x *expiry) lapseTurn(c *hosted, l storage.Lapse, evict bool) (over bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer x.host.seams.Clock.AfterFunc(lapseWait, cancel).Stop()
	var ends bool
	err = c.deliver(ctx, &Request{id: l.Object.ID, exempt: true, op: bare(func(t *turn) (err error) {
		ends, err = t.lapse(l)
		return err
	})})
	if a, ok := liveIn(c).Load(l.Object.ID.Name); ok && evict {
		a.evict()
	}
	return err == nil && !ends, err
}

// lapse ends the object with the turn t if nothing of it is left, and reports whether it
// does. It is the operation of lapseTurn. It sets removes, because otherwise exists would
// answer from memory and not read the store.
func (t *turn) lapse(l storage.Lapse) (ends bool, err error) {
	if t.object.Number != l.Object.Number {
		return false, nil
	}
	row, err := t.act.alarm()
	if err != nil {
		return false, err
	}
	t.writes.removes = true
	exists, err := t.exists(row)
	if exists || err != nil {
		t.writes.removes = false
		return false, err
	}
	t.write().EndLapse(l)
	return true, nil
}
