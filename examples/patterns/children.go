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

// print stores the pages and the alarm that hands them out, in one commit.
func (b *book) print(ctx context.Context, pages int) (int, error) {
	for page := range pages {
		if err := b.st.Storage().Put(ctx, openKey(page), page); err != nil {
			return 0, err
		}
	}
	return pages, b.st.SetAlarm(ctx, b.st.Now())
}

// Alarm hands out the pages that are open. After a crash it runs again, and the pool
// recognises a page by its key.
func (b *book) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	var items []workerpool.Item[Sheet]
	for row, err := range b.st.Storage().List(ctx, object.ListOptions{Prefix: "open/"}) {
		var page int
		if err == nil {
			err = b.st.Codec().Decode(row.Value, &page)
		}
		if err != nil {
			return err
		}
		once := workerpool.Idempotent(b.st.Name()+"/"+row.Key, month)
		items = append(items, workerpool.Item[Sheet]{In: Sheet{b.st.Name(), page}, Options: []workerpool.Option{once}})
	}
	return b.st.Release(ctx, func(ctx context.Context) error { // pages may be printed meanwhile
		_, err := Printers.EnqueueBatch(ctx, b.st, items)
		return err
	})
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
