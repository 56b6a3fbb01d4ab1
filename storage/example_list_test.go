package storage_test

import (
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// stored opens a store with objects a to c of the class cart. Each has a key, an event and a
// dead letter.
func stored() *storage.Store {
	s, err := storage.Open(storage.Options{Engine: memstore.New()})
	if err != nil {
		log.Fatal(err)
	}
	var b storage.Batch
	for _, name := range []string{"c", "a", "b"} {
		id := storage.ID{Class: "cart", Name: name}
		o := storage.Object{ID: id, Shard: s.ShardOf(id), Number: s.NewNumber(), Epoch: s.Epoch()}
		b.SetHeader(o)
		b.SetData(o, "total", []byte("499"))
		b.AddEvent(o.Shard, id, s.NextSeq(), 1<<60, []byte("opened"))
		b.AddEvent(o.Shard, id, s.NextSeq(), 1<<60, []byte("paid"))
		b.SetDead(o.Shard, id, 1, []byte("no such street"))
	}
	if _, err := s.Commit(&b); err != nil {
		log.Fatal(err)
	}
	return s
}

// A list is in the order of the names, in pages.
func ExampleStore_List() {
	s := stored()
	defer s.Close()
	page, err := s.List("cart", storage.ListOptions{After: "a", Limit: 10})
	for _, o := range page {
		fmt.Println(o.ID)
	}
	fmt.Println(err)
	// Output:
	// cart/b
	// cart/c
	// <nil>
}

// A walk over the keys of an object copies none of them.
func ExampleStore_WalkData() {
	s := stored()
	defer s.Close()
	o, err := s.Find(storage.ID{Class: "cart", Name: "a"})
	if err != nil {
		log.Fatal(err)
	}
	err = s.WalkData(o, "", "", func(key, value []byte) bool {
		fmt.Printf("%s has %d bytes\n", key, len(value))
		return true
	})
	fmt.Println(err)
	// Output:
	// total has 3 bytes
	// <nil>
}

// The newest events come first.
func ExampleStore_NewestEvents() {
	s := stored()
	defer s.Close()
	err := s.NewestEvents(storage.ID{Class: "cart", Name: "a"}, func(_ uint64, value []byte) bool {
		fmt.Printf("%s\n", value)
		return true
	})
	fmt.Println(err)
	// Output:
	// paid
	// opened
	// <nil>
}

// Dead letters come page by page. The cursor of a page says where the next one begins.
func ExampleStore_ListDead() {
	s := stored()
	defer s.Close()
	letters, pages := 0, 0
	for o := (storage.DeadOptions{Class: "cart"}); ; pages++ {
		n := 0
		next, err := s.ListDead(o, func(storage.ID, uint64, []byte) bool { n++; return n < 2 })
		if err != nil {
			log.Fatal(err)
		}
		if letters += n; next == nil {
			break
		}
		o.After = next
	}
	fmt.Println(letters, "letters, behind", pages, "other page")
	// Output: 3 letters, behind 1 other page
}

// One dead letter is read by its object and its number.
func ExampleStore_DeadLetter() {
	s := stored()
	defer s.Close()
	value, ok, err := s.DeadLetter(storage.ID{Class: "cart", Name: "a"}, 1)
	fmt.Printf("%s %v %v\n", value, ok, err)
	// Output: no such street true <nil>
}
