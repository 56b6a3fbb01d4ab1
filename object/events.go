package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
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

// Emit adds an event to the turn's batch, with a payload that the host's codec encodes. A
// turn that fails emits nothing. Events are kept for Options.EventRetention, also when the
// object is deleted; Host.Events and Host.Watch read them. Emit returns ErrValueTooLarge,
// ErrBatchTooLarge, ErrNoTurn or ErrReset, and then changes nothing.
func (s *State) Emit(ctx context.Context, kind string, payload any) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	h := s.act.host
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
	const more = recordBytes + 2*24
	if err := s.storage.check(t, len(row)+2*(len(s.act.object.ID.Class)+len(s.act.object.ID.Name))+more, "", data); err != nil {
		return err
	}
	expires := alarm.Nanos(now.Add(h.options.EventRetention))
	t.events().AddEvent(t.object.Shard, s.act.object.ID, h.store.NextSeq(), expires, row)
	return nil
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
	return read(ctx, r, id, func() ([]Event, error) { return r.events(id, after, limit) })
}

// Events is Reader.Events for an open host. It reads the store and takes no turn, so it does
// not wait for a handler that runs. It returns only when every event in its answer is durable.
func (h *Host) Events(ctx context.Context, id storage.ID, after uint64, limit int) ([]Event, error) {
	return readDurably(ctx, h, id, func(r Reader) ([]Event, error) { return r.events(id, after, limit) })
}

// events reads the events of an object behind a number.
func (r Reader) events(id storage.ID, after uint64, limit int) (out []Event, err error) {
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
		out = append(out, e)
		return bad == nil && len(out) < limit
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
	const page = 256
	return func(yield func(Event, error) bool) {
		for {
			more, err := h.watchPage(ctx, id, after, page, func(e Event) bool {
				after = e.Seq
				return yield(e, nil)
			})
			if err != nil {
				yield(Event{}, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// watchPage passes the next page of events to yield, or waits for the next event if there
// is none now. It reports whether the watch goes on. It enters before it reads, so that an
// event that is committed between the read and the wait ends the wait.
func (h *Host) watchPage(ctx context.Context, id storage.ID, after uint64, page int, yield func(Event) bool) (bool, error) {
	news := h.watch.enter(id)
	defer h.watch.leave(id, news)
	events, err := h.Events(ctx, id, after, page)
	if err != nil {
		return false, err
	}
	for _, e := range events {
		if !yield(e) {
			return false, nil
		}
	}
	if len(events) > 0 {
		return true, nil
	}
	return true, h.waitFor(ctx, news.told)
}

// waitFor waits until an event is announced, or until ctx or the host ends, which is an
// error.
func (h *Host) waitFor(ctx context.Context, news <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	stop := h.watch.onStop(cancel)
	defer stop()
	return h.seams.Executor.Wait(ctx, news)
}

// watchers holds the watches of a host that wait for an event. An object without a watch
// has no entry, so a commit with events costs it one look into a map. The mutex guards all
// fields; it is held for a few instructions only, because each such commit takes it.
type watchers struct {
	mu      sync.Mutex
	m       map[storage.ID]*news
	stops   map[uint64]context.CancelCauseFunc // of the waits under way, by a number of their own
	nextKey uint64                             // the last number given to a wait
	cause   error                              // why the host has ended; nil while it lives
}

// news stands for the next event of one object. All watches of the object that wait at a
// time share it, so one close of its channel wakes them all.
type news struct {
	told     chan struct{} // closed when the event is committed
	watchers int           // how many watches share it; guarded by watchers.mu
}

// enter returns the news of id, and makes it for the first watch. The caller calls leave
// with it when it no longer waits.
func (w *watchers) enter(id storage.ID) *news {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m == nil {
		w.m = make(map[storage.ID]*news)
	}
	n := w.m[id]
	if n == nil {
		n = &news{told: make(chan struct{})}
		w.m[id] = n
	}
	n.watchers++
	return n
}

// leave undoes enter. The last watch takes the entry out of the map, unless tell has done
// so or another news is in its place.
func (w *watchers) leave(id storage.ID, n *news) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.watchers--; n.watchers == 0 && w.m[id] == n {
		delete(w.m, id)
	}
}

// tell wakes the watches of an object. The goroutine of a turn calls it after a commit
// with events; the watches then read the events, and wait until they are durable.
func (w *watchers) tell(id storage.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.m[id]; n != nil {
		delete(w.m, id)
		close(n.told)
	}
}

// onStop has cancel called when the host ends, or calls it now if the host has ended. The
// caller calls forget when it no longer waits.
func (w *watchers) onStop(cancel context.CancelCauseFunc) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause != nil {
		cancel(w.cause)
		return func() {}
	}
	if w.stops == nil {
		w.stops = make(map[uint64]context.CancelCauseFunc)
	}
	w.nextKey++
	key := w.nextKey
	w.stops[key] = cancel
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.stops, key)
	}
}

// stop ends all watches with err, and later ones at once. The cancel functions are called
// without the mutex, because the goroutines that they wake take it.
func (w *watchers) stop(err error) {
	w.mu.Lock()
	if w.cause == nil {
		w.cause = err
	}
	stops := w.stops
	w.stops = nil
	w.mu.Unlock()
	for _, cancel := range stops {
		cancel(err)
	}
}
