package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// Copy is an object without its keys and marks, as Host.Export and Reader.Export read it and
// Host.Import stores it elsewhere. It has no number, shard or sequence number of its store but
// those of the letters, which other rows may name.
type Copy struct {
	ID        storage.ID
	Label     string         // see ObjectsOptions.Label; empty for none
	Alarm     *AlarmState    // nil: none
	Execution *OpenExecution // nil: none
	Letters   []DeadLetter   // by Seq
	Events    []CopiedEvent  // the oldest first
	// Messages is how many messages to the object wait. They belong to the store, since each has
	// a sender there, so no copy has them.
	Messages int
}

// OpenExecution is the open-execution mark of an object, see Driver.OpenExecution.
type OpenExecution struct {
	Since time.Time `json:"since"` // the time of the commit that opened it
	Data  []byte    `json:"data,omitempty"`
}

// CopiedEvent is an event, and when it goes.
type CopiedEvent struct {
	Event
	Expires time.Time
}

// maxCopied bounds the events and letters of a copy, which are in memory and go into one batch.
const maxCopied = 32 << 20

// ErrNoObject is the error of an Export for an object that does not exist.
var ErrNoObject = errors.New("no such object")

// Export calls f with an object as it is at one moment, and with its rows, which are valid until
// f returns. It returns the error of f, ErrBadName, or ErrNoObject if the object does not exist.
// No user code runs, and turns go on meanwhile. Events and letters of more than 32 MiB are an error.
func (r Reader) Export(ctx context.Context, id storage.ID, f func(Copy, *storage.Snapshot) error) error {
	_, err := read(ctx, r, id, func() (struct{}, error) { return struct{}{}, r.export(id, func() error { return nil }, f) })
	return err
}

// Export is Reader.Export for an open host. f is called when all that it can see is durable. A
// Shutdown waits for f.
func (h *Host) Export(ctx context.Context, id storage.ID, f func(Copy, *storage.Snapshot) error) error {
	_, err := readDurably(ctx, h, id, func(r Reader) (struct{}, error) {
		return struct{}{}, r.export(id, func() error { return h.store.WaitSeen(ctx) }, f)
	})
	return err
}

// export is Export, with a wait until the snapshot is durable.
func (r Reader) export(id storage.ID, durable func() error, f func(Copy, *storage.Snapshot) error) error {
	if err := validID(id); err != nil {
		return err
	}
	rows, err := r.store.Snapshot(id)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Object().Number == 0 {
		return ErrNoObject
	}
	c, err := copied(rows)
	if err == nil {
		err = durable()
	}
	if err != nil {
		return err
	}
	return f(c, rows)
}

// copied reads all of an object but its keys and marks.
func copied(rows *storage.Snapshot) (c Copy, err error) {
	o := rows.Object()
	c.ID, c.Label = o.ID, o.Label.String()
	if c.Messages, err = rows.Messages(); err != nil {
		return c, err
	}
	value, ok, err := rows.Alarm()
	if err == nil && ok {
		var row alarm.Row
		row, err = alarm.DecodeRow(value)
		c.Alarm = &AlarmState{Due: row.Due, Scheduled: row.Scheduled, Attempts: row.Attempt, LastError: row.LastError}
	}
	if err != nil {
		return c, err
	}
	if value, ok, err = rows.OpenMark(); err == nil && ok {
		var m openMark
		m, err = decodeOpenMark(value)
		c.Execution = &OpenExecution{m.at.UTC(), m.data}
	}
	if err == nil {
		err = copyNamed(&c, rows)
	}
	return c, err
}

// copyNamed reads the events and letters of the object's name.
func copyNamed(c *Copy, rows *storage.Snapshot) error {
	room := maxCopied
	take := func(value []byte) error {
		if room -= len(value); room < 0 {
			return fmt.Errorf("its events and dead letters are more than %d bytes: discard dead letters, or wait until events have expired", maxCopied)
		}
		return nil
	}
	err := rows.Events(func(seq uint64, expires int64, value []byte) error {
		e, err := decodeEvent(seq, value)
		e.At = e.At.UTC()
		c.Events = append(c.Events, CopiedEvent{e, time.Unix(0, expires).UTC()})
		return cmp.Or(err, take(value))
	})
	if err != nil {
		return err
	}
	return rows.DeadLetters(func(seq uint64, value []byte) error {
		d, err := decodeDead(c.ID, seq, value)
		c.Letters = append(c.Letters, d)
		return cmp.Or(err, take(value))
	})
}
