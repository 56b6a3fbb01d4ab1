package object

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves N5. A host that goes on between the look of a message at the suspension and the pause of its receiver leaves the receiver
// not paused.
func TestHostGoesOnWhileAMessageIsKeptBack(t *testing.T) {
	class := Define("c", func(_ context.Context, st *State) (*State, error) { return st, nil })
	h, err := Open(Options{Logger: slog.New(slog.DiscardHandler), Storage: storage.Options{Engine: memstore.New(), Shards: 1}}, class)
	if err != nil {
		t.Fatal(err)
	}
	h.suspension = &suspension{host: h}
	h.suspension.off.Store(true)
	m := &message{host: h, Message: inbox.Message{MessageID: storage.MessageID{To: storage.ID{Class: "c", Name: "a"}, Seq: 1}}}
	h.mail.boxes.Arrive(&m.Message)

	h.suspension.mu.Lock()
	was := make(chan bool)
	go func() { was <- m.deferred() }()
	for paused := 0; paused == 0; _, _, paused = h.mail.boxes.Sum() {
		runtime.Gosched()
	}
	h.suspension.off.Store(false)
	h.suspension.mu.Unlock()
	if !<-was || m.outcome != kept {
		t.Error("the message is not kept")
	}
	if _, _, paused := h.mail.boxes.Sum(); paused != 0 {
		t.Error("its receiver stays paused")
	}
	h.suspension = nil
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
