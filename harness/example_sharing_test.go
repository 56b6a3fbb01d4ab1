package harness_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// NoSharedMemory looks at each object when a handler returns: this one keeps the slice
// that its caller may go on to change.
func ExampleNoSharedMemory() {
	type list struct{ items []string }
	lists := object.Define("list", func(context.Context, *object.State) (*list, error) { return &list{}, nil })
	set := object.Handle(lists, "set", func(l *list, _ context.Context, items []string) (int, error) {
		l.items = items // slices.Clone(items) is right
		return len(items), nil
	})
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(lists)
		s.Must(set.Call(s.Context(), s, "food", []string{"bread"}))
	}, harness.NoSharedMemory)
	var f *harness.Failure
	if errors.As(err, &f) {
		fmt.Println(f.Problem)
	}
	// Output: NoSharedMemory: the handler set keeps memory of its argument in items: copy it, because the caller has it too
}
