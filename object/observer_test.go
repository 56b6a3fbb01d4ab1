package object_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// watcher is an Observer that writes down its operations, as lines of "3<1 call thing/a do": the
// third operation, begun by the first. The mutex guards both fields.
type watcher struct {
	mu    sync.Mutex
	n     int
	lines []string
}

type watcherKey struct{}

// watched is one operation of a watcher.
type watched struct {
	*watcher
	n int
}

func (w *watcher) Begin(ctx context.Context, op object.Operation) (context.Context, object.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	line := fmt.Sprint(w.n)
	if by, ok := ctx.Value(watcherKey{}).(int); ok {
		line += fmt.Sprint("<", by)
	}
	w.lines = append(w.lines, strings.TrimSpace(fmt.Sprint(line, " ", op.Kind, " ", op.ID, " ", op.Method)))
	return context.WithValue(ctx, watcherKey{}, w.n), watched{w, w.n}
}

func (w watched) TurnBegan()          { w.say("turn", nil) }
func (w watched) TurnEnded(err error) { w.say("turn ended", err) }
func (w watched) Ended(err error)     { w.say("ended", err) }

// say notes a step with the first that an error is of some.
func (w watched) say(step string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprint(w.n, " ", step)
	var panicked *seam.PanicError
	switch {
	case err == nil:
	case errors.As(err, &panicked):
		line += ": panic"
	case errors.Is(err, object.ErrUnknown):
		line += ": unknown"
	case errors.Is(err, object.ErrUnknownClass):
		line += ": no class"
	case errors.Is(err, context.Canceled):
		line += ": cancelled"
	case errors.Is(err, errWrong):
		line += ": wrong"
	default:
		line += ": " + err.Error()
	}
	w.lines = append(w.lines, line)
}

var errWrong = errors.New("wrong")

// take returns the lines since it was last called.
func (w *watcher) take() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, w.lines = w.lines, nil
	return lines
}

// wants compares the lines since the last time. Numbers begin with that of the first operation.
func (w *watcher) wants(t *testing.T, text string, want ...string) {
	t.Helper()
	if got := w.take(); !slices.Equal(got, want) {
		t.Errorf("O22: %s: the observer was told\n\t%s\nwant\n\t%s", text, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n = 0
}

// observedHost is a fixture with a watcher.
func observedHost(t *testing.T) (*fixture, *watcher) {
	w := &watcher{}
	f := newFixture(t)
	f.options.Observer = w
	return f, w
}

// Proves O22: an Observer is told of each call with its turn and its end, and of the calls that a
// handler makes with the context of its own.
func TestObserverOfCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, w := observedHost(t)
		f.open()
		defer f.close()
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			if _, err := f.do.Call(ctx, th.st, "b", put("k", "v")); err != nil {
				return nil, err
			}
			return nil, th.st.Release(ctx, func(ctx context.Context) error {
				_, err := f.do.Call(ctx, f.host, "c", nothing)
				return err
			})
		})
		w.wants(t, "nested calls", "1 call thing/a do", "1 turn",
			"2<1 call thing/b do", "2 turn", "2 turn ended", "2 ended",
			"3<1 call thing/c do", "3 turn", "3 turn ended", "3 ended",
			"1 turn ended", "1 ended")
		if _, err := f.call("a", func(*thing, context.Context) (any, error) { return nil, errWrong }); !errors.Is(err, errWrong) {
			t.Error(err)
		}
		w.wants(t, "an error", "1 call thing/a do", "1 turn", "1 turn ended: wrong", "1 ended: wrong")
		if _, err := f.call("a", func(*thing, context.Context) (any, error) { panic("no") }); !errors.Is(err, object.ErrPanic) {
			t.Error(err)
		}
		w.wants(t, "a panic", "1 call thing/a do", "1 turn", "1 turn ended: panic", "1 ended: panic")
		f.must("b", func(_ *thing, ctx context.Context) (any, error) { return nil, f.host.Delete(ctx, f.class.ID("a")) })
		w.wants(t, "a deletion", "1 call thing/b do", "1 turn", "1 turn ended", "1 ended")
		none := object.Define("none", func(context.Context, *object.State) (*thing, error) { return &thing{}, nil })
		do := object.Handle(none, "do", func(*thing, context.Context, int) (int, error) { return 0, nil })
		if _, err := do.Call(t.Context(), f.host, "x", 1); !errors.Is(err, object.ErrUnknownClass) {
			t.Error(err)
		}
		w.wants(t, "a call without a turn", "1 call none/x do", "1 ended: no class")
	})
}

// Proves O22: a handler that ends its goroutine, a caller that leaves while its handler runs, and
// one that leaves the mailbox, are told to the end.
func TestObserverOfCallsThatLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, w := observedHost(t)
		f.open()
		defer f.close()
		f.must("a", nothing)
		w.wants(t, "a first call", "1 call thing/a do", "1 turn", "1 turn ended", "1 ended")
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = f.call("a", func(*thing, context.Context) (any, error) { runtime.Goexit(); return nil, nil })
		}()
		<-gone
		w.wants(t, "a handler that ends its goroutine", "1 call thing/a do", "1 turn", "1 turn ended: panic", "1 ended: panic")
		ctx, leave := context.WithCancel(t.Context())
		hold := make(chan struct{})
		var wg sync.WaitGroup
		for _, opts := range [][]object.CallOption{{object.Detached()}, nil} {
			wg.Go(func() {
				_, _ = f.do.Call(ctx, f.host, "a", func(*thing, context.Context) (any, error) { <-hold; return nil, nil }, opts...)
			})
			synctest.Wait()
		}
		leave()
		wg.Wait()
		close(hold)
		synctest.Wait()
		slices.Sort(w.lines) // the two callers leave at the same time
		w.wants(t, "callers that leave", "1 call thing/a do", "1 ended: unknown", "1 turn", "1 turn ended", "2 call thing/a do", "2 ended: cancelled")
	})
}

// Proves O22: a call ends for its Observer when its reply may leave, and not before: with the sync of
// the disk that it waits for.
func TestObserverOfTheGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, w := observedHost(t)
		d := f.slow()
		f.open()
		defer f.close()
		d.hold.Store(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.must("a", put("k", "v"))
		}()
		synctest.Wait()
		w.wants(t, "a disk that does not answer", "1 call thing/a do", "1 turn", "1 turn ended")
		d.hold.Store(false)
		close(d.gate)
		<-done
		w.wants(t, "a disk that answers", "1 ended")
	})
}

// Proves O22: an alarm and a message are operations of their own, also when they are tried again.
// The calls of their handlers are told as theirs, and so are the calls of a routine.
func TestObserverOfAlarmsAndMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, w := observedHost(t)
		f.open()
		defer f.close()
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			if info.Attempt == 1 {
				return errWrong
			}
			_, err := f.do.Call(ctx, th.st, "b", nothing)
			return err
		})
		f.must("a", setAlarm(time.Second))
		w.wants(t, "an alarm that is set", "1 call thing/a do", "1 turn", "1 turn ended", "1 ended")
		pass(time.Minute)
		w.wants(t, "an alarm", "1 alarm thing/a", "1 turn", "1 turn ended: wrong", "1 ended: wrong",
			"2 alarm thing/a", "2 turn", "3<2 call thing/b do", "3 turn", "3 turn ended", "3 ended", "2 turn ended", "2 ended")
		hold := make(chan struct{}) // until the turn that begins the routine has ended
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "routine", func(ctx context.Context) {
				<-hold
				_ = th.st.Do(ctx, func(context.Context) error { return nil }) // told with its error
			})
		})
		w.wants(t, "a call that begins a routine", "1 call thing/a do", "1 turn", "1 turn ended", "1 ended")
		close(hold)
		pass(time.Second)
		w.wants(t, "a routine", "1 call thing/a work", "1 turn", "1 turn ended", "1 ended")
	})
}

// letterbox is a class whose method is sent as a message.
type letterbox struct{ st *object.State }

// Proves O22: a message is an operation of its own, with its method.
func TestObserverOfMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		boxes := object.Define("box", func(_ context.Context, st *object.State) (*letterbox, error) { return &letterbox{st}, nil })
		failed := false
		post := object.Handle(boxes, "post", func(b *letterbox, ctx context.Context, n int) (struct{}, error) {
			if !failed {
				failed = true
				return struct{}{}, errWrong
			}
			return struct{}{}, b.st.Storage().Put(ctx, "n", n)
		})
		f, w := observedHost(t)
		f.open(boxes)
		defer f.close()
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, post.Send(ctx, th.st, "x", 1) })
		pass(time.Minute)
		slices.Sort(w.lines) // the message does not wait for the reply of its sender
		w.wants(t, "a message", "1 call thing/a do", "1 ended", "1 turn", "1 turn ended",
			"2 ended: wrong", "2 message box/x post", "2 turn", "2 turn ended: wrong", "3 ended", "3 message box/x post", "3 turn", "3 turn ended")
	})
}

// Proves O22: an execution of a job is an operation, and ends with the error of its work; its calls are
// told as its own.
func TestObserverOfExecutions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, w := observedHost(t)
		runs := 0
		job := continuous.New(continuous.Config[int]{
			Name: "job", Schedule: jobs.Every(time.Hour),
			Run: func(ctx context.Context, _ *continuous.Run[int]) error {
				switch runs++; runs {
				case 1:
					_, err := f.do.Call(ctx, f.host, "a", nothing)
					return err
				case 2:
					return errWrong
				}
				runtime.Goexit()
				return nil
			},
		})
		f.open(job)
		defer f.close()
		if _, err := job.Start(t.Context(), f.host, "j", 0); err != nil {
			t.Fatal(err)
		}
		pass(3*time.Hour - time.Minute)
		var got []string
		executions := map[string]bool{}
		for _, line := range w.take() {
			number, rest, _ := strings.Cut(line, " ")
			if by, caller, nested := strings.Cut(number, "<"); rest == "execution job/j" || nested && executions[caller] {
				executions[by], executions[number] = true, true
			}
			if executions[number] {
				got = append(got, rest)
			}
		}
		want := []string{"execution job/j", "call thing/a do", "turn", "turn ended", "ended", "ended",
			"execution job/j", "ended: wrong", "execution job/j", "ended: panic"}
		if fmt.Sprint(got[:min(len(got), len(want))]) != fmt.Sprint(want) {
			t.Errorf("O22: the executions are told as\n\t%s", strings.Join(got, "\n\t"))
		}
	})
}
