package continuous_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves J21, J22, J23: a failed and a stopped job become stale and are removed, each at the time
// that its Retention has for its status and not a second before, and both hooks are called.
func TestRetentionOfEachEnd(t *testing.T) {
	for status, after := range map[jobs.Status]time.Duration{jobs.Failed: 2 * time.Hour, jobs.Stopped: 3 * time.Hour} {
		t.Run(status.String(), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				var called []string
				note := func(hook string) func(context.Context, *jobs.Retired) error {
					return func(_ context.Context, r *jobs.Retired) error {
						called = append(called, hook+" "+r.ID+" "+r.Status.String())
						return nil
					}
				}
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(24 * time.Hour), Exhausted: jobs.Fail,
					Retention: jobs.Retention{Failed: 2 * time.Hour, Stopped: 3 * time.Hour, StaleAfter: time.Hour, OnStale: note("stale"), OnDelete: note("delete")},
					Run: func(_ context.Context, run *continuous.Run[tally]) error {
						if status == jobs.Failed {
							return errors.New("boom")
						}
						run.Stop("enough")
						return nil
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(time.Second)
				m := restOf(s, j)
				s.Always("it has ended", m.Status == status && !m.EndedAt.IsZero(), m)
				at := func(d time.Duration) { s.Advance(m.EndedAt.Add(d).Sub(s.Now())) }
				stale, gone := "stale a "+status.String(), "delete a "+status.String()

				at(time.Hour - time.Second)
				s.Always("not stale yet", !restOf(s, j).Stale && len(called) == 0, called)
				at(time.Hour + time.Second)
				s.Always("stale", restOf(s, j).Stale && slices.Equal(called, []string{stale}), called)
				at(after - time.Second)
				s.Always("not gone yet", restOf(s, j).Status == status && len(called) == 1, called)
				at(after + time.Second)
				_, err := j.Status(s.Context(), s, "a")
				s.Always("gone", errors.Is(err, jobs.ErrNotFound) && slices.Equal(called, []string{stale, gone}), called, err)
			})
		})
	}
}

// restOf reads the metadata of job a.
func restOf(s *harness.Sim, j *continuous.Job[tally]) jobs.Meta {
	st, _ := know(s, j, "a")
	return st.Meta
}

// Proves J21: Open refuses a Retention that cannot be kept, and names its field.
func TestRetentionIsRefused(t *testing.T) {
	for field, r := range map[string]jobs.Retention{"Retention.Failed": {Failed: -1}, "Retention.Stopped": {Stopped: time.Hour, StaleAfter: time.Hour + 1}} {
		j := continuous.New(continuous.Config[tally]{Name: "counter", Run: func(context.Context, *continuous.Run[tally]) error { return nil }, Retention: r})
		if _, err := object.Open(object.Options{Dir: t.TempDir()}, j); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
