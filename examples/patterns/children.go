package patterns

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Sheet is one page of a book, for the printers.
type Sheet struct {
	Book string
	Page int
}

// book is printed page by page, by many printers at a time. Each page that is not yet
// printed is a row.
type book struct{ st *object.State }

// Books, and the calls to them.
var (
	Books   = object.Define("book", func(_ context.Context, st *object.State) (*book, error) { return &book{st}, nil })
	Print   = object.Handle(Books, "print", (*book).print)
	printed = object.Handle(Books, "printed", (*book).printed)
)

// Printers prints pages.
var Printers = workerpool.New(workerpool.Config[Sheet, bool]{
	Name: "printer", Concurrency: 4,
	Work: func(ctx context.Context, t *workerpool.Task[Sheet]) (last bool, err error) {
		return printed.Call(ctx, t, t.In.Book, t.In.Page)
	},
})

func openKey(page int) string { return fmt.Sprintf("open/%06d", page) }

// print stores a row for each page and sends the pages to the printers, in one commit.
func (b *book) print(ctx context.Context, pages int) (int, error) {
	items := make([]workerpool.Item[Sheet], pages)
	for page := range pages {
		if err := b.st.Storage().Put(ctx, openKey(page), page); err != nil {
			return 0, err
		}
		items[page].In = Sheet{b.st.Name(), page}
	}
	_, err := Printers.EnqueueBatch(ctx, b.st.Outbox(), items)
	return pages, err
}

// printed takes a page off and reports whether it was the last. A task that runs twice
// finds the row gone the second time.
func (b *book) printed(ctx context.Context, page int) (last bool, err error) {
	there, err := b.st.Storage().Delete(ctx, openKey(page))
	if err != nil || !there {
		return false, err
	}
	for _, err := range b.st.Storage().List(ctx, object.ListOptions{Prefix: "open/", Limit: 1}) {
		return false, err // there is another
	}
	return true, b.st.Emit(ctx, "printed", nil)
}
