package continuous_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// fleet is a group of jobs. Each run takes work; a run with "killer" in its job's id
// kills the process after delay.
type fleet struct {
	s     *harness.Sim
	job   *continuous.Job[tally]
	ids   []string
	runs  map[string]int
	kills bool // a killer asks for the end of the process

	running, most int // runs at a time
}

func newFleet(s *harness.Sim, work, delay time.Duration, n int, killers ...string) *fleet {
	return newFleetOf(s, continuous.Config[tally]{}, work, delay, n, killers...)
}

func newFleetOf(s *harness.Sim, c continuous.Config[tally], work, delay time.Duration, n int, killers ...string) *fleet {
	f := &fleet{s: s, runs: make(map[string]int), ids: killers}
	c.Schedule = jobs.Every(10 * time.Hour)
	c.Run = func(_ context.Context, run *continuous.Run[tally]) error {
		f.runs[run.ID]++
		f.running++
		f.most = max(f.most, f.running)
		if strings.Contains(run.ID, "killer") {
			s.Sleep(delay)
			f.kills = true
			s.Sleep(time.Hour)
		}
		s.Sleep(work)
		f.running--
		return nil
	}
	f.job = ticking(s, c)
	for i := range n {
		f.ids = append(f.ids, fmt.Sprint("n", i))
	}
	s.Host(f.job)
	for _, id := range f.ids {
		start(s, f.job, id)
	}
	return f
}

// die crashes the process and starts the next.
func (f *fleet) die() {
	f.s.Crash(harness.Kill)
	f.kills, f.running = false, 0
	f.s.Restart()
}

// live lets time pass in which the killers kill.
func (f *fleet) live(limit time.Duration) {
	for end := f.s.Now().Add(limit); f.s.Now().Before(end); f.s.Advance(time.Second) {
		if f.kills {
			f.die()
		}
	}
}

// check looks at the status of all jobs: the killers have failed after at most 8
// executions, and the others have done their run.
func (f *fleet) check() {
	for _, id := range f.ids {
		st, _ := know(f.s, f.job, id)
		if !strings.Contains(id, "killer") {
			f.s.Always("R4: a job beside a killer has done its run", st.Meta.Status == jobs.Running && st.Meta.RunCount == 1, id, st.Meta)
			continue
		}
		f.s.Always("R4: a killer has failed after at most 8 crashes",
			st.Meta.Status == jobs.Failed && st.Meta.StopReason == "given up: recoveries" && f.runs[id] >= 4 && f.runs[id] <= 8, id, f.runs[id], st.Meta)
	}
}

// Proves R4, R7. Case SU4: a job that kills its process each time fails after at most
// 8 crashes, at once or after a while, and none of the jobs beside it does.
func TestKillerAmongJobs(t *testing.T) {
	tests := []struct {
		n           int
		work, delay time.Duration
		killers     []string
	}{
		{0, 0, 0, []string{"killer"}},
		{40, 10 * time.Second, 0, []string{"killer"}},
		{20, 3 * time.Minute, time.Minute, []string{"killer"}},
		{10, 10 * time.Second, 0, []string{"killer", "zkiller"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.killers, " after ", tt.delay, " among ", tt.n), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				f := newFleet(s, tt.work, tt.delay, tt.n, tt.killers...)
				f.live(time.Hour)
				f.check()
			})
		})
	}
}

// Proves R4, C3. Case SU5: crashes with a cause outside fail no job, at any rhythm, and
// one crash delays no job.
func TestCrashesFromOutsideFailNoJob(t *testing.T) {
	for _, every := range []time.Duration{1200 * time.Millisecond, 4 * time.Second, 20 * time.Second, 70 * time.Second} {
		t.Run(fmt.Sprint("every ", every), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				f := newFleet(s, 2*time.Minute, 0, 6)
				s.Advance(every)
				f.die()
				s.Advance(101 * time.Millisecond)
				for _, id := range f.ids {
					s.Always("one crash delays nobody", f.runs[id] == 2, id, f.runs[id])
				}
				for range 20 {
					s.Advance(every)
					f.die()
				}
				s.Advance(time.Hour)
				f.check()
			})
		})
	}
}

// Proves R4, O14. A run that is held back can be cancelled. A shutdown does not wait for
// it, and costs it no attempt.
func TestHeldRunEnds(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		f := newFleet(s, 10*time.Second, 0, 2)
		for range 2 {
			s.Advance(time.Second)
			f.die()
		}
		s.Advance(time.Second)
		s.Always("held", f.runs["n0"] == 2, f.runs)
		began := s.Now()
		s.Restart() // in order
		s.Always("the shutdown waits for nothing", s.Now().Sub(began) < time.Second, s.Now().Sub(began))
		s.Advance(time.Second)
		s.Always("free after an end in order", f.runs["n0"] == 3, f.runs)
		st, _ := know(s, f.job, "n0")
		s.Always("two crashes", st.Meta.RecoveryAttempts == 2, st.Meta)
		for range 2 {
			f.die()
			s.Advance(time.Second)
		}
		s.Always("held again", f.runs["n1"] == 4, f.runs)
		s.OK(f.job.Stop(s.Context(), s, "n1", "enough"))
		s.Advance(time.Minute)
		st, _ = know(s, f.job, "n1")
		s.Always("stopped and never run", st.Meta.Status == jobs.Stopped && f.runs["n1"] == 4, st.Meta, f.runs)
		st, _ = know(s, f.job, "n0")
		s.Always("the other has run", st.Meta.RunCount == 1, st.Meta)
	})
}

// Proves J16, R4: under a Concurrency, too, a killer fails after at most 8 crashes, and
// the jobs that wait behind it do their run.
func TestKillerUnderConcurrency(t *testing.T) {
	for _, atOnce := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(atOnce), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				f := newFleetOf(s, continuous.Config[tally]{Concurrency: atOnce}, 10*time.Second, time.Second, 12, "killer")
				f.live(time.Hour)
				f.check()
				s.Always("at a time", f.most <= atOnce, f.most)
			})
		})
	}
}
