package journal_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
)

// stored are the rows of a journal as they lie in a store, read by other code than that of
// the package.
type stored struct {
	snapshot, oldest uint64 // of the newest and the oldest snapshot
	state            state
	last             uint64
	events           map[uint64]deed
	snapshots        int
}

// rowsIn reads the journal of the book "b" in a store. Values are JSON.
func rowsIn(st *storage.Store) (r stored, err error) {
	r.events = map[uint64]deed{}
	o, err := st.Find(storage.ID{Class: "book", Name: "b"})
	if err != nil || o.Number == 0 {
		return r, err
	}
	it, err := st.ListData(nil, o, "\x00e", "\x00f", false)
	if err != nil {
		return r, err
	}
	defer it.Close()
	for it.Next() {
		key := string(it.Key())
		seq := binary.BigEndian.Uint64([]byte(key[3:]))
		data := it.Value()[strings.IndexByte(string(it.Value()), '{'):]
		if key[2] == '!' {
			if r.snapshots++; r.oldest == 0 {
				r.oldest = seq
			}
			r.state, r.snapshot, r.last = state{}, seq, seq
			err = json.Unmarshal(data, &r.state)
		} else {
			var d deed
			err = json.Unmarshal(data, &d)
			r.events[seq], r.last = d, max(r.last, seq)
		}
		if err != nil {
			return r, err
		}
	}
	return r, it.Err()
}

// sound checks E1 and E3 in a stored state: the rows fold to the state after the deeds
// these(1, last), no event that is needed is missing, and the last keep before the
// newest snapshot have their rows.
func sound(st *storage.Store, every, keep int) error {
	r, err := rowsIn(st)
	if err != nil {
		return err
	}
	got := r.state
	for seq := r.snapshot + 1; seq <= r.last; seq++ {
		e, ok := r.events[seq]
		if !ok {
			return fmt.Errorf("event %d of %d is not stored", seq, r.last)
		}
		got, _ = apply(got, e)
	}
	if want := folded(these(1, int(r.last))...); !same(got, want) {
		return fmt.Errorf("the rows fold to %+v after %d events, want %+v", got, r.last, want)
	}
	if n := r.last - r.snapshot; n >= uint64(every) {
		return fmt.Errorf("%d events stand after snapshot %d", n, r.snapshot)
	}
	for seq := r.snapshot; seq > 0 && seq+uint64(keep) > r.snapshot; seq-- {
		if _, ok := r.events[seq]; !ok {
			return fmt.Errorf("event %d is not stored, though %d before snapshot %d are kept", seq, keep, r.snapshot)
		}
	}
	return nil
}

// refold is a model: at the end memory has the state of the rows, and the deeds up to last.
func refold(b **books, last int) func(s *harness.Sim) error {
	return func(s *harness.Sim) error {
		r, err := rowsIn(s.Store())
		if err != nil {
			return err
		}
		_, err = (*b).do.Call(s.Context(), s, "b", func(b *book, _ context.Context) (any, error) {
			if want := folded(these(1, last)...); !same(b.j.State(), want) || b.j.Seq() != uint64(last) || r.last != uint64(last) {
				return nil, fmt.Errorf("after event %d, stored up to %d, memory has %+v, want %+v", b.j.Seq(), r.last, b.j.State(), want)
			}
			return nil, nil
		})
		return err
	}
}

// does runs a function as a turn, and again after a crash until it is acknowledged; it takes
// effect once.
func does(s *harness.Sim, b *books, key string, f action) {
	s.OK(s.Retry(func() error {
		_, err := b.do.Call(s.Context(), s, "b", f, object.Idempotent(key, time.Hour))
		return err
	}))
}

// appends appends the deeds from one number up to another, so many in a turn.
func appends(s *harness.Sim, b *books, from, to, atOnce int) {
	for n := from; n <= to; n += atOnce {
		does(s, b, strconv.Itoa(n), func(b *book, ctx context.Context) (any, error) {
			s.Always("a turn finds the events before it", b.j.Seq() == uint64(n-1) && same(b.j.State(), folded(these(1, n-1)...)), n, b.j.Seq(), b.j.State())
			return nil, b.j.Append(ctx, these(n, min(n+atOnce-1, to))...)
		})
	}
}

// journalChecks are those of each story.
func journalChecks(b **books, every, keep, last int) []harness.Option {
	return []harness.Option{
		harness.NoLostAck, harness.NoTornBatch, harness.Shards(1),
		harness.Invariant("the rows fold to the state", func(st *storage.Store) error { return sound(st, every, keep) }),
		harness.StateMatches(refold(b, last)),
	}
}

// Proves E1, E2 and E3: events over three snapshots, with a deploy between that reads older
// events and snapshots. Cases JO1, JO2 and JO4.
func TestCrashOverThreeSnapshotsWithAnUpcast(t *testing.T) {
	type old struct { // the event of before
		K string
		M int
	}
	var b *books
	today := options{
		SnapshotEvery: 3, Version: 1, StateVersion: 1,
		Upcast: func(_ int, data []byte) (deed, error) {
			var o old
			err := json.Unmarshal(data, &o)
			return deed{Key: o.K, N: o.M}, err
		},
		UpcastState: func(_ int, data []byte) (s state, err error) {
			err = json.Unmarshal(data, &s)
			return s, err
		},
	}
	// The books of before keep their events as old.
	type oldBook struct {
		j *journal.Journal[state, old]
	}
	before := object.Define("book", func(ctx context.Context, st *object.State) (*oldBook, error) {
		j, err := journal.Attach(ctx, st, journal.Options[state, old]{SnapshotEvery: 3, Apply: func(s state, e old) (state, error) {
			return apply(s, deed{Key: e.K, N: e.M})
		}})
		return &oldBook{j}, err
	})
	add := object.Handle(before, "add", func(b *oldBook, ctx context.Context, n int) (uint64, error) {
		return b.j.Seq(), b.j.Append(ctx, old{the(n).Key, n})
	})
	crashes.Try(t, func(s *harness.Sim) {
		b = newBooks(today)
		s.Host(before)
		for n := 1; n <= 5; n++ {
			s.OK(s.Retry(func() error {
				_, err := add.Call(s.Context(), s, "b", n, object.Idempotent(strconv.Itoa(n), time.Hour))
				return err
			}))
		}
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(b.class))
		appends(s, b, 6, 10, 1)
	}, harness.NoLostAck, harness.NoTornBatch, harness.Shards(1), harness.StateMatches(refold(&b, 10)))
}

// Proves E3: old events go as soon as Keep does not ask for them, and no earlier; a deploy
// lowers Keep. Cases JO2 and JO3.
func TestCrashKeepAndTrim(t *testing.T) {
	var b *books
	crashes.Try(t, func(s *harness.Sim) {
		b = newBooks(options{SnapshotEvery: 2, Keep: 3})
		s.Host(b.class)
		appends(s, b, 1, 8, 1)
		does(s, b, "past", func(b *book, ctx context.Context) (any, error) {
			at, err := b.j.At(ctx, 5)
			s.Always("the state of the past", err != nil || same(at, folded(these(1, 5)...)), at, err)
			_, gone := b.j.At(ctx, 3)
			s.Always("what is not kept", errors.Is(gone, journal.ErrTrimmed), gone)
			return nil, err
		})
		b = newBooks(options{SnapshotEvery: 2, Keep: 1})
		s.Restart(harness.WithCode(b.class))
		appends(s, b, 9, 12, 2)
		s.Finally("the rest is gone", func() error {
			r, err := rowsIn(s.Store())
			if err == nil && (r.snapshots != 2 || r.oldest != 10 || len(r.events) != 2) {
				err = fmt.Errorf("stored are %+v", r)
			}
			return err
		})
	}, journalChecks(&b, 2, 1, 12)...)
}

// Proves E1: a journal whose object is deleted begins anew with event 1, and so does one that
// DeleteAll emptied; a Transaction that is undone deletes nothing. Case JO5.
func TestCrashDeletion(t *testing.T) {
	var b *books
	crashes.Try(t, func(s *harness.Sim) {
		b = newBooks(options{SnapshotEvery: 3})
		s.Host(b.class)
		appends(s, b, 1, 4, 2)
		does(s, b, "undone", func(b *book, ctx context.Context) (any, error) {
			err := b.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
				return errors.Join(tx.DeleteAll(ctx), b.j.Append(ctx, these(1, 2)...), errBad)
			})
			s.Always("nothing is deleted", errors.Is(err, errBad) && same(b.j.State(), folded(these(1, 4)...)), err, b.j.State())
			return nil, b.j.Append(ctx, the(5))
		})
		does(s, b, "emptied", func(b *book, ctx context.Context) (any, error) {
			return nil, errors.Join(b.st.Storage().DeleteAll(ctx), b.j.Append(ctx, these(1, 4)...))
		})
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				return h.Delete(ctx, storage.ID{Class: "book", Name: "b"})
			})
		}))
		appends(s, b, 1, 4, 1)
	}, journalChecks(&b, 3, 0, 4)...)
}

// Proves E1: an append that is too large is refused and changes nothing, and the turn goes on.
// Case JO6.
func TestCrashBatchTooLarge(t *testing.T) {
	var b *books
	small := harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes, o.MaxValueBytes = 1200, 300 })
	crashes.Try(t, func(s *harness.Sim) {
		b = newBooks(options{SnapshotEvery: 4})
		s.Host(b.class)
		appends(s, b, 1, 3, 1)
		does(s, b, "too large", func(b *book, ctx context.Context) (any, error) {
			err := b.j.Append(ctx, these(4, 40)...)
			s.Always("refused for all events", errors.Is(err, object.ErrBatchTooLarge), err)
			err = b.j.Append(ctx, the(4), padded(301))
			s.Always("refused for one", errors.Is(err, object.ErrValueTooLarge), err)
			return nil, b.j.Append(ctx, the(4))
		})
		appends(s, b, 5, 9, 3)
	}, append(journalChecks(&b, 4, 0, 9), small)...)
}

// Proves E1: a turn that fails after an Append, one with a Sync between two, and a Transaction
// that is undone leave memory and rows alike. Cases JO1 and JO5.
func TestCrashTurnsThatFail(t *testing.T) {
	var b *books
	crashes.Try(t, func(s *harness.Sim) {
		b = newBooks(options{SnapshotEvery: 2})
		s.Host(b.class)
		appends(s, b, 1, 1, 1)
		_, err := b.do.Call(s.Context(), s, "b", func(b *book, ctx context.Context) (any, error) {
			return nil, errors.Join(b.j.Append(ctx, the(7), the(8)), errBad)
		})
		s.Always("the turn failed", err != nil)
		does(s, b, "parts", func(b *book, ctx context.Context) (any, error) {
			if b.j.Seq() > 1 { // a crash came between the two, and the first part is stored
				return nil, b.j.Append(ctx, these(int(b.j.Seq())+1, 4)...)
			}
			if err := errors.Join(b.j.Append(ctx, the(2)), b.st.Sync(ctx)); err != nil {
				return nil, err
			}
			err := b.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				return errors.Join(b.j.Append(ctx, these(30, 33)...), errBad)
			})
			s.Always("undone", errors.Is(err, errBad) && b.j.Seq() == 2, err, b.j.Seq())
			return nil, b.j.Append(ctx, these(3, 4)...)
		})
		appends(s, b, 5, 6, 1)
	}, journalChecks(&b, 2, 0, 6)...)
}
