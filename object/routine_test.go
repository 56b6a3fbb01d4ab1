package object_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/object"
)

var errEnough = errors.New("enough")

// Proves O9: a work that is cancelled, before it begins or while it runs, gets the cause
// from its context and from contexts made of it. No other work is cancelled.
func TestWorkIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		early, late, other := new(object.Routine), new(object.Routine), new(object.Routine)
		told, end := make(chan error), make(chan struct{})
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			early.Cancel(errEnough)
			return nil, errors.Join(
				th.st.Driver().Start(ctx, early, "early", func(ctx context.Context) {
					if ctx.Err() != context.Canceled {
						t.Errorf("cancelled before it began: %v", ctx.Err())
					}
					told <- context.Cause(ctx)
				}),
				th.st.Driver().Start(ctx, late, "late", func(ctx context.Context) {
					child, stop := context.WithCancel(ctx)
					defer stop()
					<-child.Done()
					told <- context.Cause(child)
				}),
				th.st.Driver().Start(ctx, other, "other", func(ctx context.Context) {
					<-end
					told <- ctx.Err()
				}),
			)
		})
		if err := <-told; err != errEnough {
			t.Errorf("cancelled before it began: %v", err)
		}
		synctest.Wait()
		late.Cancel(errEnough)
		late.Cancel(errors.New("too late"))
		if err := <-told; err != errEnough || late.CutOff() {
			t.Errorf("cancelled while it runs: %v, cut off %v", err, late.CutOff())
		}
		close(end)
		if err := <-told; err != nil {
			t.Errorf("not cancelled: %v", err)
		}
	})
}

// Proves O9: the context of a work ends with the activation, even if Done is first called
// after that, and with the work.
func TestContextOfAWorkEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var kept, life context.Context
		w, reset, told := new(object.Routine), make(chan struct{}), make(chan error)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			if err := th.st.Go(ctx, "short", func(ctx context.Context) { kept = ctx }); err != nil {
				return nil, err
			}
			return nil, th.st.Driver().Start(ctx, w, "long", func(ctx context.Context) {
				var release func()
				life, release = th.st.Driver().Context()
				defer release()
				<-reset
				if ctx.Err() == nil || !w.CutOff() || life.Err() == nil {
					t.Errorf("after the reset: %v, cut off %v, %v", ctx.Err(), w.CutOff(), life.Err())
				}
				told <- context.Cause(ctx)
				told <- context.Cause(life)
			})
		})
		synctest.Wait()
		if <-kept.Done(); context.Cause(kept) != context.Canceled {
			t.Errorf("the work has returned: %v", context.Cause(kept))
		}
		if life.Err() != nil {
			t.Errorf("the activation lives: %v", life.Err())
		}
		f.call("a", func(*thing, context.Context) (any, error) { panic("reset") })
		close(reset)
		for range 2 {
			if err := <-told; !errors.Is(err, object.ErrReset) {
				t.Errorf("the activation has ended: %v", err)
			}
		}
	})
}

// A Routine is started only once.
func TestWorkIsStartedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		w, runs := new(object.Routine), 0
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			first := th.st.Driver().Start(ctx, w, "work", func(context.Context) { runs++ })
			if again := th.st.Driver().Start(ctx, w, "work", func(context.Context) { runs++ }); again == nil {
				t.Error("a work was started twice")
			}
			return nil, first
		})
		synctest.Wait()
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}
