package debounce_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Counter is an object that flushes add to.
type Counter struct {
	st *object.State
	n  int
}

var (
	Counters = object.Define("counter", func(ctx context.Context, st *object.State) (*Counter, error) {
		c := &Counter{st: st}
		_, err := st.Storage().GetInto(ctx, "n", &c.n)
		return c, err
	})
	AddTo = object.Handle(Counters, "add", func(c *Counter, ctx context.Context, n int) (int, error) {
		c.n += n
		return c.n, c.st.Storage().Put(ctx, "n", c.n)
	})
)

// counted gets the total after each flush.
var counted = make(chan int, 10)

// Views adds to a counter in batches of two events.
var Views = debounce.New(debounce.Config[int, int]{
	Name: "views", Quiet: time.Hour, MaxEvents: 2,
	Reduce: func(sum int, _ bool, views int) (int, error) { return sum + views, nil },
	Flush: func(ctx context.Context, f *debounce.Flush[int, int]) error {
		// The flush is the caller. Its key is the same if it is repeated after a crash, so
		// the counter adds each generation once.
		total, err := AddTo.Call(ctx, f, f.ID, f.State, object.Idempotent(f.Key, 24*time.Hour))
		if err == nil {
			counted <- total
		}
		return err
	},
})

// A flush that updates another object passes itself as the caller, and its key.
func ExampleFlush_Invoke() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "views") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Views, Counters)
	if err != nil {
		log.Fatal(err)
	}
	for _, views := range []int{2, 5} {
		if _, err := Views.Add(ctx, host, "home", views); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(<-counted)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 7
}
