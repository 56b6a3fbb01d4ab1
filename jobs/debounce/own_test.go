package debounce_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Pages is a debounce in two stages: the changes of a page are added up, and the sums
// of all pages once more. The name Pages inside of Flush would be an initialization cycle.
var Pages = debounce.New(debounce.Config[Change, Batch]{
	Name: "pages", Quiet: 20 * time.Millisecond, Reduce: fold2,
	Flush: func(ctx context.Context, f *debounce.Flush[Change, Batch]) error {
		if f.ID == "all" {
			return nil
		}
		_, err := f.Job().Add(ctx, f, "all", Change{ID: f.ID, Pages: f.State.Pages}, jobs.EventID(f.Key))
		return err
	},
})

func ExampleFlush_Job() {
	with(func(ctx context.Context, host *object.Host) {
		Pages.Add(ctx, host, "contact-9", Change{Pages: 3})
		Pages.Add(ctx, host, "contact-9", Change{Pages: 4})
		for e, err := range host.Watch(ctx, Pages.ID("all"), 0) {
			if err != nil || e.Kind == debounce.EventFlushed {
				fmt.Println(e.Kind, err)
				return
			}
		}
	}, Pages)
	// Output: flushed <nil>
}

// Proves J6: work reaches its own definition. Each flush of a page is one event of the
// second stage, whatever crashes.
func TestFlushAddsToItsOwnDefinition(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(Pages)
		for i, id := range []string{"a", "b"} {
			s.OK(s.Retry(func() error {
				_, err := Pages.Add(s.Context(), s, id, Change{Pages: i + 1}, jobs.EventID("e"))
				return err
			}))
		}
		s.Advance(time.Minute)
		s.Finally("two events have reached the second stage", func() error {
			st, err := Pages.Status(s.Context(), s, "all")
			s.Always("two events", err != nil || st.EventsFlushed == 2, st)
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// A flush that a program has made by itself has no definition.
func TestFlushWithoutADefinition(t *testing.T) {
	if j := new(debounce.Flush[Change, Batch]).Job(); j != nil {
		t.Errorf("Job is %v, want nil", j)
	}
}
