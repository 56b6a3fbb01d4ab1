package object

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// commit applies what the turn wrote. At the end of the turn that handles an
// alarm the alarm goes with it, unless the handler set another (A4).
func (t *turn) commit(last bool) error {
	a, h := t.act, t.act.hosted.host
	if t.life != nil && t.life.err() != nil {
		return named(a.id, ErrReset)
	}
	if last && t.firing != nil && !t.writes.alarmSet {
		t.writes.alarmSet, t.writes.removes = true, true
	}
	if !t.dirty() {
		t.settle(storage.Ticket(a.last.Load()))
		return h.storageError(a.id, h.store.Err())
	}
	row, err := t.complete()
	if err != nil {
		return h.storageError(a.id, err)
	}
	if err := a.beginCommit(); err != nil {
		return err
	}
	began := h.seams.Steady()
	ticket, err := h.store.CommitAt(t.batch, began)
	if err != nil {
		a.endCommit()
		return h.storageError(a.id, err)
	}
	t.at = h.seams.Steady()
	h.metrics.commit.Observe(t.at.Sub(began).Seconds())
	t.committed(ticket, row)
	a.endCommit() // the next activation may begin: the scheduler knows of this commit
	if h.store.Congested() {
		return h.storageError(a.id, h.store.WaitDurable(ticket))
	}
	return nil
}

// complete adds the rows of the runtime to the batch: alarm, header, or the end
// of the object. It returns the alarm row as the batch leaves it.
func (t *turn) complete() (*alarm.Row, error) {
	a, w := t.act, &t.writes
	old, err := a.alarm()
	if err != nil {
		return nil, err
	}
	row := old
	if w.alarmSet {
		row = w.alarm
	}
	b := t.write()
	exists, err := t.exists(row)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, t.remove(b, old)
	}
	if w.alarmSet {
		moveAlarm(b, *t.object, old, row)
	}
	if epoch := a.hosted.host.store.Epoch(); a.object.Number != t.object.Number || t.object.Epoch != epoch {
		t.change().Epoch = epoch
		b.SetHeader(*t.object)
	}
	return row, nil
}

// exists tells whether the object exists after this turn: while it has a key, a
// mark, an alarm or an open execution (O1).
func (t *turn) exists(row *alarm.Row) (bool, error) {
	w, store := &t.writes, t.act.hosted.host.store
	switch {
	case w.purge:
		return false, nil
	case row != nil || w.open == openSet:
		return true, nil
	case !w.removes && (w.adds || t.act.object.Number != 0):
		return true, nil
	case t.onlyAlarm():
		return false, nil
	}
	if rows, err := store.HasRows(t.batch, *t.object); rows || err != nil {
		return rows, err
	}
	if w.open == openCleared {
		return false, nil
	}
	_, open, err := store.Open(*t.object)
	return open, err
}

// onlyAlarm reports whether the object is known to have nothing stored but its alarm.
func (t *turn) onlyAlarm() bool {
	return t.act.empty && !t.writes.adds && t.writes.open != openSet
}

// remove ends this life of the object: whatever the turn wrote for it goes with
// what was stored. The next life has another number. Unless the turn ends the
// object whatever it holds, nothing is left of it but perhaps the alarm.
func (t *turn) remove(b *storage.Batch, old *alarm.Row) error {
	stored, h := t.act.object.Number != 0, t.act.hosted.host
	switch purge := t.writes.purge && !t.onlyAlarm(); {
	case purge && (stored || t.writes.adds || t.writes.open == openSet):
		start := b.Savepoint()
		if err := h.store.DropObject(b, *t.object, dueOf(old)); err != nil {
			return err
		}
		if b.Len() > h.options.MaxBatchBytes { // the rows one by one are too many bytes
			b.Rollback(start)
			b.DropObject(*t.object, dueOf(old))
		}
	case stored:
		b.DropEmpty(*t.object, dueOf(old))
	}
	o := t.change()
	o.Number, o.Epoch = 0, 0
	return nil
}

// committed makes the turn's writes the state of the activation and does what
// had to wait for them.
func (t *turn) committed(ticket storage.Ticket, row *alarm.Row) {
	a, h := t.act, t.act.hosted.host
	moved := t.writes.alarmSet || row == nil && a.row != nil
	events := t.writes.events
	t.purged = t.purged || t.writes.purge
	a.depend(ticket)
	a.empty = t.object.Number == 0 || t.onlyAlarm()
	old := a.object
	a.object, a.row, a.rowKnown = *t.object, row, true
	if t.firing != nil && t.writes.alarmSet {
		t.firing = nil // it is settled; a later commit of the turn leaves it alone
	}
	if at := t.batch.Expires(); at != 0 {
		h.expiry.note(a.object.Shard, at)
	}
	if k := a.recall; k != nil && k.indexing != 0 && k.buckets.number == a.object.Number {
		k.buckets.setIndexed(k.indexing)
	}
	after := t.after
	t.clear()
	if moved {
		h.tellScheduler(old, a.object, a.row)
	}
	t.after = after
	t.settle(ticket)
	if events {
		h.watch.tell(a.id)
	}
}

// afterwards is something to do once a turn's writes are committed.
type afterwards struct {
	do      func(storage.Ticket) // nil: to start work
	work    *Work
	earlier *afterwards // asked for before it
}

// settle does what had to wait for the turn's commit, in the order in which it
// was asked for.
func (t *turn) settle(ticket storage.Ticket) {
	var first *afterwards
	for a := t.after; a != nil; {
		earlier := a.earlier
		a.earlier = first // now: the later one
		first, a = a, earlier
	}
	t.after = nil
	var works []runner
	for a := first; a != nil; {
		later := a.earlier
		a.earlier = nil // it keeps no other in memory
		if a.work != nil {
			works = append(works, a.work)
			if a.work.permit {
				t.permits--
			}
		} else {
			a.do(ticket)
		}
		a = later
	}
	if len(works) > 0 {
		t.act.startWorks(works)
	}
}

// depend notes that the object's memory depends on a commit.
func (a *activation) depend(t storage.Ticket) { raise(&a.last, uint64(t)) }

// raise makes v at least n.
func raise(v *atomic.Uint64, n uint64) {
	for {
		old := v.Load()
		if old >= n || v.CompareAndSwap(old, n) {
			return
		}
	}
}
