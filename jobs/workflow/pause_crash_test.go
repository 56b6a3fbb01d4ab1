package workflow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// resume lets a run go on until the answer is known.
func resume[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string) {
	s.OK(s.Retry(func() error {
		err := w.Resume(s.Context(), s, id)
		if s.Crashes() > 0 && errors.Is(err, jobs.ErrIllegalMove) {
			return nil // the answer of the first was lost, or the next process has healed the run; it has ended since
		}
		return err
	}))
}

// pauseCase is a state in which a run is paused, a minute after its start.
type pauseCase struct {
	name string
	fn   func(s *harness.Sim, c *workflow.Context) error
	ends time.Duration // after Resume, which comes two hours after the Pause
}

var pauseCases = []pauseCase{
	{"stepping", func(s *harness.Sim, c *workflow.Context) error {
		_, err := slow(s, c, "a", 2*time.Minute)
		return err
	}, 0},
	{"asleep", func(s *harness.Sim, c *workflow.Context) error {
		if _, err := do(s, c, "a"); err != nil {
			return err
		}
		return workflow.Sleep(c, time.Hour)
	}, 0},
	{"asleep for longer than the pause", func(s *harness.Sim, c *workflow.Context) error {
		if _, err := do(s, c, "a"); err != nil {
			return err
		}
		return workflow.Sleep(c, 2*time.Hour+5*time.Minute)
	}, 4 * time.Minute},
	{"waiting for a signal that comes in the pause", func(s *harness.Sim, c *workflow.Context) error {
		if _, err := do(s, c, "a"); err != nil {
			return err
		}
		_, err := approved.Wait(c, 3*time.Hour)
		return err
	}, 0},
	{"stuck", func(s *harness.Sim, c *workflow.Context) error {
		if _, err := do(s, c, "a"); err != nil {
			return err
		}
		if s.World().Count("healed") == 0 {
			panic("not yet")
		}
		return nil
	}, 0},
}

// A paused run begins no operation until Resume, or until the time of the Pause, in whichever
// state it was paused, and then goes on where it was.
func TestCrashPause(t *testing.T) {
	for _, k := range pauseCases {
		for _, byItself := range []bool{false, true} {
			name := k.name + ", resumed"
			if byItself {
				name = k.name + ", until a time"
			}
			t.Run(name, func(t *testing.T) {
				crashes.Try(t, func(s *harness.Sim) { k.try(s, byItself) }, append(promises, crashes.Budget(60))...)
			})
		}
	}
}

func (k pauseCase) try(s *harness.Sim, byItself bool) {
	w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
	w.Func(func(c *workflow.Context, _ int) (string, error) {
		if err := k.fn(s, c); err != nil {
			return "", err
		}
		return do(s, c, "b")
	})
	s.Host(w)
	start(s, w, "1", 7)
	s.Advance(time.Minute)
	at := s.Now()
	var until time.Time
	if byItself {
		until = at.Add(2 * time.Hour)
	}
	pause(s, w, "1", until)
	s.Advance(time.Hour)
	s.World().Do("healed", nil)
	send(s, w, "1", "yes", "1")
	s.Advance(at.Add(2*time.Hour - time.Second).Sub(s.Now()))
	st := status(s, w, "1")
	s.Always("paused", st.Meta.Status == jobs.Paused && st.Meta.StopReason == "look" && st.Meta.PausedUntil.Equal(until), st)
	s.Always("no step in the pause", len(timesOf(s, "order/1", "b", at)) == 0, s.World().Log())
	s.Advance(time.Second)
	if !byItself {
		resume(s, w, "1")
	}
	out, err := ends(s, w, "1")
	s.Always("the output", err == nil && out == "b", out, err)
	s.Always("the time", s.Crashes() > 0 || s.Now().Sub(at) == 2*time.Hour+k.ends, s.Now().Sub(at))
	happened(s, "order/1", "a", "b")
}

// A queued run that is paused takes no place, and another that is queued behind it does.
func TestCrashPauseQueued(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Concurrency: 1})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			if _, err := slow(s, c, "a", time.Minute); err != nil {
				return "", err
			}
			return do(s, c, "b")
		})
		s.Host(w)
		for _, id := range []string{"1", "2", "3"} {
			start(s, w, id, 7)
		}
		pause(s, w, "2", time.Time{})
		for _, id := range []string{"1", "3"} {
			_, err := ends(s, w, id)
			s.Always("the others end", err == nil, err)
		}
		before := status(s, w, "2")
		s.Always("paused", before.Meta.Status == jobs.Paused, before)
		resume(s, w, "2")
		_, err := ends(s, w, "2")
		s.Always("the end", err == nil, err)
		s.Finally("once each", func() error { return onceEach(s, "order/") })
	}, append(promises, crashes.Budget(200))...)
}

// A Pause that comes among steps that take no time lets none begin behind its answer.
func TestCrashPauseAtOnce(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		asked, paused, late := false, false, 0
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			for i := range 6 {
				_, err := workflow.Step(c, "s", func(ctx context.Context) (int, error) {
					if paused {
						late++
					}
					if i == 1 && !asked {
						asked = true
						s.Go("client", func() {
							pause(s, w, "1", time.Time{})
							paused = true
						})
					}
					s.World().Do(workflow.Key(ctx), nil)
					return i, nil
				})
				if err != nil {
					return "", err
				}
				if err := workflow.Sleep(c, time.Duration(i/3)*time.Minute); err != nil {
					return "", err
				}
			}
			return "all", nil
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Eventually(5*time.Minute, "the answer", func() bool { return paused })
		s.Advance(time.Hour)
		s.Always("no step begins behind the answer", late == 0, late)
		s.Always("paused", status(s, w, "1").Meta.Status == jobs.Paused, status(s, w, "1"))
		paused = false
		resume(s, w, "1")
		out, err := ends(s, w, "1")
		s.Always("the end", err == nil && out == "all", out, err)
		happened(s, "order/1", "s", "s#2", "s#3", "s#4", "s#5", "s#6")
	}, promises...)
}

// Proves J10: a Resume that comes while a branch is still in its step lets the others go on, and
// so does a Cancel, also the second one.
func TestPauseTakenBack(t *testing.T) {
	for _, back := range []string{"resume", "cancel", "cancel again"} {
		harness.Run(t, func(s *harness.Sim) {
			w := workflow.New[int, string]("order", workflow.Config{})
			var went time.Time
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				_, err := workflow.Each(c, "each", []int{0, 1}, 2, func(c *workflow.Context, i int) (string, error) {
					if i == 0 {
						return slow(s, workflow.WithoutCancel(c), "long", 2*time.Hour)
					}
					if _, err := slow(s, c, "short", 10*time.Minute); err != nil {
						return "", err
					}
					err := workflow.Sleep(c, time.Second)
					went = s.Now()
					return "", err
				})
				return "all", err
			})
			s.Host(w)
			start(s, w, "1", 7)
			began := s.Now()
			if back == "cancel again" {
				s.Advance(11 * time.Minute)
				s.OK(w.Cancel(s.Context(), s, "1", "first"))
			}
			s.Advance(time.Minute)
			pause(s, w, "1", time.Time{})
			s.Advance(19 * time.Minute)
			if back == "resume" {
				resume(s, w, "1")
			} else {
				s.OK(w.Cancel(s.Context(), s, "1", back))
			}
			s.Advance(10 * time.Second)
			s.Always("the other branch has gone on", !went.IsZero() && went.Sub(began) < time.Hour, back, went)
			st := status(s, w, "1")
			s.Always("it executes", st.Meta.Status == jobs.Executing && !st.Meta.Pausing, back, st)
		})
	}
}
