package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/storage"
)

// Inspection is the stored state of an object, as Inspect reads it. It has no values, because
// those of one object may be more than memory holds: Keys reads them page by page.
type Inspection struct {
	ID storage.ID `json:"id"`
	// Exists is false for an object without keys, marks, alarm and open execution. Such an
	// object may still have events, dead letters and messages.
	Exists bool      `json:"exists"`
	Label  string    `json:"label,omitempty"` // see ObjectsOptions.Label
	Keys   []KeyInfo `json:"keys,omitempty"`  // the first MaxPage, in the order of their bytes
	// NextKey is the key at which Keys goes on, as KeysOptions.Start; empty if Keys has all.
	NextKey string `json:"nextKey,omitempty"`
	// NextKeyBytes is NextKey if that is no UTF-8, see KeyInfo.KeyBytes.
	NextKeyBytes []byte `json:"nextKeyBytes,omitempty"`
	// Alarm is nil if the object has none.
	Alarm *AlarmState `json:"alarm,omitempty"`
	// Execution says whether an execution is open. If so, ExecutionSince is the time of the
	// commit that opened it, and ExecutionEpoch the opening of the store, which is an
	// earlier one than the present if a crash has cut the execution off.
	Execution      bool      `json:"execution,omitempty"`
	ExecutionSince time.Time `json:"executionSince,omitzero"`
	ExecutionEpoch uint64    `json:"executionEpoch,omitempty"`
	// Live, Waiting and Paused tell of this process, so only a host fills them in: whether
	// the object is in memory, how many calls wait in its mailbox, and why none of its
	// messages is handled now, empty if they are.
	Live    bool   `json:"live,omitempty"`
	Waiting int    `json:"waiting,omitempty"`
	Paused  string `json:"paused,omitempty"`
	// Events are the newest 20, the newest first.
	Events []EventInfo `json:"events,omitempty"`
	// DeadLetters are the first MaxPage, and fewer if they are large. DeadLetters with Class
	// and Name has all.
	DeadLetters []DeadLetter `json:"deadLetters,omitempty"`
	// Messages are the first 100 messages of the object that are stored.
	Messages []MessageState `json:"messages,omitempty"`
}

// EventInfo is a stored event without its payload.
type EventInfo struct {
	Seq       uint64    `json:"seq"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	SizeBytes int       `json:"sizeBytes"` // of the payload
}

// MessageState is a stored message.
type MessageState struct {
	Seq       uint64     `json:"seq"`
	From      storage.ID `json:"from"` // the sender
	Method    string     `json:"method"`
	Attempts  int        `json:"attempts,omitempty"`  // that failed
	Crashes   int        `json:"crashes,omitempty"`   // attempts in a row that the end of a process cut off
	LastError string     `json:"lastError,omitempty"` // of the last attempt that failed
	Due       time.Time  `json:"due,omitzero"`        // before which it is not handled, after an attempt that failed or with After
	// OwnersLost counts the attempts in a row that a take-over of the store by another node cut off.
	OwnersLost int `json:"ownersLost,omitempty"`
}

// AlarmState is an alarm as it is stored.
type AlarmState struct {
	// Due is the time of the next attempt, and Scheduled the time that SetAlarm was given.
	// They differ while a retry is due.
	Due       time.Time `json:"due"`
	Scheduled time.Time `json:"scheduled"`
	Attempts  int       `json:"attempts,omitempty"`  // attempts that failed
	Crashes   int       `json:"crashes,omitempty"`   // attempts in a row that the end of a process cut off
	LastError string    `json:"lastError,omitempty"` // of the last attempt that failed
	// OwnersLost counts the attempts in a row that a take-over of the store by another node cut off.
	OwnersLost int `json:"ownersLost,omitempty"`
}

// Inspect reads the stored state of an object: its keys with their sizes, its alarm, label,
// open execution, newest events, dead letters and messages. The class need not be registered.
// A turn that commits meanwhile may show in one part of the answer and not in another. It
// returns ErrBadName for a name that no object can have, and no error for an object that
// does not exist.
func (r Reader) Inspect(ctx context.Context, id storage.ID) (Inspection, error) {
	return read(ctx, r, id, func() (Inspection, error) { return r.inspect(id) })
}

// Inspect is Reader.Inspect for an open host, and tells of this process too. No user code
// runs, and the object is not activated. The answer is durable when it is returned.
func (h *Host) Inspect(ctx context.Context, id storage.ID) (Inspection, error) {
	return readDurably(ctx, h, id, func(r Reader) (Inspection, error) {
		in, err := r.inspect(id)
		if err == nil {
			h.inspectLive(&in)
		}
		return in, err
	})
}

// inspectLive fills in the part that tells of this process.
func (h *Host) inspectLive(in *Inspection) {
	if a := h.activationOf(in.ID); a != nil {
		in.Live = true
		a.mu.Lock()
		in.Waiting = int(a.queued)
		a.mu.Unlock()
	}
	if _, reason := h.mail.boxes.Waiting(inbox.Receiver{ID: in.ID, Shard: h.store.ShardOf(in.ID)}); reason != nil {
		in.Paused = reason.Error()
	}
}

// inspect reads the stored part. Events, dead letters and messages come first, because they
// stay when the object is deleted.
func (r Reader) inspect(id storage.ID) (in Inspection, err error) {
	if err := validID(id); err != nil {
		return in, err
	}
	const events, messages = 20, 100
	in.ID = id
	if in.Events, err = r.newestEvents(id, events); err != nil {
		return in, err
	}
	letters, damaged, err := r.deadLetters(DeadLettersOptions{Class: id.Class, Name: id.Name, Limit: MaxPage})
	if err = cmp.Or(err, damaged); err != nil {
		return in, err
	}
	in.DeadLetters = letters.Letters
	if in.Messages, err = r.messagesTo(id, messages); err != nil {
		return in, err
	}
	o, err := r.store.Find(id)
	if err != nil || o.Number == 0 {
		return in, err
	}
	return in, r.inspectRows(o, &in)
}

// inspectRows reads the rows that an object has while it exists.
func (r Reader) inspectRows(o storage.Object, in *Inspection) error {
	in.Exists, in.Label = true, o.Label.String()
	mark, open, err := r.store.OpenMark(o)
	if err != nil {
		return err
	}
	if in.Execution = open; open {
		m, err := decodeOpenMark(mark)
		if err != nil {
			return err
		}
		in.ExecutionSince, in.ExecutionEpoch = m.at, m.epoch
	}
	row, err := alarmRow(r.store, o)
	if err != nil {
		return err
	}
	if row != nil {
		in.Alarm = &AlarmState{row.Due, row.Scheduled, row.Attempt, row.Crashes, row.LastError, row.OwnersLost}
	}
	keys, err := r.keysOf(o, KeysOptions{Limit: MaxPage, MaxBytes: MaxPageBytes})
	in.Keys, in.NextKey, in.NextKeyBytes = keys.Keys, keys.Next, keys.NextBytes
	return err
}

// messagesTo describes up to limit stored messages of a receiver, in order.
func (r Reader) messagesTo(id storage.ID, limit int) (out []MessageState, err error) {
	for queue := byte(0); queue < storage.Queues && err == nil; queue++ {
		var bad error
		err = r.store.Messages(id, queue, 0, math.MaxUint64, func(s storage.StoredMessage) bool {
			if len(out) == limit {
				return false
			}
			var m MessageState
			m, bad = messageState(s)
			out = append(out, m)
			return bad == nil
		})
		err = errors.Join(err, bad)
	}
	return out, err
}

// messageState describes a stored message.
func messageState(s storage.StoredMessage) (MessageState, error) {
	m, err := (*Host)(nil).messageOf(s) // only the delivery of a message needs a host
	if err != nil {
		return MessageState{}, err
	}
	return MessageState{m.Seq, m.letter.from, m.letter.method, m.tries.attempts, m.tries.crashes, m.tries.lastError, timeOf(m.due), m.tries.ownersLost}, nil
}

// Mark returns a mark that State.Mark, or a job type, has stored for an object, and when it
// expires; ok is false if there is none. One that has expired may still be there for up to a
// quarter of its time, or two minutes. It returns ErrBadName for a name that no object can have.
func (r Reader) Mark(ctx context.Context, id storage.ID, key string) (value []byte, expires time.Time, ok bool, err error) {
	_, err = read(ctx, r, id, func() (struct{}, error) {
		o, err := r.store.Find(id)
		if err := errors.Join(validID(id), err); err != nil || o.Number == 0 {
			return struct{}{}, err
		}
		var at int64
		value, at, ok, err = r.store.FindMark(o, userMark+key)
		if ok {
			expires = time.Unix(0, at)
		}
		return struct{}{}, err
	})
	return value, expires, ok, err
}

// Value returns the value of one key of an object; ok is false if the object has no such key. It reads
// two rows. It returns ErrBadName for a name that no object can have.
func (r Reader) Value(ctx context.Context, id storage.ID, key string) (value []byte, ok bool, err error) {
	value, err = read(ctx, r, id, func() (v []byte, err error) {
		if err := validID(id); err != nil {
			return nil, err
		}
		o, err := r.store.Find(id)
		if err == nil {
			v, ok, err = r.store.Data(nil, o, key)
		}
		return v, err
	})
	return value, ok, err
}

// MaxPageBytes is the most that KeysOptions.MaxBytes may be.
const MaxPageBytes = 16 << 20

// KeysOptions say which keys of an object Keys lists. The zero value lists the first
// DefaultPage keys without their values.
type KeysOptions struct {
	// Prefix lists only the keys that begin with it.
	Prefix string
	// Start is the first key, included: KeyPage.Next of the page before. The key need not
	// exist.
	Start string
	// Limit is how many keys a page has at most. Zero means DefaultPage; it may be up to
	// MaxPage.
	Limit int
	// MaxBytes is how many bytes the keys of a page have at most, and their values if the
	// page has them. A page has one key at least, so one that is larger comes alone. Zero
	// means 1 MiB; it may be up to MaxPageBytes.
	MaxBytes int
	// Values lists the values too.
	Values bool
}

// checked returns the options with their defaults, or the first mistake in them.
func (o KeysOptions) checked() (_ KeysOptions, err error) {
	if o.Limit, err = pageLimit(o.Limit); err == nil {
		err = notNegative("MaxBytes", o.MaxBytes)
	}
	if err == nil && o.MaxBytes > MaxPageBytes {
		err = fmt.Errorf("MaxBytes must be at most %d: %d", MaxPageBytes, o.MaxBytes)
	}
	if err != nil {
		return o, fmt.Errorf("object: Keys: %w", err)
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<20)
	return o, nil
}

// KeyInfo is a stored key, as Inspect and Keys list it.
type KeyInfo struct {
	Key string `json:"key"`
	// KeyBytes is Key if that is no UTF-8, and else nil: JSON has a replacement character in
	// Key for each byte that is none, so two keys may look the same there.
	KeyBytes  []byte `json:"keyBytes,omitempty"`
	SizeBytes int    `json:"sizeBytes"`       // of the value
	Value     []byte `json:"value,omitempty"` // only with KeysOptions.Values
}

// bytesIn returns the bytes of a key that JSON cannot have as a string, or nil.
func bytesIn(key string) []byte {
	if utf8.ValidString(key) {
		return nil
	}
	return []byte(key)
}

// KeyPage is a page of the keys of an object, in the order of their bytes.
type KeyPage struct {
	Keys []KeyInfo `json:"keys,omitempty"`
	// Next is the first key of the next page, to be passed as KeysOptions.Start. It is
	// empty after the last page.
	Next string `json:"next,omitempty"`
	// NextBytes is Next if that is no UTF-8, see KeyInfo.KeyBytes.
	NextBytes []byte `json:"nextBytes,omitempty"`
}

// Keys lists a page of the keys of an object. A key that is written or removed meanwhile may
// be in a page or not; each other one is in one page. An object that does not exist has none.
// It returns ErrBadName for a name that no object can have, and an error for a Limit or
// MaxBytes below 0 or above its bound.
//
// A page may end before its Limit, because it reads 64 MiB of rows at most.
func (r Reader) Keys(ctx context.Context, id storage.ID, o KeysOptions) (KeyPage, error) {
	return read(ctx, r, id, func() (KeyPage, error) { return r.keys(id, o) })
}

// Keys is Reader.Keys for an open host. No user code runs, and the object is not activated.
// The page is durable when it is returned. All keys of an object, page by page:
//
//	for o := (object.KeysOptions{Values: true}); ; {
//		page, err := host.Keys(ctx, id, o)
//		if err != nil || page.Next == "" {
//			return err
//		}
//		o.Start = page.Next
//	}
func (h *Host) Keys(ctx context.Context, id storage.ID, o KeysOptions) (KeyPage, error) {
	return readDurably(ctx, h, id, func(r Reader) (KeyPage, error) { return r.keys(id, o) })
}

// keys reads a page of the keys of an object.
func (r Reader) keys(id storage.ID, o KeysOptions) (KeyPage, error) {
	if err := validID(id); err != nil {
		return KeyPage{}, err
	}
	o, err := o.checked()
	if err != nil {
		return KeyPage{}, err
	}
	found, err := r.store.Find(id)
	if err != nil || found.Number == 0 {
		return KeyPage{}, err
	}
	return r.keysOf(found, o)
}

// maxReadBytes is how many bytes of keys and values a page reads at most. Without it a page of
// a thousand keys could read 2 GiB to tell the sizes of the values.
const maxReadBytes = 64 << 20

// keysOf reads a page of the keys of an object that exists.
func (r Reader) keysOf(stored storage.Object, o KeysOptions) (page KeyPage, err error) {
	lower, upper, empty := ListOptions{Start: o.Start, Prefix: o.Prefix}.bounds()
	if empty {
		return page, nil
	}
	listed, read := 0, 0
	err = r.store.WalkData(stored, lower, upper, func(key, value []byte) bool {
		info := KeyInfo{SizeBytes: len(value)}
		if o.Values {
			info.Value = value
		}
		listed += len(key) + len(info.Value)
		read += len(key) + len(value)
		full := len(page.Keys) == o.Limit || listed > o.MaxBytes || read > maxReadBytes
		if full && len(page.Keys) > 0 {
			page.Next = string(key)
			page.NextBytes = bytesIn(page.Next)
			return false
		}
		info.Key, info.Value = string(key), slices.Clone(info.Value)
		info.KeyBytes = bytesIn(info.Key)
		page.Keys = append(page.Keys, info)
		return true
	})
	return page, err
}
