package harness_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// purchase is an object that is paid by its alarm, a minute after it was placed.
type purchase struct {
	st  *object.State
	pay func(id string) // the bank, which takes money once for each id
}

// place stores the order and the time of its payment, in one commit.
func (o *purchase) place(ctx context.Context, cents int) (int, error) {
	if err := o.st.Storage().Put(ctx, "cents", cents); err != nil {
		return 0, err
	}
	return cents, o.st.SetAlarm(ctx, o.st.Now().Add(time.Minute))
}

// Alarm pays. After a crash it may run again, so the bank is given the name of the
// order, by which it knows the repeat.
func (o *purchase) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	o.pay(o.st.Name())
	return o.st.Storage().Put(ctx, "paid", true)
}

// placed is the scenario. It runs once without a crash, and then once for each point at
// which a crash can matter, each time from the start.
func placed(s *harness.Sim) {
	taken := make(map[string]bool) // the bank's memory, outside of the process that crashes
	pay := func(id string) {
		if !taken[id] {
			s.World().Do("paid/"+id, func() { taken[id] = true })
		}
	}
	orders := object.Define("order", func(_ context.Context, st *object.State) (*purchase, error) { return &purchase{st, pay}, nil })
	place := object.Handle(orders, "place", (*purchase).place)

	s.Host(orders)
	s.OK(s.Retry(func() error { // as a client does that got no answer
		_, err := place.Call(s.Context(), s, "o-1", 1250, object.Idempotent("o-1", time.Hour))
		return err
	}))
	s.Advance(2 * time.Minute)
	s.Finally("the order is paid", func() error {
		if s.World().Count("paid/o-1") == 0 {
			return errors.New("nothing was paid")
		}
		return nil
	})
}

// testOrderSurvivesEveryCrash is the test: give it a name that begins with Test.
func testOrderSurvivesEveryCrash(t testing.TB) {
	harness.Exhaust(t, placed, harness.NoDoubleEffect("paid/"), harness.NoLostAck, harness.OneAlarm)
}

// printing stands for the t of a test.
type printing struct{ testing.TB }

func (printing) Helper()                        {}
func (printing) Name() string                   { return "TestOrderSurvivesEveryCrash" }
func (printing) Logf(string, ...any)            {}
func (printing) Fatalf(format string, a ...any) { fmt.Printf("FAIL: "+format+"\n", a...) }

// Exhaust is called from a test.
func ExampleExhaust() {
	testOrderSurvivesEveryCrash(printing{})
	fmt.Println("ok")
	// Output: ok
}
