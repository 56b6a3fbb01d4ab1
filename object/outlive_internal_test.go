package object

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves O9. A goroutine of a handler begins a block at the very moment at which the handler
// returns: the turn held the object when the block looked, and has no draft any more. The block
// ends with ErrNoTurn and does not take the process down.
func TestBlockAtTheReturnOfItsHandler(t *testing.T) {
	var st *State
	class := Define("thing", func(_ context.Context, s *State) (*State, error) { st = s; return s, nil })
	call := Handle(class, "call", func(s *State, ctx context.Context, _ int) (int, error) { return 0, nil })
	h, err := Open(Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, class)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Call(t.Context(), h, "a", 0); err != nil {
		t.Fatal(err)
	}
	returning := &turn{Context: t.Context(), state: st}
	returning.phase.Store(phaseHolds)
	ran := false
	err = seam.Guard(func() error {
		return st.BlockConcurrencyWhile(returning, func(context.Context) error {
			ran = true
			returning.phase.Store(phaseOver)
			return nil
		})
	}, func(p *seam.PanicError) error { return p })
	if !ran || !errors.Is(err, ErrNoTurn) {
		t.Errorf("O9: the block ran: %t, %v", ran, err)
	}
	if err := h.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
