package seam

import (
	"context"
	"math/rand/v2"
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

// globalRand is the runtime's own random source.
type globalRand struct{}

func (globalRand) Uint64() uint64 { return rand.Uint64() }
