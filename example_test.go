package holdfast_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Cart is a shopping cart that is emptied half an hour after the last add.
type Cart struct {
	st    *object.State
	total int
}

// NewCart makes a cart in memory from its stored rows. Nothing else of the object runs meanwhile.
func NewCart(ctx context.Context, st *object.State) (*Cart, error) {
	c := &Cart{st: st}
	_, err := st.Storage().GetInto(ctx, "total", &c.total)
	return c, err
}

// Add is a turn: the total and the alarm are one commit, durable before the caller sees the answer.
func (c *Cart) Add(ctx context.Context, price int) (int, error) {
	total := c.total + price
	if err := c.st.Storage().Put(ctx, "total", total); err != nil {
		return 0, err
	}
	c.total = total // after the write: a turn that fails leaves memory as it was
	return total, c.st.SetAlarm(ctx, c.st.Now().Add(30*time.Minute))
}

// Alarm runs half an hour after the last Add, in the process that lives then.
func (c *Cart) Alarm(ctx context.Context, info object.AlarmInfo) error {
	c.total = 0
	return c.st.Storage().DeleteAll(ctx)
}

var (
	Carts = object.Define("cart", NewCart)
	Add   = object.Handle(Carts, "add", (*Cart).Add)
)

func run(ctx context.Context) error {
	host, err := object.Open(object.Options{Dir: "data"}, Carts)
	if err != nil {
		return err
	}
	defer func() { // with time for running work to end; without a limit Shutdown waits for work that never ends
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		host.Shutdown(ctx)
	}()
	total, err := Add.Call(ctx, host, "alice", 499)
	fmt.Println(total, err)
	return err
}

// A cart remembers its total from one process to the next. Each run opens the store in
// the directory "data" as a process of its own would.
func Example() {
	home, err := os.Getwd()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Chdir(home)
	dir, err := os.MkdirTemp("", "carts")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.Chdir(dir); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		if err := run(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 499 <nil>
	// 998 <nil>
}
