package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves C1: the first start creates and runs at once; a second changes nothing.
func TestStart(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
		s.Host(j)
		first, err := j.Start(s.Context(), s, "a", tally{})
		s.Always("created and executing", err == nil && first.Created && first.Status == jobs.Executing, first, err)
		s.RunUntilIdle()
		second, err := j.Start(s.Context(), s, "a", tally{Runs: 7})
		s.Always("there already", err == nil && !second.Created && second.Status == jobs.Running, second, err)
		st, state := know(s, j, "a")
		s.Always("nothing was changed", st.Meta.RunCount == 1 && state.Runs == 1, st, state)
		s.Always("metadata is complete", st.Meta.Type == "continuous" && st.Meta.Name == "counter" && st.Meta.ID == "a" &&
			st.Meta.CreatedAt.Equal(s.Now()) && st.Meta.LastSuccessfulAt.Equal(s.Now()) && st.Meta.ExecutingAt.IsZero(), st.Meta)
		s.Always("the next run is an hour after the end of the first", st.Due.Equal(s.Now().Add(time.Hour)), st.Due)
	})
}

// Proves C1: StartLater leaves the first run to the schedule, and StartPaused makes it
// wait for Resume.
func TestStartLaterAndPaused(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		later := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour), StartLater: true})
		s.Host(later)
		start(s, later, "a")
		s.Advance(59 * time.Minute)
		st, _ := know(s, later, "a")
		s.Always("no run before its time", st.Meta.RunCount == 0, st.Meta)
		s.Advance(2 * time.Minute)
		st, _ = know(s, later, "a")
		s.Always("one run at its time", st.Meta.RunCount == 1, st.Meta)
	})
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour), StartPaused: true})
		s.Host(j)
		start(s, j, "a")
		s.Advance(5 * time.Hour)
		st, _ := know(s, j, "a")
		s.Always("paused", st.Meta.Status == jobs.Paused && st.Meta.RunCount == 0, st.Meta)
		s.OK(j.Resume(s.Context(), s, "a"))
		s.RunUntilIdle()
		st, _ = know(s, j, "a")
		s.Always("resumed and run", st.Meta.Status == jobs.Running && st.Meta.RunCount == 1, st.Meta)
	})
}

// Proves C1: a trigger runs now and moves the schedule's base; while a run
// executes, another follows it.
func TestTrigger(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		slow := time.Duration(0)
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Rate(time.Hour),
			Run:      func(context.Context, *continuous.Run[tally]) error { s.Sleep(slow); return nil },
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(20 * time.Minute)
		s.OK(j.Trigger(s.Context(), s, "a"))
		s.RunUntilIdle()
		st, _ := know(s, j, "a")
		s.Always("ran now", st.Meta.RunCount == 2, st.Meta)
		s.Always("an hour from now", st.Due.Equal(s.Now().Add(time.Hour)), st.Due, s.Now())

		slow = time.Minute
		s.OK(j.Trigger(s.Context(), s, "a"))
		s.Advance(30 * time.Second)
		s.OK(j.Trigger(s.Context(), s, "a"))
		s.OK(j.Trigger(s.Context(), s, "a"))
		s.Advance(5 * time.Minute)
		st, _ = know(s, j, "a")
		s.Always("one run now and one after it", st.Meta.RunCount == 4, st.Meta)
	})
}

// Proves J3: a move that the status forbids is an error that names both ends, and changes
// nothing.
func TestIllegalMoves(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
		s.Host(j)
		verbs := map[string]func() error{
			"trigger": func() error { return j.Trigger(s.Context(), s, "a") },
			"pause":   func() error { return j.Pause(s.Context(), s, "a") },
			"resume":  func() error { return j.Resume(s.Context(), s, "a") },
			"stop":    func() error { return j.Stop(s.Context(), s, "a", "") },
			"end":     func() error { return j.Terminate(s.Context(), s, "a", "") },
		}
		refused := func(verb string, want error) {
			err := verbs[verb]()
			s.Always(verb+" is refused", errors.Is(err, want), err)
		}
		for _, verb := range []string{"trigger", "pause", "resume", "stop", "end"} {
			refused(verb, jobs.ErrNotFound)
		}
		_, err := j.State(s.Context(), s, "a")
		s.Always("no state", errors.Is(err, jobs.ErrNotFound), err)

		start(s, j, "a")
		s.RunUntilIdle()
		s.OK(verbs["pause"]())
		refused("trigger", jobs.ErrIllegalMove)
		var move *jobs.MoveError
		err = j.Trigger(s.Context(), s, "a")
		s.Always("both ends are named", errors.As(err, &move) && move.From == jobs.Paused && move.To == jobs.Executing, err)
		s.OK(verbs["stop"]())
		refused("stop", jobs.ErrIllegalMove)
		refused("pause", jobs.ErrIllegalMove)
		st, _ := know(s, j, "a")
		s.Always("stopped, with nothing due", st.Meta.Status == jobs.Stopped && st.Due.IsZero(), st)
		s.OK(verbs["resume"]())
		s.OK(verbs["end"]())
		refused("end", jobs.ErrNotFound)
	})
}

type picky struct{ Size int }

func (p picky) Validate() error {
	if p.Size < 1 {
		return errors.New("size must be positive")
	}
	return nil
}

// Proves J4, Case 1: a bad first state is refused before anything is stored.
func TestBadStateLeavesNothing(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := continuous.New(continuous.Config[picky]{
			Name: "picky", Schedule: jobs.Every(time.Hour),
			Run: func(context.Context, *continuous.Run[picky]) error { return nil },
		})
		bad := continuous.New(continuous.Config[any]{
			Name: "bad", Schedule: jobs.Every(time.Hour),
			Run: func(context.Context, *continuous.Run[any]) error { return nil },
		})
		s.Host(j, bad)
		_, err := j.Start(s.Context(), s, "a", picky{})
		s.Always("refused by Validate", errors.Is(err, jobs.ErrInvalid), err)
		_, err = bad.Start(s.Context(), s, "a", func() {})
		s.Always("refused by the codec", errors.Is(err, jobs.ErrInvalid), err)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			for _, class := range []string{"picky", "bad"} {
				if found, err := h.Objects(ctx, class, object.ObjectsOptions{Limit: 10}); err != nil || len(found) > 0 {
					return fmt.Errorf("stored %v, %w", found, err)
				}
			}
			return nil
		}))
	})
}

// Proves J1, C2: every mistake in a definition is an error of Open.
func TestMistakesInDefinition(t *testing.T) {
	run := func(context.Context, *continuous.Run[int]) error { return nil }
	for want, c := range map[string]continuous.Config[int]{
		"Name":      {Run: run},
		"Run":       {Name: "j"},
		"Missed":    {Name: "j", Run: run, Missed: 9},
		"Exhausted": {Name: "j", Run: run, Exhausted: 9},
		"schedule":  {Name: "j", Run: run, Schedule: jobs.Every(-1)},
		"Retry":     {Name: "j", Run: run, Retry: jobs.Retry{MaxAttempts: -1}},
		"Timeout":   {Name: "j", Run: run, Timeout: -1},
		"Heartbeat": {Name: "j", Run: run, Lease: 1, Heartbeat: 2},
	} {
		h, err := object.Open(object.Options{Dir: t.TempDir()}, continuous.New(c))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Open says %v", want, err)
		}
		if h != nil {
			if err := h.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// Proves J9, C1: a run chooses when the next one is, and how the job ends.
func TestRunChooses(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var began []time.Time
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				began = append(began, s.Now())
				switch run.Number {
				case 1:
					run.NextAt(s.Now().Add(5 * time.Minute))
				case 3:
					run.Terminate("no more")
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(3 * time.Hour)
		s.Always("five minutes, then the schedule again", len(began) == 3 &&
			began[1].Sub(began[0]) == 5*time.Minute && began[2].Sub(began[1]) == time.Hour, began)
		_, err := j.Status(s.Context(), s, "a")
		s.Always("gone by its own wish", errors.Is(err, jobs.ErrNotFound), err)
	})
}
