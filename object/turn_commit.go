package object

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/storage"
)

// The steps of a commit. Turns, constructors, Sync and Release all take them through
// commit, in this order:
//
//  1. Rows: complete adds the rows of the runtime to the batch: the alarm, the header, or
//     the removal of the whole object if nothing of it is left (O1).
//  2. Size: Storage.check has bounded the handler's writes, so only remove looks again:
//     it replaces many removals by one range if they pass MaxBatchBytes.
//  3. Fence: beginCommit refuses an activation that has ended, for example by Host.Delete,
//     and makes such an end wait until endCommit.
//  4. Apply: Store.CommitAt makes the batch visible and returns its ticket.
//  5. Memory: committed makes the new object and alarm those of the activation, and notes
//     that its memory depends on the ticket.
//  6. Expiry: the sweep learns when the first of the new marks and events expires.
//  7. Scheduler: tellScheduler passes on a new, changed or removed alarm.
//  8. Events: those that somebody listens to enter the ring of package tap, and the taps that
//     read the feed are told that it has more rows. All that the commit changes can be seen by now, and no message of it is under way yet, so an event
//     that answers to this one comes behind it.
//  9. Afterwards: settle starts the routines and calls the functions that waited for the
//     commit, then endCommit lifts the fence.
//
// An error before step 4 leaves nothing behind. An error of step 4 ends the host, except
// ErrNoSpace, which changes nothing. The steps after it cannot fail. No step waits for the
// disk; only if too many bytes are not yet durable does commit wait for a sync at its end.

// draft is the state of a turn beside its context: the batch with its writes, and all that
// goes with the batch. It lies in the request, so it costs no allocation. No mutex
// guards it: the goroutine of the handler uses it, and goroutines that the handler began
// and waits for, one at a time. Release, transactions and blocks grasp the turn before
// they change it, because the handler may return meanwhile.
type draft struct {
	act *activation
	at  time.Time // when the turn's last commit was made; zero: it has made none

	purged bool  // a commit of this turn has removed the object, so end resets the instance
	permit bool  // one of permits is for the next routine that Start begins
	txs    int32 // transactions under way

	permits int // taken for routines that have not started; end gives them back

	// object points to the activation's object until the first change, which copies it to
	// changed. So a rollback only has to point it back.
	object  *storage.Object
	changed storage.Object

	batch   *storage.Batch // nil until the first write
	writes  writes
	after   *afterwards     // the newest step to take once the writes are committed
	message *message        // that this turn handles; nil: none
	firing  *alarm.Row      // the alarm that this turn handles; nil: none, or it is settled
	again   *alarm.Row      // the alarm that the handler set before it failed
	iters   []*storage.Iter // of List; end closes them
}

// writes says which kinds of changes a turn has made, beside the records in its batch. It
// is a plain value, so that a transaction can copy it and put the copy back. The flags
// adds and removes let exists answer without a read of the store in most turns.
type writes struct {
	alarm    *alarm.Row // the alarm that the turn sets; nil: it clears the alarm
	alarmSet bool       // the turn sets or clears the alarm
	adds     bool       // the turn stores a key or a mark
	removes  bool       // the turn removes a key, a mark, the alarm or the open mark
	open     openChange // of the open-execution mark
	purge    bool       // the object ends with this turn
	events   bool       // the turn emits events, for which others may listen
	sent     *message   // the newest message that the turn sends, with the others behind it
}

// openChange says how a turn changes the object's open-execution mark.
type openChange uint8

const (
	openSame openChange = iota
	openSet
	openCleared
)

// begun returns the turn's batch, and takes one from the pool at the first write. A turn
// that only reads takes none.
func (t *turn) begun() *storage.Batch {
	if t.batch == nil {
		t.batch = t.act.host.batches.Get().(*storage.Batch)
		t.batch.For(t.act.object.ID)
	}
	return t.batch
}

// write returns the turn's batch for a change of the object. If the object does not exist
// yet it gets a number, which stands in the keys of its rows.
func (t *turn) write() *storage.Batch {
	b := t.begun()
	if t.object.Number == 0 {
		t.change().Number = t.act.host.store.NewNumber()
	}
	return b
}

// change returns a copy of the object that the turn may change. The activation gets it
// when the turn is committed, and never sees it if the turn is rolled back.
func (t *turn) change() *storage.Object {
	if t.object != &t.changed {
		t.changed = *t.object
		t.object = &t.changed
	}
	return t.object
}

// relabelled reports whether the turn has given the object another label than is stored.
func (t *turn) relabelled() bool { return t.object.Label != t.act.object.Label }

// dirty reports whether the turn has anything to commit.
func (t *turn) dirty() bool {
	return t.writes.alarmSet || t.writes.purge || t.relabelled() || t.batch != nil && !t.batch.Empty()
}

// commit applies the turn's writes, in the nine steps listed above. last says that the
// handler has returned: then the alarm that the turn handled is removed in the same batch,
// unless the handler set another one (A4). A turn that wrote nothing makes no commit, and
// only takes the steps that waited for it.
//
// The goroutine that owns the turn calls commit. It takes a.mu in beginCommit and endCommit
// and holds no mutex between them, so a slow commit stops no caller from entering the
// mailbox.
func (t *turn) commit(last bool) error {
	a, h := t.act, t.act.host
	if t.state != nil && t.state.err() != nil {
		return named(a.object.ID, ErrReset)
	}
	if last && t.firing != nil && !t.writes.alarmSet {
		t.writes.alarmSet, t.writes.removes = true, true
	}
	if m := t.message; m != nil {
		if err := m.stands(); err != nil {
			return err
		}
		if last {
			m.remove(t)
		}
	}
	if !t.dirty() {
		t.settle(storage.Ticket(a.last.Load()))
		return h.storageError(a.object.ID, h.store.Err())
	}
	row, err := t.complete()
	if err != nil {
		return h.storageError(a.object.ID, err)
	}
	if err := a.beginCommit(); err != nil {
		return err
	}
	began := h.seams.Steady()
	ticket, err := h.store.CommitAt(t.batch, began)
	if err != nil {
		a.endCommit()
		return h.storageError(a.object.ID, err)
	}
	t.at = h.seams.Steady()
	h.metrics.commit.Observe(t.at.Sub(began).Seconds())
	if h.seams.Probe != nil {
		t.tellCommitted()
	}
	t.committed(ticket, row)
	a.endCommit() // the next activation may begin: the scheduler knows of this commit
	if h.store.Congested() {
		return h.storageError(a.object.ID, h.store.WaitDurable(ticket))
	}
	return nil
}

// complete adds the rows of the runtime to the batch: the alarm, the header, or the
// removal of the object. It returns the alarm as the batch leaves it, nil for none. The
// header is written when the number or the label is new, and at the first commit after an
// opening of the store, because its epoch tells a later activation which process committed
// last (O5).
func (t *turn) complete() (*alarm.Row, error) {
	a, w := t.act, &t.writes
	old := a.row
	if !a.rowKnown {
		stored, err := a.alarm()
		if err != nil {
			return nil, err
		}
		old = stored
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
	b.MoveLabel(*t.object, a.object.Label, t.object.Label)
	if epoch := a.host.store.Epoch(); t.relabelled() || a.object.Number != t.object.Number || t.object.Epoch != epoch {
		t.change().Epoch = epoch
		b.SetHeader(*t.object)
	}
	return row, nil
}

// exists reports whether the object exists after this turn: it does while it has a key, a
// mark, an alarm or an open execution (O1). row is its alarm after the turn. The cases go
// from cheap to dear; only a turn that removed something reads the store.
func (t *turn) exists(row *alarm.Row) (bool, error) {
	w, store := &t.writes, t.act.host.store
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
	_, open, err := store.OpenMark(*t.object)
	return open, err
}

// onlyAlarm reports whether nothing is stored of the object but perhaps its alarm, for
// certain. False means that the store would have to be read.
func (t *turn) onlyAlarm() bool {
	return t.act.empty && !t.writes.adds && t.writes.open != openSet
}

// remove adds the removal of the object to the batch, and sets its number to 0; old is the
// stored alarm. If the object is made again it gets another number, so rows under the old
// number can never be taken for rows of the new object.
//
// A purge (Host.Delete, Driver.Purge) drops every row, also those in the batch: row by row
// if they are few, and as one range if they are many or their removals are too many bytes.
// Without a purge the object has no rows left but perhaps its alarm, so it is enough to
// remove that and the header.
func (t *turn) remove(b *storage.Batch, old *alarm.Row) error {
	stored, h := t.act.object.Number != 0, t.act.host
	t.change().Label = t.act.object.Label // the one with a row; this turn has stored none
	switch purge := t.writes.purge && !t.onlyAlarm(); {
	case purge && (stored || t.writes.adds || t.writes.open == openSet):
		start := b.Savepoint()
		if err := h.store.DeleteObject(b, *t.object, dueOf(old)); err != nil {
			return err
		}
		if b.Len() > h.options.MaxBatchBytes { // the rows one by one are too many bytes
			b.Rollback(start)
			b.DeleteObject(*t.object, dueOf(old))
		}
	case stored:
		b.DeleteEmpty(*t.object, dueOf(old))
	}
	o := t.change()
	o.Number, o.Epoch, o.Label = 0, 0, storage.Label{}
	return nil
}

// beginCommit is the fence around a commit. It returns ErrReset if the activation has
// ended, for example by Host.Delete. Otherwise activation.end waits until endCommit, so
// that no commit of an activation is applied after its end. It takes a.mu.
func (a *activation) beginCommit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return named(a.object.ID, ErrReset)
	}
	a.writing = true
	return nil
}

// endCommit lifts the fence of beginCommit, and wakes an end of the activation that waits
// for it. It takes a.mu.
func (a *activation) endCommit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writing = false
	if a.settled != nil {
		close(a.settled)
		a.settled = nil
	}
}

// committed takes the steps from memory to afterwards, once the batch is applied under
// ticket. row is the alarm after the turn. The caller owns the turn, and the fence is up:
// so a new activation of the object begins only when the scheduler knows the new alarm.
func (t *turn) committed(ticket storage.Ticket, row *alarm.Row) {
	a, h := t.act, t.act.host
	moved := t.writes.alarmSet || row == nil && a.row != nil
	t.purged = t.purged || t.writes.purge
	a.depend(ticket)
	a.empty = t.object.Number == 0 || t.onlyAlarm()
	old := a.object
	a.placed(*t.object)
	a.row, a.rowKnown = row, true
	if t.firing != nil && t.writes.alarmSet {
		t.firing = nil // it is settled; a later commit of the turn leaves it alone
	}
	if at := t.batch.Expires(); at != 0 {
		h.expiry.note(a.object.Shard, at)
	}
	if k := a.answers; k != nil && k.indexing != 0 && k.buckets.number == a.object.Number {
		k.buckets.setIndexed(k.indexing)
	}
	after, sent := t.after, t.writes.sent
	if sent != nil {
		sent = numbered(sent, t.batch, ticket)
	}
	if moved {
		h.tellScheduler(old, a.object, a.row)
	}
	if old.Label != a.object.Label {
		h.labels.Move(a.object.ID.Class, old.Label, a.object.Label)
	}
	if events := t.tapped(); events != nil {
		tapsOf(h).Enter(a.object.ID, ticket, events)
	}
	h.noteFeed(t.batch)
	t.dropWrites()
	t.after = after
	t.settle(ticket)
	if sent != nil {
		h.mail.handOver(sent)
	}
}

// depend notes that the object's memory depends on a commit: its own, or that of an object
// it has called. A reply of the object to the outside waits until that commit is durable.
func (a *activation) depend(t storage.Ticket) { raise(&a.last, uint64(t)) }

// raise makes v at least n. Goroutines may call it at the same time for the same v.
func raise(v *atomic.Uint64, n uint64) {
	for {
		old := v.Load()
		if old >= n || v.CompareAndSwap(old, n) {
			return
		}
	}
}

// then has f called once the turn's writes are committed, before they are durable, on the
// goroutine that owns the turn. A turn that has nothing to commit calls f at its end; a
// turn that fails drops it. f gets the ticket of the commit, and must not wait.
func (t *turn) then(f func(storage.Ticket)) { t.after = &afterwards{do: f, earlier: t.after} }

// afterwards is a step that waits for a turn's commit: a function to call or a routine to
// start. The steps of a turn form a list from the newest to the oldest, so that a
// transaction can drop the newer ones when it puts an old head back.
type afterwards struct {
	do      func(storage.Ticket) // nil: start routine
	routine *Routine
	earlier *afterwards // asked for before this one
}

// settle takes the steps that waited for the turn's commit, in the order in which they
// were asked for. It calls the functions at once. The routines are collected and begin
// together when the commit is durable, see startRoutines.
func (t *turn) settle(ticket storage.Ticket) {
	var first *afterwards
	for a := t.after; a != nil; {
		earlier := a.earlier
		a.earlier = first // now: the later one
		first, a = a, earlier
	}
	t.after = nil
	var routines []crew.Runner
	for a := first; a != nil; {
		later := a.earlier
		a.earlier = nil // it keeps no other in memory
		if a.routine != nil {
			routines = append(routines, (*startedRoutine)(a.routine))
			if a.routine.permit {
				t.permits--
			}
		} else {
			a.do(ticket)
		}
		a = later
	}
	if len(routines) > 0 {
		t.act.startRoutines(routines)
	}
}

// rollBack drops the writes that the turn has not committed. If there were any, or the
// handler panicked, the instance is reset, because its fields may hold values that are not
// stored. For example, a handler adds to a field, puts the sum and then fails: the sum is
// dropped, the field is not. An alarm that a failing alarm handler has set is kept in
// again, because it takes the place of the retry.
func (t *turn) rollBack(err error) {
	if t.act.host.seams.Probe != nil {
		t.tellEnded()
	}
	wrote := t.dirty() || t.txs > 0                      // a goroutine that is still in a transaction may have written
	if t.firing != nil && t.act.owner != OwnedByTimers { // their alarm follows from rows that are dropped now
		t.again = t.writes.alarm
	}
	t.dropWrites()
	if wrote || errors.Is(err, ErrPanic) {
		t.reset(err)
	}
}

// reset resets the turn's own instance. If that was reset while the turn was lent out,
// another may be in its place, which is left alone.
func (t *turn) reset(err error) {
	if t.holds() && t.state != nil && t.state == t.act.state {
		t.act.reset(err)
	}
}

// dropWrites empties the batch and the lists that go with it, after a commit or for a rollback.
// The turn goes on with a draft as at its beginning.
func (t *turn) dropWrites() {
	if t.batch != nil {
		t.batch.Reset()
		t.batch.For(t.act.object.ID)
	}
	t.writes, t.after = writes{}, nil
	t.forgetMarked()
	if t.holds() {
		t.object = &t.act.object
	}
}

// recycle empties the batch and gives it back to the pool of the host, at the end of the
// turn. Nothing may keep bytes of the batch after that.
func (t *turn) recycle() {
	if t.batch != nil {
		t.batch.Reset()
		t.act.host.batches.Put(t.batch)
		t.batch = nil
	}
}

// dueOf returns the due time of an alarm as storage keeps it, or nil if there is none.
func dueOf(row *alarm.Row) *int64 {
	if row == nil {
		return nil
	}
	due := alarm.Nanos(row.Due)
	return &due
}

// moveAlarm adds the change from one alarm to another to the batch: the alarm's row and
// its entry in the index by due time. Either may be nil, for none.
func moveAlarm(b *storage.Batch, o storage.Object, from, to *alarm.Row) {
	var row, index []byte
	if to != nil {
		const room = 64 // enough for most, which then need no allocation
		row = alarm.AppendRow(make([]byte, 0, room), *to)
		index = alarm.AppendIndex(make([]byte, 0, room), to.Gen, o.ID.Class, o.ID.Name)
	}
	b.MoveAlarm(o, dueOf(from), dueOf(to), row, index)
}

// tellScheduler passes on a change of an object's alarm that has been committed. If the
// object has another number than before, its old alarm is cleared first, because the
// scheduler knows alarms by number.
func (h *Host) tellScheduler(old, o storage.Object, row *alarm.Row) {
	if old.Number != 0 && (row == nil || old.Number != o.Number) {
		h.alarms.Clear(old.Shard, uint64(old.Number))
	}
	if row != nil {
		h.alarms.Set(entryOf(o, row))
	}
}

// entryOf returns an alarm as the scheduler holds it.
func entryOf(o storage.Object, row *alarm.Row) alarm.Entry {
	return alarm.Entry{
		Due: row.Due, Shard: o.Shard, Object: uint64(o.Number), Gen: row.Gen, Class: o.ID.Class, Name: o.ID.Name,
	}
}
