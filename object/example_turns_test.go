package object_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/object"
)

// From inside an object the caller is its State; what it replies then waits for
// what it was told.
func ExampleMethod_Call() {
	ctx := context.Background()
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		n, err := Add.Call(ctx, s.st, "shelves", 1)
		fmt.Println(n)
		return err
	})
	host := memory(class, Counters)
	defer host.Shutdown(ctx)
	_, err := do.Call(ctx, host, "a", struct{}{})
	fmt.Println(err)
	// Output:
	// 1
	// <nil>
}

// A handler that fails leaves no trace; its error arrives unchanged.
func ExampleMethod_Call_error() {
	ctx := context.Background()
	full := errors.New("shelf is full")
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		if err := s.st.Storage().Put(ctx, "k", 1); err != nil {
			return err
		}
		return full
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	_, err := do.Call(ctx, host, "a", struct{}{})
	in, _ := host.Inspect(ctx, class.ID("a"))
	fmt.Println(errors.Is(err, full), in.Exists)
	// Output: true false
}

// Release lets other turns in while slow work is done outside.
func ExampleState_Release() {
	ctx := context.Background()
	var do *object.Method[struct{}, struct{}]
	var host *object.Host
	first := true
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		if !first {
			fmt.Println("another turn")
			return nil
		}
		first = false
		return s.st.Release(ctx, func(ctx context.Context) error {
			_, err := do.Call(ctx, host, "a", struct{}{}) // would be a deadlock otherwise
			return err
		})
	})
	host = memory(class)
	defer host.Shutdown(ctx)
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
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		if arrived {
			close(both)
			return nil
		}
		arrived = true
		return s.st.Await(ctx, both)
	})
	host := memory(class)
	defer host.Shutdown(ctx)
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
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		return s.st.Go(ctx, "measure", func(ctx context.Context) {
			length := 42 // slow, and not in a turn
			done <- s.st.Do(ctx, func(ctx context.Context) error {
				return s.st.Storage().Put(ctx, "length", length)
			})
		})
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	_, err := do.Call(ctx, host, "a", struct{}{})
	fmt.Println(err, <-done)
	in, _ := host.Inspect(ctx, class.ID("a"))
	fmt.Printf("%s\n", in.Keys[0].Value)
	// Output:
	// <nil> <nil>
	// 42
}

// A work that has been started as a Work can be cancelled by itself.
func ExampleState_Start() {
	ctx := context.Background()
	w, done := new(object.Work), make(chan error)
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		return s.st.Start(ctx, w, "watch", func(ctx context.Context) {
			<-ctx.Done()
			done <- context.Cause(ctx)
		})
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	_, err := do.Call(ctx, host, "a", struct{}{})
	w.Cancel(errors.New("seen enough"))
	fmt.Println(err, <-done)
	// Output: <nil> seen enough
}

// What fails in a block resets the activation: the next call constructs again.
func ExampleState_BlockConcurrencyWhile() {
	once(func(s *Shelf, ctx context.Context) error {
		return s.st.BlockConcurrencyWhile(ctx, func(context.Context) error {
			return errors.New("the lamp is broken")
		})
	})
	// Output: error: the lamp is broken
}

// A constructor learns why it runs, and a turn who and when it is.
func ExampleState() {
	once(func(s *Shelf, ctx context.Context) error {
		fmt.Println(s.st.ID(), s.st.Name(), s.st.Activation().Reason, s.st.Epoch(), s.st.EndedInOrder(1), s.st.Closing())
		return nil
	})
	// Output: shelf/a a fresh 1 false false
}

// An open execution is found by the next process, which activates the object.
func ExampleState_OpenExecution() {
	ctx := context.Background()
	open := true
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		if open {
			return s.st.OpenExecution(ctx, []byte("what is under way"))
		}
		return s.st.CloseExecution(ctx)
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	for _, open = range []bool{true, false} {
		do.Call(ctx, host, "a", struct{}{})
		in, err := host.Inspect(ctx, class.ID("a"))
		fmt.Println(in.Execution, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// Recoveries is the report of what was found and done.
func ExampleHost_Recoveries() {
	ctx := context.Background()
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		return s.st.Recovered(ctx, object.Recovery{Cause: "process died", Attempt: 1, Action: "runs again"})
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	do.Call(ctx, host, "a", struct{}{})
	lines, total := host.Recoveries()
	fmt.Println(total, lines[0].ID, lines[0].Cause, lines[0].Action)
	// Output: 1 shelf/a process died runs again
}

// NextSequence makes names that are unique in the store, and in order.
func ExampleState_NextSequence() {
	ctx := context.Background()
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		first, second := s.st.NextSequence(), s.st.NextSequence()
		fmt.Println(first < second)
		return nil
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	do.Call(ctx, host, "a", struct{}{})
	// Output: true
}
