package workload

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/object"
)

// Idle is a host with objects that hold nothing of the user's.
type Idle struct {
	*Host
	names []string
}

type nothing struct{ st *object.State }

var (
	idle = object.Define("idle", func(_ context.Context, st *object.State) (*nothing, error) { return &nothing{st}, nil })
	poke = object.Handle(idle, "poke", func(*nothing, context.Context, struct{}) (bool, error) { return true, nil })
	keep = object.Handle(idle, "keep", func(n *nothing, ctx context.Context, _ struct{}) (bool, error) {
		return true, n.st.Storage().PutBytes(ctx, "k", []byte("value"))
	})
)

// OpenIdle opens a host with some idle objects, of which at most live are in
// memory.
func OpenIdle(dir string, objects, live int, idleAfter time.Duration) (*Idle, error) {
	h, err := OpenHost(dir, object.Options{MaxLive: live, IdleAfter: idleAfter}, idle)
	if err != nil {
		return nil, err
	}
	return &Idle{h, Names(objects)}, nil
}

// Create makes all objects exist on disk.
func (i *Idle) Create(ctx context.Context) error {
	err := measure.Each(ctx, 256, len(i.names), func(n int) error {
		_, err := keep.Call(ctx, i.Host, i.names[n], struct{}{}, object.Unconfirmed())
		return err
	})
	if err != nil {
		return err
	}
	return i.Durable()
}

// Wake calls each object once.
func (i *Idle) Wake(ctx context.Context) error { return measure.Each(ctx, 16, len(i.names), i.Poke) }

// Poke calls object n modulo their number; the call does nothing.
func (i *Idle) Poke(n int) error {
	_, err := poke.Call(context.Background(), i.Host, i.names[n%len(i.names)], struct{}{})
	return err
}
