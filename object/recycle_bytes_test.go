package object_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// memo is an argument that leads to memory of its own.
type memo struct {
	Text  string
	Lines []int
	Wait  time.Duration
}

// Calls by name share no memory with each other: not with one that its caller has left and that still runs, and not by a context that was kept
// beyond its turn.
//
// Proves O11, O12, S1.
func TestCallsByNameShareNoMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var kept context.Context
		class := object.Define("notes", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
		object.Handle(class, "write", func(st *object.State, ctx context.Context, n memo) (memo, error) {
			if n.Wait > 0 {
				time.Sleep(n.Wait)
				return n, st.Storage().Put(ctx, "n", n)
			}
			if kept != nil {
				if err := st.Storage().PutBytes(kept, "k", nil); !errors.Is(err, object.ErrNoTurn) {
					t.Errorf("writing with a kept context: %v", err)
				}
			}
			kept = ctx
			return n, st.Storage().Put(ctx, "n", n)
		})
		host, err := object.Open(object.Options{Logger: slog.New(slog.DiscardHandler), Storage: storage.Options{Engine: memstore.New()}}, class)
		if err != nil {
			t.Fatal(err)
		}
		write := func(ctx context.Context, name, text string, i int, wait time.Duration, opts ...object.CallOption) {
			arg := fmt.Sprintf(`{"Text":%q,"Lines":[%d,%d],"Wait":%d}`, text, i, i+1, wait)
			b, err := host.CallBytes(ctx, "notes", name, "write", []byte(arg), opts...)
			if wait == 0 && (err != nil || string(b) != arg) {
				t.Errorf("%s answers %s, %v", arg, b, err)
			}
			if wait > 0 && !errors.Is(err, object.ErrUnknown) {
				t.Errorf("the caller has not left: %v", err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		write(ctx, "slow", "slow", 7, time.Minute, object.Detached())
		for i := range 100 {
			write(context.Background(), "quick", strconv.Itoa(i), i, 0)
		}
		time.Sleep(time.Minute)
		page, err := host.Keys(context.Background(), storage.ID{Class: "notes", Name: "slow"}, object.KeysOptions{Values: true})
		if want := `{"Text":"slow","Lines":[7,8],"Wait":60000000000}`; err != nil || len(page.Keys) != 1 || string(page.Keys[0].Value) != want {
			t.Errorf("O11: the call that was left has stored %v, %v; want %s", page.Keys, err, want)
		}
		if err := host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
