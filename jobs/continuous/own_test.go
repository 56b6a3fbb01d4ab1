package continuous_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// hops is how often a job of pass is still to trigger the other one.
type hops struct {
	Left  int
	Other string
}

// pass triggers another job of its own definition. It uses run.Job, because a definition
// cannot name its own variable.
var pass = continuous.New(continuous.Config[hops]{
	Name: "pass", Schedule: jobs.Every(24 * time.Hour), StartLater: true,
	Run: func(ctx context.Context, run *continuous.Run[hops]) error {
		if run.State.Left == 0 {
			return nil
		}
		run.State.Left--
		return run.Job().Trigger(ctx, run, run.State.Other)
	},
})

// Proves J6: work reaches its own definition. Two jobs of one definition trigger each
// other until neither has a hop left; at a crash a trigger may be repeated, and none is
// lost.
func TestRunTriggersItsOwnDefinition(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(pass)
		for _, c := range [][2]string{{"ping", "pong"}, {"pong", "ping"}} {
			s.OK(s.Retry(func() error {
				_, err := pass.Start(s.Context(), s, c[0], hops{2, c[1]})
				return err
			}))
		}
		s.OK(s.Retry(func() error { return pass.Trigger(s.Context(), s, "ping") }))
		s.Advance(time.Minute)
		s.Finally("each has triggered the other", func() error {
			for _, id := range []string{"ping", "pong"} {
				var st continuous.Status
				var state hops
				s.OK(s.Retry(func() (err error) {
					if st, err = pass.Status(s.Context(), s, id); err != nil {
						return err
					}
					state, err = pass.State(s.Context(), s, id)
					return err
				}))
				s.Always("no hop is left", state.Left == 0, id, state)
				s.Always("a run repeats for a crash only", st.Meta.RunCount >= 2 && st.Meta.RunCount <= uint64(3+s.Crashes()), id, st.Meta.RunCount)
			}
			return nil
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves J6: a job that triggers itself runs again when its run has ended.
func TestRunTriggersItself(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(pass)
		s.OK(s.Retry(func() error {
			_, err := pass.Start(s.Context(), s, "echo", hops{3, "echo"})
			return err
		}))
		s.OK(s.Retry(func() error { return pass.Trigger(s.Context(), s, "echo") }))
		s.Advance(time.Minute)
		s.Finally("no hop is left", func() error {
			state, err := pass.State(s.Context(), s, "echo")
			s.Always("no hop is left", err != nil || state.Left == 0, state)
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// A run that a program has made by itself has no definition.
func TestRunWithoutADefinition(t *testing.T) {
	if j := new(continuous.Run[hops]).Job(); j != nil {
		t.Errorf("Job is %v, want nil", j)
	}
}
