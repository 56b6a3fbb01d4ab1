package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Counter is an object that keeps a number.
type Counter struct {
	st *object.State
	n  int
}

// NewCounter makes a counter in memory from its stored rows.
func NewCounter(ctx context.Context, st *object.State) (*Counter, error) {
	c := &Counter{st: st}
	_, err := st.Storage().GetInto(ctx, "n", &c.n)
	return c, err
}

// Add is a turn: it stores the new number and returns it.
func (c *Counter) Add(ctx context.Context, by int) (int, error) {
	c.n += by
	return c.n, c.st.Storage().Put(ctx, "n", c.n)
}

var (
	Counters = object.Define("counter", NewCounter)
	Add      = object.Handle(Counters, "add", (*Counter).Add)
)

// memory is a host over a store in memory, for examples. Programs name a directory:
// object.Options{Dir: "data"}.
func memory(defs ...object.Definition) *object.Host {
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New()},
		Logger:  slog.New(slog.DiscardHandler),
	}, defs...)
	if err != nil {
		log.Fatal(err)
	}
	return host
}

// leave shuts a host down. A program gives Shutdown a context with a limit, because it
// waits for all that runs.
func leave(host *object.Host) {
	if err := host.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// A class has a name, a constructor and handlers; a host runs its objects.
func Example() {
	ctx := context.Background()
	host := memory(Counters)
	defer leave(host)

	fmt.Println(Add.Call(ctx, host, "visits", 1))
	fmt.Println(Add.Call(ctx, host, "visits", 2))
	fmt.Println(Add.Call(ctx, host, "other", 5))
	// Output:
	// 1 <nil>
	// 3 <nil>
	// 5 <nil>
}

// Mistakes in definitions are errors of Open.
func ExampleOpen() {
	broken := object.Define("bad/name", NewCounter)
	object.Handle(broken, "", (*Counter).Add)
	_, err := object.Open(object.Options{Dir: "data"}, broken)
	fmt.Println(err)
	// Output: object: class "bad/name": class name "bad/name" holds NUL or a slash
	// object: class "bad/name": a method has no name
}

// A call with a key runs once, however often it is sent.
func ExampleIdempotent() {
	ctx := context.Background()
	host := memory(Counters)
	defer leave(host)

	for range 3 {
		fmt.Println(Add.Call(ctx, host, "visits", 1, object.Idempotent("request-17", time.Hour)))
	}
	// Output:
	// 1 <nil>
	// 1 <nil>
	// 1 <nil>
}

// An unconfirmed call does not wait for the disk. Sync, or any later call that
// is confirmed, makes it durable.
func ExampleUnconfirmed() {
	ctx := context.Background()
	host := memory(Counters)
	defer leave(host)

	if _, err := Add.Call(ctx, host, "visits", 1, object.Unconfirmed()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Add.Call(ctx, host, "visits", 1))
	// Output: 2 <nil>
}

// A server calls methods by name, with arguments in the host's codec.
func ExampleHost_CallBytes() {
	ctx := context.Background()
	host := memory(Counters)
	defer leave(host)

	answer, err := host.CallBytes(ctx, "counter", "visits", "add", []byte("41"))
	fmt.Printf("%s %v\n", answer, err)
	_, err = host.CallBytes(ctx, "counter", "visits", "subtract", nil)
	fmt.Println(err)
	// Output:
	// 41 <nil>
	// counter/visits: object: class has no such method: "subtract"
}

// Shutdown lets running turns end, and refuses later calls.
func ExampleHost_Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	host := memory(Counters)

	fmt.Println(host.Shutdown(ctx))
	<-host.Done()
	_, err := Add.Call(ctx, host, "visits", 1)
	fmt.Println(err)
	fmt.Println(host.Err())
	// Output:
	// <nil>
	// counter/visits: object: host is shut down
	// object: host is shut down
}

// Retryable tells whether the same call may be sent again.
func ExampleRetryable() {
	fmt.Println(object.Retryable(object.ErrOverloaded), object.Retryable(object.ErrStorage))
	// Output: true false
}

// Untouched tells whether a call by name has stored anything.
func ExampleUntouched() {
	ctx := context.Background()
	host := memory(Counters)
	defer leave(host)
	_, err := host.CallBytes(ctx, "counter", "a", "fly", nil)
	fmt.Println(object.Untouched(err), errors.Is(err, object.ErrUnknownMethod))
	// Output: true true
}

// A program can look at stored objects and delete them from outside; no user code runs.
func ExampleHost_Objects() {
	ctx := context.Background()
	host := memory(Counters)
	defer leave(host)
	for _, name := range []string{"a", "b"} {
		if _, err := Add.Call(ctx, host, name, 7); err != nil {
			log.Fatal(err)
		}
	}

	infos, err := host.Objects(ctx, "counter", object.ObjectsOptions{Limit: 10})
	fmt.Println(len(infos), err)
	in, err := host.Inspect(ctx, Counters.ID("a"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(in.Keys[0].Key, "has", in.Keys[0].SizeBytes, "byte")
	fmt.Println(host.Delete(ctx, Counters.ID("a")))
	in, err = host.Inspect(ctx, Counters.ID("a"))
	fmt.Println(in.Exists, err)
	parked, err := host.Parked()
	fmt.Println(parked, err)
	// Output:
	// 2 <nil>
	// n has 1 byte
	// <nil>
	// false <nil>
	// [] <nil>
}

// Wake activates an object anew, so that its constructor reads the stored rows.
func ExampleHost_Wake() {
	ctx := context.Background()
	class := object.Define("lamp", func(ctx context.Context, st *object.State) (*Counter, error) {
		fmt.Println("awake:", st.Activation().Reason)
		return NewCounter(ctx, st)
	})
	host := memory(class)
	defer leave(host)

	fmt.Println(host.Wake(ctx, class.ID(host.NewName())))
	// Output:
	// awake: fresh
	// <nil>
}

// The host's metrics go where the program's go.
func ExampleHost_Collector() {
	ctx := context.Background()
	host := memory(Counters)
	defer leave(host)
	if _, err := Add.Call(ctx, host, "a", 1); err != nil {
		log.Fatal(err)
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(host.Collector())
	families, err := registry.Gather()
	for _, f := range families {
		if f.GetName() == "holdfast_objects_live" {
			fmt.Println(f.GetMetric()[0].GetGauge().GetValue(), err)
		}
	}
	// Output: 1 <nil>
}
