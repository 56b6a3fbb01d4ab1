package harness_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// cart is an object with a total, and an alarm that closes it.
type cart struct {
	st    *object.State
	total int
}

func newCart(ctx context.Context, st *object.State) (*cart, error) {
	c := &cart{st: st}
	_, err := st.Storage().GetInto(ctx, "total", &c.total)
	return c, err
}

func (c *cart) add(ctx context.Context, n int) (int, error) {
	c.total += n
	if err := c.st.Storage().Put(ctx, "total", c.total); err != nil {
		return 0, err
	}
	return c.total, c.st.SetAlarm(ctx, c.st.Now().Add(30*time.Minute))
}

func (c *cart) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	return c.st.Storage().Put(ctx, "closed", true)
}

var (
	carts   = object.Define("cart", newCart)
	cartAdd = object.Handle(carts, "add", (*cart).add)
	cartGet = object.Handle(carts, "get", func(c *cart, _ context.Context, _ struct{}) (int, error) { return c.total, nil })
)

// A counter that stores each step before it answers survives a crash at every
// point.
func ExampleExplore() {
	report, err := harness.Explore(func(s *harness.Sim) {
		s.Host(carts)
		added := 0
		s.OK(s.Retry(func() error {
			_, err := cartAdd.Call(s.Context(), s, "alice", 5, object.Idempotent("order-1", time.Hour))
			added = 5
			return err
		}))
		total, err := cartGet.Call(s.Context(), s, "alice", struct{}{})
		s.Must(total, err)
		s.Always("nothing is lost or counted twice", err != nil || total == added)
	}, harness.Depth(2), harness.NoLostAck)
	fmt.Println(err, report.Covered)
	// Output: <nil> 1
}

// The disk loses power in the midst of a write. Acknowledged writes are there.
func ExampleSim_Crash_torn() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(carts)
		total, err := cartAdd.Call(s.Context(), s, "alice", 5)
		s.OK(err)
		if s.Crashes() > 0 {
			return
		}
		s.Crash(harness.Torn)
		s.Restart()
		got, err := cartGet.Call(s.Context(), s, "alice", struct{}{})
		s.OK(err)
		s.Always("nothing is lost", harness.Unknown(err) || got == total, got)
	}, harness.PebbleStore(), harness.NoTornBatch)
	fmt.Println(err)
	// Output: <nil>
}

// Dump tells the stored state of an object, for a message.
func ExampleSim_Dump() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(carts)
		s.Must(cartAdd.Call(s.Context(), s, "alice", 5))
		s.Always("the dump names the object", len(s.Dump(carts.ID("alice"))) > 0, s.Now())
	})
	fmt.Println(err)
	// Output: <nil>
}

// Record notes calls, and Linearizable finds an order that explains the answers.
func ExampleLinearizable() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(carts)
		for range 2 {
			s.Go("client", func() {
				_, _ = harness.Record(s, "cart/alice", 5, func() (int, error) {
					return cartAdd.Call(s.Context(), s, "alice", 5)
				})
			})
		}
		s.Advance(time.Second)
	}, harness.Linearizable(func(total, price int) (next, answer int) {
		return total + price, total + price
	}))
	fmt.Println(err)
	// Output: <nil>
}
