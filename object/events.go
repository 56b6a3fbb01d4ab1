package object

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// Event is something that an object told of in the batch of the change itself.
type Event struct {
	Seq  uint64    // greater than that of every earlier event of the object
	At   time.Time // when it was emitted, by the host's clock
	Kind string
	Data []byte // the payload, encoded by the host's codec
}

// eventRow is an event as it is stored.
type eventRow struct {
	At   int64  `json:"t"`
	Kind string `json:"k"`
	Data []byte `json:"d,omitempty"`
}

// Emit adds an event to the turn's batch. Events are kept for
// Options.EventRetention, also when the object is deleted, and read with
// Host.Events and Host.Watch.
func (s *State) Emit(ctx context.Context, kind string, payload any) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	h := s.act.hosted.host
	data, err := h.options.Codec.Encode(payload)
	if err != nil {
		return fmt.Errorf("%s: encode event %s: %w", s.act.id, kind, err)
	}
	now := h.seams.Clock.Now()
	row, err := json.Marshal(eventRow{now.UnixNano(), kind, data})
	if err != nil {
		return fmt.Errorf("%s: encode event %s: %w", s.act.id, kind, err)
	}
	// The row and its entry in the expiry index, each with the object's name.
	const more = recordBytes + 2*24
	if err := s.storage.check(t, len(row)+2*(len(s.act.id.Class)+len(s.act.id.Name))+more, "", data); err != nil {
		return err
	}
	expires := alarm.Nanos(now.Add(h.options.EventRetention))
	t.events().AddEvent(t.object.Shard, s.act.id, h.store.NextSeq(), expires, row)
	return nil
}

// events returns the batch for an event, which needs no number: events belong to
// the name, not to one life of the object.
func (t *turn) events() *storage.Batch {
	t.writes.events = true
	if t.batch == nil {
		t.batch = t.act.hosted.host.batches.Get().(*storage.Batch)
		t.batch.For(t.act.id)
	}
	return t.batch
}

// Events returns up to limit events of an object whose sequence number is
// greater than after, in order. All of them are durable.
func (h *Host) Events(ctx context.Context, id storage.ID, after uint64, limit int) ([]Event, error) {
	if err := h.look(ctx, id); err != nil {
		return nil, err
	}
	defer h.life.leave()
	if err := notNegative("limit", limit); err != nil {
		return nil, fmt.Errorf("%s: object: Events: %w", id, err)
	}
	if limit == 0 {
		return nil, nil
	}
	var out []Event
	var bad error
	err := h.store.Events(id, after, func(seq uint64, value []byte) bool {
		var row eventRow
		if bad = json.Unmarshal(value, &row); bad != nil {
			return false
		}
		out = append(out, Event{seq, time.Unix(0, row.At), row.Kind, row.Data})
		return len(out) < limit
	})
	if err == nil {
		err = bad
	}
	if err == nil {
		err = h.store.WaitSeen()
	}
	if err != nil {
		return nil, h.storageError(id, err)
	}
	return out, nil
}

// Watch yields the events of an object after a sequence number as they become
// durable, and waits for more until ctx or the host ends; the error that ended it
// is the last element. Who remembers the last number he has handled misses none.
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

// watchPage gives the events that are there to yield, or waits for the next one. It
// reports whether the watch goes on.
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

// waitFor waits for news until ctx or the host ends.
func (h *Host) waitFor(ctx context.Context, news <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	stop := h.watch.onStop(cancel)
	defer stop()
	return h.seams.Executor.Wait(ctx, news)
}

// watchers are those who wait for events of an object. An object that nobody watches
// has no place here.
type watchers struct {
	mu      sync.Mutex
	m       map[storage.ID]*news
	stops   map[uint64]context.CancelCauseFunc
	nextKey uint64
	stopped error
}

// news is the next event of an object, and how many wait for it.
type news struct {
	told     chan struct{} // closed when the event is there
	watchers int
}

// enter returns the next event of id. The caller calls leave when it no longer waits
// for it.
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

func (w *watchers) leave(id storage.ID, n *news) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.watchers--; n.watchers == 0 && w.m[id] == n {
		delete(w.m, id)
	}
}

func (w *watchers) tell(id storage.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.m[id]; n != nil {
		delete(w.m, id)
		close(n.told)
	}
}

// onStop calls cancel when the host ends.
func (w *watchers) onStop(cancel context.CancelCauseFunc) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != nil {
		cancel(w.stopped)
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

// stop ends all watches with err.
func (w *watchers) stop(err error) {
	w.mu.Lock()
	if w.stopped == nil {
		w.stopped = err
	}
	stops := w.stops
	w.stops = nil
	w.mu.Unlock()
	for _, cancel := range stops {
		cancel(err)
	}
}
