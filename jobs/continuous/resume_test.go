package continuous_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// Proves J10, Case SC4: a Pause during a run holds when that run fails, with a retry to
// come or without; after Resume the run goes on where it was.
func TestPauseOfARunThatFails(t *testing.T) {
	for name, attempts := range map[string]int{"with a retry": 2, "given up": 1} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				failing := true
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: attempts, Backoff: jobs.Constant(time.Minute)},
					Run: func(context.Context, *continuous.Run[tally]) error {
						s.Sleep(10 * time.Second)
						if failing {
							return errors.New("boom")
						}
						return nil
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(time.Second)
				s.OK(j.Pause(s.Context(), s, "a"))
				s.Advance(90 * time.Minute)
				st, _ := know(s, j, "a")
				s.Always("paused", st.Meta.Status == jobs.Paused && !st.Meta.Pausing, st.Meta)
				s.Always("and nothing ran", len(s.World().Log()) == 1, s.World().Log())
				failing = false
				s.OK(j.Resume(s.Context(), s, "a"))
				s.Advance(time.Minute)
				st, state := know(s, j, "a")
				s.Always("it goes on", st.Meta.RunCount == 1 && state.Trace == " 1", st.Meta, state)
			})
		})
	}
}

// Proves J10, Case SC4: a Pause holds too when a crash cuts off the run under way.
func TestPauseOfARunThatIsLost(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				s.Sleep(10 * time.Second)
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		s.OK(j.Pause(s.Context(), s, "a"))
		s.Crash(harness.Kill)
		s.Restart()
		s.Advance(90 * time.Minute)
		st, _ := know(s, j, "a")
		s.Always("paused", st.Meta.Status == jobs.Paused && st.Meta.RunCount == 0, st.Meta)
		s.OK(j.Resume(s.Context(), s, "a"))
		s.Advance(time.Minute)
		st, _ = know(s, j, "a")
		s.Always("it goes on", st.Meta.RunCount == 1, st.Meta)
	})
}

// Proves C2, Case SC5: a run chooses the time of the next run. The next run stands for an
// occurrence of the schedule that is due by then; an occurrence after it runs apart.
func TestChosenRunTakesTheOccurrence(t *testing.T) {
	for chosen, want := range map[time.Duration]uint64{ // runs after 2 hours, at whole hours and at the chosen time
		59 * time.Minute: 4, // 0:00, 0:59, 1:00, 2:00
		60 * time.Minute: 3, // 0:00, 1:00, 2:00
		61 * time.Minute: 3, // 0:00, 1:01, 2:00
		90 * time.Minute: 3, // 0:00, 1:30, 2:00
	} {
		t.Run(chosen.String(), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Rate(time.Hour),
					Run: func(_ context.Context, run *continuous.Run[tally]) error {
						if run.Number == 1 {
							run.NextAt(run.Scheduled.Add(chosen))
						}
						return nil
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(2*time.Hour + time.Second)
				st, _ := know(s, j, "a")
				s.Always("runs in two hours", st.Meta.RunCount == want, st.Meta.RunCount, want)
			})
		})
	}
}

// Proves C1: a Trigger counts from now on, so an occurrence that is due with it is not
// run apart.
func TestTriggerTakesTheOccurrence(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Rate(time.Minute), StartLater: true,
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.Number == 1 {
					s.Sleep(90 * time.Second)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(2*time.Minute + 10*time.Second) // the run of minute 1 goes on to 2:30, and minute 2 has passed
		s.OK(j.Trigger(s.Context(), s, "a"))
		s.Advance(30 * time.Second)
		st, _ := know(s, j, "a")
		s.Always("one run for both", st.Meta.RunCount == 2, st.Meta)
		s.Always("a minute after the trigger", st.Due.Sub(s.Now()) > 29*time.Second && st.Due.Sub(s.Now()) <= 30*time.Second, st.Due)
	})
}

// Proves R4, Case SC6: a failed job that is resumed has all its recoveries before it
// again, and no more.
func TestResumeForgetsRecoveries(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour), MaxRecoveries: 1,
			Run: func(context.Context, *continuous.Run[tally]) error { s.Sleep(time.Hour); return nil },
		})
		s.Host(j)
		start(s, j, "a")
		diesAfter := func(life time.Duration) continuous.Status {
			s.Advance(life)
			s.Crash(harness.Kill)
			s.Restart()
			s.Advance(time.Second)
			st, _ := know(s, j, "a")
			return st
		}
		for range 2 {
			// Two crashes make the run a suspect, which runs alone after 3 s. After the
			// third crash it waits for two to four times the life of the process before.
			for i, life := range []time.Duration{time.Second, time.Second, 10 * time.Second} {
				st := diesAfter(life)
				s.Always("it is recovered", st.Meta.Status == jobs.Executing && st.Meta.RecoveryAttempts == i+1, st.Meta)
			}
			st := diesAfter(35 * time.Second)
			s.Always("then failed", st.Meta.Status == jobs.Failed, st.Meta)
			s.Advance(time.Hour) // the search for the killer of the process is over
			s.OK(j.Resume(s.Context(), s, "a"))
			s.OK(j.Trigger(s.Context(), s, "a"))
		}
	})
}
