package workload

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// TestMake makes a store with rows that fit together, and with objects as calls would
// have made them: the value is read, the alarms fire.
func TestMake(t *testing.T) {
	const n = 300
	dir := filepath.Join(t.TempDir(), "store")
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	err := Make(t.Context(), dir, Fill{Class: SleeperClass, Objects: n, Value: Number8(7), First: first, Step: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
		t.Errorf("left beside the store: %v, %v", left, err)
	}
	s, err := storage.Open(storage.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	o, err := s.Find(storage.ID{Class: SleeperClass, Name: Name(n - 1)})
	if err != nil || o.Number == 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	if v, ok, err := s.Data(nil, o, "n"); err != nil || !ok || string(v) != string(Number8(7)) {
		t.Errorf("value %v, %t, %v", v, ok, err)
	}
	value, ok, err := s.Alarm(o)
	if row, decErr := alarm.DecodeRow(value); err != nil || decErr != nil || !ok || !row.Due.Equal(first.Add((n-1)*time.Microsecond)) {
		t.Errorf("alarm %+v, %t, %v, %v", row, ok, err, decErr)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	a := &Alarms{}
	def := a.Definition()
	all := a.Expect(n)
	if a.Host, err = OpenHost(dir, object.Options{}, def); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Wait(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if got := a.Fired(); got != n {
		t.Errorf("%d alarms fired, %d were stored", got, n)
	}
}

// TestMadeRowsAreThoseOfCalls compares the rows of an object that a call made
// with those that Make and the references write.
func TestMadeRowsAreThoseOfCalls(t *testing.T) {
	at := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	c, err := OpenCounters(dir, 1, object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fill(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	f := Fill{Class: CounterClass, Value: Number8(0), First: at}
	rows := 0
	err = engine.ReadBatch(f.Object(0).Repr(), func(r engine.Record) {
		rows++
		got, closer, err := db.Get(r.Key)
		if err != nil {
			t.Errorf("no row %x", r.Key)
			return
		}
		defer closer.Close()
		if len(got) != len(r.Value) {
			t.Errorf("row %x is %x, a call wrote %x", r.Key, r.Value, got)
		}
	})
	if err != nil || rows != 4 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestCloneIsApart changes a copy and finds the original as it was.
func TestCloneIsApart(t *testing.T) {
	root := t.TempDir()
	from, to := filepath.Join(root, "from"), filepath.Join(root, "to")
	if err := Make(t.Context(), from, Fill{Class: CounterClass, Objects: 10, Value: Number8(1)}); err != nil {
		t.Fatal(err)
	}
	if err := Clone(from, to); err != nil {
		t.Fatal(err)
	}
	c, err := OpenCounters(to, 10, object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := c.Increment(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]byte{from: 1, to: 2} {
		s, err := storage.Open(storage.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Find(storage.ID{Class: CounterClass, Name: Name(3)})
		if err != nil {
			t.Fatal(err)
		}
		if v, _, err := s.Data(nil, o, "n"); err != nil || len(v) != 8 || v[7] != want {
			t.Errorf("%s: %v, %v; want %d", dir, v, err, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
