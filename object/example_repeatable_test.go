package object_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Index is an object that knows which documents have a word.
type Index struct{ st *object.State }

// Document is an object with a text.
type Document struct{ st *object.State }

var (
	Indexes   = object.Define("index", func(_ context.Context, st *object.State) (*Index, error) { return &Index{st}, nil })
	Documents = object.Define("document", func(_ context.Context, st *object.State) (*Document, error) { return &Document{st}, nil })

	// List adds a document to the set of a word.
	List = object.Handle(Indexes, "list", func(x *Index, ctx context.Context, document string) (bool, error) {
		return true, x.st.Storage().Put(ctx, document, true)
	})
	// Write lists the document before it stores the text, so that each stored word is listed.
	// A document that is listed in vain does no harm.
	Write = object.Handle(Documents, "write", func(d *Document, ctx context.Context, word string) (bool, error) {
		if _, err := List.Call(ctx, d.st, word, d.st.Name(), object.Repeatable()); err != nil {
			return false, err
		}
		return true, d.st.Storage().Put(ctx, "text", word)
	})
)

func ExampleRepeatable() {
	ctx := context.Background()
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New()}, // a program gives a Dir
		Logger:  slog.New(slog.DiscardHandler),
	}, Indexes, Documents)
	if err != nil {
		panic(err)
	}
	defer host.Shutdown(ctx)
	fmt.Println(Write.Call(ctx, host, "letter", "hello"))
	// Output: true <nil>
}
