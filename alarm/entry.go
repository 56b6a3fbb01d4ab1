package alarm

import (
	"cmp"
	"math"
	"time"
)

// Entry is one entry of the time index: an armed alarm.
type Entry struct {
	Due    time.Time
	Shard  int    // in [0, Config.Shards)
	Object uint64 // the object's number, unique in its shard
	Gen    uint64 // generation of the row; the Scheduler only passes it on
	Class  string
	Name   string
}

// Position is a place in the index of one shard. Positions are ordered by Due,
// then by Object.
type Position struct {
	Due    time.Time
	Object uint64
}

// Source reads the stored index. It is called from one task at a time, without
// any lock of the Scheduler's.
type Source interface {
	// Scan returns the first entries of the shard that lie strictly after the
	// position, in order, at most limit of them. Fewer than limit means that
	// there are no more. It shows one moment: no earlier than the call, and
	// every commit before that moment. The first position of a shard is 1970,
	// object 0.
	Scan(shard int, after Position, limit int) ([]Entry, error)
}

// pos is a Position in the unit of the index.
type pos struct {
	at     int64
	object uint64
}

var (
	origin = pos{}                              // before every entry
	end    = pos{math.MaxInt64, math.MaxUint64} // not before any entry
)

func posOf(e *Entry) pos { return pos{Nanos(e.Due), e.Object} }

func (p pos) compare(q pos) int {
	if c := cmp.Compare(p.at, q.at); c != 0 {
		return c
	}
	return cmp.Compare(p.object, q.object)
}

func (p pos) after(q pos) bool { return p.compare(q) > 0 }

func (p pos) position() Position {
	return Position{Due: time.Unix(0, p.at).UTC(), Object: p.object}
}

func earlier(p, q pos) pos {
	if p.after(q) {
		return q
	}
	return p
}
