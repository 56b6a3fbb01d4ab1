package patterns

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Clicks adds up the clicks on a page, and tells its counter of them once they rest for
// five seconds, or each minute.
var Clicks = debounce.New(debounce.Config[int, int]{
	Name: "clicks", Quiet: 5 * time.Second, MaxWait: time.Minute,
	Reduce: func(sum int, _ bool, clicks int) (int, error) { return sum + clicks, nil },
	Flush: func(ctx context.Context, f *debounce.Flush[int, int]) error {
		_, err := Count.Call(ctx, f, f.ID, f.State, object.Idempotent(f.Key, month))
		return err
	},
})

// Click adds clicks on a page. The id makes a repeat harmless.
func Click(ctx context.Context, from object.Caller, page, id string, clicks int) error {
	_, err := Clicks.Add(ctx, from, page, clicks, debounce.EventID(id))
	return err
}

// counter is the total of a page.
type counter struct {
	st    *object.State
	total int
}

// Counters are the totals of all pages, and the call to one.
var (
	Counters = object.Define("counter", func(ctx context.Context, st *object.State) (*counter, error) {
		c := &counter{st: st}
		_, err := st.Storage().GetInto(ctx, "total", &c.total)
		return c, err
	})
	Count = object.Handle(Counters, "count", (*counter).count)
)

func (c *counter) count(ctx context.Context, n int) (int, error) {
	total := c.total + n
	if err := c.st.Storage().Put(ctx, "total", total); err != nil {
		return 0, err
	}
	c.total = total
	return total, nil
}
