package object_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// lateness is told by Inline that a call is late.
type lateness struct {
	began time.Time
	took  time.Duration   // how long leave takes
	calls []time.Duration // when leave was called, after the begin
	err   error           // with which it was called
}

// inline is the options of a detached call that tells of its lateness.
func (l *lateness) inline() []object.CallOption {
	l.began = time.Now()
	return []object.CallOption{object.Detached(), object.Inline(func(err error) {
		l.calls, l.err = append(l.calls, time.Since(l.began)), err
		time.Sleep(l.took)
	})}
}

// lasts is a handler that takes d, or until its context ends, and returns the error of the context.
func lasts(d time.Duration) action {
	return func(_ *thing, ctx context.Context) (any, error) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return ctx.Err(), nil
	}
}

// Proves O29: with Inline the handler of an idle object runs on the caller's goroutine. leave is called once, when the deadline has passed
// while it runs and not before it; the handler goes on, and the call returns when both have ended, with the answer.
func TestInlineLate(t *testing.T) {
	for _, c := range []struct {
		name           string
		handler, leave time.Duration
		calls          int
		returns        time.Duration
	}{
		{"ends before the deadline", time.Second - 1, 0, 0, time.Second - 1},
		{"ends after the deadline", time.Second + 1, 0, 1, time.Second + 1},
		{"goes on for long", time.Hour, 0, 1, time.Hour},
		{"ends before leave does", 2 * time.Second, 5 * time.Second, 1, 6 * time.Second},
		{"ends after leave does", 8 * time.Second, 5 * time.Second, 1, 8 * time.Second},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.close()
			f.must("a", nothing)
			l := lateness{took: c.leave}
			opts := l.inline()
			var next time.Duration // when the next call was answered
			go func() {
				time.Sleep(time.Millisecond)
				f.must("a", nothing)
				next = time.Since(l.began)
			}()
			var answer any
			after, err := f.leaves("a", func(th *thing, ctx context.Context) (any, error) {
				v, err := lasts(c.handler)(th, ctx)
				answer = v
				return v, errors.Join(err, th.st.Storage().PutBytes(ctx, "k", []byte("v")))
			}, opts...)
			if err != nil || after != c.returns || answer != error(nil) {
				t.Errorf("O29: %s: the call returned after %v with %v, the handler's context ended with %v", c.name, after, err, answer)
			}
			if len(l.calls) != c.calls || c.calls == 1 && (l.calls[0] != time.Second || !errors.Is(l.err, object.ErrUnknown) || !errors.Is(l.err, context.DeadlineExceeded)) {
				t.Errorf("O29: %s: leave was called at %v with %v", c.name, l.calls, l.err)
			}
			if pass(time.Hour); next != c.handler || len(l.calls) != c.calls || f.stored("a", "k") != "v" {
				t.Errorf("O29: %s: the next call was answered after %v, leave was called at %v, stored %q", c.name, next, l.calls, f.stored("a", "k"))
			}
		})
	}
}

// Proves O29, O20: leave is not called in a call that leaves at its deadline: one that waits for its turn, and one that has a goroutine of
// the host; nor without a deadline, without Detached, or in a call from a turn.
func TestInlineIsNotLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var l lateness
		for _, name := range []string{"idle", "busy"} {
			f.must(name, nothing)
		}
		if after, err := f.leaves("new", lasts(time.Minute), l.inline()...); after != time.Second || !errors.Is(err, object.ErrUnknown) {
			t.Errorf("O20: a new object: the caller left after %v with %v", after, err)
		}
		go f.call("busy", lasts(time.Minute))
		pass(0)
		if after, err := f.leaves("busy", nothing, l.inline()...); after != time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, object.ErrUnknown) {
			t.Errorf("O20: in the mailbox: the caller left after %v with %v", after, err)
		}
		pass(time.Minute)
		if v := f.must("idle", lasts(time.Minute), l.inline()...); v != nil {
			t.Errorf("O29: without a deadline the handler's context ended with %v", v)
		}
		if after, err := f.leaves("idle", lasts(time.Minute), l.inline()[1]); err != nil || after != time.Second {
			t.Errorf("O20: without Detached the call returned after %v with %v", after, err)
		}
		after, err := f.leaves("idle", f.calls("busy", lasts(time.Minute), l.inline()...))
		if err != nil || after != time.Second {
			t.Errorf("O20: a call from a turn returned after %v with %v", after, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		began, opts := time.Now(), l.inline()
		time.AfterFunc(time.Second, cancel)
		if _, err := f.do.Call(ctx, f.host, "idle", lasts(30*time.Second), opts...); err != nil || time.Since(began) != 30*time.Second {
			t.Errorf("O29: a caller whose context ended before its deadline returned after %v with %v", time.Since(began), err)
		}
		if after, err := f.leaves("idle", lasts(time.Minute), object.Detached(), object.Inline(nil)); after != time.Second || !errors.Is(err, object.ErrUnknown) {
			t.Errorf("O20: with a nil leave the caller left after %v with %v", after, err)
		}
		if pass(time.Hour); len(l.calls) > 0 {
			t.Errorf("O29: leave was called at %v", l.calls)
		}
	})
}

// Proves O29, O21: with Inline a handler that ends its goroutine ends the caller's too, and leave is called once, with the error of the call; the
// object lives.
func TestInlineGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		for _, c := range []struct {
			name      string
			after     time.Duration
			do        action
			untouched bool
			err       error
			leaves    time.Duration
		}{
			{"at once", 0, nothing, true, object.ErrPanic, 0},
			{"after a commit", 0, func(th *thing, ctx context.Context) (any, error) {
				return nil, errors.Join(th.st.Storage().PutBytes(ctx, "k", []byte("v")), th.st.Sync(ctx))
			}, false, object.ErrPanic, 0},
			{"after the deadline", time.Minute, nothing, false, object.ErrUnknown, time.Second},
		} {
			f.must("a", nothing)
			var l lateness
			opts, returned, ended := l.inline(), false, make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = f.leaves("a", func(th *thing, ctx context.Context) (any, error) {
					if _, err := c.do(th, ctx); err != nil {
						t.Error(err)
					}
					time.Sleep(c.after)
					runtime.Goexit()
					return nil, nil
				}, opts...)
				returned = true
			}()
			<-ended
			f.must("a", nothing)
			if pass(time.Minute); returned || len(l.calls) != 1 || l.calls[0] != c.leaves || !errors.Is(l.err, c.err) || object.Untouched(l.err) != c.untouched {
				t.Errorf("O29: %s: the caller went on: %v; leave was called at %v with %v, untouched: %v", c.name, returned, l.calls, l.err, object.Untouched(l.err))
			}
		}
	})
}

// Proves O29, O16: callers that are late with their answer, and come again with the same key, get the answer of the one run in the end,
// through crashes.
func TestCrashInline(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		s.Host(patients)
		first, second := object.Idempotent("first", time.Hour), object.Idempotent("second", time.Hour)
		late, got := 0, 0
		for tries := 0; got == 0 && tries < 100; tries++ {
			err := s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
				if _, err := treat.Call(ctx, h, "a", struct{}{}, first); err != nil { // it brings the object into memory
					return err
				}
				ctx, cancel := h.Seams().WithDeadline(ctx, h.Seams().Clock.Now().Add(time.Second), errors.New("late"))
				defer cancel()
				got, err = treat.Call(ctx, h, "a", struct{}{}, second, object.Detached(), object.Inline(func(error) { late++ }))
				return err
			})
			s.OK(err)
			s.Sleep(500 * time.Millisecond)
		}
		s.Always("the caller was late before the answer came", late > 0, late)
		s.Finally("one run of each counts", func() error {
			n, err := treat.Call(s.Context(), s, "a", struct{}{}, second)
			if err != nil || n != 2 || got != 2 {
				return fmt.Errorf("the answers are %d and %d, %v", got, n, err)
			}
			return nil
		})
	})
}
