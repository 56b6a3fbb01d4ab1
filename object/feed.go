package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// FeedOptions say which page of the feed Host.Feed returns. The zero value is the oldest page of
// the events of all objects.
type FeedOptions struct {
	// After is the FeedPage.Next of the page before, or the cursor of a Tap to a class or to
	// all objects of a host with a feed. Default: the oldest event that is kept.
	After uint64
	// Class is that of the objects. Default: all.
	Class string
	// Prefix begins the names of the objects. Default: all.
	Prefix string
	// Kinds are those of the events. Default: all.
	Kinds []string
	// Limit is the most events of a page. Default: 256.
	Limit int
}

// validate returns the first mistake in o.
func (o FeedOptions) validate() error {
	if o.Class != "" {
		if err := storage.ValidateClass(o.Class); err != nil {
			return fmt.Errorf("%w: %w", ErrBadName, err)
		}
	}
	return notNegative("Limit", o.Limit)
}

// wants reports whether an event is among those that o asks for.
func (o FeedOptions) wants(e storage.FeedEntry) bool {
	return (o.Class == "" || o.Class == e.ID.Class) && strings.HasPrefix(e.ID.Name, o.Prefix) &&
		(len(o.Kinds) == 0 || slices.Contains(o.Kinds, e.Kind))
}

// FeedPage is a page of the feed.
type FeedPage struct {
	// Events are in the order of their Cursor, which is their position in the feed. The events of
	// one object are in the order of its commits.
	Events []TapEvent
	// Next is FeedOptions.After of the next page: the reader has all events up to there, also
	// beyond the last of Events. It is valid over restarts, and less than After only with ErrEventsMissed.
	Next uint64
	// More reports whether the feed goes on behind Next now.
	More bool
}

// Feed returns a page of the stored order of all events, once all of it is durable; it waits for no
// event. A reader that stores Next with the effect of the page gets each event exactly once, over
// crashes and restarts. A page ends after Limit events, about 1 MiB of payloads, or 4,096 rows.
//
// Feed returns ErrEventsMissed if events behind After are gone: they have expired, or the store
// was opened without Options.Feed since. Next is then the position from which on
// the reader can go on, and all that it has missed lies before it. A position that the store has not given
// out yet, for example one of before the store was replaced by an older copy, is ErrEventsMissed too, and
// Next is then less than After: behind it lies all that the feed has. Without Options.Feed it
// returns an error.
func (h *Host) Feed(ctx context.Context, o FeedOptions) (FeedPage, error) {
	if !h.options.Feed {
		return FeedPage{}, errors.New("object: Feed: the host keeps no feed: set Options.Feed")
	}
	if err := o.validate(); err != nil {
		return FeedPage{}, fmt.Errorf("object: Feed: %w", err)
	}
	o.Limit = cmp.Or(o.Limit, tapEvents)
	return h.readFeed(ctx, o, tapBytes)
}

// feedRows bounds the rows that one page looks at, because the filter may pass over many.
const feedRows = 4096

// readFeed is Feed with a bound for the payloads of all events but the first.
func (h *Host) readFeed(ctx context.Context, o FeedOptions, bytes int) (FeedPage, error) {
	r := feedReader{FeedOptions: o, store: h.store, bytes: bytes}
	_, err := readDurably(ctx, h, storage.ID{}, func(Reader) (FeedPage, error) { return FeedPage{}, r.read() })
	if err != nil {
		return FeedPage{}, err
	}
	if r.missed {
		return r.page, fmt.Errorf("object: feed: %w", ErrEventsMissed)
	}
	return r.page, nil
}

// feedReader reads one page.
type feedReader struct {
	FeedOptions
	store  *storage.Store
	page   FeedPage
	bytes  int   // of payloads that the page may still get
	rows   int   // that it has looked at
	missed bool  // the events before page.Next are gone
	err    error // of the look at an event
}

// read reads the page. It looks at the floor of the feed after the rows, because rows that have
// gone meanwhile are at the floor or before.
func (r *feedReader) read() error {
	below := r.store.FeedBelow()
	r.page.Next = r.After
	err := r.store.Feed(r.After, below, r.row)
	if err = errors.Join(err, r.err); err != nil {
		return err
	}
	if !r.page.More {
		r.page.Next = below - 1
	}
	floor := r.store.FeedFloor()
	if r.After != 0 && (r.After < floor || r.After >= below) {
		r.missed, r.page = true, FeedPage{Next: floor, More: true}
	}
	return nil
}

// row takes a row of the feed, and reports whether to go on with the next. Events that are gone end
// a page with events, and are a page of their own. To a new reader they are no loss.
func (r *feedReader) row(row storage.FeedEntry) bool {
	if len(r.page.Events) == r.Limit || r.bytes <= 0 || r.rows == feedRows {
		r.page.More = true
		return false
	}
	r.rows++
	if r.wants(row) {
		value, stored, err := r.store.Event(row.ID, row.Seq)
		if err != nil {
			r.err = err
			return false
		}
		if missed := !stored && r.After != 0; r.page.Events != nil && missed || r.missed && !missed {
			r.page.More = true
			return false
		} else if r.missed = missed; stored && !r.add(row, value) {
			return false
		}
	}
	r.page.Next = row.Position
	return true
}

// add adds an event to the page.
func (r *feedReader) add(row storage.FeedEntry, value []byte) bool {
	e, err := decodeEvent(row.Seq, value)
	if r.err = err; err != nil {
		return false
	}
	if r.page.Events = append(r.page.Events, TapEvent{row.ID, row.Position, e}); len(r.page.Events) > 1 {
		r.bytes -= len(e.Data)
	}
	return true
}

// feedNews tells the taps that wait for the feed of new rows. The mutex guards told and cause.
type feedNews struct {
	waited atomic.Bool // told is not nil

	mu    sync.Mutex
	told  chan struct{} // closed when there is news; nil while no tap waits
	cause error         // why the host has ended; nil while it lives
}

// wait returns a channel that is closed at the next news, and why the host has ended. A tap asks for it
// before it reads the feed, and a commit is visible before it tells. So no news is lost.
func (n *feedNews) wait() (<-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told == nil {
		n.told = make(chan struct{})
		n.waited.Store(true)
	}
	return n.told, n.cause
}

// tell wakes the taps that wait. Without one it is one atomic load.
func (n *feedNews) tell() {
	if n.waited.Load() {
		n.stop(nil)
	}
}

// stop wakes the taps that wait and, with an error, ends them.
func (n *feedNews) stop(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cause = cmp.Or(n.cause, err)
	if n.told != nil {
		close(n.told)
		n.told = nil
		n.waited.Store(false)
	}
}

// feedBytes is about how many bytes the row of an event in the feed takes in a batch.
func feedBytes(id storage.ID, kind string) int {
	return len(id.Class) + len(id.Name) + len(kind) + recordBytes + 32
}

// noteFeed tells the sweep and the taps that wait of the rows that a commit has added to the feed.
func (h *Host) noteFeed(b *storage.Batch) {
	if at := b.FeedExpires(); at != 0 {
		h.expiry.note(h.store.Shards(), at)
		h.feedNews.tell()
	}
}

// follow is Tap.Next for a tap that reads the feed.
func (t *Tap) follow(ctx context.Context) ([]TapEvent, error) {
	h := t.host
	for {
		if err := seam.Cause(ctx); err != nil {
			return nil, err
		}
		news, ended := h.feedNews.wait()
		page, err := h.readFeed(ctx, FeedOptions{After: t.after, Class: t.key.Class, Limit: tapEvents}, t.bytes)
		if err != nil {
			return nil, cmp.Or(ended, err)
		}
		if t.after = page.Next; len(page.Events) > 0 {
			return page.Events, nil
		}
		if page.More {
			continue
		}
		if ended != nil {
			return nil, ended
		}
		if err := h.seams.Executor.Wait(ctx, news); err != nil {
			return nil, err
		}
	}
}
