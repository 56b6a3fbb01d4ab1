package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// ErrExists is the error of an Import for an object that exists.
var ErrExists = errors.New("an object with this name exists")

// Import is an object for Host.Import.
type Import struct {
	Copy
	// Replace says that an object with the name is removed, as by Host.Delete, in the commit
	// that stores this one.
	Replace bool
	// Rows calls key with each key of the object and mark with each of its marks, by the bytes
	// that Snapshot.Marks told, and stops at an error of either. Host.Import calls it twice: once
	// to check the sizes of all, and once to store them. letters has the new number of each
	// letter by the one in Copy.
	Rows func(letters map[uint64]uint64, key func(key string, value []byte) error, mark func(key string, expires time.Time, value []byte) error) error
}

// PartError is the error of an Import for one part of its Copy: Letters[Index], Events[Index], or the alarm or
// the open execution, which have the Index 0. Its text is that of Err.
type PartError struct {
	Part  CopyPart
	Index int
	Err   error
}

// CopyPart is a kind of part of a Copy that a PartError names.
type CopyPart int

// The parts of a Copy.
const (
	CopyAlarm CopyPart = iota
	CopyExecution
	CopyLetter
	CopyEvent
)

func (e *PartError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *PartError) Unwrap() error { return e.Err }

// maxPortions bounds the commits of an Import.
const maxPortions = 64

// Import stores an object that comes from another store, under its class and name, and returns
// when it is durable. Events and dead letters get new numbers, in their order, behind those that
// the name has; with Options.Feed those events that have not expired are in the feed too, at its end.
// An open execution counts as one that a crash has cut off, once. The alarm is armed if Copy has
// one. No user code runs.
//
// All is checked before the first write: names, label, times, dead letters, and keys, values and marks by
// the limits of the host. The object is one commit, or up to 64 of MaxBatchBytes, of which the last makes it
// visible; after a crash between them nothing is left. It returns ErrExists, and ErrKeyTooLarge,
// ErrValueTooLarge, ErrBatchTooLarge, ErrBadName, ErrBadAlarmTime, ErrNoAlarmHandler, ErrNoSpace or an error of Rows,
// and has stored nothing then; one of a part of Copy is a PartError. The class need not be registered. Turns of the object wait meanwhile.
func (h *Host) Import(ctx context.Context, in Import) error {
	if err := h.check(ctx, in.ID); err != nil {
		return err
	}
	x := &importing{h: h, in: in, letters: make(map[uint64]uint64)}
	if err := x.check(); err != nil {
		return h.importFailed(in.ID, err)
	}
	c := h.hosted[in.ID.Class]
	if c == nil {
		return h.importParked(ctx, x)
	}
	switch o, err := h.store.Find(in.ID); {
	case err != nil:
		return h.storageError(in.ID, err)
	case o.Number != 0 && !in.Replace:
		return named(in.ID, ErrExists)
	}
	if a, ok := liveIn(c).Load(in.ID.Name); ok {
		a.end(errDeleted, c.again) // its memory is that of another life
	}
	return h.bare(ctx, c, in.ID, x.turn)
}

// importFailed names an error, which may end the host.
func (h *Host) importFailed(id storage.ID, err error) error {
	if errors.Is(err, ErrBadName) {
		return err
	}
	return h.storageError(id, err)
}

// importing is one Import.
type importing struct {
	h       *Host
	in      Import
	label   storage.Label
	row     *alarm.Row // nil: none
	letters map[uint64]uint64
	rows    bool // it has a key or a mark
	last    int  // bytes of the last commit beside keys and marks

	object   storage.Object
	batch    *storage.Batch
	apply    func() error // applies the batch and empties it
	portions int          // applied without a header
	removals map[int64]bool
}

// importRecord is more than a record of a batch needs beside key and value, with the entry of a
// bucket in the expiry index.
const importRecord = 128

// check finds each mistake before anything is stored.
func (x *importing) check() (err error) {
	c, o := &x.in.Copy, &x.h.options
	if x.label, err = storage.NewLabel(c.Label); err != nil {
		return err
	}
	if err := x.checkTimes(); err != nil {
		return err
	}
	if c.Execution != nil {
		x.last += len(c.Execution.Data) + len(c.ID.Class) + len(c.ID.Name) + importRecord
	}
	if c.Alarm != nil {
		x.last += len(c.Alarm.LastError) + importRecord
	}
	for i, d := range c.Letters {
		if n := len(d.Data); n > MaxDeadData {
			return &PartError{CopyLetter, i, fmt.Errorf("dead letter %d: %w: Data has %d bytes, the limit is %d", d.Seq, ErrValueTooLarge, n, MaxDeadData)}
		}
		value, err := json.Marshal(d)
		if _, twice := x.letters[d.Seq]; twice && err == nil {
			err = errors.New("another one has the same number")
		}
		if err != nil {
			return &PartError{CopyLetter, i, fmt.Errorf("dead letter %d: %w", d.Seq, err)}
		}
		x.letters[d.Seq] = x.h.store.NextSeq()
		x.last += len(value) + importRecord + deadKeyBytes(c.ID)
	}
	for i, e := range c.Events {
		if len(e.Data) > o.MaxValueBytes {
			return &PartError{CopyEvent, i, fmt.Errorf("%w: event %q, %d bytes, the limit is %d", ErrValueTooLarge, e.Kind, len(e.Data), o.MaxValueBytes)}
		}
		x.last += len(e.Kind)*6 + len(e.Data)*4/3 + 2*(len(c.ID.Class)+len(c.ID.Name)) + 2*importRecord
		if o.Feed {
			x.last += feedBytes(c.ID, e.Kind)
		}
	}
	if x.last > o.MaxBatchBytes {
		return fmt.Errorf("%w: events, dead letters, alarm and open execution of %d bytes, the limit is %d", ErrBatchTooLarge, x.last, o.MaxBatchBytes)
	}
	if err := x.checkRows(); err != nil {
		return err
	}
	if !x.rows && x.row == nil && c.Execution == nil {
		return errors.New("an object without a key, a mark, an open execution and an alarm that is armed does not exist")
	}
	return nil
}

// checkTimes checks the times of the copy, and makes the row of its alarm.
func (x *importing) checkTimes() error {
	c := &x.in.Copy
	if a := c.Alarm; a != nil {
		hosted := x.h.hosted[c.ID.Class]
		switch {
		case hosted != nil && !hosted.class.alarms:
			return &PartError{CopyAlarm, 0, ErrNoAlarmHandler}
		case !stored(a.Due) || !stored(a.Scheduled) || a.Attempts < 0:
			return &PartError{CopyAlarm, 0, fmt.Errorf("%w: %v, scheduled %v, attempts %d", ErrBadAlarmTime, a.Due, a.Scheduled, a.Attempts)}
		}
		x.row = &alarm.Row{
			Due: a.Due, Scheduled: a.Scheduled, Attempt: a.Attempts, LastError: a.LastError, Gen: x.h.store.NextSeq(),
		}
	}
	if e := c.Execution; e != nil && !stored(e.Since) {
		return &PartError{CopyExecution, 0, fmt.Errorf("%w: the open execution since %v", ErrBadTime, e.Since)}
	}
	for i, e := range c.Events {
		if !stored(e.At) || !stored(e.Expires) {
			return &PartError{CopyEvent, i, fmt.Errorf("%w: event %q of %v until %v", ErrBadTime, e.Kind, e.At, e.Expires)}
		}
	}
	return nil
}

// ErrBadTime is the error of an Import for a time that cannot be stored: times lie between 1970
// and 2262.
var ErrBadTime = errors.New("a time outside of 1970 to 2262")

// stored reports whether a time can be stored.
func stored(at time.Time) bool {
	return at.After(time.Unix(0, 0)) && !at.After(time.Unix(0, 1<<63-1))
}

// checkRows checks the sizes of keys and marks, one by one and together.
func (x *importing) checkRows() error {
	o, total := &x.h.options, 0
	sized := func(key string, value []byte, more int) error {
		total += len(key) + len(value) + more
		x.rows = true
		switch {
		case len(key) > o.MaxKeyBytes:
			return fmt.Errorf("%w: %d bytes, the limit is %d", ErrKeyTooLarge, len(key), o.MaxKeyBytes)
		case len(value) > o.MaxValueBytes:
			return fmt.Errorf("%w: key %q, %d bytes, the limit is %d", ErrValueTooLarge, key, len(value), o.MaxValueBytes)
		case len(key)+len(value)+more > o.MaxBatchBytes/2, total > (maxPortions/2-1)*o.MaxBatchBytes:
			return fmt.Errorf("%w: keys and marks of more than %d bytes", ErrBatchTooLarge, (maxPortions/2-1)*o.MaxBatchBytes)
		}
		return nil
	}
	return x.in.Rows(x.letters,
		func(key string, value []byte) error { return sized(key, value, importRecord) },
		func(key string, expires time.Time, value []byte) error {
			switch {
			case len(key) < 2 || !slices.Contains([]string{answerMark, printMark, userMark}, key[:2]):
				return fmt.Errorf("the mark %q is of no kind that is known", key)
			case !stored(expires):
				return fmt.Errorf("%w: mark %q until %v", ErrBadTime, key, expires)
			}
			return sized(key, value, 2*importRecord+len(x.in.ID.Class)+len(x.in.ID.Name))
		})
}

// turn stores the object in a turn of it, which the commit of the turn ends.
func (x *importing) turn(t *turn) error {
	a := t.act
	if t.object.Number != 0 && !x.in.Replace {
		return named(a.object.ID, ErrExists)
	}
	old, due := *t.object, (*int64)(nil)
	row, err := a.alarm()
	if err != nil {
		return x.h.storageError(old.ID, err)
	}
	due = dueOf(row)
	x.object = storage.Object{ID: old.ID, Shard: x.h.store.ShardOf(old.ID), Number: x.h.store.NewNumber(), Label: x.label}
	x.batch = t.begun()
	x.apply = func() error {
		if err := a.beginCommit(); err != nil {
			return err
		}
		defer a.endCommit()
		return x.portion()
	}
	if err := x.fill(old, due); err != nil {
		t.dropWrites()
		return errors.Join(x.h.storageError(old.ID, err), x.drop())
	}
	*t.change() = x.object
	t.purged = true // a waiting call may have constructed an instance meanwhile
	t.writes.alarmSet, t.writes.alarm, t.writes.adds = true, x.row, x.rows
	t.writes.events = len(x.in.Events) > 0
	if x.in.Execution != nil {
		t.writes.open = openSet
	}
	if err := t.commit(false); err != nil {
		return errors.Join(err, x.drop())
	}
	return nil
}

// importParked is Import for an object of a class that is not registered, so that no turn of it
// can run. Two imports at a time of one object are refused.
func (h *Host) importParked(ctx context.Context, x *importing) error {
	id := x.in.ID
	if err := h.look(ctx, id); err != nil {
		return err
	}
	defer h.lifecycle.leave()
	if _, busy := importsOf(h).LoadOrStore(id, true); busy {
		return named(id, fmt.Errorf("%w: another import of it is under way", ErrExists))
	}
	defer importsOf(h).Delete(id)
	old, err := h.store.Find(id)
	if err == nil && old.Number != 0 && !x.in.Replace {
		err = ErrExists
	}
	if err == nil {
		h.known.add(id.Class) // before the object can be found
		err = x.parked(old)
	}
	if err == nil {
		err = h.store.WaitSeen(ctx)
	}
	return h.storageError(id, err)
}

// parked stores the object in place of old.
func (x *importing) parked(old storage.Object) error {
	h := x.h
	row, err := alarmRow(h.store, old)
	if err != nil {
		return err
	}
	x.object = storage.Object{
		ID: old.ID, Shard: old.Shard, Number: h.store.NewNumber(), Epoch: h.store.Epoch(), Label: x.label,
	}
	x.batch = new(storage.Batch)
	x.batch.For(old.ID)
	x.apply = x.portion
	if err = x.fill(old, dueOf(row)); err == nil {
		moveAlarm(x.batch, x.object, nil, x.row)
		x.batch.SetHeader(x.object)
		_, err = h.store.Commit(x.batch)
	}
	if err != nil {
		return errors.Join(err, x.drop())
	}
	h.noteExpiry(x.object.Shard, x.batch)
	h.noteFeed(x.batch)
	if old.Number != 0 {
		h.tellScheduler(old, storage.Object{}, nil)
	}
	return nil
}

// noteExpiry tells the sweep of the first entry of a batch.
func (h *Host) noteExpiry(shard int, b *storage.Batch) {
	if at := b.Expires(); at != 0 {
		h.expiry.note(shard, at)
	}
}

// fill adds all rows to the batch but header and alarm, and applies it each time that it is full.
func (x *importing) fill(old storage.Object, due *int64) error {
	x.removals = make(map[int64]bool)
	now := alarm.Nanos(x.h.seams.Clock.Now())
	err := x.in.Rows(x.letters,
		func(key string, value []byte) error {
			if err := x.room(len(key) + len(value) + importRecord); err != nil {
				return err
			}
			x.batch.SetData(x.object, key, value)
			return nil
		},
		func(key string, expires time.Time, value []byte) error {
			if err := x.room(len(key) + len(value) + 2*importRecord + len(x.in.ID.Class) + len(x.in.ID.Name)); err != nil {
				return err
			}
			removal := storage.Removal(x.object.Number, now, alarm.Nanos(expires))
			if !x.removals[removal] {
				x.batch.IndexMarks(x.object, removal)
				x.removals[removal] = true
			}
			x.batch.SetMark(x.object, removal, key, alarm.Nanos(expires), value)
			return nil
		})
	if err == nil {
		err = x.room(x.last)
	}
	if err != nil {
		return err
	}
	return x.finish(old, due)
}

// finish adds the rows that go with the header: the removal of the object before, the label, the
// open execution, letters and events.
func (x *importing) finish(old storage.Object, due *int64) error {
	b, c := x.batch, &x.in.Copy
	if old.Number != 0 {
		start := b.Savepoint()
		if err := x.h.store.DeleteObject(b, old, due); err != nil {
			return err
		}
		if b.Len() > x.h.options.MaxBatchBytes { // the rows one by one are too many bytes
			b.Rollback(start)
			b.DeleteObject(old, due)
		}
		if err := x.h.exhumeAll(b, old.Shard, old.ID); err != nil {
			return err
		}
	}
	if x.portions > 0 {
		b.EndUnfinished(x.object)
	}
	b.MoveLabel(x.object, storage.Label{}, x.label)
	if e := c.Execution; e != nil {
		b.SetOpenMark(x.object, encodeOpenMark(openMark{at: e.Since, id: c.ID, data: e.Data})) // epoch 0: cut off
	}
	for _, d := range c.Letters {
		b.SetDead(x.object.Shard, c.ID, x.letters[d.Seq], encodeDead(d))
	}
	now := x.h.seams.Clock.Now()
	for _, e := range c.Events {
		row, err := json.Marshal(eventRow{e.At.UnixNano(), e.Kind, e.Data})
		if err != nil {
			return err
		}
		x.h.addEvent(b, x.object.Shard, storage.FeedEntry{ID: c.ID, Kind: e.Kind}, row, now, e.Expires)
	}
	return nil
}

// room applies the batch if it has no room for so many bytes.
func (x *importing) room(bytes int) error {
	if x.batch.Len()+bytes <= x.h.options.MaxBatchBytes || x.batch.Empty() {
		return nil
	}
	return x.apply()
}

// portion applies the batch, which has no header, and empties it.
func (x *importing) portion() error {
	if x.portions == 0 {
		x.batch.BeginUnfinished(x.object)
	}
	ticket, err := x.h.store.Commit(x.batch)
	if err != nil {
		return err
	}
	x.portions++
	x.h.noteExpiry(x.object.Shard, x.batch)
	x.batch.Reset()
	x.batch.For(x.object.ID)
	if x.h.store.Congested() {
		return x.h.store.WaitDurable(ticket)
	}
	return nil
}

// drop removes the portions of an object that was not stored to its end. While the disk is full
// that is refused, and the next opening does it.
func (x *importing) drop() error {
	if x.portions == 0 || x.h.store.Err() != nil {
		return nil
	}
	var b storage.Batch
	b.For(x.object.ID)
	b.DropUnfinished(x.object)
	if _, err := x.h.store.Commit(&b); err != nil && !errors.Is(err, ErrNoSpace) {
		return x.h.storageError(x.object.ID, err)
	}
	return nil
}
