package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves J9, Case JB6: OnExhausted gets each run that was given up, under each policy. A
// job that is to be purged is failed until the call is over.
func TestOnExhausted(t *testing.T) {
	for policy, then := range map[jobs.Exhausted]jobs.Status{jobs.Keep: jobs.Running, jobs.Fail: jobs.Failed, jobs.Purge: jobs.None} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				var told []jobs.Exhaustion
				var during jobs.Status
				var j *continuous.Job[tally]
				j = ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour), Exhausted: policy, Retry: jobs.Retry{MaxAttempts: 2},
					Run: func(context.Context, *continuous.Run[tally]) error { return errors.New("boom") },
					OnExhausted: func(ctx context.Context, x *jobs.Exhaustion) error {
						st, err := j.Status(ctx, x, x.ID)
						told, during = append(told, *x), st.Meta.Status
						return err
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(time.Minute)
				s.Always("told once", len(told) == 1, told)
				x := told[0]
				s.Always("of what was given up", x.ID == "a" && x.Run == 1 && x.Attempts == 2 && x.Reason == jobs.ReasonAttempts && x.Error == "boom", x)
				s.Always("before it is gone", during == then || then == jobs.None && during == jobs.Failed, during)
				st, err := j.Status(s.Context(), s, "a")
				s.Always("and then", st.Meta.Status == then && st.Meta.Hooks == 0 && errors.Is(err, jobs.ErrNotFound) == (then == jobs.None), st.Meta, err)
				s.Advance(time.Hour)
				s.Always("each has a key of its own", policy != jobs.Keep || len(told) == 2 && told[1].Key != told[0].Key, told)
			})
		})
	}
}

// Proves J9: a failing call of OnExhausted is repeated, with the same key, until ten
// calls have failed. Runs go on meanwhile. A job that stays failed has an alarm only for
// the call.
func TestOnExhaustedThatFails(t *testing.T) {
	for _, failures := range []int{9, 10} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				keys, done := map[string]int{}, false
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour), Exhausted: jobs.Fail,
					Run: func(context.Context, *continuous.Run[tally]) error { return errors.New("boom") },
					OnExhausted: func(_ context.Context, x *jobs.Exhaustion) error {
						if keys[x.Key]++; keys[x.Key] <= failures {
							return errors.New("nobody listens")
						}
						done = true
						return nil
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(time.Second / 2)
				s.Always("nothing contradicts itself while it is owed", contradiction(s) == "", contradiction(s))
				s.Advance(10 * time.Minute)
				s.Always("ten calls with one key", len(keys) == 1 && done == (failures == 9), keys, done)
				for _, n := range keys {
					s.Always("ten calls", n == 10, n)
				}
				st, _ := know(s, j, "a")
				s.Always("nothing is owed", st.Meta.Hooks == 0 && st.Meta.Status == jobs.Failed && st.Meta.LastError == "boom", st.Meta)
				s.Always("no alarm", contradiction(s) == "", contradiction(s))
			})
		})
	}
}

// contradiction is the first finding of a scrubber in the living host.
func contradiction(s *harness.Sim) (found string) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		seen, err := recovery.Scrub(ctx, h, recovery.ScrubOptions{})
		for _, f := range seen.Findings {
			found = f.String()
		}
		return err
	}))
	return found
}

// Proves J9, J3: a job that is to be purged, and is resumed before its hook has ended,
// stays.
func TestResumeOfAJobToBePurged(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		fails := true
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour), Exhausted: jobs.Purge,
			Run: func(context.Context, *continuous.Run[tally]) error {
				if fails {
					return errors.New("boom")
				}
				return nil
			},
			OnExhausted: func(context.Context, *jobs.Exhaustion) error { s.Sleep(time.Minute); return nil },
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		st, _ := know(s, j, "a")
		s.Always("it is to be purged", st.Meta.Status == jobs.Failed && st.Meta.Purging, st.Meta)
		fails = false
		s.OK(j.Resume(s.Context(), s, "a"))
		s.Advance(2 * time.Hour)
		st, _ = know(s, j, "a")
		s.Always("it goes on", st.Meta.Status == jobs.Running && st.Meta.RunCount > 0 && !st.Meta.Purging && st.Meta.Hooks == 0, st.Meta)
	})
}

// Proves J9: while 16 calls of OnExhausted are owed no further run begins, and with
// 15 one does.
func TestOwedCallsAreBounded(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		runs, release := 0, false
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Second),
			Run:      func(context.Context, *continuous.Run[tally]) error { runs++; return errors.New("boom") },
			OnExhausted: func(context.Context, *jobs.Exhaustion) error {
				for !release {
					s.Sleep(time.Second)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(20 * time.Second)
		st, _ := know(s, j, "a")
		s.Always("sixteen are owed", runs == 16 && st.Meta.Hooks == 16 && st.Due.IsZero(), runs, st)
		release = true
		s.Advance(20 * time.Second)
		s.Always("it goes on", runs > 30, runs)
	})
}

// Proves J9, Case JB6: with a crash at any point, OnExhausted is called at least once,
// with one key, for each run that was given up, and never for another run.
func TestOnExhaustedSurvivesCrashes(t *testing.T) {
	for name, policy := range map[string]jobs.Exhausted{"keep": jobs.Keep, "fail": jobs.Fail, "purge": jobs.Purge} {
		t.Run(name, func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				calls := map[string]int{}
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour), Exhausted: policy,
					Run: func(context.Context, *continuous.Run[tally]) error { return errors.New("boom") },
					OnExhausted: func(_ context.Context, x *jobs.Exhaustion) error {
						s.World().Do("told/"+x.Key, nil)
						if calls[x.Key]++; calls[x.Key] == 1 {
							return errors.New("busy")
						}
						return nil
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(10 * time.Minute)
				s.Finally("told", func() error {
					for _, n := range calls {
						if len(calls) == 1 && n >= 2 {
							return nil
						}
					}
					return fmt.Errorf("calls %v", calls)
				})
			}, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, crashes.Budget(250),
				harness.Invariant("J9", func(store *storage.Store) error {
					return each(store, func(id storage.ID, m jobs.Meta) error {
						if m.Failures > 0 && m.Hooks > m.Failures {
							return fmt.Errorf("%s: %d calls are owed for %d runs", id, m.Hooks, m.Failures)
						}
						return nil
					})
				}))
		})
	}
}
