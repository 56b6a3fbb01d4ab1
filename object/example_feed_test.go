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

type Booth struct{ st *object.State }

var (
	Booths = object.Define("booth", func(ctx context.Context, st *object.State) (*Booth, error) { return &Booth{st}, nil })

	SellTicket = object.Handle(Booths, "sell", func(o *Booth, ctx context.Context, cents int) (struct{}, error) {
		return struct{}{}, o.st.Emit(ctx, "sold", cents)
	})
)

// A ledger copies all sales. It stores the place up to which it has copied together with the
// copies, so each sale is in it once, also when the program is killed between two pages.
func ExampleHost_Feed() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Feed: true}, Booths)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)
	for i, booth := range []string{"left", "right", "left"} {
		if _, err := SellTicket.Call(ctx, host, booth, 100+i); err != nil {
			log.Fatal(err)
		}
	}

	var ledger struct {
		place  uint64
		copied []string
	}
	for more := true; more; {
		page, err := host.Feed(ctx, object.FeedOptions{After: ledger.place, Kinds: []string{"sold"}, Limit: 2})
		switch {
		case errors.Is(err, object.ErrEventsMissed):
			fmt.Println("sales are missing before", page.Next)
		case err != nil:
			log.Fatal(err)
		}
		for _, e := range page.Events {
			ledger.copied = append(ledger.copied, e.ID.Name+" "+string(e.Data))
		}
		ledger.place, more = page.Next, page.More
	}
	fmt.Println(ledger.copied)
	// Output:
	// [left 100 right 101 left 102]
}
