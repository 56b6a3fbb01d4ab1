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

// Lamp is an object of these examples.
type Lamp struct{ st *object.State }

// lamps is a class with one method, which runs fn.
func lamps(fn func(l *Lamp, ctx context.Context) error) (*object.Class[Lamp], *object.Method[struct{}, struct{}]) {
	class := object.Define("lamp", func(_ context.Context, st *object.State) (*Lamp, error) { return &Lamp{st}, nil })
	return class, object.Handle(class, "do", func(l *Lamp, ctx context.Context, _ struct{}) (struct{}, error) {
		return struct{}{}, fn(l, ctx)
	})
}

// serve opens a host over a store in memory. Programs name a directory:
// object.Options{Dir: "data"}. Each file of examples has all that its examples use,
// because pkg.go.dev shows no other.
func serve(defs ...object.Definition) *object.Host {
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New()},
		Logger:  slog.New(slog.DiscardHandler),
	}, defs...)
	if err != nil {
		log.Fatal(err)
	}
	return host
}

// end shuts a host down. A program gives Shutdown a context with a limit, because it
// waits for all that runs.
func end(host *object.Host) {
	if err := host.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// A handler that fails leaves no trace; its error arrives unchanged.
func ExampleMethod_Call_error() {
	ctx := context.Background()
	full := errors.New("the lamp is broken")
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		if err := l.st.Storage().Put(ctx, "k", 1); err != nil {
			return err
		}
		return full
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	in, failed := host.Inspect(ctx, class.ID("a"))
	if failed != nil {
		log.Fatal(failed)
	}
	fmt.Println(errors.Is(err, full), in.Exists)
	// Output: true false
}

// Release lets other turns in while slow work is done outside.
func ExampleState_Release() {
	ctx := context.Background()
	var do *object.Method[struct{}, struct{}]
	var host *object.Host
	first := true
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		if !first {
			fmt.Println("another turn")
			return nil
		}
		first = false
		return l.st.Release(ctx, func(ctx context.Context) error {
			_, err := do.Call(ctx, host, "a", struct{}{}) // would be a deadlock otherwise
			return err
		})
	})
	host = serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	fmt.Println(err)
	// Output:
	// another turn
	// <nil>
}

// Await lets other turns in until one of them tells the handler to go on: of two
// calls the first waits for the second.
func ExampleState_Await() {
	ctx := context.Background()
	arrived, both := false, make(chan struct{})
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		if arrived {
			close(both)
			return nil
		}
		arrived = true
		return l.st.Await(ctx, both)
	})
	host := serve(class)
	defer end(host)
	other := make(chan error)
	go func() {
		_, err := do.Call(ctx, host, "a", struct{}{})
		other <- err
	}()
	_, err := do.Call(ctx, host, "a", struct{}{})
	fmt.Println(err, <-other)
	// Output: <nil> <nil>
}

// Work begins when its turn is durable, runs beside the turns, and touches the
// object through Do.
func ExampleState_Go() {
	ctx := context.Background()
	done := make(chan error)
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		return l.st.Go(ctx, "measure", func(ctx context.Context) {
			length := 42 // slow, and not in a turn
			done <- l.st.Do(ctx, func(ctx context.Context) error {
				return l.st.Storage().Put(ctx, "length", length)
			})
		})
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	fmt.Println(err, <-done)
	page, failed := host.Keys(ctx, class.ID("a"), object.KeysOptions{Values: true})
	if failed != nil {
		log.Fatal(failed)
	}
	fmt.Printf("%s\n", page.Keys[0].Value)
	// Output:
	// <nil> <nil>
	// 42
}

// Work that has been started as a Routine can be cancelled by itself.
func ExampleDriver_Start() {
	ctx := context.Background()
	w, done := new(object.Routine), make(chan error)
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		return l.st.Driver().Start(ctx, w, "watch", func(ctx context.Context) {
			<-ctx.Done()
			done <- context.Cause(ctx)
		})
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	w.Cancel(errors.New("seen enough"))
	fmt.Println(err, <-done)
	// Output: <nil> seen enough
}

// An error in a block resets the activation: the next call constructs again.
func ExampleState_BlockConcurrencyWhile() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		return l.st.BlockConcurrencyWhile(ctx, func(context.Context) error {
			return errors.New("the lamp is broken")
		})
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	fmt.Println(err)
	// Output: the lamp is broken
}

// A State tells its object's name, the reason of its activation, the number of the
// opening, and whether the host shuts down.
func ExampleState() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		fmt.Println(l.st.ID(), l.st.Name(), l.st.Activation().Reason, l.st.Driver().Epoch(), l.st.Driver().EndedInOrder(1), l.st.Closing())
		return nil
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	fmt.Println(err)
	// Output:
	// lamp/a a fresh 1 false false
	// <nil>
}

// An open execution is found by the next process, which activates the object.
func ExampleDriver_OpenExecution() {
	ctx := context.Background()
	open := true
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		if open {
			return l.st.Driver().OpenExecution(ctx, []byte("what is under way"))
		}
		return l.st.Driver().CloseExecution(ctx)
	})
	host := serve(class)
	defer end(host)
	for _, open = range []bool{true, false} {
		if _, err := do.Call(ctx, host, "a", struct{}{}); err != nil {
			log.Fatal(err)
		}
		in, err := host.Inspect(ctx, class.ID("a"))
		fmt.Println(in.Execution, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// Recoveries is the report of lost executions and of their recovery.
func ExampleHost_Recoveries() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		return l.st.Driver().Recovered(ctx, object.Recovery{Cause: "process died", Attempt: 1, Action: "runs again"})
	})
	host := serve(class)
	defer end(host)
	if _, err := do.Call(ctx, host, "a", struct{}{}); err != nil {
		log.Fatal(err)
	}
	lines, total := host.Recoveries()
	fmt.Println(total, lines[0].ID, lines[0].Cause, lines[0].Action)
	// Output: 1 lamp/a process died runs again
}

// NextSequence makes names that are unique in the store, and in order.
func ExampleDriver_NextSequence() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		first, second := l.st.Driver().NextSequence(), l.st.Driver().NextSequence()
		fmt.Println(first < second)
		return nil
	})
	host := serve(class)
	defer end(host)
	if _, err := do.Call(ctx, host, "a", struct{}{}); err != nil {
		log.Fatal(err)
	}
	// Output: true
}

// A purge removes the object with the turn; events that the turn emits stay.
func ExampleDriver_Purge() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		return errors.Join(l.st.Storage().Put(ctx, "k", 1), l.st.Emit(ctx, "closed", "for good"), l.st.Driver().Purge(ctx))
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	in, failed := host.Inspect(ctx, class.ID("a"))
	if failed != nil {
		log.Fatal(failed)
	}
	events, failed := host.Events(ctx, class.ID("a"), 0, 10)
	if failed != nil {
		log.Fatal(failed)
	}
	fmt.Println(err, in.Exists, len(events))
	// Output: <nil> false 1
}

// A job type shows the tasks of an object in the host's metrics. Its constructor asks for
// the Backlog, and each turn that changes the tasks sets it.
func ExampleDriver_Backlog() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, _ context.Context) error {
		b := l.st.Driver().Backlog()
		b.Set(object.Tasks{Pending: 2, Running: 1})
		b.Waited(time.Second)
		b.Ran(time.Minute)
		return nil
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})

	registry := prometheus.NewRegistry()
	registry.MustRegister(host.Collector())
	families, failed := registry.Gather()
	if failed != nil {
		log.Fatal(failed)
	}
	for _, f := range families {
		if f.GetName() == "holdfast_tasks_pending" {
			fmt.Println(f.GetMetric()[0].GetGauge().GetValue(), err)
		}
	}
	// Output: 2 <nil>
}

// A job type asks for the suspicion against an execution before it starts its work.
func ExampleDriver_StartSuspect() {
	ctx, ended := context.Background(), make(chan struct{})
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		var w object.Routine
		run := func(context.Context) { close(ended) }
		const cuts, epoch = 2, 1 // crashes in a row have cut run 7 off, the last by the end of opening 1
		if l.st.Driver().Suspicion("run 7").Held(cuts, epoch) {
			return l.st.Driver().StartSuspect(ctx, &w, "run 7", "work", run)
		}
		return l.st.Driver().Start(ctx, &w, "work", run)
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(ctx, host, "a", struct{}{})
	<-ended
	fmt.Println(err)
	// Output: <nil>
}

// Events are stored with the change they tell of, and read from a cursor.
func ExampleState_Emit() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		return errors.Join(l.st.Emit(ctx, "switched", "on"), l.st.Emit(ctx, "switched", "off"))
	})
	host := serve(class)
	defer end(host)
	if _, err := do.Call(ctx, host, "a", struct{}{}); err != nil {
		log.Fatal(err)
	}

	first, err := host.Events(ctx, class.ID("a"), 0, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s\n", first[0].Kind, first[0].Data)
	for e, err := range host.Watch(ctx, class.ID("a"), first[0].Seq) {
		fmt.Printf("%s %s %v\n", e.Kind, e.Data, err)
		break // else it waits for more
	}
	// Output:
	// switched "on"
	// switched "off" <nil>
}

// An event that others need for longer than the rest has a time of its own.
func ExampleKeepFor() {
	ctx := context.Background()
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		return l.st.Emit(ctx, "broken", "the bulb", object.KeepFor(90*24*time.Hour))
	})
	host := serve(class)
	defer end(host)
	if _, err := do.Call(ctx, host, "a", struct{}{}); err != nil {
		log.Fatal(err)
	}
	events, err := host.Events(ctx, class.ID("a"), 0, 1)
	fmt.Println(events[0].Kind, err)
	// Output: broken <nil>
}

// A handler has an end of its own, which is not that of its caller.
func ExampleHandlerTimeout() {
	class, do := lamps(func(l *Lamp, ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	host := serve(class)
	defer end(host)
	_, err := do.Call(context.Background(), host, "a", struct{}{}, object.Detached(), object.HandlerTimeout(time.Millisecond))
	fmt.Println(errors.Is(err, object.ErrTimeout))
	// Output: true
}
