package object_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// noted is an object with one mark.
type noted struct{ st *object.State }

// A Reader reads a mark with its time, and tells of none that is not there.
func TestReaderReadsAMark(t *testing.T) {
	bubble(t, func(t *testing.T) {
		class := object.Define("noted", func(_ context.Context, st *object.State) (*noted, error) { return &noted{st}, nil })
		note := object.Handle(class, "note", func(n *noted, ctx context.Context, key string) (bool, error) {
			return true, n.st.Mark(ctx, key, []byte("yes"), time.Hour)
		})
		mem := memstore.New()
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem}}, class)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := note.Call(t.Context(), h, "a", "seen"); err != nil {
			t.Fatal(err)
		}
		r := object.NewReader(h.Store())
		value, expires, ok, err := r.Mark(t.Context(), class.ID("a"), "seen")
		if string(value) != "yes" || !ok || err != nil || expires.Before(began.Add(time.Hour)) || expires.After(time.Now().Add(time.Hour)) {
			t.Errorf("%q until %v, %v, %v", value, expires, ok, err)
		}
		for _, c := range []struct{ name, key string }{{"a", "other"}, {"b", "seen"}} {
			if value, _, ok, err := r.Mark(t.Context(), class.ID(c.name), c.key); value != nil || ok || err != nil {
				t.Errorf("%s, %s: %q, %v, %v", c.name, c.key, value, ok, err)
			}
		}
		if _, _, _, err := r.Mark(t.Context(), class.ID(""), "seen"); !errors.Is(err, object.ErrBadName) {
			t.Errorf("no name: %v", err)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
