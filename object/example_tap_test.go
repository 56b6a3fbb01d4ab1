package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

type Oven struct{ st *object.State }

var (
	Ovens = object.Define("oven", func(ctx context.Context, st *object.State) (*Oven, error) { return &Oven{st}, nil })

	Heat = object.Handle(Ovens, "heat", func(o *Oven, ctx context.Context, degrees int) (struct{}, error) {
		return struct{}{}, o.st.Emit(ctx, "heated", degrees)
	})
)

// A screen shows each change of all ovens. Now and then it does something else, for example
// it tells its browser that it is still there. When it comes back after a break it goes on where
// it was, or learns that it must read the present state first.
func ExampleHost_Tap() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, Ovens)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	tap, err := host.Tap(object.TapOptions{Class: "oven"})
	if err != nil {
		log.Fatal(err)
	}
	for i, oven := range []string{"left", "right"} {
		if _, err := Heat.Call(ctx, host, oven, 180+20*i); err != nil {
			log.Fatal(err)
		}
	}
	for shown := 0; shown < 2; {
		wait, cancel := context.WithTimeout(ctx, 15*time.Second)
		events, err := tap.Next(wait)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			log.Print("still there")
		case err != nil:
			log.Fatal(err)
		}
		for _, e := range events {
			fmt.Println(e.ID, e.Kind, string(e.Data))
			shown++
		}
	}
	place := tap.Cursor()
	tap.Close()

	// The break is over.
	tap, err = host.Tap(object.TapOptions{Class: "oven", After: place})
	if err != nil {
		log.Fatal(err)
	}
	defer tap.Close()
	if _, err := Heat.Call(ctx, host, "left", 0); err != nil {
		log.Fatal(err)
	}
	events, err := tap.Next(ctx)
	fmt.Println(events[0].ID, events[0].Kind, string(events[0].Data), err)
	// Output:
	// oven/left heated 180
	// oven/right heated 200
	// oven/left heated 0 <nil>
}
