package seam

import (
	"context"
	"math/rand/v2"
	"runtime"
)

// goroutines runs each task as a goroutine.
type goroutines struct{}

func (goroutines) Go(_ string, f func()) { go f() }

func (goroutines) Wait(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	default:
	}
	if c, ok := ctx.(*deadlineContext); ok && c.wait(ready) {
		return nil
	}
	ended := ctx.Done()
	if ended == nil { // a receive costs less than a select
		<-ready
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ended:
		return Cause(ctx)
	}
}

// Exit ends the goroutine of the current task, a task of x, by runtime.Goexit: the
// deferred functions run, and no recover stops it. Exit never returns. A simulation takes
// this end for one on purpose, whereas it reports each other runtime.Goexit as a mistake.
// The deferred functions may start tasks and wait as before. In a simulated process that
// has died, Exit panics with Killed, as each call of its seams does.
func Exit(x Executor) {
	if e, ok := x.(Exiter); ok {
		e.Exiting()
	}
	runtime.Goexit()
}

// globalRand is the runtime's own random source.
type globalRand struct{}

func (globalRand) Uint64() uint64 { return rand.Uint64() }
