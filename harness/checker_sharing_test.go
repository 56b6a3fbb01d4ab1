package harness_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// order is an argument with memory of its own.
type order struct {
	Lines []string
	Tags  map[string][]byte
	At    time.Time
	Note  *string
}

// desk is an object that keeps orders, as its bug says.
type desk struct {
	st   *object.State
	last struct{ orders []order }
	byID map[string]any
	all  [3]*string
}

// Case OB12: a handler that keeps memory of its argument or answers with a part of its
// state is found, and one that copies is not. Proves O3.
func TestSharedMemoryIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		take func(d *desk, o order) any
		want string // in the problem; empty: there is none
	}{
		"nothing":     {func(*desk, order) any { return nil }, ""},
		"a copy":      {func(d *desk, o order) any { d.byID["x"] = slices.Clone(o.Lines); return slices.Clone(o.Lines) }, ""},
		"strings":     {func(d *desk, o order) any { d.byID["x"] = o.Lines[0]; return *o.Note }, ""},
		"a time":      {func(d *desk, o order) any { d.byID["x"] = o.At; return o.At }, ""},
		"an echo":     {func(_ *desk, o order) any { return o }, ""},
		"a slice":     {func(d *desk, o order) any { d.byID["x"] = o.Lines; return nil }, "argument in byID[…]"},
		"a part":      {func(d *desk, o order) any { d.byID["x"] = o.Lines[1:]; return nil }, "argument in byID[…]"},
		"a map":       {func(d *desk, o order) any { d.last.orders = []order{{Tags: o.Tags}}; return nil }, "argument in last.orders[…].Tags"},
		"bytes":       {func(d *desk, o order) any { d.byID["x"] = o.Tags["a"]; return nil }, "argument in byID[…]"},
		"a pointer":   {func(d *desk, o order) any { d.all[2] = o.Note; return nil }, "argument in all[…]"},
		"its state":   {func(d *desk, _ order) any { return d.byID }, "answer in byID"},
		"the last":    {func(d *desk, _ order) any { return &d.last.orders }, "answer in itself"},
		"of an error": {func(d *desk, o order) any { d.byID["x"] = o.Lines; return context.Canceled }, ""},
	} {
		desks := object.Define("desk", func(_ context.Context, st *object.State) (*desk, error) {
			return &desk{st: st, byID: map[string]any{}}, nil
		})
		take := object.Handle(desks, "take", func(d *desk, _ context.Context, o order) (any, error) {
			answer := c.take(d, o)
			if err, ok := answer.(error); ok {
				return nil, err
			}
			return answer, nil
		})
		scenario := func(s *harness.Sim) {
			s.Host(desks)
			note := "note"
			o := order{[]string{"a", "b"}, map[string][]byte{"a": []byte("b")}, s.Now().Local(), &note}
			_, _ = take.Call(s.Context(), s, "one", o)
		}
		_, err := harness.Explore(scenario, harness.NoSharedMemory)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("O3: a handler that keeps %s: %v", name, err)
		case c.want != "" && err == nil:
			t.Errorf("O3: a handler that keeps %s is not found", name)
		case c.want != "" && !strings.Contains(err.Error(), "the handler take keeps memory of its "+c.want):
			t.Errorf("O3: a handler that keeps %s: %v, want %q", name, err, c.want)
		}
		if _, err := harness.Explore(scenario); err != nil {
			t.Errorf("O3: without the option, %s: %v", name, err)
		}
	}
}
