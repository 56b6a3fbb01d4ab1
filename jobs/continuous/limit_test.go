package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// queue is jobs of one definition that share a limit, and a record of their runs.
type queue struct {
	s       *harness.Sim
	job     *continuous.Job[tally]
	began   []time.Time
	order   []string // ids in the order in which runs began
	running int
	most    int                                    // at a time
	run     func(run *continuous.Run[tally]) error // nil: takes a second
}

func newQueue(s *harness.Sim, c continuous.Config[tally], others ...object.Definition) *queue {
	q := &queue{s: s, run: func(*continuous.Run[tally]) error { s.Sleep(time.Second); return nil }}
	c.Run = func(_ context.Context, run *continuous.Run[tally]) error {
		q.began, q.order = append(q.began, s.Now()), append(q.order, run.ID)
		q.running++
		q.most = max(q.most, q.running)
		err := q.run(run)
		q.running--
		return err
	}
	q.job = ticking(s, c)
	s.Host(append(others, q.job)...)
	return q
}

// ids are n names in order.
func ids(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("j%03d", i))
	}
	return all
}

func (q *queue) start(n int) (all []string) {
	all = ids(n)
	for _, id := range all {
		start(q.s, q.job, id)
	}
	return all
}

// done counts the jobs that have committed their first run.
func (q *queue) done(all []string) (n int) {
	for _, id := range all {
		if st, _ := know(q.s, q.job, id); st.Meta.RunCount > 0 {
			n++
		}
	}
	return n
}

// Proves J16, Case SC8: as many runs as Concurrency allows execute at a time, never
// more and never fewer while others wait, in the order in which they came due.
func TestConcurrency(t *testing.T) {
	for _, atOnce := range []int{1, 3, 8} {
		t.Run(fmt.Sprint(atOnce), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				q := newQueue(s, continuous.Config[tally]{Concurrency: atOnce})
				all := q.start(24)
				rounds := time.Duration(24 / atOnce)
				s.Advance(rounds*time.Second - 200*time.Millisecond)
				st, _ := know(s, q.job, all[23])
				s.Always("the last is under way", st.Meta.Status == jobs.Executing, st.Meta.Status)
				s.Advance(400 * time.Millisecond)
				s.Always("all have run in as many rounds as it takes", q.done(all) == 24, q.done(all))
				s.Always("at a time", q.most == atOnce, q.most)
				s.Always("in order", slices.Equal(q.order, all), q.order)
			})
		})
	}
}

// Proves J16: a run that waits is seen as such, costs no commit, and takes no slot that
// another class needs.
func TestWaitingRun(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		ran := 0
		other := continuous.New(continuous.Config[tally]{
			Name: "other", Schedule: jobs.Every(time.Minute),
			Run: func(context.Context, *continuous.Run[tally]) error { ran++; return nil },
		})
		q := newQueue(s, continuous.Config[tally]{Concurrency: 1}, other)
		q.run = func(*continuous.Run[tally]) error { s.Sleep(time.Hour); return nil }
		all := q.start(40) // more than there are slots for alarms in flight
		s.Advance(time.Minute)
		first, _ := know(s, q.job, all[0])
		last, _ := know(s, q.job, all[39])
		s.Always("one executes", first.Meta.Status == jobs.Executing && !first.Waiting, first)
		s.Always("one waits", last.Meta.Status == jobs.Running && last.Waiting && !last.Due.After(s.Now()), last)
		_, err := other.Start(s.Context(), s, "free", tally{})
		s.OK(err)
		s.Advance(time.Minute + time.Second)
		s.Always("another class runs", ran == 2, ran)
	}, harness.HostOptions(func(o *object.Options) { o.AlarmsInFlight = 16 }))
}

// Proves J16: a retry waits behind the runs that came due before it. A run that a crash
// has cut off goes before all waiting runs when it is recovered.
func TestOrderInLine(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		q := newQueue(s, continuous.Config[tally]{Concurrency: 1, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(1500 * time.Millisecond)}})
		q.run = func(run *continuous.Run[tally]) error {
			s.Sleep(time.Second)
			if run.ID == "j000" && run.Attempt == 1 {
				return errors.New("boom")
			}
			return nil
		}
		all := q.start(6)
		s.Advance(4500 * time.Millisecond)
		s.Crash(harness.Kill) // in the run of j004
		q.running = 0
		s.Restart()
		s.Advance(5 * time.Second)
		s.Always("order", slices.Equal(q.order, []string{"j000", "j001", "j002", "j003", "j004", "j005", "j004", "j000"}), q.order)
		s.Always("all", q.done(all) == 6)
	})
}

// Proves J17, Case SC9: starts keep the rate, to the nanosecond, and use all of it. Runs
// that came due during a downtime start spread over time.
func TestStartRate(t *testing.T) {
	for _, c := range []struct {
		rate object.StartRate
		gap  time.Duration // between two starts
		once int           // at the beginning
	}{
		{object.StartRate{Starts: 10, Per: time.Second, Burst: 1}, 100 * time.Millisecond, 1},
		{object.StartRate{Starts: 3, Per: time.Second, Burst: 2}, 333333334, 2},
		{object.StartRate{Starts: 100, Per: time.Second}, 10 * time.Millisecond, 10},
		{object.StartRate{Starts: 1, Per: time.Minute}, time.Minute, 1},
	} {
		t.Run(fmt.Sprint(c.rate), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				q := newQueue(s, continuous.Config[tally]{Schedule: jobs.Rate(24 * time.Hour), StartLater: true, StartRate: c.rate})
				q.run = func(*continuous.Run[tally]) error { return nil }
				all := q.start(20)
				s.Shutdown()
				s.Advance(30 * time.Hour)
				s.Restart()
				s.Advance(20*c.gap + time.Second)
				s.Always("all have run", q.done(all) == 20 && len(q.began) == 20, q.done(all))
				for i, at := range q.began {
					// From start i to start i+k at least k+1-burst gaps pass.
					for k, later := range q.began[i:] {
						least := time.Duration(k+1-c.once) * c.gap
						s.Always("the rate is kept", later.Sub(at) >= least, i, k, later.Sub(at), least)
					}
				}
				taken, whole := q.began[19].Sub(q.began[0]), time.Duration(20-c.once)*c.gap
				s.Always("the rate is used", taken <= whole+time.Millisecond, taken, whole)
			})
		})
	}
}

// Proves J16, J7: a run longer than its lease goes on while others wait, and one that
// outlasts its Timeout is ended, also if its work does not return.
func TestLongRunAmongWaiting(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		q := newQueue(s, continuous.Config[tally]{Concurrency: 1, Timeout: 2 * time.Minute})
		q.run = func(run *continuous.Run[tally]) error {
			if run.ID == "j000" {
				s.Sleep(100 * time.Second)
			}
			if run.ID == "j001" {
				s.Sleep(time.Hour) // hears no context
			}
			return nil
		}
		q.start(4)
		s.Advance(101 * time.Second)
		st, _ := know(s, q.job, "j000")
		s.Always("one execution", st.Meta.RunCount == 1 && st.Meta.RecoveryAttempts == 0, st.Meta)
		s.Advance(2*time.Minute + 31*time.Second)
		st, _ = know(s, q.job, "j001")
		s.Always("fenced off after Timeout and Lease", st.Meta.Failures == 1 && st.Meta.Status == jobs.Running, st.Meta)
		st, _ = know(s, q.job, "j002")
		s.Always("its work still runs, and counts", q.running == 1 && st.Meta.RunCount == 0, q.running, st.Meta)
		s.Advance(time.Hour)
		s.Always("then the others", q.done([]string{"j002", "j003"}) == 2 && q.most == 1, q.most)
	})
}

// Proves J16: jobs that are paused, stopped or terminated while they wait leave the
// line, and the others move up.
func TestLeavingTheLine(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		q := newQueue(s, continuous.Config[tally]{Concurrency: 1})
		q.start(6)
		s.Advance(500 * time.Millisecond)
		s.OK(q.job.Pause(s.Context(), s, "j001"))
		s.OK(q.job.Stop(s.Context(), s, "j002", "enough"))
		s.OK(q.job.Terminate(s.Context(), s, "j003", "enough"))
		s.OK(q.job.Stop(s.Context(), s, "j000", "enough")) // it executes
		s.Advance(10 * time.Second)
		s.Always("the others", slices.Equal(q.order, []string{"j000", "j004", "j005"}) && q.most == 1, q.order, q.most)
		for _, id := range []string{"j001", "j002", "j000"} {
			s.OK(q.job.Resume(s.Context(), s, id))
		}
		start(s, q.job, "j003")
		s.Advance(10 * time.Second)
		s.Always("and those that came back", slices.Equal(q.order[3:], []string{"j001", "j002", "j003"}) && q.most == 1, q.order)
	})
}

// Proves J16, R4, C3, Case SC8: crashes at each point lose no run that waits, and never
// are more under way than may be.
func TestConcurrencySurvivesCrashes(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		running := map[int]int{} // by process
		j := ticking(s, continuous.Config[tally]{
			Concurrency: 1, Schedule: jobs.Every(time.Hour),
			Run: func(context.Context, *continuous.Run[tally]) error {
				process := s.Crashes()
				running[process]++
				s.Always("J16: one at a time", running[process] == 1, running)
				s.Sleep(time.Second)
				running[process]--
				return nil
			},
		})
		s.Host(j)
		s.Finally("each ran", func() error {
			for _, id := range ids(3) {
				st, state := know(s, j, id)
				counted(s, st, state, s.Crashes())
				if st.Meta.RunCount == 0 {
					return fmt.Errorf("%s has not run: %+v", id, st)
				}
			}
			return nil
		})
		for _, id := range ids(3) {
			start(s, j, id)
		}
		s.Advance(10 * time.Second)
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves J16, J17: limits that make no sense are refused where they are defined.
func TestLimitsAreChecked(t *testing.T) {
	run := func(context.Context, *continuous.Run[tally]) error { return nil }
	for _, c := range []continuous.Config[tally]{
		{Concurrency: -1}, {StartRate: object.StartRate{Starts: 1}}, {StartRate: object.StartRate{Per: 1}}, {StartRate: object.StartRate{Burst: 1}},
		{StartRate: object.StartRate{Starts: -1, Per: time.Second}}, {StartRate: object.StartRate{Starts: 1, Per: time.Second, Burst: -1}},
		{StartRate: object.StartRate{Starts: 1, Per: 24 * time.Hour, Burst: 1 << 40}},
	} {
		c.Name, c.Run = "limited", run
		if err := c.Validate(); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%+v %+v: %v", c.Concurrency, c.StartRate, err)
		}
	}
	for _, c := range []continuous.Config[tally]{
		{}, {Concurrency: 1}, {StartRate: object.StartRate{Starts: 1, Per: 1}}, {StartRate: object.StartRate{Starts: 2, Per: 1<<63 - 1, Burst: 1}}, {StartRate: object.StartRate{Starts: 1 << 40, Per: time.Second, Burst: 1 << 20}},
	} {
		c.Name, c.Run = "limited", run
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c.StartRate, err)
		}
	}
}

// Proves J16, J17, R7: the limits hold through crashes, repeated deliveries, pauses and
// triggers, and the run of each job is done in the end.
func TestRandomLimits(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		atOnce := rapid.IntRange(0, 3).Draw(rt, "at once")
		gap := time.Duration(rapid.IntRange(1, 300).Draw(rt, "gap")) * time.Millisecond
		failing := rapid.SampledFrom(ids(6)).Draw(rt, "failing")
		running, last := map[int]int{}, map[int]time.Time{} // by process
		j := ticking(s, continuous.Config[tally]{
			Concurrency: atOnce, StartRate: object.StartRate{Starts: 1, Per: gap, Burst: 1}, Schedule: jobs.Every(time.Hour),
			Retry: jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Second)},
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				process, now := s.Crashes(), s.Now()
				running[process]++
				s.Always("J16", atOnce == 0 || running[process] <= atOnce, running)
				suspects := process > 1 // there may be suspects, which are started by their trials
				s.Always("J17", suspects || last[process].IsZero() || now.Sub(last[process]) >= gap-time.Millisecond, now, last)
				last[process] = now
				s.Sleep(time.Second)
				running[process]--
				if run.ID == failing && run.Attempt == 1 {
					return errors.New("boom")
				}
				return nil
			},
		})
		s.Host(j)
		for _, id := range ids(6) {
			start(s, j, id)
			if rapid.IntRange(0, 3).Draw(rt, "disturb") > 0 {
				continue
			}
			disturbed := rapid.SampledFrom(ids(6)).Draw(rt, "disturbed")
			for _, verb := range []func(context.Context, object.Caller, string) error{j.Pause, j.Resume, j.Trigger} {
				err := verb(s.Context(), s, disturbed)
				s.Always("a verb fails for a job that is not there or a crash only", err == nil || errors.Is(err, jobs.ErrNotFound) || errors.Is(err, jobs.ErrIllegalMove) || s.Crashes() > 0, err)
			}
		}
		s.Finally("each ran", func() error {
			for _, id := range ids(6) {
				st, state := know(s, j, id)
				counted(s, st, state, 2)
				if st.Meta.RunCount == 0 && st.Meta.Status != jobs.Paused {
					return fmt.Errorf("%s has not run: %+v", id, st)
				}
			}
			return nil
		})
		s.Advance(30 * time.Second)
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}
