package object

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

var errDeleted = errors.New("deleted")

// check begins a look from outside.
func (h *Host) check(ctx context.Context, id storage.ID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadName, err)
	}
	if err := seam.Cause(ctx); err != nil {
		return named(id, err)
	}
	return h.storageError(id, h.store.Err())
}

// look is check for what reads the store: Shutdown waits for its end, which the
// caller tells with life.leave.
func (h *Host) look(ctx context.Context, id storage.ID) error {
	if err := h.check(ctx, id); err != nil {
		return err
	}
	if err := h.life.enter(false); err != nil {
		return named(id, err)
	}
	return nil
}

// ObjectInfo is an object as Objects lists it.
type ObjectInfo struct {
	ID        storage.ID `json:"id"`
	Alarm     time.Time  `json:"alarm,omitzero"` // zero: none
	SizeBytes uint64     `json:"sizeBytes"`      // of its rows on disk, estimated; 0 until they are flushed
}

// Objects lists up to limit objects of a class in the order of the store, from
// the one after the object named after on ("" for the first). The class need not
// be registered. No user code runs.
func (h *Host) Objects(ctx context.Context, class, after string, limit int) ([]ObjectInfo, error) {
	if err := h.look(ctx, storage.ID{Class: class, Name: defaultTo(after, "-")}); err != nil {
		return nil, err
	}
	defer h.life.leave()
	if err := notNegative("limit", limit); err != nil {
		return nil, fmt.Errorf("object: Objects of class %q: %w", class, err)
	}
	var found []storage.Object
	err := h.store.Objects(class, after, func(o storage.Object) bool {
		if len(found) < limit {
			found = append(found, o)
		}
		return len(found) < limit
	})
	infos := make([]ObjectInfo, 0, len(found))
	for _, o := range found {
		if err != nil {
			break
		}
		var info ObjectInfo
		info, err = h.info(o)
		infos = append(infos, info)
	}
	if err == nil {
		err = h.store.WaitSeen()
	}
	if err != nil {
		return nil, h.storageError(storage.ID{Class: class}, err)
	}
	return infos, nil
}

func (h *Host) info(o storage.Object) (ObjectInfo, error) {
	info := ObjectInfo{ID: o.ID}
	row, err := h.alarmRow(o)
	if err != nil {
		return info, err
	}
	if row != nil {
		info.Alarm = row.Due
	}
	info.SizeBytes, err = h.store.Size(o)
	return info, err
}

func (h *Host) alarmRow(o storage.Object) (*alarm.Row, error) {
	value, ok, err := h.store.Alarm(o)
	if err != nil || !ok {
		return nil, err
	}
	row, err := alarm.DecodeRow(value)
	return &row, err
}

// Inspection is what is stored of an object.
type Inspection struct {
	ID          storage.ID   `json:"id"`
	Exists      bool         `json:"exists"`
	Keys        []Item       `json:"keys,omitempty"` // the first 1000
	Alarm       *AlarmState  `json:"alarm,omitempty"`
	Execution   bool         `json:"execution,omitempty"` // an execution is open
	Live        bool         `json:"live,omitempty"`      // it is in memory
	Waiting     int          `json:"waiting,omitempty"`   // calls in its mailbox
	DeadLetters []DeadLetter `json:"deadLetters,omitempty"`
}

// AlarmState is an alarm as it is stored.
type AlarmState struct {
	Due       time.Time `json:"due"`
	Scheduled time.Time `json:"scheduled"`
	Attempts  int       `json:"attempts,omitempty"` // that failed
	Crashes   int       `json:"crashes,omitempty"`  // that the end of a process cut off, in a row
	LastError string    `json:"lastError,omitempty"`
}

// Inspect reads what is stored of an object. No user code runs, and nothing is
// activated. The class need not be registered.
func (h *Host) Inspect(ctx context.Context, id storage.ID) (Inspection, error) {
	in := Inspection{ID: id}
	if err := h.look(ctx, id); err != nil {
		return in, err
	}
	defer h.life.leave()
	if c := h.hosted[id.Class]; c != nil {
		if a, ok := c.live.Load(id.Name); ok {
			in.Live = true
			a.mu.Lock()
			in.Waiting = a.queued
			a.mu.Unlock()
		}
	}
	err := h.inspect(&in)
	if err == nil {
		err = h.store.WaitSeen()
	}
	return in, h.storageError(id, err)
}

func (h *Host) inspect(in *Inspection) error {
	err := h.store.DeadLetters(in.ID, func(seq uint64, value []byte) error {
		d, err := decodeDead(in.ID, seq, value)
		in.DeadLetters = append(in.DeadLetters, d)
		return err
	})
	if err != nil {
		return err
	}
	o, err := h.store.Find(in.ID)
	if err != nil || o.Number == 0 {
		return err
	}
	in.Exists = true
	if _, in.Execution, err = h.store.Open(o); err != nil {
		return err
	}
	row, err := h.alarmRow(o)
	if err != nil {
		return err
	}
	if row != nil {
		in.Alarm = &AlarmState{row.Due, row.Scheduled, row.Attempt, row.Crashes, row.LastError}
	}
	it, err := h.store.ListData(nil, o, "", "", false)
	if err != nil {
		return err
	}
	defer it.Close()
	const maxKeys = 1000
	for len(in.Keys) < maxKeys && it.Next() {
		in.Keys = append(in.Keys, Item{string(it.Key()), slices.Clone(it.Value())})
	}
	return it.Err()
}

// Delete removes an object: keys, alarm and marks in one batch, without running
// user code. A turn that is running is fenced: nothing it writes is stored, and
// it gets ErrReset. Dead letters and events stay. It does nothing if the object
// does not exist. The class need not be registered.
func (h *Host) Delete(ctx context.Context, id storage.ID) error {
	if err := h.check(ctx, id); err != nil {
		return err
	}
	c := h.hosted[id.Class]
	if c == nil {
		return h.deleteParked(ctx, id)
	}
	if a, ok := c.live.Load(id.Name); ok {
		a.end(errDeleted, c.again)
	}
	c.backlogs.forget(id.Name)
	return h.bare(ctx, c, id, func(t *turn) error {
		t.writes.purge = t.object.Number != 0
		return nil
	})
}

// deleteParked is Delete for an object whose class is not registered: no turn of it
// can run.
func (h *Host) deleteParked(ctx context.Context, id storage.ID) error {
	if err := h.look(ctx, id); err != nil {
		return err
	}
	defer h.life.leave()
	o, err := h.store.Find(id)
	if err == nil && o.Number != 0 {
		err = h.dropParked(o)
	}
	if err == nil {
		err = h.store.WaitSeen() // another call may have removed it a moment ago
	}
	return h.storageError(id, err)
}

// dropParked removes what is stored of an object. Two calls for one object remove
// the same rows.
func (h *Host) dropParked(o storage.Object) error {
	row, err := h.alarmRow(o)
	if err != nil {
		return err
	}
	var b storage.Batch
	b.For(o.ID)
	if err := h.store.DropObject(&b, o, dueOf(row)); err != nil {
		return err
	}
	if _, err := h.store.Commit(&b); err != nil {
		return err
	}
	h.tellScheduler(o, storage.Object{}, nil)
	return nil
}

// runnable returns the class of an object on which the runtime is to run a turn.
func (h *Host) runnable(ctx context.Context, id storage.ID) (*hosted, error) {
	if err := h.check(ctx, id); err != nil {
		return nil, err
	}
	c := h.hosted[id.Class]
	if c == nil {
		return nil, named(id, ErrUnknownClass)
	}
	return c, nil
}

// bare runs an operation of the runtime in a turn and waits until it is durable.
func (h *Host) bare(ctx context.Context, c *hosted, id storage.ID, op bare) error {
	if err := h.life.enter(false); err != nil {
		return named(id, err)
	}
	defer h.life.leave()
	r := &Request{id: id, op: op, exempt: true}
	t, a := h.turnBehind(ctx)
	w, err := h.link(t, a, r)
	if err != nil {
		return err
	}
	defer h.unlink(w)
	return h.outside(ctx, c, r)
}

// Parked lists the classes of which the store holds objects and which are not
// registered with this host. Their objects, alarms and executions stay as they
// are until a host is opened with the class again.
func (h *Host) Parked() ([]string, error) {
	if err := h.life.enter(false); err != nil {
		return nil, err
	}
	defer h.life.leave()
	classes, err := h.store.Classes()
	if err != nil {
		return nil, h.storageError(storage.ID{}, err)
	}
	return slices.DeleteFunc(classes, func(c string) bool { return h.hosted[c] != nil }), nil
}
