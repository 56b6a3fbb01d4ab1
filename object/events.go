package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/tap"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Event is a row that an object wrote with Emit, in the same batch as the change that it
// reports. So there is an event exactly if the change was committed.
type Event struct {
	Seq  uint64    `json:"seq"` // greater than that of every earlier event of the object
	At   time.Time `json:"at"`  // when it was emitted, by the host's clock
	Kind string    `json:"kind"`
	Data []byte    `json:"data,omitempty"` // the payload, encoded by the host's codec; base64 in JSON
}

// eventRow is the value of an event's row, in JSON with short names, because each event
// stores them. The sequence number is in the row's key.
type eventRow struct {
	At   int64  `json:"t"` // in nanoseconds since 1970
	Kind string `json:"k"`
	Data []byte `json:"d,omitempty"`
}

// EmitOption changes one event. KeepFor returns one.
type EmitOption struct {
	keep  time.Duration
	given bool
}

// KeepFor keeps an event for d, in place of Options.EventRetention: more than zero and at most 100 years, else
// Emit returns an error. An event that goes before older ones of its object leaves a gap that
// no Tap tells of (V7), so all events of an object should have one time.
func KeepFor(d time.Duration) EmitOption { return EmitOption{d, true} }

// retention returns how long an event with the options is kept.
func (h *Host) retention(opts []EmitOption) (time.Duration, error) {
	keep := h.options.EventRetention
	for _, o := range opts {
		switch {
		case !o.given:
		case o.keep <= 0 || o.keep > maxDelay:
			return 0, fmt.Errorf("KeepFor is %v: more than zero and at most 100 years are allowed", o.keep)
		default:
			keep = o.keep
		}
	}
	return keep, nil
}

// Emit adds an event to the turn's batch, with a payload that the host's codec encodes. A
// turn that fails emits nothing. Events are kept for Options.EventRetention or KeepFor, also when the
// object is deleted; Host.Events and Host.Watch read them. Emit returns ErrValueTooLarge,
// ErrBatchTooLarge, ErrNoTurn, ErrReset or the error of an option, and then changes nothing.
func (s *State) Emit(ctx context.Context, kind string, payload any, opts ...EmitOption) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	h := s.act.host
	keep, err := h.retention(opts)
	if err != nil {
		return fmt.Errorf("%s: event %s: %w", s.act.object.ID, kind, err)
	}
	data, err := h.options.Codec.Encode(payload)
	if err != nil {
		return fmt.Errorf("%s: encode event %s: %w", s.act.object.ID, kind, err)
	}
	now := h.seams.Clock.Now()
	row, err := json.Marshal(eventRow{now.UnixNano(), kind, data})
	if err != nil {
		return fmt.Errorf("%s: encode event %s: %w", s.act.object.ID, kind, err)
	}
	// more is the bytes beside the payload: the event's row and its entry in the expiry
	// index each take a record, and both hold the object's class and name.
	id := s.act.object.ID
	more := len(row) + 2*(len(id.Class)+len(id.Name)) + recordBytes + 2*24
	if h.options.Feed {
		more += feedBytes(id, kind)
	}
	if err := s.storage.check(t, more, "", data); err != nil {
		return err
	}
	h.addEvent(t.events(), t.object.Shard, storage.FeedEntry{ID: id, Kind: kind}, row, now, now.Add(keep))
	return nil
}

// addEvent adds an event that expires at a time to a batch and, if the host keeps it, to the feed. An event that
// has expired already is not in the feed, because its readers would be told that they have missed it.
func (h *Host) addEvent(b *storage.Batch, shard int, e storage.FeedEntry, row []byte, now, expires time.Time) {
	e.Seq = h.store.NextSeq()
	b.AddEvent(shard, e.ID, e.Seq, alarm.Nanos(expires), row)
	if h.options.Feed && expires.After(now) {
		e.Expires = alarm.Nanos(now.Add(h.options.EventRetention))
		b.AddToFeed(e)
	}
}

// events returns the turn's batch for an event. It gives the object no number, because
// events belong to the name and stay when the object is deleted. So an object that only
// emits events does not exist.
func (t *turn) events() *storage.Batch {
	t.writes.events = true
	return t.begun()
}

// Events returns up to limit events of an object with a sequence number greater than
// after, in order. A limit below 0 is an error, and 0 returns none.
func (r Reader) Events(ctx context.Context, id storage.ID, after uint64, limit int) ([]Event, error) {
	return read(ctx, r, id, func() ([]Event, error) { return r.events(id, after, limit, math.MaxInt) })
}

// Events is Reader.Events for an open host. It reads the store and takes no turn, so it does
// not wait for a handler that runs. It returns only when every event in its answer is durable.
func (h *Host) Events(ctx context.Context, id storage.ID, after uint64, limit int) ([]Event, error) {
	return readDurably(ctx, h, id, func(r Reader) ([]Event, error) { return r.events(id, after, limit, math.MaxInt) })
}

// events reads the events of an object behind a number. It stops when the payloads of all but the
// first have so many bytes.
func (r Reader) events(id storage.ID, after uint64, limit, bytes int) (out []Event, err error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	if err := notNegative("limit", limit); err != nil {
		return nil, fmt.Errorf("object: Events: %w", err)
	}
	if limit == 0 {
		return nil, nil
	}
	var bad error
	err = r.store.Events(id, after, func(seq uint64, value []byte) bool {
		var e Event
		e, bad = decodeEvent(seq, value)
		if out = append(out, e); len(out) > 1 {
			bytes -= len(e.Data)
		}
		return bad == nil && len(out) < limit && bytes > 0
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	return out, nil
}

// newestEvents describes up to limit events of an object, the newest first.
func (r Reader) newestEvents(id storage.ID, limit int) (out []EventInfo, err error) {
	var bad error
	err = r.store.NewestEvents(id, func(seq uint64, value []byte) bool {
		var e Event
		e, bad = decodeEvent(seq, value)
		out = append(out, EventInfo{e.Seq, e.At, e.Kind, len(e.Data)})
		return bad == nil && len(out) < limit
	})
	return out, errors.Join(err, bad)
}

// decodeEvent reads the row of an event.
func decodeEvent(seq uint64, value []byte) (Event, error) {
	var row eventRow
	err := json.Unmarshal(value, &row)
	return Event{seq, time.Unix(0, row.At), row.Kind, row.Data}, err
}

// Watch yields the events of an object after a sequence number as they become
// durable, and waits for more until ctx or the host ends. The error that ended it is the
// last element. To miss no event across restarts, store the last sequence number that you
// have handled and pass it as after; 0 begins with the oldest event that is kept.
func (h *Host) Watch(ctx context.Context, id storage.ID, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := validID(id); err != nil {
			yield(Event{}, err)
			return
		}
		t := h.listen(id, after)
		defer t.Close()
		for {
			events, err := t.Next(ctx)
			for _, e := range events {
				if !yield(e.Event, nil) {
					return
				}
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// TapOptions say which events a Tap gives. The zero value is those of all objects from now on.
type TapOptions struct {
	// Class is that of the objects. Default: all.
	Class string
	// Name is that of the one object. Default: all of the class.
	Name string
	// After is the TapEvent.Cursor of the last event that the reader has, or the cursor that
	// Tap.Cursor returned. Default: the events from now on, or, of one object, those that are kept.
	After uint64
	// BatchBytes bounds the memory of the events that one Next returns: none follows the one that
	// reaches the bound, and the first read from the store does not count. Default: 1 MiB.
	BatchBytes int
}

// TapEvent is an event with its object.
type TapEvent struct {
	ID storage.ID `json:"id"`
	// Cursor grows from event to event of a tap. A tap to one object has the event's sequence
	// number here, which holds for as long as that event is kept. The others have the place in the
	// order of all events, which holds for as long as the host keeps the event in memory, or its feed.
	Cursor uint64 `json:"cursor"`
	Event
}

// A Tap gives the events of all objects, of a class or of one object in the order of each
// object's commits, and each only once it is durable. It costs no goroutine, and its events are
// in memory once for all taps. Its methods are for one goroutine at a time. Host.Tap makes it.
type Tap struct {
	host     *Host
	key      storage.ID // without a name: a class; without both: all
	listener any        // nil: it reads the feed; see listenerOf
	bytes    int        // TapOptions.BatchBytes

	// The fields below but after are of a tap to one object. Its events come from the store until reading
	// ends, then from memory, and again from the store if it was too slow for that.
	reading bool
	strict  bool   // it tells that events were missed
	after   uint64 // the sequence number of the last event that it gave, or its place in the feed
}

// The bounds of one answer of Tap.Next. That of bytes is a default.
const (
	tapEvents = 256
	tapBytes  = 1 << 20
)

// Tap begins to listen to events. The caller calls Close at the end. Without a tap
// events cost a host nothing more. A tap to all objects or to a class has the newest 65,536
// events or 16 MiB behind it, from its beginning to a minute after the last such tap has
// closed, and never more than this process. With Options.Feed it reads the feed, which is stored, and its
// cursor is that of Host.Feed. A tap to one object reads the stored events. Tap returns ErrBadName, or an error for BatchBytes below 0.
func (h *Host) Tap(o TapOptions) (*Tap, error) {
	key := storage.ID{Class: o.Class, Name: o.Name}
	check := key
	if o.Name == "" && o.Class != "" {
		check.Name = "any"
	}
	if check != (storage.ID{}) {
		if err := validID(check); err != nil {
			return nil, err
		}
	}
	if err := notNegative("BatchBytes", o.BatchBytes); err != nil {
		return nil, fmt.Errorf("object: Tap: %w", err)
	}
	t := h.listen(key, o.After)
	t.strict = true
	if o.BatchBytes > 0 {
		t.bytes = o.BatchBytes
	}
	return t, nil
}

// listen begins a tap. One to many objects of a host with a feed needs no listener: it reads the feed.
func (h *Host) listen(key storage.ID, after uint64) *Tap {
	if h.options.Feed && key.Name == "" {
		if after == 0 {
			after = h.store.FeedBelow() - 1
		}
		return &Tap{host: h, key: key, bytes: tapBytes, after: after}
	}
	t := &Tap{host: h, key: key, listener: tapsOf(h).Listen(key), bytes: tapBytes, reading: key.Name != "", after: after}
	if after != 0 && !t.reading {
		listenerOf(t).From(after)
	}
	return t
}

// Close ends the tap. Later calls of Next are a mistake; a second Close does nothing.
func (t *Tap) Close() {
	if t.listener != nil {
		listenerOf(t).Close(t.host.seams.Steady())
	}
}

// Cursor tells how far the tap is, for TapOptions.After: it has given each of its events up to
// there. It moves on with the events of others too, so that it stays valid for longer than
// the Cursor of the last event.
func (t *Tap) Cursor() uint64 {
	if t.key.Name != "" || t.listener == nil {
		return t.after
	}
	return listenerOf(t).Position()
}

// Next returns the next events, at most 256, and waits for the first until ctx or the host
// ends. A ctx that has ended leaves the tap as it was, so a caller may look after something else
// now and then. Next returns ErrEventsMissed if events between the cursor and the next one are not
// there any more; then the caller reads the present state, and begins with a new tap.
func (t *Tap) Next(ctx context.Context) ([]TapEvent, error) {
	if t.listener == nil {
		return t.follow(ctx)
	}
	for {
		if err := seam.Cause(ctx); err != nil {
			return nil, err
		}
		if t.reading {
			events, err := t.read(ctx)
			if len(events) > 0 || err != nil {
				return events, err
			}
		}
		entries, news, err := listenerOf(t).Take(tapEvents, t.bytes)
		switch {
		case errors.Is(err, tap.ErrGap) && t.key.Name != "":
			t.reading = true
			listenerOf(t).FromNow()
		case errors.Is(err, tap.ErrGap):
			return nil, fmt.Errorf("object: tap: %w", ErrEventsMissed)
		case err != nil:
			return nil, err
		case len(entries) == 0:
			if err := t.host.seams.Executor.Wait(ctx, news); err != nil {
				return nil, err
			}
		default:
			if events := t.given(entries); len(events) > 0 {
				return events, nil
			}
		}
	}
}

// read returns the next events of an object from the store. The listener stands at a time before
// the look, so an event that the look does not see comes from memory afterwards. A cursor is
// good while its event is stored, because events go in the order in which they came.
func (t *Tap) read(ctx context.Context) (out []TapEvent, err error) {
	from, known := t.after, t.strict && t.after != 0
	if known {
		from--
	}
	events, err := readDurably(ctx, t.host, t.key, func(r Reader) ([]Event, error) { return r.events(t.key, from, tapEvents, t.bytes) })
	if err != nil {
		return nil, err
	}
	t.reading = len(events) == tapEvents || payloads(events) >= t.bytes
	if known {
		if len(events) == 0 || events[0].Seq != t.after {
			return nil, named(t.key, ErrEventsMissed)
		}
		events = events[1:]
	}
	for _, e := range events {
		out = append(out, TapEvent{t.key, e.Seq, e})
		t.after = e.Seq
	}
	return out, nil
}

// payloads is how many bytes the payloads of all events but the first have.
func payloads(events []Event) (n int) {
	for _, e := range events[min(1, len(events)):] {
		n += len(e.Data)
	}
	return n
}

// given turns entries into events. It leaves out those of an object that the tap has read from
// the store already.
func (t *Tap) given(entries []*tap.Entry[Event]) []TapEvent {
	out := make([]TapEvent, 0, len(entries))
	for _, e := range entries {
		cursor := e.Position
		if t.key.Name != "" {
			if e.Seq <= t.after {
				continue
			}
			cursor, t.after = e.Seq, e.Seq
		}
		out = append(out, TapEvent{e.ID, cursor, e.Value})
	}
	return out
}

// tapped returns the events that the turn has committed, for the listeners; none if there is
// no listener. The batch still holds them.
func (t *turn) tapped() (events []tap.Event[Event]) {
	a, h := t.act, t.act.host
	if !t.writes.events || !tapsOf(h).On() || !tapsOf(h).Wants(a.object.ID, t.at) {
		return nil
	}
	const more = 200 // of the event and its places in lists
	t.batch.Events(func(seq uint64, value []byte) {
		e, _ := decodeEvent(seq, value) // Emit has encoded it
		size := len(a.object.ID.Class) + len(a.object.ID.Name) + len(e.Kind) + len(e.Data) + more
		events = append(events, tap.Event[Event]{Seq: seq, Bytes: size, Value: e})
	})
	return events
}
