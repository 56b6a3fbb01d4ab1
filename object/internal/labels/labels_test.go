package labels

import (
	"maps"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// label is the label with a text.
func label(t *testing.T, text string) storage.Label {
	t.Helper()
	l, err := storage.NewLabel(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// store has two objects of class c with the label a, and one with b.
func store(t *testing.T) *storage.Store {
	t.Helper()
	s, err := storage.Open(storage.Options{Engine: memstore.New(), Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var b storage.Batch
	for name, text := range map[string]string{"1": "a", "2": "a", "3": "b"} {
		id := storage.ID{Class: "c", Name: name}
		o := storage.Object{ID: id, Shard: s.ShardOf(id), Number: s.NewNumber(), Epoch: s.Epoch(), Label: label(t, text)}
		b.SetHeader(o)
		b.MoveLabel(o, storage.Label{}, o.Label)
	}
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	return s
}

// Proves S11: moves before, while and after the stored labels are read count once each.
func TestMovesWhileLabelsAreRead(t *testing.T) {
	s := store(t)
	snapshot, err := s.CountLabels()
	if err != nil {
		t.Fatal(err)
	}
	var c Counts
	a, b, none := label(t, "a"), label(t, "b"), storage.Label{}
	c.Move("c", a, b)
	c.Move("c", a, a)
	if counts, complete := c.Class("c"); complete || counts["a"] != -1 || counts["b"] != 1 {
		t.Errorf("before the snapshot is read: %v, %v", counts, complete)
	}
	moved := false
	if err := c.Read(snapshot, func() bool {
		if !moved {
			moved = true
			c.Move("c", b, none)
			c.Move("d", none, b)
		}
		return false
	}); err != nil {
		t.Fatal(err)
	}
	if counts, complete := c.Class("c"); !complete || !maps.Equal(counts, map[string]int{"a": 1, "b": 1}) {
		t.Errorf("afterwards: %v, %v", counts, complete)
	}
	c.Move("c", a, none)
	if counts, _ := c.Class("c"); !maps.Equal(counts, map[string]int{"b": 1}) {
		t.Errorf("at last: %v", counts)
	}
	if counts, complete := c.Class("d"); !complete || counts["b"] != 1 {
		t.Errorf("class d: %v, %v", counts, complete)
	}
}

// A count that is stopped says that it is not complete.
func TestStoppedCountIsNotComplete(t *testing.T) {
	s := store(t)
	for after := range 8 {
		snapshot, err := s.CountLabels()
		if err != nil {
			t.Fatal(err)
		}
		var c Counts
		asked := 0
		if err := c.Read(snapshot, func() bool { asked++; return asked > after }); err != nil {
			t.Fatal(err)
		}
		if _, complete := c.Class("c"); complete {
			t.Errorf("complete after a stop at question %d", after+1)
		}
	}
}
