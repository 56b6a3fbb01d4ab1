package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Rack is an object with a key for each book. It has an alarm that always fails.
type Rack struct{ state *object.State }

// Add stores a book with its text, emits an event, and sets the alarm.
func (s *Rack) Add(ctx context.Context, book string) (int, error) {
	return 0, errors.Join(
		s.state.Storage().PutBytes(ctx, "book/"+book, []byte("text of "+book)),
		s.state.Emit(ctx, "added", book),
		s.state.SetAlarm(ctx, s.state.Now()))
}

// Alarm gives up at once.
func (s *Rack) Alarm(context.Context, object.AlarmInfo) error {
	return object.Permanent(errors.New("the lamp is broken"))
}

// library opens a host with racks a to c, and waits until the alarm of each has failed.
func library(engine *memstore.Store) *object.Host {
	dead := make(chan object.DeadLetter, 10)
	racks := object.Define("rack", func(_ context.Context, st *object.State) (*Rack, error) { return &Rack{st}, nil },
		object.ClassOptions{OnDeadLetter: func(_ context.Context, d object.DeadLetter) { dead <- d }})
	add := object.Handle(racks, "add", (*Rack).Add)
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: engine}}, racks)
	if err != nil {
		log.Fatal(err)
	}
	for _, book := range []string{"c", "a", "b"} {
		if _, err := add.Call(context.Background(), host, "rack "+book, book); err != nil {
			log.Fatal(err)
		}
		<-dead
	}
	return host
}

// closeLibrary shuts a host down.
func closeLibrary(host *object.Host) {
	if err := host.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// A list comes page by page, in the order of the names.
func ExampleHost_Objects_pages() {
	host := library(memstore.New())
	defer closeLibrary(host)
	for o := (object.ObjectsOptions{Prefix: "rack ", Limit: 2}); ; {
		page, err := host.Objects(context.Background(), "rack", o)
		if err != nil {
			log.Fatal(err)
		}
		for _, rack := range page {
			fmt.Println(rack.ID)
			o.After = rack.ID.Name
		}
		if fmt.Println("end of a page"); len(page) < o.Limit {
			return
		}
	}
	// Output:
	// rack/rack a
	// rack/rack b
	// end of a page
	// rack/rack c
	// end of a page
}

// The keys of an object come page by page, with their values or without.
func ExampleHost_Keys() {
	host := library(memstore.New())
	defer closeLibrary(host)
	id := storage.ID{Class: "rack", Name: "rack a"}
	for o := (object.KeysOptions{Prefix: "book/", Values: true, MaxBytes: 64 << 10}); ; {
		page, err := host.Keys(context.Background(), id, o)
		if err != nil {
			log.Fatal(err)
		}
		for _, k := range page.Keys {
			fmt.Printf("%s: %s\n", k.Key, k.Value)
		}
		if o.Start = page.Next; o.Start == "" {
			return
		}
	}
	// Output: book/a: text of a
}

// A tool reads several things and waits for the disk once.
func ExampleHost_Read() {
	ctx, host := context.Background(), library(memstore.New())
	defer closeLibrary(host)
	err := host.Read(ctx, func(r object.Reader) error {
		racks, err := r.Objects(ctx, "rack", object.ObjectsOptions{})
		if err != nil {
			return err
		}
		for _, rack := range racks {
			text, ok, err := r.Value(ctx, rack.ID, "book/a")
			if err != nil {
				return err
			}
			fmt.Printf("%s: %v %q\n", rack.ID, ok, text)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// rack/rack a: true "text of a"
	// rack/rack b: false ""
	// rack/rack c: false ""
	// <nil>
}

// One dead letter is read by its object and its number.
func ExampleHost_DeadLetter() {
	ctx, host := context.Background(), library(memstore.New())
	defer closeLibrary(host)
	page, err := host.DeadLetters(ctx, object.DeadLettersOptions{Class: "rack", Name: "rack b"})
	if err != nil {
		log.Fatal(err)
	}
	first := page.Letters[0]
	letter, err := host.DeadLetter(ctx, first.ID, first.Seq)
	fmt.Println(letter.ID, letter.LastError, err)
	_, err = host.DeadLetter(ctx, first.ID, first.Seq+1)
	fmt.Println(err)
	// Output:
	// rack/rack b the lamp is broken <nil>
	// rack/rack b: object: no such dead letter
}

// A program asks which classes a store has, also those that it does not define.
func ExampleHost_StoredClasses() {
	host := library(memstore.New())
	defer closeLibrary(host)
	fmt.Println(host.StoredClasses(context.Background()))
	// Output: [rack] <nil>
}

// A list of all objects goes through the classes without a read of the store for each list.
func ExampleHost_KnownClasses() {
	host := library(memstore.New())
	defer closeLibrary(host)
	fmt.Println(host.KnownClasses(context.Background()))
	// Output: [rack] <nil>
}

// A tool looks at a store that no host has open. It needs no class, and runs no code of the
// objects.
func ExampleNewReader() {
	engine := memstore.New()
	closeLibrary(library(engine))
	store, err := storage.Open(storage.Options{Engine: engine.Crash(0)}) // a tool names a directory
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx, r := context.Background(), object.NewReader(store)
	fmt.Println(r.StoredClasses(ctx))
	racks, err := r.Objects(ctx, "rack", object.ObjectsOptions{After: "rack b"})
	fmt.Println(len(racks), racks[0].ID, err)
	in, err := r.Inspect(ctx, racks[0].ID)
	fmt.Println(in.Exists, in.Keys[0].Key, in.Keys[0].SizeBytes, err)
	keys, err := r.Keys(ctx, in.ID, object.KeysOptions{Values: true})
	fmt.Printf("%s %v\n", keys.Keys[0].Value, err)
	events, err := r.Events(ctx, in.ID, 0, 10)
	fmt.Println(events[0].Kind, err)
	dead, err := r.DeadLetters(ctx, object.DeadLettersOptions{Kind: object.DeadAlarm})
	fmt.Println(len(dead.Letters), err)
	letter, err := r.DeadLetter(ctx, in.ID, in.DeadLetters[0].Seq)
	fmt.Println(letter.LastError, err)
	// Output:
	// [rack] <nil>
	// 1 rack/rack c <nil>
	// true book/c 9 <nil>
	// text of c <nil>
	// added <nil>
	// 3 <nil>
	// the lamp is broken <nil>
}
