package object

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/storage"
)

// ListOptions say which keys List yields. The zero value means all of them, in the order
// of their bytes. All bounds apply together: a key is yielded if none excludes it.
type ListOptions struct {
	Start      string // the first key, included
	StartAfter string // begin after this key, for example the last one of the page before
	End        string // the first key that is left out; empty: no bound
	Prefix     string // only keys that begin with it
	Reverse    bool   // from the last to the first
	Limit      int    // at most so many; zero: no limit
}

// bounds returns the range of keys [lower, upper); an empty upper is no bound. empty
// reports that no key can be in the range.
func (o ListOptions) bounds() (lower, upper string, empty bool) {
	lower, upper = o.Start, o.End
	if o.StartAfter != "" {
		lower = max(lower, o.StartAfter+"\x00")
	}
	if o.Prefix != "" {
		lower = max(lower, o.Prefix)
		if end := storage.PrefixEnd(o.Prefix); end != "" && (upper == "" || end < upper) {
			upper = end
		}
	}
	return lower, upper, upper != "" && lower >= upper
}

// List yields keys and their bytes, as they are at the moment of the call: the snapshot
// does not change when the turn writes while it ranges over the sequence. Each further
// range over the same sequence takes a snapshot of its own. A range of keys that is empty
// or lies the wrong way round yields nothing.
//
// An error ends the sequence and is its last element. A negative Limit is an error. If the
// turn ends before the sequence does, the error is ErrNoTurn, or ErrReset if the instance
// is gone.
//
// Keys that were deleted lately cost List about as much as stored ones. So a caller that
// takes keys from the front of many, as from a queue, should begin with Start after the
// last one taken.
func (s *Storage) List(ctx context.Context, o ListOptions) iter.Seq2[Item, error] {
	first, err := s.list(ctx, o)
	if err != nil {
		return failed(err)
	}
	return func(yield func(Item, error) bool) {
		l := first
		if first = nil; l == nil {
			var err error
			if l, err = s.list(ctx, o); err != nil {
				yield(Item{}, err)
				return
			}
		}
		l.yield(yield)
	}
}

// listing is one walk over the keys that a List yields. Only the goroutine that ranges over
// the sequence uses it; end of the turn closes the iterator.
type listing struct {
	storage *Storage
	turn    *turn
	it      *storage.Iter // nil: nothing is in the range
	limit   int           // 0: no limit
}

// list begins a walk: it takes the snapshot, and notes the iterator in the turn, so that
// the end of the turn closes it if the caller stops early and keeps the sequence.
func (s *Storage) list(ctx context.Context, o ListOptions) (*listing, error) {
	t, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if o.Limit < 0 {
		return nil, fmt.Errorf("%s: object: ListOptions.Limit is %d: it must not be negative, and zero is no limit", s.state.act.object.ID, o.Limit)
	}
	l := &listing{storage: s, turn: t, limit: o.Limit}
	lower, upper, empty := o.bounds()
	if empty || t.object.Number == 0 {
		return l, s.state.reading(nil)
	}
	it, err := s.host().store.ListData(t.batch, *t.object, lower, upper, o.Reverse)
	if err := s.state.reading(err); err != nil {
		if it != nil {
			it.Close()
		}
		return nil, err
	}
	t.iters = append(t.iters, it)
	l.it = it
	return l, nil
}

// yield passes keys to the function until it returns false, or until the range, the limit
// or the turn ends. Before each key it looks whether the turn still lasts, because its end
// has closed the iterator.
func (l *listing) yield(yield func(Item, error) bool) {
	if l.it != nil {
		defer l.it.Close()
	}
	for n := 0; l.limit == 0 || n < l.limit; n++ {
		if err := l.over(); err != nil {
			yield(Item{}, err)
			return
		}
		if l.it == nil || !l.it.Next() {
			break
		}
		if !yield(Item{string(l.it.Key()), l.it.Value()}, nil) {
			return
		}
	}
	if l.it == nil {
		return
	}
	if err := l.it.Err(); err != nil {
		yield(Item{}, l.storage.host().storageError(l.storage.state.act.object.ID, err))
	}
}

// over returns why the walk cannot go on, or nil: the instance is gone, or the turn has
// ended.
func (l *listing) over() error {
	switch s := l.storage.state; {
	case s.err() != nil:
		return named(s.act.object.ID, ErrReset)
	case l.turn.phase.Load() == phaseOver:
		return named(s.act.object.ID, ErrNoTurn)
	}
	return nil
}

// failed returns a sequence with an error as its one element.
func failed(err error) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) { yield(Item{}, err) }
}
