package object_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O4: a block that ends after its limit fails with ErrTimeout, for any result of
// its function. A block that ends in time does not.
func TestBlockBeyondItsLimit(t *testing.T) {
	for took, late := range map[time.Duration]bool{time.Second - 1: false, time.Second + 1: true} {
		for _, result := range []error{nil, errors.New("boom")} {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, object.ClassOptions{BlockLimit: time.Second}).open()
				defer f.end()
				f.must("a", nothing)
				var blocked error
				_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
					blocked = th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { time.Sleep(took); return result })
					return nil, blocked
				})
				switch {
				case late && (!errors.Is(blocked, object.ErrTimeout) || !errors.Is(blocked, object.ErrConstructor) || errors.Is(blocked, result) && result != nil || err == nil):
					t.Errorf("O4: after %v with %v the block says %v, the call %v", took, result, blocked, err)
				case !late && (blocked != result || err != result):
					t.Errorf("O4: after %v with %v the block says %v, the call %v", took, result, blocked, err)
				}
				f.must("a", nothing)
			})
		}
	}
}

// Proves O4: the context of a block ends at its limit, and says so.
func TestContextOfABlockEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{BlockLimit: time.Second}).open()
		defer f.end()
		f.must("a", nothing)
		began := time.Now()
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, object.ErrTimeout) || time.Since(began) != time.Second {
					t.Errorf("O4: after %v the context ends with %v", time.Since(began), cause)
				}
				return ctx.Err()
			})
		})
		if !errors.Is(err, object.ErrTimeout) {
			t.Errorf("O4: the call says %v", err)
		}
	})
}

// Proves O4, O15: a block returns ErrReset if its object is deleted meanwhile.
func TestBlockOfADeletedObject(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", put("k", "v"))
	_, _ = f.call("a", func(th *thing, ctx context.Context) (any, error) {
		err := th.st.BlockConcurrencyWhile(ctx, func(context.Context) error {
			done := make(chan error)
			go func() { done <- f.host.Delete(context.Background(), f.id("a")) }()
			return <-done
		})
		if !errors.Is(err, object.ErrReset) {
			t.Errorf("O15: the block says %v", err)
		}
		return nil, err
	})
}
