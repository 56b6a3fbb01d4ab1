package storage

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Proves N10: the copy of a view opens as a view alone, and has each commit before it.
func TestCheckpointViewIsAView(t *testing.T) {
	fsys := vfs.NewMem()
	o, _ := viewOptions(fsys)
	s := open(t, o)
	for n := range 3 {
		commitNumber(t, s, n+1)
	}
	if err := s.CheckpointView(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	commitNumber(t, s, 4)
	checkAndClose(t, s)
	plain := memOptions(fsys)
	plain.Dir = "copy"
	if _, err := Open(plain); !errors.Is(err, ErrMovedStore) {
		t.Errorf("the copy opens alone: %v", err)
	}
	o, _ = viewOptions(fsys)
	o.Dir = "copy"
	s = open(t, o)
	if n := lastNumber(t, s); n != 3 {
		t.Errorf("the copy ends with number %d, want 3", n)
	}
	checkAndClose(t, s)
	plain.Dir = "plain"
	s = open(t, plain)
	if err := s.CheckpointView(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), "no view") {
		t.Errorf("a store of its own: %v", err)
	}
	checkAndClose(t, s)
}

// A raise leads to a greater era than the source reaches in half a million openings.
func TestEra(t *testing.T) {
	for epoch, want := range map[uint64]uint64{1: 0, 1<<19 - 1: 0, 1 << 19: 1, 1<<20 - 1: 1, 1 << 20: 2, lastEpoch: lastEpoch >> 19} {
		if got := (&Store{epoch: epoch}).Era(); got != want {
			t.Errorf("epoch %d has era %d, want %d", epoch, got, want)
		}
	}
	for _, copied := range []uint64{1, 1<<19 - 1, 1 << 19, 1<<20 - 1, 1 << 20} {
		source, restored := Store{epoch: copied + 1<<19}, Store{epoch: copied + 1<<20 + 1}
		if source.Era() >= restored.Era() {
			t.Errorf("a copy of epoch %d has era %d, and its source %d half a million openings later", copied, restored.Era(), source.Era())
		}
	}
}

// RaiseEpoch takes 2^20 epochs more than were taken, up to the last that there is, and changes nothing else of the row.
func TestRaiseEpoch(t *testing.T) {
	for _, c := range []struct {
		was  Previous
		want uint64 // through; 0: refused
	}{
		{Previous{}, 1 << 20},
		{Previous{Epoch: 7, Clean: true, Crashes: 2, CrashedEpoch: 3, through: 7}, 7 + 1<<20},
		{Previous{Epoch: 7, through: 1<<20 + 9}, 2<<20 + 9},
		{Previous{Epoch: 7, through: lastEpoch - 1<<20}, lastEpoch},
		{Previous{Epoch: 7, through: lastEpoch - 1<<20 + 1}, 0},
	} {
		e := memstore.New()
		if c.was.Epoch > 0 {
			var b Batch
			b.Set(metaKey("epoch"), c.was.encode())
			if err := e.Apply(b.Repr()); err != nil {
				t.Fatal(err)
			}
		}
		var b Batch
		err := RaiseEpoch(e, &b)
		if c.want == 0 {
			if !errors.Is(err, errNumbers) || !b.Empty() {
				t.Errorf("%+v: %v, and the batch is empty: %v", c.was, err, b.Empty())
			}
			continue
		}
		if err == nil {
			err = e.Apply(b.Repr())
		}
		if err != nil {
			t.Fatal(err)
		}
		s := newStore(Options{}, e, 1)
		value, _, err := s.get(metaKey("epoch"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEpoch(value)
		want := c.was
		want.through, got.OpenedAt = c.want, want.OpenedAt
		if got != want || err != nil {
			t.Errorf("%+v becomes %+v: %v", c.was, got, err)
		}
	}
	e := memstore.New()
	var bad, b Batch
	bad.Set(metaKey("epoch"), []byte("damaged"))
	if err := e.Apply(bad.Repr()); err != nil {
		t.Fatal(err)
	}
	if err := RaiseEpoch(e, &b); !errors.Is(err, ErrCorrupt) || !b.Empty() {
		t.Errorf("a damaged row: %v", err)
	}
}

// Proves N11: a view that is detached opens alone, 2^20 epochs ahead, and a repeat after a crash between its two steps raises the epoch once.
func TestDetachView(t *testing.T) {
	for _, repeated := range []bool{false, true} {
		fsys := vfs.NewMem()
		o, _ := viewOptions(fsys)
		s := open(t, o)
		commitNumber(t, s, 7)
		commit(t, s, func(b *Batch) { b.SetMeta("place", []byte("12")) })
		epoch := s.Epoch()
		checkAndClose(t, s)
		plain := memOptions(fsys)
		if repeated { // the first step alone
			err := FillView(plain, func(view engine.Engine) error { return detach(view, "place") })
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := DetachView(plain, "place"); err != nil {
			t.Fatal(err)
		}
		if err := DetachView(plain, "place"); !errors.Is(err, ErrMovedStore) {
			t.Errorf("a store of its own: %v", err)
		}
		s = open(t, plain)
		if _, ok, err := s.Meta("place"); s.Epoch() != epoch+1<<20+1 || lastNumber(t, s) != 7 || ok || err != nil {
			t.Errorf("the store has epoch %d, number %d and the row %v: %v", s.Epoch(), lastNumber(t, s), ok, err)
		}
		checkAndClose(t, s)
	}
	if err := DetachView(memOptions(vfs.NewMem()), "place"); !errors.Is(err, ErrNoDirectory) {
		t.Errorf("an absent directory: %v", err)
	}
}

// FillView makes a view, keeps what was synced, and returns the error of its caller.
func TestFillView(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	broken := errors.New("the log does not answer")
	for n := range 3 {
		err := FillView(o, func(view engine.Engine) error {
			b := numbered(n + 1)
			if err := view.Apply(b.Repr()); err != nil {
				return err
			}
			if n == 1 {
				return broken
			}
			return view.Sync()
		})
		if want := error(nil); n == 1 && !errors.Is(err, broken) || n != 1 && err != want {
			t.Errorf("call %d: %v", n, err)
		}
	}
	v, _ := viewOptions(fsys)
	s := open(t, v)
	if n := lastNumber(t, s); n != 3 {
		t.Errorf("the view ends with number %d, want 3", n)
	}
	if err := FillView(o, func(engine.Engine) error { return nil }); !errors.Is(err, ErrLocked) {
		t.Errorf("an open view: %v", err)
	}
	checkAndClose(t, s)
	o.Dir = "plain"
	checkAndClose(t, open(t, o))
	if err := FillView(o, func(engine.Engine) error { return nil }); !errors.Is(err, ErrMovedStore) {
		t.Errorf("a store of its own: %v", err)
	}
}

// A directory in which ReplaceView failed is no store, to a store with a log or without one, until it succeeds.
func TestReplaceViewThatFails(t *testing.T) {
	fsys := vfs.NewMem()
	o, _ := viewOptions(fsys)
	checkAndClose(t, open(t, o))
	broken := errors.New("the blob is gone")
	for format, want := range map[string]error{
		"":                            broken,
		"nonsense":                    ErrFormat,
		formatText(99, 64):            ErrFormat,
		formatText(FormatVersion, 64): ErrMovedStore, // no view
	} {
		err := ReplaceView(o, 0, func(to pebblestore.Dir, _ *pebblestore.Lock) (string, error) {
			names, err := to.List()
			if len(names) > 2 { // the lock, and the file of the restore
				t.Errorf("the directory holds %v", names)
			}
			if format == "" {
				err = broken
			}
			return format, errors.Join(err, to.Write("000005.sst", "table"))
		})
		if !errors.Is(err, want) {
			t.Errorf("format %q: %v, want %v", format, err, want)
		}
		plain := memOptions(fsys)
		_, over := Open(o)
		_, alone := Open(plain)
		_, read := OpenReadOnly(plain)
		for verb, err := range map[string]error{"over": over, "alone": alone, "read": read, "fill": FillView(plain, nil)} {
			if !errors.Is(err, ErrNotStore) || !errors.Is(err, ErrRestoring) {
				t.Errorf("format %q, %s: %v", format, verb, err)
			}
		}
	}
}

// Proves N11: the marks of a move have their order, and each is durable and refuses the directory.
func TestMarksOfAMove(t *testing.T) {
	none, moving, moved := Move{}, Move{"shop", false}, Move{"shop", true}
	other, otherDone := Move{"shop 2", false}, Move{"shop 2", true}
	all := []Move{none, moving, moved, other, otherDone}
	allowed := map[[2]Move]bool{{none, moving}: true, {moving, none}: true, {moving, moved}: true,
		{none, other}: true, {other, none}: true, {other, otherDone}: true}
	for _, from := range all {
		for _, to := range all {
			o := memOptions(vfs.NewMem())
			checkAndClose(t, open(t, o))
			l, err := Leave(o)
			if err == nil && from.Done {
				err = l.Mark(Move{from.Cluster, false})
			}
			if err == nil {
				err = l.Mark(from)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = l.Mark(to)
			if ok := from == to || allowed[[2]Move{from, to}]; ok != (err == nil) || !ok && !errors.Is(err, ErrMovedStore) {
				t.Errorf("from %+v to %+v: %v", from, to, err)
			}
			has := from
			if err == nil {
				has = to
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := Leave(o)
			if err != nil || again.Move() != has || again.ID() == "" || again.ID() != l.ID() {
				t.Fatalf("from %+v to %+v: the directory has %+v: %v", from, to, again, err)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			v, _ := viewOptions(o.Pebble.FS)
			v.Dir = o.Dir
			s, alone := Open(o)
			_, over := Open(v)
			if alone == nil {
				checkAndClose(t, s)
			}
			for _, err := range []error{alone, over} {
				if has != none && (!errors.Is(err, ErrMovedStore) || !strings.Contains(err.Error(), has.Cluster) || !strings.Contains(err.Error(), "holdfast cluster import")) {
					t.Errorf("with the mark %+v: %v", has, err)
				}
			}
			if has == none && (alone != nil || over == nil) {
				t.Errorf("without a mark: alone %v, with a log %v", alone, over)
			}
		}
	}
	if _, err := Leave(memOptions(vfs.NewMem())); !errors.Is(err, ErrNoDirectory) {
		t.Errorf("an absent directory: %v", err)
	}
}

// The lines of the marks, as FORMAT.md tells, and the names of clusters that they hold.
func TestMoveLayout(t *testing.T) {
	for _, c := range []struct {
		f    format
		want string
	}{
		{format{version: 4, shards: 64, move: Move{"shop", false}}, "moving shop\ncheck "},
		{format{version: 4, shards: 64, move: Move{"shop", true}}, "moved shop\ncheck "},
		{format{version: 4, shards: 64, dormant: true, move: Move{"moved moving", true}}, "dormant\nmoved moved moving\ncheck "},
	} {
		got, err := parseFormat(c.f.text())
		if got != c.f || err != nil || !strings.Contains(c.f.text(), "shards 64\n"+c.want) {
			t.Errorf("%q is read as %+v: %v", c.f.text(), got, err)
		}
	}
	for name, ok := range map[string]bool{
		"": false, "s": true, strings.Repeat("x", 200): true, strings.Repeat("x", 201): false, "a\nb": false, "a\x00": false, "\xff": false, "Läden 2": true,
	} {
		if err := (Move{Cluster: name}).Validate(); (err == nil) != ok {
			t.Errorf("a cluster %.20q: %v", name, err)
		}
	}
}

// Leave leaves no row in the log of the database, also if the program was killed, counts no opening, and sees a loss that the witness file tells of.
func TestLeaveSettlesTheStore(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	o := memOptions(fsys)
	o.Witness = true
	s := open(t, o)
	commitNumber(t, s, 7)
	killed := fsys.CrashClone(vfs.CrashCloneCfg{})
	checkAndClose(t, s)
	o.Pebble.FS = killed
	l, err := Leave(o)
	if err != nil {
		t.Fatal(err)
	}
	if l.Dir() != o.Dir || l.Move() != (Move{}) {
		t.Errorf("the directory is %s with the mark %+v", l.Dir(), l.Move())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.Pebble.Dir(o.Dir).Write(formatFile, l.ViewFormat()); err != nil {
		t.Fatal(err)
	}
	v, _ := viewOptions(killed)
	for range 2 { // a view that reads the log of the database at its first opening leaves that there
		s = open(t, v)
		if n := lastNumber(t, s); n != 7 || s.Previous().Epoch == 0 {
			t.Errorf("a view of the files ends with number %d, and before it was %+v", n, s.Previous())
		}
		checkAndClose(t, s)
	}
	lost := memOptions(vfs.NewMem())
	lost.Witness = true
	checkAndClose(t, open(t, lost))
	if err := lost.Pebble.Dir(lost.Dir).Write(witnessFile, string(witnessSlotOf(1000))); err != nil {
		t.Fatal(err)
	}
	if _, err := Leave(lost); !errors.Is(err, ErrAckedDataLost) {
		t.Errorf("a store that has lost commits: %v", err)
	}
}
