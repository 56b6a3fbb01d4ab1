package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves C1, J4, Case SC7: a batch starts each job once, also with a crash at any point,
// and starts the others if one is refused.
func TestStartAllSurvivesCrashes(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
		s.Host(j)
		batch := []continuous.Start[tally]{{ID: "a"}, {ID: "b"}, {ID: ""}, {ID: "a"}}
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				got := j.StartAll(ctx, h, batch)
				for i, r := range got {
					if bad := errors.Is(r.Err, object.ErrBadName); r.Err != nil && !bad {
						return r.Err
					} else if bad != (i == 2) {
						return fmt.Errorf("item %d: %w", i, r.Err)
					}
				}
				s.Always("the second of an id starts nothing", !got[3].Started.Created)
				return nil
			})
		}))
		s.Advance(5 * time.Second) // after two crashes in a row a run is held back for 3 s
		for _, id := range []string{"a", "b"} {
			st, state := know(s, j, id)
			s.Always("one run", st.Meta.RunCount == 1, st.Meta)
			counted(s, st, state, s.Crashes())
		}
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves C1: when the context of a batch has ended, nothing more of it starts.
func TestStartAllEndsWithItsContext(t *testing.T) {
	h, done := open(Reports)
	defer done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range Reports.StartAll(ctx, h, []continuous.Start[report]{{ID: "a"}, {ID: "b"}}) {
		if !errors.Is(r.Err, context.Canceled) || r.Started.Created {
			t.Errorf("%+v", r)
		}
	}
}

// Proves C1, D2, Case SC7: a batch calls as many jobs at a time as it may, never more, and
// those of one name one after another.
func TestEachIsBounded(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		s.Host(ticking(s, continuous.Config[tally]{}))
		const atOnce = 3
		var running, most int
		var ofOne []int
		busy := map[string]bool{}
		names := []string{"a", "b", "a", "c", "d", "a", "e"}
		s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
			engine.Each(h, names, atOnce, func(i int) {
				s.Always("one of a name at a time", !busy[names[i]], names[i])
				busy[names[i]] = true
				running++
				most = max(most, running)
				s.Sleep(time.Second)
				running--
				busy[names[i]] = false
				if names[i] == "a" {
					ofOne = append(ofOne, i)
				}
			})
			return nil
		}))
		s.Always("at a time", most == atOnce, most)
		s.Always("those of one name in order", slices.Equal(ofOne, []int{0, 2, 5}), ofOne)
		s.Always("all have ended", running == 0, running)
	})
}
