package object_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// diary counts its entries, and tells of each by an event with its number.
type diary struct {
	st *object.State
	n  int
}

var diaries = object.Define("diary", func(ctx context.Context, st *object.State) (*diary, error) {
	d := &diary{st: st}
	_, err := st.Storage().GetInto(ctx, "n", &d.n)
	return d, err
})

// enter writes some entries in one commit.
var enter = object.Handle(diaries, "enter", func(d *diary, ctx context.Context, entries int) (int, error) {
	for range entries {
		d.n++
		if err := d.st.Emit(ctx, "entered", d.n); err != nil {
			return 0, err
		}
	}
	return d.n, d.st.Storage().Put(ctx, "n", d.n)
})

// told has the events that a client outside got from a tap. It lives on when the process dies.
type told struct {
	s      *harness.Sim
	of     object.TapOptions
	newest map[storage.ID]int // the number of each diary's newest entry that it knows of
	events []object.TapEvent
	resets int
}

func (c *told) total() (n int) {
	for _, newest := range c.newest {
		n += newest
	}
	return n
}

// follow listens until the diaries have so many entries in all. A client that is told of a gap
// reads the present state, from the beginning of a new tap.
func (c *told) follow(entries int) {
	for c.total() < entries {
		_ = c.s.WithHost(func(ctx context.Context, h *object.Host) error {
			if c.of.Name == "" && c.of.After == 0 {
				if err := c.begin(ctx, h); err != nil {
					return err
				}
			}
			tap, err := h.Tap(c.of)
			if err != nil {
				return err
			}
			defer tap.Close()
			for c.total() < entries {
				events, err := tap.Next(ctx)
				if errors.Is(err, object.ErrEventsMissed) {
					c.of.After = 0
					c.resets++
					return nil
				}
				if err != nil {
					return err
				}
				for _, e := range events {
					c.take(e)
				}
			}
			return nil
		})
	}
}

// begin begins anew: first a tap, and then a look at the stored events.
func (c *told) begin(ctx context.Context, h *object.Host) error {
	tap, err := h.Tap(object.TapOptions{Class: c.of.Class, Name: c.of.Name})
	if err != nil {
		return err
	}
	defer tap.Close()
	for _, name := range []string{"a", "b"} {
		events, err := h.Events(ctx, diaries.ID(name), 0, 100)
		if err != nil {
			return err
		}
		if n := len(events); n > 0 {
			c.newest[diaries.ID(name)] = max(c.newest[diaries.ID(name)], number(events[n-1]))
		}
	}
	c.of.After = tap.Cursor()
	return nil
}

// take takes an event: it must be the next of its object. A client of the class may
// have seen it in a look already.
func (c *told) take(e object.TapEvent) {
	n := number(e.Event)
	switch newest := c.newest[e.ID]; {
	case n > newest+1:
		c.s.Errorf("V7: entry %d of %s came after entry %d, without a reset", n, e.ID, newest)
	case n <= newest && c.of.Name != "":
		c.s.Errorf("V7: entry %d of %s came after entry %d", n, e.ID, newest)
	}
	for _, before := range c.events {
		if before.ID == e.ID && before.Seq >= e.Seq {
			c.s.Errorf("V7: event %d of %s came after event %d", e.Seq, e.ID, before.Seq)
		}
	}
	c.newest[e.ID] = max(c.newest[e.ID], n)
	c.events = append(c.events, e)
	c.of.After = e.Cursor
}

func number(e object.Event) int {
	n, err := strconv.Atoi(string(e.Data))
	if err != nil {
		panic(err)
	}
	return n
}

// stored reports an event that a client was told of and that is not stored, at the end of all
// crashes: it was told of a commit that did not survive.
func (c *told) stored() error {
	for _, e := range c.events {
		var there []object.Event
		err := c.s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
			there, err = h.Events(ctx, e.ID, e.Seq-1, 1)
			return err
		})
		if err != nil {
			return err
		}
		if len(there) == 0 || there[0].Seq != e.Seq || string(there[0].Data) != string(e.Data) {
			return fmt.Errorf("V8: event %d of %s with entry %s was told, and is not stored", e.Seq, e.ID, e.Data)
		}
	}
	return nil
}

// Two diaries have entries, some of them not confirmed, while one client listens to a diary by the
// sequence numbers of its events, and another to all of the class. The process dies at each
// point. Proves V7, V8.
func TestCrashTaps(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		s.Host(diaries)
		const entries = 3
		clients := []*told{
			{s: s, of: object.TapOptions{Class: "diary", Name: "a"}, newest: map[storage.ID]int{}},
			{s: s, of: object.TapOptions{Class: "diary"}, newest: map[storage.ID]int{}},
		}
		done := 0
		s.Go("one", func() { clients[0].follow(entries); done++ })
		s.Go("class", func() { clients[1].follow(2 * entries); done++ })
		for _, name := range []string{"a", "b"} {
			s.Go("writer of "+name, func() {
				for i, n := range []int{1, 2} {
					s.OK(s.Retry(func() error {
						_, err := enter.Call(s.Context(), s, name, n, object.Idempotent(fmt.Sprint(i), time.Hour))
						return err
					}))
				}
				done++
			})
		}
		s.Advance(time.Minute)
		s.Finally("each client has each entry, and all that it was told of is stored", func() error {
			if done != 4 {
				return fmt.Errorf("V7: %d of 4 clients and writers have ended; the clients know of %v and %v", done, clients[0].newest, clients[1].newest)
			}
			if n := clients[0].resets; n > 0 {
				return fmt.Errorf("V7: the client of one diary was reset %d times", n)
			}
			if n := clients[1].resets; n > s.Crashes() {
				return fmt.Errorf("V7: the client of the class was reset %d times in %d crashes", n, s.Crashes())
			}
			return errors.Join(clients[0].stored(), clients[1].stored())
		})
	}, harness.Seed(1))
}
