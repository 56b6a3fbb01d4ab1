package harness_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// addTo is the model of a cart: it answers the new total.
func addTo(total, n int) (int, int) { return total + n, total + n }

// till adds to a total. Its bug is one that is easily made: the total is read,
// then the turn is lent to others, and then the old total plus n is stored.
type till struct {
	st    *object.State
	total int
	bug   bool
}

func (c *till) add(ctx context.Context, n int) (int, error) {
	total := c.total
	ask := func(ctx context.Context) error { return c.st.Driver().Seams().Sleep(ctx, time.Second) }
	if err := c.st.Release(ctx, ask); err != nil {
		return 0, err
	}
	if !c.bug {
		total = c.total
	}
	c.total = total + n
	return c.total, c.st.Storage().Put(ctx, "total", c.total)
}

func tillScenario(bug bool) harness.Scenario {
	return func(s *harness.Sim) {
		tills := object.Define("till", func(ctx context.Context, st *object.State) (*till, error) {
			c := &till{st: st, bug: bug}
			_, err := st.Storage().GetInto(ctx, "total", &c.total)
			return c, err
		})
		add := object.Handle(tills, "add", (*till).add)
		s.Host(tills)
		for i := range 4 {
			s.Go("client", func() {
				name := fmt.Sprint(i % 2)
				_, _ = harness.Record(s, "till/"+name, 1+i, func() (int, error) {
					return add.Call(s.Context(), s, name, 1+i)
				})
			})
		}
		s.Advance(time.Minute)
		for name := range 2 {
			_, _ = harness.Record(s, fmt.Sprint("till/", name), 0, func() (int, error) {
				return add.Call(s.Context(), s, fmt.Sprint(name), 0)
			})
		}
	}
}

func TestLinearizable(t *testing.T) {
	for _, how := range [][]harness.Option{{harness.Depth(2)}, {harness.Seed(3)}, {harness.PebbleStore()}} {
		harness.Exhaust(t, tillScenario(false), append(how, harness.Linearizable(addTo))...)
	}
	mustSay(t, problemOf(t, tillScenario(true), harness.Linearizable(addTo)),
		"no order of the 3 calls to till/0 explains their answers", "1 -> 1, and the state is 1",
		"none of these can follow", "3 -> 3, where the model answers 4")
}

// A model with types that fit no call would check nothing.
func TestLinearizableWithoutCalls(t *testing.T) {
	mustSay(t, problemOf(t, tillScenario(false), harness.Linearizable(func(n, in string) (string, string) { return n, in })),
		"no call with input string and output string was recorded")
}

// Histories with a known answer.
func TestLinearizableHistories(t *testing.T) {
	ack := func(in, out int, begin, end int64) harness.Operation {
		return harness.Operation{Object: "a", Input: in, Output: out, Outcome: harness.Ack, Begin: begin, End: end}
	}
	lost := func(in int, begin int64) harness.Operation {
		return harness.Operation{Object: "a", Input: in, Begin: begin}
	}
	other := ack(1, 1, 2, 3)
	other.Object = "b"
	refused := harness.Operation{Object: "a", Input: 5, Outcome: harness.Refused, Begin: 2}
	for name, c := range map[string]struct {
		ok  bool
		ops []harness.Operation
	}{
		"one after another":                     {true, []harness.Operation{ack(1, 1, 1, 2), ack(1, 2, 3, 4)}},
		"the second does not see the first":     {false, []harness.Operation{ack(1, 1, 1, 2), ack(1, 1, 3, 4)}},
		"at the same time, in either order":     {true, []harness.Operation{ack(1, 3, 1, 3), ack(2, 2, 2, 4)}},
		"each object has its own state":         {true, []harness.Operation{ack(1, 1, 1, 2), other}},
		"what was refused has not happened":     {true, []harness.Operation{ack(1, 1, 1, 2), refused, ack(1, 2, 3, 4)}},
		"what was refused is seen":              {false, []harness.Operation{ack(1, 1, 1, 2), refused, ack(1, 7, 3, 4)}},
		"an unknown call may have happened":     {true, []harness.Operation{lost(5, 1), ack(1, 6, 2, 3)}},
		"an unknown call may not have happened": {true, []harness.Operation{lost(5, 1), ack(1, 1, 2, 3)}},
		"an unknown call may happen later":      {true, []harness.Operation{lost(5, 1), ack(1, 1, 2, 3), ack(0, 6, 4, 5)}},
		"but not twice":                         {false, []harness.Operation{lost(5, 1), ack(1, 6, 2, 3), ack(0, 11, 4, 5)}},
		"nor before it began":                   {false, []harness.Operation{ack(1, 6, 1, 2), lost(5, 3)}},
	} {
		var h harness.History
		for _, o := range c.ops {
			h.Add(o)
		}
		if err := harness.LinearizableIn(&h, addTo); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Calls that are all in flight at once have too many orders. The search ends after a number of steps, on
// each machine at the same one.
func TestLinearizableGivesUp(t *testing.T) {
	var h harness.History
	for i := range 20 {
		h.Add(harness.Operation{Object: "a", Input: 1 << i, Output: -1, Outcome: harness.Ack, Begin: 1, End: 9})
		h.Add(harness.Operation{Object: "a", Input: 1 << i, Begin: 1})
	}
	err := harness.LinearizableWithin(&h, addTo, 1000)
	if err == nil || err.Error() != "the 40 calls to a are not decided after 1000 steps: have fewer of them under way at a time" {
		t.Error(err)
	}
}

func TestOutcomeOf(t *testing.T) {
	for err, want := range map[error]harness.Outcome{
		nil:                  harness.Ack,
		errors.New("no"):     harness.Refused,
		object.ErrNoSpace:    harness.Refused,
		object.ErrShutdown:   harness.Refused,
		object.ErrUnknown:    harness.Unanswered,
		object.ErrStorage:    harness.Unanswered,
		context.Canceled:     harness.Unanswered,
		object.ErrReset:      harness.Unanswered,
		object.ErrDeadlock:   harness.Refused,
		object.ErrBadName:    harness.Refused,
		object.ErrOverloaded: harness.Refused,
	} {
		if got := harness.OutcomeOf(err); got != want {
			t.Errorf("the outcome of %v is %v, want %v", err, got, want)
		}
	}
}

// Clients of a real host record as those of a simulation do.
func TestHistoryOfThreads(t *testing.T) {
	host, err := object.Open(object.Options{Dir: t.TempDir()}, carts)
	if err != nil {
		t.Fatal(err)
	}
	var h harness.History
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for j := range 50 {
				name := fmt.Sprint((i + j) % 3)
				_, _ = harness.Record(&h, "cart/"+name, i, func() (int, error) {
					return cartAdd.Call(context.Background(), host, name, i)
				})
			}
		})
	}
	clients.Wait()
	if err := host.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if n := len(h.Operations()); n != 200 {
		t.Errorf("%d calls were recorded, want 200", n)
	}
	if err := harness.LinearizableIn(&h, addTo); err != nil {
		t.Error(err)
	}
}

// LinearizableIn checks a history that comes from elsewhere. Here the second call does
// not see the write of the first, which has been acknowledged.
func ExampleLinearizableIn() {
	var h harness.History
	add := func(answer int) func() (int, error) { return func() (int, error) { return answer, nil } }
	_, _ = harness.Record(&h, "cart/alice", 5, add(5))
	_, _ = harness.Record(&h, "cart/alice", 2, add(2))
	fmt.Println(harness.LinearizableIn(&h, func(total, price int) (next, answer int) {
		return total + price, total + price
	}))
	// Output:
	// no order of the 2 calls to cart/alice explains their answers
	// an order that explains the first of them:
	//   5 -> 5, and the state is 5
	// none of these can follow:
	//   2 -> 2, where the model answers 7
}
