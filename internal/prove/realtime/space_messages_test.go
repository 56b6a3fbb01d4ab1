package realtime

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/object"
)

// A full disk refuses the turn of a sender. Messages that were sent before wait for space,
// in their order, and lose no attempt. Proves O17, M1, M3.
func TestMessagesOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fulldisk.New()
		var got []int
		var gate atomic.Bool
		gate.Store(true)
		class := object.Define("box", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
		get := object.Handle(class, "get", func(st *object.State, ctx context.Context, n int) (int, error) {
			got = append(got, n)
			if gate.Load() {
				if err := st.Release(ctx, func(context.Context) error { time.Sleep(10 * time.Second); return nil }); err != nil {
					return 0, err
				}
			}
			return 0, st.Storage().Put(ctx, "n", n)
		})
		send := object.Handle(class, "send", func(st *object.State, ctx context.Context, n int) (int, error) {
			return 0, get.Send(ctx, st, "b", n)
		})
		h, err := openOn(d, class)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if _, err := send.Call(ctx, h, "a", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // the handler of 1 is under way
		gate.Store(false)
		d.SetFull(true)
		if _, err := send.Call(ctx, h, "a", 2); !errors.Is(err, object.ErrNoSpace) {
			t.Errorf("a turn that sends on a full disk: %v", err)
		}
		time.Sleep(time.Minute) // 1 cannot be removed, again and again
		synctest.Wait()
		if len(got) < 3 || got[len(got)-1] != 1 {
			t.Errorf("%v came while the disk was full, want 1 again and again", got)
		}
		in, err := h.Inspect(ctx, class.ID("b"))
		if err != nil || len(in.Messages) != 1 || in.Messages[0].Attempts != 0 || in.Paused == "" {
			t.Errorf("the receiver is %+v, %v", in, err)
		}
		d.SetFull(false)
		time.Sleep(200 * time.Millisecond)
		if _, err := send.Call(ctx, h, "a", 3); err != nil {
			t.Errorf("a turn that sends when there is space: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(got); n < 2 || got[n-2] != 1 || got[n-1] != 3 {
			t.Errorf("%v came in all, want 1 and 3 at the end", got)
		}
		if in, err := h.Inspect(ctx, class.ID("b")); err != nil || len(in.Messages) != 0 || len(in.DeadLetters) != 0 {
			t.Errorf("the receiver is %+v at the end, %v", in, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}
