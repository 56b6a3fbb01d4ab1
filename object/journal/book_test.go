package journal_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"testing"

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
