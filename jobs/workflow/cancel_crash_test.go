package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// cancelCase is a state in which a run is cancelled.
type cancelCase struct {
	name    string
	after   time.Duration // from the start of the run to the Cancel
	fn      func(s *harness.Sim, c *workflow.Context) error
	effects []string
	// ends is how long after the Cancel the run ends, without crashes.
	ends time.Duration
	// crashed are other effects that a run may have if a crash came before an entry was stored.
	crashed [][]string
}

// both are a step with an undo, and then the rest.
func both(rest func(s *harness.Sim, c *workflow.Context) error) func(s *harness.Sim, c *workflow.Context) error {
	return func(s *harness.Sim, c *workflow.Context) error {
		if _, err := do(s, c, "a"); err != nil {
			return err
		}
		undoes(s, c, "a")
		return rest(s, c)
	}
}

var cancelCases = []cancelCase{
	{"stepping", 30 * time.Second, both(func(s *harness.Sim, c *workflow.Context) error {
		if _, err := slow(s, c, "b", time.Hour); err != nil {
			return err
		}
		_, err := do(s, c, "never")
		return err
	}), []string{"a", "b", "undo/undo a"}, 0, nil},
	{"in a step that succeeds", 30 * time.Second, both(func(s *harness.Sim, c *workflow.Context) error {
		_, err := workflow.Step(c, "b", func(ctx context.Context) (int, error) {
			s.World().Do(workflow.Key(ctx), nil)
			s.Sleep(50 * time.Second)
			return 0, nil
		})
		if err != nil {
			return fmt.Errorf("the step has succeeded: %w", err)
		}
		undoes(s, c, "b")
		_, err = do(s, c, "never")
		return err
	}), []string{"a", "b", "undo/undo b", "undo/undo a"}, 20 * time.Second, [][]string{{"a", "b", "undo/undo a"}}},
	{"in a step that ignores it", 30 * time.Second, both(func(s *harness.Sim, c *workflow.Context) error {
		_, err := workflow.Step(c, "b", func(ctx context.Context) (int, error) {
			s.World().Do(workflow.Key(ctx), nil)
			s.Sleep(time.Hour)
			return 0, nil
		})
		return err
	}), []string{"a", "b", "undo/undo a"}, 30 * time.Second, nil},
	{"before a further attempt", 30 * time.Second, both(func(s *harness.Sim, c *workflow.Context) error {
		_, err := workflow.Step(c, "b", func(ctx context.Context) (int, error) { return 0, errNo }, workflow.Retry(jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)}))
		return err
	}), []string{"a", "undo/undo a"}, 0, nil},
	{"asleep", 5 * day, both(func(s *harness.Sim, c *workflow.Context) error {
		if err := workflow.Sleep(c, 10*day); err != nil {
			return err
		}
		undoes(s, c, "never") // also if the cancelled sleep is repeated
		_, err := do(s, c, "never")
		return err
	}), []string{"a", "undo/undo a"}, 0, nil},
	{"asleep for a moment", 500 * time.Millisecond, both(func(s *harness.Sim, c *workflow.Context) error {
		if err := workflow.Sleep(c, time.Second); err != nil {
			return err
		}
		undoes(s, c, "never")
		_, err := do(s, c, "never")
		return err
	}), []string{"a", "undo/undo a"}, 0, [][]string{{"a"}, nil}},
	{"waiting", day, both(func(s *harness.Sim, c *workflow.Context) error {
		_, err := approved.Wait(c, 0)
		return err
	}), []string{"a", "undo/undo a"}, 0, nil},
	{"waiting until a time", day, both(func(s *harness.Sim, c *workflow.Context) error {
		if _, err := approved.Wait(c, 10*day); err != nil {
			return err
		}
		undoes(s, c, "never")
		_, err := do(s, c, "never")
		return err
	}), []string{"a", "undo/undo a"}, 0, nil},
	{"in a loop that looks at the sleep alone", 90 * time.Second, both(func(s *harness.Sim, c *workflow.Context) error {
		for {
			_, _ = workflow.Step(c, "poll", func(ctx context.Context) (int, error) {
				s.World().Do(workflow.Key(ctx), nil)
				return 0, nil
			})
			if err := workflow.Sleep(c, time.Minute); err != nil {
				return err
			}
		}
	}), []string{"a", "poll", "poll#2", "undo/undo a"}, 0, nil},
	{"in a loop that looks at the step alone", 90 * time.Second, both(func(s *harness.Sim, c *workflow.Context) error {
		for {
			_, err := workflow.Step(c, "poll", func(ctx context.Context) (int, error) {
				s.World().Do(workflow.Key(ctx), nil)
				return 0, nil
			})
			if err != nil {
				return err
			}
			_ = workflow.Sleep(c, time.Minute)
		}
	}), []string{"a", "poll", "poll#2", "undo/undo a"}, 0, nil},
	{"with WithoutCancel", day, both(func(s *harness.Sim, c *workflow.Context) error {
		err := workflow.Sleep(c, 10*day)
		if !errors.Is(err, workflow.ErrCancelled) || c.Err() != workflow.ErrCancelled {
			return fmt.Errorf("the sleep is over: %w", err)
		}
		if _, err := do(s, c, "never"); !errors.Is(err, workflow.ErrCancelled) {
			return fmt.Errorf("a step has begun: %w", err)
		}
		shielded := workflow.WithoutCancel(c)
		if err := errors.Join(shielded.Err(), workflow.Sleep(shielded, time.Minute)); err != nil {
			return fmt.Errorf("the shielded sleep: %w", err)
		}
		if _, failed := slow(s, shielded, "shielded", time.Minute); failed != nil {
			return fmt.Errorf("the shielded step: %w", failed)
		}
		return err
	}), []string{"a", "shielded", "undo/undo a"}, 2 * time.Minute, nil},
}

// A Cancel ends a run in each state, and from its answer on no step begins but undos and
// those of WithoutCancel (F8).
func TestCrashCancel(t *testing.T) {
	for _, k := range cancelCases {
		t.Run(k.name, func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
				w.Func(func(c *workflow.Context, _ int) (string, error) { return "", k.fn(s, c) })
				s.Host(w)
				start(s, w, "1", 7)
				s.Advance(k.after)
				cancelRun(s, w, "1", "the customer left")
				at, crashes := s.Now(), s.Crashes()
				_, err := ends(s, w, "1")
				s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), err)
				s.Always("the time", s.Crashes() > 0 || s.Now().Sub(at) == k.ends, s.Now().Sub(at))
				s.Always("not later", s.Crashes() > crashes || crashes > 2 || s.Now().Sub(at) <= k.ends+time.Minute, s.Now().Sub(at))
				st := status(s, w, "1")
				s.Always("the status", st.Meta.Status == jobs.Cancelled && st.Meta.StopReason == "the customer left" && !st.Cancelling, st)
				s.Always("no dead letter", len(letters(s)) == 0, letters(s))
				s.Always("again without effect", w.Cancel(s.Context(), s, "1", "again") == nil || s.Crashes() > 0)
				want := k.effects
				for _, other := range k.crashed {
					if s.Crashes() > 0 && slices.Equal(effects(s, "order/1"), other) {
						want = other
					}
				}
				happened(s, "order/1", want...)
			}, append(promises, crashes.Budget(60))...)
		})
	}
}

// A Cancel that comes at the start of a run, or among steps that take no time, ends it; no step
// begins behind its answer.
func TestCrashCancelAtOnce(t *testing.T) {
	for _, steps := range []int{0, 1, 3} { // that have begun when the client calls
		t.Run(fmt.Sprint("after ", steps, " steps"), func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{})
				asked, answered, late := false, false, 0
				client := func() {
					asked = true
					s.Go("client", func() {
						cancelRun(s, w, "1", "")
						answered = true
					})
				}
				w.Func(func(c *workflow.Context, _ int) (string, error) {
					for i := range 8 {
						_, err := workflow.Step(c, fmt.Sprint(i), func(ctx context.Context) (int, error) {
							if answered {
								late++
							}
							if i+1 == steps && !asked {
								client()
							}
							s.World().Do(workflow.Key(ctx), nil)
							return i, nil
						})
						if err != nil {
							return "", err
						}
						if err := workflow.Sleep(c, time.Duration(i/4)*time.Hour); err != nil {
							return "", err
						}
					}
					return "all", nil
				})
				s.Host(w)
				start(s, w, "1", 7)
				if steps == 0 {
					client()
				}
				s.Eventually(5*time.Minute, "the answer", func() bool { return answered })
				out, err := ends(s, w, "1")
				s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), out, err)
				s.Always("no step begins behind the answer", late == 0, late)
				s.Finally("once each", func() error { return onceEach(s, "order/") })
			}, promises...)
		})
	}
}

// A Cancel does not touch undos, nor the outcome of a run that has failed before.
func TestCrashCancelUndoing(t *testing.T) {
	for _, after := range []time.Duration{30 * time.Second, 2 * time.Minute} { // in the undo, and between its attempts
		t.Run(after.String(), func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 100, Backoff: jobs.Constant(5 * time.Minute)}})
				healed := false
				w.Func(func(c *workflow.Context, _ int) (string, error) {
					if _, err := do(s, c, "a"); err != nil {
						return "", err
					}
					workflow.Undo(c, "a", func(ctx context.Context) error {
						if err := s.SleepContext(ctx, time.Minute); err != nil {
							return err
						}
						if !healed {
							return errNo
						}
						s.World().Do(workflow.Key(ctx), nil)
						return nil
					})
					return "", errors.New("the first error")
				})
				s.Host(w)
				start(s, w, "1", 7)
				s.Advance(after)
				cancelRun(s, w, "1", "")
				s.Advance(2 * time.Minute)
				healed = true
				_, err := ends(s, w, "1")
				s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": the first error"), err)
				s.Always("one dead letter", slices.Equal(letters(s), []string{"the first error"}), letters(s))
				happened(s, "order/1", "a", "undo/undo a")
			}, append(promises, crashes.Budget(60))...)
		})
	}
}

// A queued run is cancelled when it gets its place, without a step.
func TestCrashCancelQueued(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Concurrency: 1})
		w.Func(func(c *workflow.Context, _ int) (string, error) { return slow(s, c, "a", time.Minute) })
		s.Host(w)
		start(s, w, "1", 7)
		start(s, w, "2", 7)
		st := status(s, w, "2")
		s.Always("queued", s.Crashes() > 0 || st.Queued && st.Meta.Status == jobs.Running, st)
		cancelRun(s, w, "2", "")
		out, err := ends(s, w, "1")
		s.Always("the other run", err == nil && out == "a", out, err)
		_, err = ends(s, w, "2")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), err)
		happened(s, "order/1", "a")
		if s.Crashes() == 0 {
			happened(s, "order/2")
		}
	}, promises...)
}

// A paused run goes on for its Cancel, without Resume.
func TestCrashCancelPaused(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			if _, err := do(s, c, "a"); err != nil {
				return "", err
			}
			undoes(s, c, "a")
			if err := workflow.Sleep(c, time.Hour); err != nil {
				return "", err
			}
			return do(s, c, "never")
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		pause(s, w, "1", time.Time{})
		s.Advance(2 * time.Hour)
		s.Always("paused", status(s, w, "1").Meta.Status == jobs.Paused, status(s, w, "1"))
		cancelRun(s, w, "1", "")
		_, err := ends(s, w, "1")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), err)
		happened(s, "order/1", "a", "undo/undo a")
	}, promises...)
}

// pause pauses a run until the answer is known.
func pause[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string, until time.Time) {
	s.OK(s.Retry(func() error { return w.Pause(s.Context(), s, id, "look", until) }))
}
