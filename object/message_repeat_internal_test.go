package object

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves M2: a retry that is delivered twice, while its object is busy, is handled once. The
// second delivery neither runs the handler nor counts an attempt, whatever the first did.
func TestRetryThatIsDeliveredTwice(t *testing.T) {
	for _, fails := range []int{1, 2} {
		t.Run(fmt.Sprint(fails, " failures"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { retryTwice(t, fails) })
		})
	}
}

func retryTwice(t *testing.T, fails int) {
	var runs atomic.Int32
	gate := make(chan struct{})
	class := Define("c", func(_ context.Context, st *State) (*State, error) { return st, nil })
	get := Handle(class, "get", func(*State, context.Context, int) (int, error) {
		if int(runs.Add(1)) <= fails {
			return 0, errors.New("on purpose")
		}
		return 0, nil
	})
	send := Handle(class, "send", func(st *State, ctx context.Context, to string) (int, error) { return 0, get.Send(ctx, st, to, 1) })
	hold := Handle(class, "hold", func(*State, context.Context, int) (int, error) { <-gate; return 0, nil })
	h, err := Open(Options{Logger: slog.New(slog.DiscardHandler), Storage: storage.Options{Engine: memstore.New(), Shards: 1}}, class)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := send.Call(ctx, h, "a", "b"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	later, err := h.store.ScanLater(0, 0, 0, 10)
	if err != nil || len(later) != 1 {
		t.Fatalf("%d messages wait for another attempt, %v", len(later), err)
	}
	go func() { _, _ = hold.Call(ctx, h, "b", 1) }()
	synctest.Wait()
	time.Sleep(time.Until(time.Unix(0, later[0].Due))) // now the scheduler delivers it
	synctest.Wait()
	h.mail.resend(laterEntry(later[0].MessageID, later[0].Due))
	close(gate)
	synctest.Wait()
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times before the next attempt, want 2", n)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	if n := int(runs.Load()); n != fails+1 {
		t.Errorf("the handler ran %d times, want %d", n, fails+1)
	}
	if err := h.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
