package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Shelf is an object with many keys.
type Shelf struct{ st *object.State }

// NewShelf makes a shelf; nothing is read before it is needed.
func NewShelf(_ context.Context, st *object.State) (*Shelf, error) { return &Shelf{st}, nil }

// once runs fn as a turn of a shelf, on a host over a store in memory. Programs name a
// directory: object.Options{Dir: "data"}.
func once(fn func(s *Shelf, ctx context.Context) error) {
	ctx := context.Background()
	class := object.Define("shelf", NewShelf)
	do := object.Handle(class, "do", func(s *Shelf, ctx context.Context, _ struct{}) (struct{}, error) {
		return struct{}{}, fn(s, ctx)
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, class)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := do.Call(ctx, host, "a", struct{}{}); err != nil {
		fmt.Println("error:", err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}

// Keys come in the order of their bytes.
func ExampleStorage_List() {
	once(func(s *Shelf, ctx context.Context) error {
		st := s.st.Storage()
		err := st.PutBatch(ctx, []object.Entry{
			{Key: "book/1", Value: "Emma"}, {Key: "book/2", Value: "Ulysses"}, {Key: "disc/1", Value: "Kind of Blue"},
		})
		if err != nil {
			return err
		}
		for item, err := range st.List(ctx, object.ListOptions{Prefix: "book/", Reverse: true}) {
			if err != nil {
				return err
			}
			fmt.Printf("%s %s\n", item.Key, item.Value)
		}
		return nil
	})
	// Output:
	// book/2 "Ulysses"
	// book/1 "Emma"
}

// Reads see the writes of their own turn.
func ExampleStorage_GetInto() {
	once(func(s *Shelf, ctx context.Context) error {
		st := s.st.Storage()
		if err := st.Put(ctx, "size", 3); err != nil {
			return err
		}
		var size int
		ok, err := st.GetInto(ctx, "size", &size)
		fmt.Println(size, ok)
		if err != nil {
			return err
		}
		removed, err := st.Delete(ctx, "size")
		if err != nil {
			return err
		}
		_, ok, err = st.Get(ctx, "size")
		fmt.Println(removed, ok)
		return err
	})
	// Output:
	// 3 true
	// true false
}

func ExampleStorage_GetBatch() {
	once(func(s *Shelf, ctx context.Context) error {
		st := s.st.Storage()
		if err := errors.Join(st.PutBytes(ctx, "a", []byte("1")), st.PutBytes(ctx, "b", []byte("2"))); err != nil {
			return err
		}
		found, err := st.GetBatch(ctx, "a", "b", "c")
		if err != nil {
			return err
		}
		fmt.Printf("%s %s %d\n", found["a"], found["b"], len(found))
		n, err := st.DeleteBatch(ctx, "a", "c")
		fmt.Println("deleted", n)
		return err
	})
	// Output:
	// 1 2 2
	// deleted 1
}

// An error of the transaction undoes its writes, and no others.
func ExampleStorage_Transaction() {
	once(func(s *Shelf, ctx context.Context) error {
		st := s.st.Storage()
		if err := st.Put(ctx, "kept", true); err != nil {
			return err
		}
		err := st.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
			if err := tx.Put(ctx, "dropped", true); err != nil {
				return err
			}
			return errors.New("changed my mind")
		})
		_, kept, keptErr := st.Get(ctx, "kept")
		_, dropped, droppedErr := st.Get(ctx, "dropped")
		fmt.Println(err, kept, dropped)
		return errors.Join(keptErr, droppedErr)
	})
	// Output: changed my mind true false
}

func ExampleStorage_DeleteAll() {
	once(func(s *Shelf, ctx context.Context) error {
		st := s.st.Storage()
		if err := errors.Join(st.Put(ctx, "a", 1), st.Put(ctx, "ab", 2), st.Put(ctx, "b", 3), st.DeletePrefix(ctx, "a")); err != nil {
			return err
		}
		count := func() (n int) {
			for _, err := range st.List(ctx, object.ListOptions{}) {
				if err != nil {
					log.Fatal(err)
				}
				n++
			}
			return n
		}
		fmt.Println(count())
		err := st.DeleteAll(ctx)
		fmt.Println(count())
		return err
	})
	// Output:
	// 1
	// 0
}

// A mark remembers something for a time, for example the id of a message that was
// handled.
func ExampleState_Mark() {
	once(func(s *Shelf, ctx context.Context) error {
		if err := s.st.Mark(ctx, "event-1", []byte("seen"), time.Hour); err != nil {
			return err
		}
		value, ok, err := s.st.Marked(ctx, "event-1")
		if err != nil {
			return err
		}
		fmt.Printf("%s %v\n", value, ok)
		return nil
	})
	// Output:
	// seen true
}

// A number that was never given out before has no mark yet.
func ExampleDriver_MarkNew() {
	once(func(s *Shelf, ctx context.Context) error {
		order := fmt.Sprint("order-", s.st.Driver().NextSequence())
		if err := s.st.Driver().MarkNew(ctx, order, []byte("shipped"), time.Hour); err != nil {
			return err
		}
		value, _, err := s.st.Marked(ctx, order)
		fmt.Printf("%s\n", value)
		return err
	})
	// Output:
	// shipped
}

// MarksEnd tells when an object has forgotten all that it marked.
func ExampleDriver_MarksEnd() {
	once(func(s *Shelf, ctx context.Context) error {
		for key, ttl := range map[string]time.Duration{"short": time.Minute, "long": time.Hour} {
			if err := s.st.Mark(ctx, key, nil, ttl); err != nil {
				return err
			}
		}
		end, err := s.st.Driver().MarksEnd(ctx)
		if err != nil {
			return err
		}
		fmt.Println(end.Sub(s.st.Now()).Round(time.Minute))
		return nil
	})
	// Output:
	// 1h0m0s
}

// Sync makes the writes of the turn so far durable before the turn goes on.
func ExampleState_Sync() {
	once(func(s *Shelf, ctx context.Context) error {
		if err := s.st.Storage().Put(ctx, "sent", true); err != nil {
			return err
		}
		fmt.Println(s.st.Sync(ctx))
		return errors.New("what was synced stays")
	})
	// Output:
	// <nil>
	// error: what was synced stays
}
