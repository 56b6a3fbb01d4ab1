package debounce_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// A deploy comes while events wait: those of version 1 had a page each.
func ExampleConfig_migrateEvent() {
	flush := func(_ context.Context, f *debounce.Flush[Change, struct{}]) error { return nil }
	older := debounce.New(debounce.Config[string, struct{}]{
		Name: "pages", Version: "1", Quiet: time.Hour,
		Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
	})
	newer := debounce.New(debounce.Config[Change, struct{}]{
		Name: "pages", Version: "2", Quiet: time.Hour, Flush: flush,
		MigrateEvent: func(from string, raw []byte) (Change, error) {
			var id string
			err := json.Unmarshal(raw, &id)
			return Change{ID: id, Pages: 1}, err
		},
	})
	dir, err := os.MkdirTemp("", "debounce")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	run := func(def object.Definition, use func(h *object.Host)) {
		h, err := object.Open(object.Options{Dir: dir}, def)
		if err != nil {
			fmt.Println(err)
			return
		}
		use(h)
		if err := h.Shutdown(ctx); err != nil {
			fmt.Println(err)
		}
	}
	run(older, func(h *object.Host) { older.Add(ctx, h, "book", "p1") })
	run(newer, func(h *object.Host) {
		newer.Add(ctx, h, "book", Change{ID: "p2", Pages: 3})
		p, err := newer.Pending(ctx, h, "book")
		fmt.Println(p.Events, err)
	})
	// Output: [{p1 1} {p2 3}] <nil>
}
