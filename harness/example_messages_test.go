package harness_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// chatter is an object that sends numbers to others, and keeps those that it gets.
type chatter struct {
	st   *object.State
	Sent int
	Got  []int
}

var (
	chatters = object.Define("chatter", func(ctx context.Context, st *object.State) (*chatter, error) {
		c := &chatter{st: st}
		_, err := st.Storage().GetInto(ctx, "chatter", c)
		return c, err
	})
	hear = object.Handle(chatters, "hear", func(c *chatter, ctx context.Context, n int) (int, error) {
		c.Got = append(c.Got, n)
		return 0, c.st.Storage().Put(ctx, "chatter", c)
	})
	speak = object.Handle(chatters, "speak", func(c *chatter, ctx context.Context, to string) (int, error) {
		c.Sent++
		if err := hear.Send(ctx, c.st, to, c.Sent); err != nil {
			return 0, err
		}
		return 0, c.st.Storage().Put(ctx, "chatter", c)
	})
)

// chat is a scenario: anna sends two messages to bob.
func chat(s *harness.Sim) {
	s.Host(chatters)
	for range 2 {
		s.OK(s.Retry(func() error { _, err := speak.Call(s.Context(), s, "anna", "bob"); return err }))
	}
}

// NoLostMessage looks at the messages that each crash leaves.
func ExampleNoLostMessage() {
	_, err := harness.Explore(chat, harness.NoLostMessage)
	fmt.Println(err)
	// Output: <nil>
}

// Ordered compares the numbers that bob has stored with 1, 2, 3 and so on.
func ExampleOrdered() {
	got := func(store *storage.Store) (map[string][]int, error) {
		var bob chatter
		_, err := harness.Stored(store, chatters.ID("bob"), "chatter", &bob)
		return map[string][]int{"anna to bob": bob.Got}, err
	}
	_, err := harness.Explore(chat, harness.Ordered(got), harness.AllowFaults(harness.Faults{LateMessage: 1}))
	fmt.Println(err)

	_, err = harness.Explore(chat, harness.Ordered(func(*storage.Store) (map[string][]int, error) {
		return map[string][]int{"anna to bob": {1, 3}}, nil
	}))
	fmt.Println(err != nil)
	// Output:
	// <nil>
	// true
}
