package seam_test

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast/seam"
)

// An exit runs the deferred functions, which may wait, and no recover stops it.
func TestExit(t *testing.T) {
	x := seam.Seams{}.WithDefaults().Executor
	ended, closed := make(chan struct{}), make(chan struct{})
	close(closed)
	var deferred []string
	x.Go("leaver", func() {
		defer close(ended)
		func() {
			defer func() { deferred = append(deferred, "outer") }()
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("recovered %v", v)
				}
				if err := x.Wait(context.Background(), closed); err != nil {
					t.Errorf("a wait in a deferred function: %v", err)
				}
				deferred = append(deferred, "inner")
			}()
			seam.Exit(x)
		}()
		t.Error("the goroutine has gone on")
	})
	<-ended
	if len(deferred) != 2 || deferred[0] != "inner" || deferred[1] != "outer" {
		t.Errorf("deferred functions that ran: %q", deferred)
	}
}

// told is an Executor that counts the exits that it is told of.
type told struct {
	seam.Executor
	exits int
}

func (x *told) Exiting() { x.exits++ }

// An Executor that wants to know of the exit is told once, before the deferred functions run.
func TestExitTellsTheExecutor(t *testing.T) {
	x := &told{Executor: seam.Seams{}.WithDefaults().Executor}
	first := make(chan int)
	x.Go("leaver", func() {
		defer func() { first <- x.exits }()
		seam.Exit(x)
	})
	if n := <-first; n != 1 {
		t.Errorf("told of %d exits when the deferred function ran, want 1", n)
	}
}
