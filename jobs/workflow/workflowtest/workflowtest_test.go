package workflowtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/jobs/workflow/workflowtest"
)

var errReal = errors.New("the real service must not be called")

var confirmed = workflow.NewSignal[string]("confirmed")

// trips books a hotel and a flight, waits for a confirmation, sleeps for a year, and tells
// how it was.
var trips = workflow.New[string, string]("trip", workflow.Config{Signals: workflow.Signals{confirmed}})

func init() {
	trips.Func(func(ctx *workflow.Context, to string) (string, error) {
		booked, err := workflow.Each(ctx, "book", []string{"hotel", "flight"}, 0, func(ctx *workflow.Context, what string) (string, error) {
			workflow.Undo(ctx, "free", func(context.Context) error { return errReal })
			return workflow.Step(ctx, "book", func(context.Context) (string, error) { return "", errReal }, workflow.Retry(jobs.Retry{MaxAttempts: 1}))
		})
		if err != nil {
			return "", err
		}
		by, err := confirmed.Wait(ctx, 72*time.Hour)
		if err != nil {
			return "", err
		}
		if err := workflow.Sleep(ctx, 365*24*time.Hour); err != nil {
			return "", err
		}
		return fmt.Sprint(to, " ", booked, " by ", by, " in ", ctx.Now().Year(), ", luck ", ctx.Rand().IntN(1000)), nil
	})
}

var book = workflowtest.Step("book", func(context.Context) (string, error) { return "booked", nil })

// A run that keeps the rules passes, with its steps replaced, in virtual time.
func TestRunThatRepeats(t *testing.T) {
	out, err := workflowtest.Run(t, trips, "Rome", book, workflowtest.Signal(24*time.Hour, confirmed, "anna"))
	if want := "Rome [booked booked] by anna in 2027, luck "; err != nil || !strings.HasPrefix(out, want) {
		t.Fatalf("%q, %v, want %q", out, err, want)
	}
}

// A run that fails, times out or is cancelled ends with its error, and its undos.
func TestRunThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []workflowtest.Option
		is    error
		text  string
		freed int
	}{
		"step":    {[]workflowtest.Option{workflowtest.Step("book", func(context.Context) (string, error) { return "", errors.New("full") })}, workflow.ErrFailed, "full", 0},
		"timeout": {[]workflowtest.Option{book}, workflow.ErrFailed, "timed out", 2},
		"cancel":  {[]workflowtest.Option{book, workflowtest.Cancel(time.Hour)}, workflow.ErrCancelled, "cancelled", 2},
	} {
		t.Run(name, func(t *testing.T) {
			var freed map[string]bool
			_, err := workflowtest.Run(t, trips, "Rome", append(c.opts,
				workflowtest.Undo("free", func(ctx context.Context) error {
					freed[workflow.Key(ctx)] = true
					return nil
				}),
				workflowtest.Outside(func() { freed = make(map[string]bool) }, func() any { return len(freed) >= c.freed }))...)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || len(freed) < c.freed {
				t.Fatalf("%v, %d undos, want %v and %q", err, len(freed), c.is, c.text)
			}
		})
	}
}

// failing is a testing.TB for a test that must fail. It keeps the message.
type failing struct {
	testing.TB
	said string
}

func (*failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failure is the message of a test that must fail.
func failure(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	f := failing{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(&f)
	}()
	<-ended
	if f.said == "" {
		t.Fatal("the test did not fail")
	}
	return f.said
}

// broken runs a function that breaks the rules.
func broken(t *testing.T, fn func(ctx *workflow.Context) (string, error), opts ...workflowtest.Option) string {
	t.Helper()
	w := workflow.New[int, string]("broken", workflow.Config{Signals: workflow.Signals{confirmed}})
	w.Func(func(ctx *workflow.Context, _ int) (string, error) { return fn(ctx) })
	return failure(t, func(t testing.TB) { _, _ = workflowtest.Run(t, w, 1, opts...) })
}

// draws are numbers that a function must not take, because each repeat gets others.
var draws = rand.New(rand.NewPCG(1, 2))

func empty(context.Context) (string, error) { return "", nil }

// Cases 32 and 41: a function that breaks the rules is found, and told with the place. Proves F3.
func TestFunctionsThatDiffer(t *testing.T) {
	made := 0
	for name, c := range map[string]struct {
		fn   func(ctx *workflow.Context) (string, error)
		opts []workflowtest.Option
		want []string
	}{
		"a random name": {fn: func(ctx *workflow.Context) (string, error) {
			if _, err := workflow.Step(ctx, fmt.Sprint("draw ", draws.Uint64()), empty); err != nil {
				return "", err
			}
			return workflow.Step(ctx, "keep", empty)
		}, want: []string{"the run is stuck", "entry 1 of the function is step \"draw ", "the code asked for step \"draw "}},
		"a random value": {fn: func(ctx *workflow.Context) (string, error) {
			return fmt.Sprint(draws.Uint64()), nil
		}, want: []string{"the outcome is another than in the first run", "first: \"", "now:   \""}},
		"the clock": {fn: func(ctx *workflow.Context) (string, error) {
			if err := workflow.Sleep(ctx, time.Duration(time.Now().UnixNano())%time.Hour); err != nil {
				return "", err
			}
			return workflow.Step(ctx, "keep", empty)
		}, want: []string{"two runs without a crash do not do the same", "most likely time.Now"}},
		"a counter": {fn: func(ctx *workflow.Context) (string, error) {
			made++
			_, err := workflow.Step(ctx, "keep", empty)
			return fmt.Sprint(made), err
		}, want: []string{"the outcome is another than in the first run"}},
		"a signal that never comes": {fn: func(ctx *workflow.Context) (string, error) {
			return confirmed.Wait(ctx, 0)
		}, want: []string{"without a crash the run waits for signal confirmed, and nothing more comes"}},
		"a loop": {fn: func(ctx *workflow.Context) (string, error) {
			for {
				if err := workflow.Sleep(ctx, time.Hour); err != nil {
					return "", err
				}
			}
		}, want: []string{"without a crash the run has not ended after 500 waits: it waits for sleep until 2026-"}},
		"a signal after the end": {fn: func(ctx *workflow.Context) (string, error) { return "", nil },
			opts: []workflowtest.Option{workflowtest.Signal(time.Hour, confirmed, "")},
			want: []string{`signal "confirmed" is refused 1h0m0s after the start`, "the run has ended"}},
		"a stand-in of another type": {fn: func(ctx *workflow.Context) (string, error) { return workflow.Step(ctx, "keep", empty) },
			opts: []workflowtest.Option{workflowtest.Step("keep", func(context.Context) (int, error) { return 1, nil })},
			want: []string{`step "keep" is a func(context.Context) (string, error), and its stand-in a func(context.Context) (int, error)`}},
		"a stand-in of no step": {fn: func(ctx *workflow.Context) (string, error) { return "", nil },
			opts: []workflowtest.Option{workflowtest.Step("kept", empty)},
			want: []string{`workflowtest: broken: no run has asked for step "kept"`}},
	} {
		t.Run(name, func(t *testing.T) {
			said := broken(t, c.fn, c.opts...)
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

// Case 42: a function that cleans up with a defer does it at each suspension, and one that acts
// outside of its steps does it again in each repeat. Outside finds both.
func TestEffectsOutsideOfSteps(t *testing.T) {
	var sent []string
	post := workflowtest.Outside(func() { sent = nil }, func() any { return sent })
	for name, fn := range map[string]func(ctx *workflow.Context) (string, error){
		"a mail": func(ctx *workflow.Context) (string, error) {
			sent = append(sent, "welcome")
			if _, err := workflow.Step(ctx, "first", empty); err != nil {
				return "", err
			}
			return workflow.Step(ctx, "second", empty)
		},
		"a defer": func(ctx *workflow.Context) (string, error) {
			defer func() { sent = append(sent, "cleaned up") }()
			if _, err := workflow.Step(ctx, "first", empty); err != nil {
				return "", err
			}
			return workflow.Step(ctx, "second", empty)
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := broken(t, fn, post)
			if want := "after a crash the outside is another than after the first run: a repeat has an effect outside of a step"; !strings.Contains(said, want) {
				t.Errorf("it does not say %q:\n%s", want, said)
			}
		})
	}
}

// An output that has times tells itself when it is equal.
type stay struct{ From, To time.Time }

func (s stay) Equal(other stay) bool {
	return s.To.Sub(s.From)/time.Minute == other.To.Sub(other.From)/time.Minute
}

func TestOutputsWithTimes(t *testing.T) {
	w := workflow.New[int, stay]("stay", workflow.Config{})
	w.Func(func(ctx *workflow.Context, days int) (s stay, err error) {
		s.From = ctx.Now()
		err = workflow.Sleep(ctx, time.Duration(days)*24*time.Hour)
		s.To = ctx.Now()
		return s, err
	})
	s, err := workflowtest.Run(t, w, 3)
	if err != nil || s.To.Sub(s.From) != 72*time.Hour {
		t.Fatalf("%+v, %v", s, err)
	}
}

// Case 38: the text of an error may be another in each attempt. A repeat sees the recorded one,
// and compares none.
func TestErrorsThatDiffer(t *testing.T) {
	w := workflow.New[int, string]("differ", workflow.Config{})
	w.Func(func(ctx *workflow.Context, _ int) (string, error) {
		_, err := workflow.Step(ctx, "refused", func(context.Context) (string, error) {
			return "", jobs.Permanent(fmt.Errorf("refused at %d", draws.Uint64()))
		})
		again, kept := workflow.Step(ctx, "keep", func(context.Context) (string, error) { return err.Error(), nil })
		if kept != nil || again != err.Error() {
			return "", fmt.Errorf("%v became %q, %w", err, again, kept)
		}
		return "went on", nil
	})
	if out, err := workflowtest.Run(t, w, 1); err != nil || out != "went on" {
		t.Fatalf("%q, %v", out, err)
	}
}

// A child that is stuck is told, and not only that the run waits for it. A job that gets a message
// and is stuck when the run has ended is told too.
func TestStuckBesideTheRun(t *testing.T) {
	child := workflow.New[string, string]("leg", workflow.Config{})
	child.Func(func(*workflow.Context, string) (string, error) { panic("at a loss") })
	waits := workflow.New[string, string]("tour", workflow.Config{})
	waits.Func(func(ctx *workflow.Context, to string) (string, error) {
		return workflow.Child(ctx, child, ctx.ID()+"-1", to)
	})
	sends := workflow.New[string, string]("tour", workflow.Config{})
	sends.Func(func(ctx *workflow.Context, to string) (string, error) {
		return workflow.Atomic(ctx, "start", func(ctx context.Context, tx *workflow.Tx) (string, error) {
			_, err := child.Start(ctx, tx.Outbox(), "other", to)
			return "sent", err
		})
	})
	for want, w := range map[string]*workflow.Workflow[string, string]{
		"without a crash leg/test-1 is stuck": waits,
		"leg/other is stuck":                  sends,
	} {
		said := failure(t, func(t testing.TB) { _, _ = workflowtest.Run(t, w, "Rome", workflowtest.With(child)) })
		if !strings.Contains(said, want) || !strings.Contains(said, "at a loss") {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

// With has the children of a run, and their steps are replaced too.
func TestRunWithChildren(t *testing.T) {
	child := workflow.New[string, string]("leg", workflow.Config{})
	child.Func(func(ctx *workflow.Context, to string) (string, error) {
		if err := workflow.Sleep(ctx, 400*24*time.Hour); err != nil {
			return "", err
		}
		return workflow.Step(ctx, "go", func(context.Context) (string, error) { return "", errReal })
	})
	w := workflow.New[string, string]("tour", workflow.Config{})
	w.Func(func(ctx *workflow.Context, to string) (string, error) {
		return workflow.Child(ctx, child, ctx.ID()+"-1", to)
	})
	out, err := workflowtest.Run(t, w, "Rome", workflowtest.With(child),
		workflowtest.Step("go", func(context.Context) (string, error) { return "went", nil }))
	if err != nil || out != "went" {
		t.Fatalf("%q, %v", out, err)
	}
}
