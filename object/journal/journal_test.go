package journal_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// deed is the event of the tests: it adds N to the key. Bad makes Apply fail or panic.
type deed struct {
	Key string
	N   int
	Bad string
	Pad string
}

// state is the state of the tests. Trail depends on each event and on their order. Apply
// changes the map in place, so that a state which is kept too long shows it.
type state struct {
	Events int
	Sums   map[string]int
	Trail  uint64
	Pad    string
}

var errBad = errors.New("no such deed")

func apply(s state, e deed) (state, error) {
	if s.Sums == nil {
		s.Sums = map[string]int{}
	}
	s.Events++
	s.Sums[e.Key] += e.N
	s.Pad += e.Pad
	h := fnv.New64a()
	_ = binary.Write(h, binary.BigEndian, s.Trail)
	fmt.Fprint(h, e.Key, e.N)
	s.Trail = h.Sum64()
	switch e.Bad {
	case "fails":
		return s, errBad
	case "panics":
		panic(errBad)
	}
	return s, nil
}

// the returns the deed with a number, which the tests append as the event of that number.
func the(n int) deed { return deed{Key: fmt.Sprint(n % 3), N: n} }

// these are the deeds from one number up to another.
func these(from, to int) (out []deed) {
	for n := from; n <= to; n++ {
		out = append(out, the(n))
	}
	return out
}

// folded is the state after deeds.
func folded(deeds ...deed) (s state) {
	for _, d := range deeds {
		s, _ = apply(s, d)
	}
	return s
}

// same reports whether two states are equal.
func same(a, b state) bool {
	return a.Events == b.Events && a.Trail == b.Trail && a.Pad == b.Pad && maps.Equal(a.Sums, b.Sums)
}

// book is an object with a journal.
type book struct {
	st *object.State
	j  *journal.Journal[state, deed]
}

type (
	options = journal.Options[state, deed]
	action  = func(b *book, ctx context.Context) (any, error)
)

// books is a class of books. Its one method runs a function as a turn.
type books struct {
	class *object.Class[book]
	do    *object.Method[action, any]
}

func newBooks(o options, opts ...object.ClassOptions) *books {
	if o.Apply == nil {
		o.Apply = apply
	}
	class := object.Define("book", func(ctx context.Context, st *object.State) (*book, error) {
		j, err := journal.Attach(ctx, st, o)
		return &book{st, j}, err
	}, opts...)
	return &books{class, object.Handle(class, "do", func(b *book, ctx context.Context, f action) (any, error) { return f(b, ctx) })}
}

// desk is a host over memory with one class of books.
type desk struct {
	t    *testing.T
	mem  *memstore.Store
	host *object.Host
	*books
}

func newDesk(t *testing.T, o options, adjust ...func(*object.Options)) *desk {
	t.Helper()
	d := &desk{t: t, mem: memstore.New()}
	d.open(o, adjust...)
	t.Cleanup(d.close)
	return d
}

func (d *desk) open(o options, adjust ...func(*object.Options)) {
	d.t.Helper()
	d.books = newBooks(o)
	with := object.Options{Storage: storageOf(d), Logger: slog.New(slog.DiscardHandler)}
	for _, f := range adjust {
		f(&with)
	}
	host, err := object.Open(with, d.class)
	if err != nil {
		d.t.Fatal(err)
	}
	d.host = host
}

func (d *desk) close() {
	d.t.Helper()
	if err := d.host.Shutdown(context.Background()); err != nil {
		d.t.Fatal(err)
	}
}

// deploy opens the store again with other code.
func (d *desk) deploy(o options, adjust ...func(*object.Options)) {
	d.t.Helper()
	d.close()
	d.open(o, adjust...)
}

// turn runs a function as a turn of the book "b".
func (d *desk) turn(f action) (any, error) { return d.do.Call(d.t.Context(), d.host, "b", f) }

// must runs a turn that succeeds.
func (d *desk) must(f action) any {
	d.t.Helper()
	v, err := d.turn(f)
	if err != nil {
		d.t.Fatal(err)
	}
	return v
}

// append appends deeds in one turn.
func (d *desk) append(deeds ...deed) error {
	_, err := d.turn(func(b *book, ctx context.Context) (any, error) { return nil, b.j.Append(ctx, deeds...) })
	return err
}

// each appends deeds with a turn for each.
func (d *desk) each(deeds ...deed) {
	d.t.Helper()
	for _, e := range deeds {
		if err := d.append(e); err != nil {
			d.t.Fatal(err)
		}
	}
}

// is checks that the book has the state after deeds, in memory and again after a new start.
func (d *desk) is(deeds ...deed) {
	d.t.Helper()
	look := func(b *book, _ context.Context) (any, error) {
		if s := b.j.State(); !same(s, folded(deeds...)) || b.j.Seq() != uint64(len(deeds)) {
			return nil, fmt.Errorf("after %d events the state is %+v, want %d events and %+v", b.j.Seq(), s, len(deeds), folded(deeds...))
		}
		return nil, nil
	}
	d.must(look)
	d.reset()
	d.must(look)
}

// reset ends the instance, so that the next turn reads the rows.
func (d *desk) reset() {
	d.t.Helper()
	_, err := d.turn(func(*book, context.Context) (any, error) { panic("on purpose") })
	if !errors.Is(err, object.ErrPanic) {
		d.t.Fatal(err)
	}
}

// rows are the sequence numbers of the events and of the snapshots that are stored.
func (d *desk) rows() (events, snapshots []uint64) {
	d.t.Helper()
	d.must(func(b *book, ctx context.Context) (any, error) {
		for item, err := range b.st.Storage().List(ctx, object.ListOptions{Prefix: "\x00e"}) {
			if err != nil {
				return nil, err
			}
			seq := binary.BigEndian.Uint64([]byte(item.Key[3:]))
			if item.Key[2] == '/' {
				events = append(events, seq)
			} else {
				snapshots = append(snapshots, seq)
			}
		}
		return nil, nil
	})
	return events, snapshots
}

// upTo are the numbers from one to another.
func upTo(from, to uint64) (out []uint64) {
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

// storageOf are the options of the store of a desk, with all that it held when it was closed.
func storageOf(d *desk) storage.Options {
	d.mem = d.mem.Crash(d.mem.Unsynced())
	return storage.Options{Engine: d.mem, Shards: 2}
}

func TestMain(m *testing.M) { leaks.Main(m) }

// Proves E1, E2 and E3: the state is the fold of the events, a snapshot is the row of every
// third event, and it removes the events before it.
func TestEventsSnapshotsAndRows(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 3})
	d.is()
	for n := 1; n <= 10; n++ {
		d.each(the(n))
		events, snapshots := d.rows()
		last := n / 3 * 3
		if want := upTo(uint64(last+1), uint64(n)); !slices.Equal(events, want) {
			t.Errorf("after %d events the rows are %v, want %v", n, events, want)
		}
		if last > 0 && !slices.Equal(snapshots, []uint64{uint64(last)}) || last == 0 && len(snapshots) > 0 {
			t.Errorf("after %d events the snapshots are %v", n, snapshots)
		}
		d.is(these(1, n)...)
	}
	if err := d.append(these(11, 20)...); err != nil {
		t.Fatal(err)
	}
	if events, snapshots := d.rows(); len(events) > 0 || !slices.Equal(snapshots, []uint64{20}) {
		t.Errorf("ten events at once: %v and snapshots %v", events, snapshots)
	}
	if err := d.append(); err != nil {
		t.Fatal(err)
	}
	d.is(these(1, 20)...)
}

// Proves E2: an activation folds fewer than SnapshotEvery events, which is 100 unless set.
func TestActivationFoldsFewerThanAHundredEvents(t *testing.T) {
	folds := 0
	d := newDesk(t, options{Apply: func(s state, e deed) (state, error) { folds++; return apply(s, e) }})
	for n, want := range map[int]int{99: 99, 100: 0, 101: 1, 199: 99, 200: 0} {
		d.must(func(b *book, ctx context.Context) (any, error) {
			if err := b.st.Storage().DeleteAll(ctx); err != nil {
				return nil, err
			}
			for i := 1; i <= n; i++ {
				if err := b.j.Append(ctx, the(i)); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		d.reset()
		folds = 0
		d.must(func(*book, context.Context) (any, error) { return nil, nil })
		if folds != want {
			t.Errorf("with %d events an activation folds %d, want %d", n, folds, want)
		}
	}
}

// Proves E1: an event that Apply refuses changes nothing, also after it has changed the
// state in place, and the error names it.
func TestApplyThatFailsChangesNothing(t *testing.T) {
	for _, bad := range []string{"fails", "panics"} {
		for at := range 3 {
			d := newDesk(t, options{SnapshotEvery: 3})
			d.each(these(1, 2)...)
			events := these(3, 5)
			events[at].Bad = bad
			d.must(func(b *book, ctx context.Context) (any, error) {
				err := b.j.Append(ctx, events...)
				if want := fmt.Sprintf("book/b: journal: event %d: Apply: ", 3+at); !errors.Is(err, errBad) || !strings.Contains(err.Error(), want) {
					t.Errorf("Append said %v, want %q", err, want)
				}
				return nil, b.j.Append(ctx, the(3))
			})
			d.is(these(1, 3)...)
		}
	}
}

// Proves E1: a turn that fails after an Append, or by a panic, leaves nothing in memory.
func TestTurnThatFailsLeavesNoEvent(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 2})
	for n := 1; n <= 5; n++ {
		_, err := d.turn(func(b *book, ctx context.Context) (any, error) {
			return nil, errors.Join(b.j.Append(ctx, the(70)), errBad)
		})
		if !errors.Is(err, errBad) {
			t.Fatal(err)
		}
		_, err = d.turn(func(b *book, ctx context.Context) (any, error) { panic(b.j.Append(ctx, the(71), the(72))) })
		if !errors.Is(err, object.ErrPanic) {
			t.Fatal(err)
		}
		d.each(the(n))
	}
	d.is(these(1, 5)...)
}

// Proves E1: a Transaction that is undone takes its events back from memory, also over a
// snapshot, and also if the handler recovers its panic. One that succeeds keeps them.
func TestUndoneTransactionTakesEventsBack(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 3})
	d.must(func(b *book, ctx context.Context) (any, error) {
		tx := func(err error, deeds ...deed) error {
			return b.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				if failed := b.j.Append(ctx, deeds...); failed != nil {
					t.Error(failed)
				}
				if err == errBad {
					panic(err)
				}
				return err
			})
		}
		other := errors.New("other")
		if err := tx(nil, the(1)); err != nil {
			t.Error(err)
		}
		if err := tx(other, these(50, 53)...); err != other {
			t.Error(err)
		}
		if err := tx(nil, the(2)); err != nil {
			t.Error(err)
		}
		if err := tx(other, the(60)); err != other {
			t.Error(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			_ = tx(errBad, the(3), the(4))
		}()
		return nil, tx(nil, the(3))
	})
	d.is(these(1, 3)...)
}

// Proves E1: DeleteAll empties the journal in memory too, and so does Host.Delete. Undone it
// brings the events back.
func TestDeletedRowsAreForgotten(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 2})
	d.each(these(1, 5)...)
	d.must(func(b *book, ctx context.Context) (any, error) {
		_ = b.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
			if err := errors.Join(tx.DeleteAll(ctx), b.j.Append(ctx, these(41, 45)...)); err != nil {
				t.Error(err)
			}
			if !same(b.j.State(), folded(these(41, 45)...)) || b.j.Seq() != 5 {
				t.Errorf("after DeleteAll and five events: %+v", b.j.State())
			}
			return errBad
		})
		return nil, b.st.Storage().DeletePrefix(ctx, "e") // no row of the journal
	})
	d.is(these(1, 5)...)
	d.must(func(b *book, ctx context.Context) (any, error) {
		return nil, errors.Join(b.st.Storage().DeletePrefix(ctx, "\x00"), b.j.Append(ctx, these(1, 3)...))
	})
	d.is(these(1, 3)...)
	if err := d.host.Delete(t.Context(), storage.ID{Class: "book", Name: "b"}); err != nil {
		t.Fatal(err)
	}
	d.is()
	d.each(the(1))
	d.is(the(1))
}

// A book has one journal, and its options are checked.
func TestAttachRefusesMistakes(t *testing.T) {
	for want, o := range map[string]options{
		"Options.Apply is not set":    {},
		"Options.SnapshotEvery is -1": {Apply: apply, SnapshotEvery: -1},
		"Options.Version is -1":       {Apply: apply, Version: -1},
		"StateVersion is -2":          {Apply: apply, StateVersion: -2},
		"overlap":                     {Apply: apply},
	} {
		class := object.Define("book", func(ctx context.Context, st *object.State) (*book, error) {
			if want == "overlap" {
				if _, err := journal.Attach(ctx, st, o); err != nil {
					return nil, err
				}
			}
			j, err := journal.Attach(ctx, st, o)
			return &book{st, j}, err
		})
		d := newDesk(t, options{})
		d.close()
		d.books = &books{class, object.Handle(class, "do", func(b *book, ctx context.Context, f action) (any, error) { return f(b, ctx) })}
		host, err := object.Open(object.Options{Storage: storageOf(d)}, class)
		if err != nil {
			t.Fatal(err)
		}
		d.host = host
		if _, err := d.turn(func(*book, context.Context) (any, error) { return nil, nil }); !errors.Is(err, object.ErrConstructor) || !strings.Contains(err.Error(), want) {
			t.Errorf("Attach said %v, want %q", err, want)
		}
	}
}

// A call outside of a turn changes nothing.
func TestAppendNeedsATurn(t *testing.T) {
	d := newDesk(t, options{})
	d.each(the(1))
	kept := d.must(func(b *book, _ context.Context) (any, error) { return b, nil }).(*book)
	if err := kept.j.Append(t.Context(), the(9)); !errors.Is(err, object.ErrNoTurn) {
		t.Error(err)
	}
	for _, err := range kept.j.Since(t.Context(), 0) {
		if !errors.Is(err, object.ErrNoTurn) {
			t.Error(err)
		}
	}
	if _, err := kept.j.At(t.Context(), 1); !errors.Is(err, object.ErrNoTurn) {
		t.Error(err)
	}
	d.is(the(1))
}
