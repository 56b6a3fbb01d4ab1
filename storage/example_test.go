package storage_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
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

// A look at a store changes nothing: the next opening is told that the process before was
// killed, as though there had been no look.
func ExampleOpenReadOnly() {
	parent, err := os.MkdirTemp("", "look")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	o := storage.Options{Dir: filepath.Join(parent, "data")}
	s, err := storage.Open(o)
	if err == nil {
		err = s.Abandon() // as though the process had been killed
	}
	if err != nil {
		log.Fatal(err)
	}

	look, err := storage.OpenReadOnly(o)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("crashed openings:", look.Previous().Crashes)
	var b storage.Batch
	b.SetMeta("greeting", []byte("hello"))
	_, err = look.Commit(&b)
	fmt.Println(err)
	if err := look.Close(); err != nil {
		log.Fatal(err)
	}

	s, err = storage.Open(o)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println("crashed openings:", s.Previous().Crashes)
	// Output:
	// crashed openings: 1
	// storage: store is open for reading only
	// crashed openings: 1
}

// Checkpoint copies a store while it is open. Verify tells whether the copy is good.
func ExampleStore_Checkpoint() {
	parent, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	s, err := storage.Open(storage.Options{Dir: filepath.Join(parent, "data")})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	to := filepath.Join(parent, "copy")
	if err := s.Checkpoint(context.Background(), to); err != nil {
		log.Fatal(err)
	}
	fmt.Println(storage.Verify(context.Background(), storage.Options{Dir: to}, storage.Verification{}))
	// Output: 0 <nil>
}

// A checkpoint that is made slowly, so that commits do not wait for the disk behind it: here at 32 MiB a second.
func ExampleStore_CheckpointPaced() {
	parent, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	s, err := storage.Open(storage.Options{Dir: filepath.Join(parent, "data")})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	seams := seam.Seams{}.WithDefaults()
	err = s.CheckpointPaced(ctx, filepath.Join(parent, "copy"), func(bytes int) error {
		return seams.Sleep(ctx, time.Duration(bytes)*time.Second/(32<<20))
	})
	fmt.Println(err)
	// Output: <nil>
}

// Verify names each damaged file.
func ExampleVerify() {
	parent, err := os.MkdirTemp("", "verify")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	o := storage.Options{Dir: filepath.Join(parent, "data")}
	s, err := storage.Open(o)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		log.Fatal(err)
	}
	report := storage.Verification{Found: func(f storage.Finding) { fmt.Println("damaged:", f.File) }}
	fmt.Println(storage.Verify(context.Background(), o, report))

	format := filepath.Join(o.Dir, "HOLDFAST")
	if err := os.WriteFile(format, []byte("holdfast store\nformat 4\nshards 65\ncheck f4cf0599\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	fmt.Println(storage.Verify(context.Background(), o, report))
	// Output:
	// 0 <nil>
	// damaged: HOLDFAST
	// 1 <nil>
}

// Rollback undoes the changes of a batch after a place.
func ExampleBatch_Rollback() {
	var b storage.Batch
	b.SetMeta("kept", nil)
	place := b.Savepoint()
	b.SetMeta("undone", nil)
	b.Rollback(place)
	err := engine.ReadBatch(b.Repr(), func(r engine.Record) { fmt.Printf("%q\n", r.Key[3:]) })
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
