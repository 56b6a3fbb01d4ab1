package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// book is the knowledge of a store as a whole.
type book struct {
	Source   string    `json:"source"`            // the directory that is indexed
	Packages []string  `json:"packages"`          // all that ever had a file, sorted
	Walked   uint64    `json:"walked,omitempty"`  // the opening of the store in which the source was last walked to its end
	Finished time.Time `json:"finished,omitzero"` // when all was done; zero while something is not
	Flushes  int       `json:"flushes,omitempty"` // that were cut off and done again
	Count    uint64    `json:"count,omitempty"`   // snapshots in the history so far
	Noted    string    `json:"noted,omitempty"`   // the run that took the last of them
}

// snapshot is the progress at one time.
type snapshot struct {
	At      time.Time `json:"at"`
	Opening uint64    `json:"opening"` // of the store
	Left    uint64    `json:"left"`    // tasks that are not done or dead
	Sums    sums      `json:"sums"`    // of the totals so far
	Done    bool      `json:"done"`    // nothing is left anywhere
}

// ledger is the object that keeps the book and the history. There is one in a
// store, named theLedger.
type ledger struct {
	st   *object.State
	book book
}

const theLedger = "ledger"

var (
	ledgers   = object.Define("ledger", newLedger)
	begin     = object.Handle(ledgers, "begin", (*ledger).begin)
	walked    = object.Handle(ledgers, "walked", (*ledger).walked)
	note      = object.Handle(ledgers, "note", (*ledger).note)
	reflushed = object.Handle(ledgers, "reflushed", (*ledger).reflushed)
	bookOf    = object.Handle(ledgers, "book", (*ledger).bookOf)
	historyOf = object.Handle(ledgers, "history", (*ledger).history)
)

// errOtherSource refuses to index a second directory into a store.
var errOtherSource = errors.New("the store is of another source")

func newLedger(ctx context.Context, st *object.State) (*ledger, error) {
	l := &ledger{st: st}
	_, err := st.Storage().GetInto(ctx, "book", &l.book)
	return l, err
}

// begin takes the store for a source, or refuses if it is another's.
func (l *ledger) begin(ctx context.Context, source string) (book, error) {
	switch l.book.Source {
	case source:
		return l.book, nil
	case "":
		b := l.book
		b.Source = source
		return b, l.put(ctx, b)
	}
	return l.book, fmt.Errorf("%w: %s", errOtherSource, l.book.Source)
}

// walk is the result of a walk of the source.
type walk struct {
	Packages []string // all that ever had a file, sorted
	Work     bool     // something is to be done
}

// walked says that in this opening of the store all that is to be done has been
// enqueued.
func (l *ledger) walked(ctx context.Context, w walk) (book, error) {
	b := l.book
	b.Packages = w.Packages
	b.Walked = l.st.Driver().Epoch()
	if w.Work {
		b.Finished = time.Time{}
	}
	return b, l.put(ctx, b)
}

// historyMax bounds the snapshots that are kept.
const historyMax = 1000

func historyKey(n uint64) string { return fmt.Sprintf("h/%012d", n) }

// progress is what one run of the continuous job has seen.
type progress struct {
	Run string // its key
	snapshot
}

// note adds a snapshot to the history. With one that is done the store is finished.
// A run that is repeated after a crash replaces its snapshot, because it decides by
// the new one. With an idempotency key it would get the answer to the old one.
func (l *ledger) note(ctx context.Context, p progress) (book, error) {
	b, s := l.book, p.snapshot
	s.At, s.Opening = l.st.Now(), l.st.Driver().Epoch()
	if s.Done && b.Finished.IsZero() {
		b.Finished = s.At
	}
	if b.Noted != p.Run {
		b.Noted = p.Run
		b.Count++
	}
	if err := l.st.Storage().Put(ctx, historyKey(b.Count), s); err != nil {
		return b, err
	}
	if b.Count > historyMax {
		if _, err := l.st.Storage().Delete(ctx, historyKey(b.Count-historyMax)); err != nil {
			return b, err
		}
	}
	return b, l.put(ctx, b)
}

// reflushed counts a flush that was cut off and is done again.
func (l *ledger) reflushed(ctx context.Context, _ struct{}) (int, error) {
	b := l.book
	b.Flushes++
	return b.Flushes, l.put(ctx, b)
}

func (l *ledger) put(ctx context.Context, b book) error {
	err := l.st.Storage().Put(ctx, "book", b)
	if err == nil {
		l.book = b
	}
	return err
}

// openBook is the book as this opening of the store sees it.
type openBook struct {
	book
	// Current says that the source was walked to its end in this opening, so that
	// no task has yet to be enqueued.
	Current bool
}

func (l *ledger) bookOf(context.Context, struct{}) (openBook, error) {
	return openBook{l.book, l.book.Walked == l.st.Driver().Epoch()}, nil
}

// history returns the last snapshots, in order.
func (l *ledger) history(ctx context.Context, limit int) ([]snapshot, error) {
	var out []snapshot
	o := object.ListOptions{Prefix: "h/", Reverse: true, Limit: limit}
	for item, err := range l.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		var s snapshot
		if err := l.st.Driver().Codec().Decode(item.Value, &s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	slices.Reverse(out)
	return out, nil
}
