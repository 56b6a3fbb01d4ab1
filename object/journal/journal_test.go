package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
)

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
