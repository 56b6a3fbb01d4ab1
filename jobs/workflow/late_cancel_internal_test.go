package workflow

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A Cancel that came when the function had failed already is over with a Retry, which lets the
// function go on. It would cancel the run at once.
func TestRetryAfterALateCancel(t *testing.T) {
	heals := false
	w := New[int, int]("order", Config{Retry: jobs.Retry{MaxAttempts: 1}})
	w.Func(func(c *Context, n int) (int, error) {
		return Step(c, "a", func(context.Context) (int, error) {
			if !heals {
				return 0, errors.New("no")
			}
			return n, nil
		})
	})
	late := object.Handle(w.d.class, "late cancel", func(in *instance, ctx context.Context, _ none) (none, error) {
		r := in.row
		r.Cancel, r.Reason = true, "late" // as Cancel stores it between the return of the function and the end batch
		return none{}, in.put(ctx, r)
	})
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New(), Shards: 1, MinFreeBytes: -1}, Logger: slog.New(slog.DiscardHandler),
	}, w)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := w.Start(t.Context(), host, "1", 7); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Wait(t.Context(), host, "1"); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	if _, err := late.Call(t.Context(), host, "1", none{}); err != nil {
		t.Fatal(err)
	}
	heals = true
	if err := w.Retry(t.Context(), host, "1"); err != nil {
		t.Fatal(err)
	}
	if out, err := w.Wait(t.Context(), host, "1"); err != nil || out != 7 {
		t.Errorf("the run ends with %d, %v", out, err)
	}
	st, err := w.Status(t.Context(), host, "1")
	if err != nil || st.Cancelling || st.CancelReason != "" {
		t.Errorf("%+v, %v", st, err)
	}
}
