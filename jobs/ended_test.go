package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves O12: the errors of verbs over many jobs whose context has ended match its cause and also
// context.Canceled.
func TestVerbsOverManyMatchBothEnds(t *testing.T) {
	gone := errors.New("the operator has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	ticker := continuous.New(continuous.Config[int]{Name: "ticker", Schedule: jobs.Every(1 << 40), Run: func(context.Context, *continuous.Run[int]) error { return nil }})
	inbox := debounce.New(debounce.Config[int, int]{Name: "inbox", Quiet: 1 << 40, Flush: func(context.Context, *debounce.Flush[int, int]) error { return nil }})
	greet := workflow.New[int, int]("greet", workflow.Config{})
	greet.Func(func(c *workflow.Context, n int) (int, error) { return n, workflow.Sleep(c, 1<<40) })
	h, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: slog.New(slog.DiscardHandler),
	}, ticker, inbox, greet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := greet.Start(ctx, h, "a", 1); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := ticker.Start(ctx, h, id, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ticker.Rearm(ctx, h, jobs.RearmOptions{Page: 1, Progress: func(jobs.Rearmed) { cancel(gone) }}); !errors.Is(err, gone) || !errors.Is(err, context.Canceled) {
		t.Errorf("O12: Rearm whose context ends on its way: %v", err)
	}
	for name, verb := range map[string]func() error{
		"StartAll": func() error { return ticker.StartAll(ctx, h, []continuous.Start[int]{{ID: "a"}})[0].Err },
		"AddAll":   func() error { return inbox.AddAll(ctx, h, []debounce.Add[int]{{ID: "a"}})[0].Err },
		"Check": func() error {
			for _, err := range greet.Check(ctx, h.Store(), workflow.CheckOptions{}) {
				return err
			}
			return nil
		},
	} {
		if err := verb(); !errors.Is(err, gone) || !errors.Is(err, context.Canceled) {
			t.Errorf("O12: %s with an ended context: %v", name, err)
		}
	}
	if err := h.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
