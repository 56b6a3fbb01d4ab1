package holdfast_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Cart is a shopping cart that is emptied when nobody adds to it for a while.
type Cart struct {
	st    *object.State
	total int
}

// NewCart makes a cart in memory from what is stored. Nothing else of the object
// runs meanwhile.
func NewCart(ctx context.Context, st *object.State) (*Cart, error) {
	c := &Cart{st: st}
	_, err := st.Storage().GetInto(ctx, "total", &c.total)
	return c, err
}

// Add is a turn: the total and the alarm are one commit, durable before the
// caller sees the answer.
func (c *Cart) Add(ctx context.Context, price int) (int, error) {
	c.total += price
	if err := c.st.Storage().Put(ctx, "total", c.total); err != nil {
		return 0, err
	}
	return c.total, c.st.SetAlarm(ctx, c.st.Now().Add(30*time.Minute))
}

// Alarm runs when nobody has added anything for half an hour, in whatever
// process then lives.
func (c *Cart) Alarm(ctx context.Context, info object.AlarmInfo) error {
	c.total = 0
	return c.st.Storage().DeleteAll(ctx)
}

var (
	Carts = object.Define("cart", NewCart)
	Add   = object.Handle(Carts, "add", (*Cart).Add)
)

// A cart remembers its total from one process to the next.
func Example() {
	dir, err := os.MkdirTemp("", "carts")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	for _, price := range []int{499, 250} { // each time as a process of its own
		host, err := object.Open(object.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}, Carts)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(Add.Call(ctx, host, "alice", price))
		if err := host.Shutdown(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 499 <nil>
	// 749 <nil>
}
