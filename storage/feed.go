package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// # The feed
//
// The feed lists the events of all objects in one order, by positions. Each event has a row of it
// in its own batch, if Options.Feed is set. A position is drawn in the last step before the batch
// is applied (drawPositions), and given back however that step ends, also by a panic (apply). So a
// reader stops at the oldest position that is drawn and not given back (FeedBelow), and misses no
// row, as readers of messages do (message_numbers.go).
//
// The row `feed` tells for which positions the feed is whole: those after floor, if each opening
// since then has kept the feed. It has the epoch of the newest opening that did. An opening that
// finds another epoch there than that of the opening before it knows that one has not kept the
// feed, perhaps a program without it, and begins a new feed: the old rows go, and floor rises
// above all positions of before. So a cursor is never led over a gap. The row changes in the
// batch with the epoch, and with each removal of rows that expire.
//
// Rows go from the oldest on, and no row goes before the one with a lesser position. So all that
// is gone lies at floor or before.

// For example, commit A draws 7, commit B draws 8 and is applied first. FeedBelow is 7, because a
// reader that took 8 and went on behind it would never see 7. Once A is applied, or has failed, it
// is 9.
//
// Without the option none of this costs a row, a mutex or a branch but that of the commit, because a
// batch without rows of the feed is applied as ever.

// feed is the state of the feed of an open store.
type feed struct {
	on    bool          // Options.Feed
	last  atomic.Uint64 // the last position given out
	floor atomic.Uint64 // rows up to this position may be gone
	drawn drawn         // the positions that readers may not pass yet
}

// feedRow is the name of the row of the store that tells for which positions the feed is whole.
const feedRow = "feed"

const feedVersion = 1

// FeedEntry is a row of the feed: an event and its position.
type FeedEntry struct {
	Position uint64 // AddToFeed leaves it out, because Commit draws it
	ID       ID
	Seq      uint64 // the sequence number of the event
	Kind     string
	Expires  int64 // when the row may go, in nanoseconds since 1970
}

// AddToFeed adds an event of the batch to the feed. It is for a store with Options.Feed alone.
// Commit draws the position.
func (b *Batch) AddToFeed(e FeedEntry) {
	b.open(engine.KindSet, feedKeyLen)
	b.feed = append(b.feed, len(b.data)+feedKeyLen-8)
	b.feedExpires = earlier(b.feedExpires, e.Expires)
	b.data = feedKey(b.data, 0)
	var room [keyRoom]byte
	w := row.Writer(room[:0]).Byte(feedVersion).Int(e.Expires).Uint(e.Seq)
	b.data = appendBytes(b.data, w.Text(e.ID.Class).Text(e.ID.Name).Text(e.Kind))
}

// FeedExpires returns when the first row of the feed expires that the batch adds, 0 if it adds
// none. After a Rollback it may be too early.
func (b *Batch) FeedExpires() int64 { return b.feedExpires }

const feedKeyLen = 3 + 8

func feedKey(dst []byte, position uint64) []byte {
	return binary.BigEndian.AppendUint64(prefix(dst, metaShard, kindFeed), position)
}

// decodeFeed reads a row of the feed. The key has no shard and kind.
func decodeFeed(key, value []byte) (e FeedEntry, err error) {
	r := row.Read(value)
	version := r.Byte()
	e.Expires, e.Seq = r.Int(), r.Uint()
	e.ID, e.Kind = ID{r.Text(), r.Text()}, r.Text()
	r.Required()
	if !r.OK() || version != feedVersion || len(key) != 8 {
		return FeedEntry{}, fmt.Errorf("%w: feed row %x = %x", ErrCorrupt, key, value)
	}
	e.Position = binary.BigEndian.Uint64(key)
	return e, nil
}

// setFeedRow stores for which positions the feed is whole. The opening that stores it keeps the feed.
func (s *Store) setFeedRow(b *Batch, floor uint64) {
	b.SetMeta(feedRow, row.Writer(nil).Byte(feedVersion).Uint(s.epoch).Uint(floor))
}

// readFeedRow returns the epoch of the newest opening that has kept the feed, 0 for none, and the
// floor of the feed.
func (s *Store) readFeedRow() (epoch, floor uint64, err error) {
	value, ok, err := s.Meta(feedRow)
	if err != nil || !ok {
		return 0, 0, err
	}
	return decodeFeedRow(value)
}

// decodeFeedRow reads the value that setFeedRow has stored.
func decodeFeedRow(value []byte) (epoch, floor uint64, err error) {
	r := row.Read(value)
	version := r.Byte()
	epoch, floor = r.Uint(), r.Uint()
	r.Required()
	if !r.OK() || version != feedVersion {
		return 0, 0, fmt.Errorf("%w: row %s %x", ErrCorrupt, feedRow, value)
	}
	return epoch, floor, nil
}

// beginFeed adds to the batch that begins an opening: the feed goes on, begins anew, or
// goes. Without a feed, before and now, it adds nothing.
func (s *Store) beginFeed(b *Batch) error {
	s.feed.last.Store(s.epoch << blockBits)
	kept, floor, err := s.readFeedRow()
	if err != nil {
		return s.fail(err)
	}
	if kept == 0 && !s.feed.on {
		return nil
	}
	whole := s.feed.on && kept != 0 && kept == s.previous.Epoch
	if !whole {
		floor = s.epoch << blockBits
	}
	if !whole && kept != 0 {
		b.DeleteRange(kindRange(metaShard, kindFeed))
	}
	s.feed.floor.Store(floor)
	if s.feed.on {
		s.setFeedRow(b, floor)
	} else {
		b.Delete(metaKey(feedRow))
	}
	return nil
}

// drawPositions draws positions for the feed rows of a batch that is about to be applied, and
// returns the first, with which the caller gives all of them back.
func (s *Store) drawPositions(b *Batch) (first uint64) {
	d := &s.feed.drawn
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range b.feed {
		position := s.nextOf(&s.feed.last)
		first = cmp.Or(first, position)
		binary.BigEndian.PutUint64(b.data[at:], position)
	}
	d.open = append(d.open, drawing{first: first})
	return first
}

// FeedBelow returns a position such that each row of the feed with a lesser one is visible, and
// each later row has that position or a greater one.
func (s *Store) FeedBelow() uint64 { return s.feed.drawn.below(&s.feed.last) }

// FeedFloor returns the position up to which rows of the feed may be gone: they have expired, or
// an opening has not kept the feed. A reader asks for it after it has read rows: if it had read
// up to a lesser position, it may have missed some.
func (s *Store) FeedFloor() uint64 { return s.feed.floor.Load() }

// Feed calls f with each row of the feed with a position after and below the given ones, in
// order, until f returns false. It sees none without Options.Feed.
func (s *Store) Feed(after, below uint64, f func(FeedEntry) bool) error {
	after = max(after, s.FeedFloor()) // the rows before are gone, and to pass their tombstones takes time
	if !s.feed.on || after >= below {
		return nil
	}
	it, err := s.iter(nil, append(feedKey(nil, after), 0), feedKey(nil, below), false, 3)
	if err != nil {
		return err
	}
	defer it.Close()
	for it.Next() {
		e, err := decodeFeed(it.Key(), it.Value())
		if err != nil {
			return s.fail(err)
		}
		if !f(e) {
			break
		}
	}
	return it.Close()
}

// ExpireFeed removes rows of the feed that expire at or before now, from the oldest on, and up to
// limit, as one commit that is not waited for. It stops at the first row that does not expire
// yet, and returns its time; ok is false if there is no such row. If it stops because of limit,
// that is the time of the next row too. It is for one caller at a time.
func (s *Store) ExpireFeed(now int64, limit int) (next int64, ok bool, err error) {
	var b Batch
	before := s.FeedFloor()
	floor := before
	err = s.Feed(before, s.FeedBelow(), func(e FeedEntry) bool {
		if ok = e.Expires > now || int(b.count) >= limit; ok {
			next = e.Expires
			return false
		}
		b.Delete(feedKey(nil, e.Position))
		floor = e.Position
		return true
	})
	if err != nil || b.Empty() {
		return next, ok, err
	}
	s.setFeedRow(&b, floor)
	s.feed.floor.Store(floor) // before a reader could miss the rows
	if _, err = s.Commit(&b); err != nil {
		s.feed.floor.Store(before)
		return 0, false, err
	}
	return next, ok, nil
}

// checkFeed checks that the rows of the feed can be read, and lie where the row `feed` says.
func (s *Store) checkFeed(found func(ID, error) error) error {
	kept, floor, err := s.readFeedRow()
	if errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrStorage) {
		return found(ID{}, err)
	}
	if err != nil {
		return err
	}
	return s.scan(metaShard, kindFeed, nil, func(key, value []byte) error {
		e, err := decodeFeed(key, value)
		switch {
		case err != nil:
		case kept == 0:
			err = fmt.Errorf("a row of the feed at %d, and the store keeps no feed", e.Position)
		case e.Position <= floor:
			err = fmt.Errorf("a row of the feed at %d, which has expired up to %d", e.Position, floor)
		case e.Position>>blockBits > s.through.Load():
			err = fmt.Errorf("a row of the feed at %d, which no opening has given out", e.Position)
		default:
			return nil
		}
		return found(e.ID, err)
	})
}
