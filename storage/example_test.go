package storage_test

import (
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A commit is visible at once and acknowledged when it is durable.
func ExampleStore_Commit() {
	s, err := storage.Open(storage.Options{Engine: memstore.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	var b storage.Batch
	b.SetMeta("greeting", []byte("hello"))
	ticket, err := s.Commit(&b)
	if err != nil {
		log.Fatal(err)
	}
	v, _, err := s.Meta("greeting")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s durable=%v\n", v, s.Durable(ticket))
	fmt.Println(s.WaitDurable(ticket), s.Durable(ticket))
	// Output:
	// hello durable=false
	// <nil> true
}

// Rollback undoes what a batch has taken up since a place.
func ExampleBatch_Rollback() {
	var b storage.Batch
	b.SetMeta("kept", nil)
	place := b.Savepoint()
	b.SetMeta("undone", nil)
	b.Rollback(place)
	err := storage.ReadBatch(b.Repr(), func(r storage.Record) { fmt.Printf("%q\n", r.Key[3:]) })
	fmt.Println(err)
	// Output:
	// "kept"
	// <nil>
}

// A name that cannot be an object's is refused with the reason.
func ExampleID_Validate() {
	fmt.Println(storage.ID{Class: "cart", Name: "alice"}.Validate())
	fmt.Println(storage.ID{Class: "cart"}.Validate())
	// Output:
	// <nil>
	// name is empty
}
