package continuous_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The tests of this file find mutations of internal/prove/mutation that the others
// let pass.

// Proves J3: a verb that changes nothing writes nothing, in a fresh process too.
func TestVerbThatChangesNothingWritesNothing(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := scheduled(s, time.Hour)
		s.Host(j)
		start(s, j, "running")
		start(s, j, "paused")
		s.Advance(time.Second)
		s.OK(j.Pause(s.Context(), s, "paused"))
		s.Restart()
		before := s.Store().Applied()
		s.OK(j.Resume(s.Context(), s, "running"))
		s.OK(j.Pause(s.Context(), s, "paused"))
		start(s, j, "running")
		s.Always("nothing was written", s.Store().Applied() == before, s.Store().Applied(), before)
	})
}

// Proves J3, J5: an execution cannot end if the status of its job is not executing. The
// end is an error, and leaves the rows as they are.
func TestEndOfAnExecutionThatTheStatusDenies(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Run: func(context.Context, *continuous.Run[tally]) error { s.Sleep(time.Hour); return nil }})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		var m jobs.Meta
		if _, err := harness.Stored(s.Store(), j.ID("a"), jobs.MetaKey, &m); err != nil {
			s.Fatalf("read: %v", err)
		}
		m.Status, m.ExecutingAt, m.ExecutionID = jobs.Running, time.Time{}, ""
		value, err := json.Marshal(m)
		s.OK(err)
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(raws))
		s.Must(writeRaw.Call(s.Context(), s, "a", rawRow{Key: jobs.MetaKey, Value: value}))
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(j))
		before := rowsOf(s, j.ID("a"))
		s.Advance(time.Second)
		after := rowsOf(s, j.ID("a"))
		s.Always("the rows are as they were", after == before, after, before)
	})
}

// Proves J3, J8: a job cannot be stopped if its metadata names an execution that is not
// open. The stop is an error, and leaves the rows as they are.
func TestStopOfAnUnknownExecution(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Run: func(context.Context, *continuous.Run[tally]) error { s.Sleep(time.Hour); return nil }})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		var m jobs.Meta
		if _, err := harness.Stored(s.Store(), j.ID("a"), jobs.MetaKey, &m); err != nil {
			s.Fatalf("read: %v", err)
		}
		m.ExecutionID = "other"
		value, err := json.Marshal(m)
		s.OK(err)
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(raws))
		s.Must(writeRaw.Call(s.Context(), s, "a", rawRow{Key: jobs.MetaKey, Value: value}))
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(j))
		before := rowsOf(s, j.ID("a"))
		err = stopIt(s, j)
		s.Always("refused", errors.Is(err, jobs.ErrStaleExecution), err)
		s.Always("the rows are as they were", rowsOf(s, j.ID("a")) == before, rowsOf(s, j.ID("a")), before)
	})
}

// Proves J16: a job that waits for a permit and is paused, or is not due any more,
// does not say that it waits.
func TestPausedJobDoesNotWait(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Concurrency: 1, Run: func(context.Context, *continuous.Run[tally]) error { s.Sleep(time.Hour); return nil }})
		s.Host(j)
		start(s, j, "first")
		start(s, j, "second")
		s.Advance(time.Second)
		st, _ := know(s, j, "second")
		s.Always("it waits", st.Waiting, st)
		s.OK(j.Pause(s.Context(), s, "second"))
		st, _ = know(s, j, "second")
		s.Always("paused, it does not", !st.Waiting && st.Due.IsZero(), st)
		st, _ = know(s, j, "first")
		s.Always("nor does one that executes", !st.Waiting, st)
	})
}

// Proves R2, J6: the end of a run writes too much and cannot be stored. The run counts as
// lost at the stale threshold and runs again, until its recoveries are used up (R4).
func TestEndThatCannotBeStored(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		calls := 0
		j := ticking(s, continuous.Config[tally]{Run: func(context.Context, *continuous.Run[tally]) error {
			calls++
			return errors.New(strings.Repeat("x", engine.MaxTextBytes))
		}})
		s.Host(j)
		start(s, j, "a")
		s.Advance(29 * time.Second)
		s.Always("not before the threshold", calls == 1, calls)
		s.Advance(2 * time.Second)
		s.Always("again at the threshold", calls == 2, calls)
		s.Advance(3 * time.Minute)
		st, _ := know(s, j, "a")
		s.Always("and then given up", calls == 4 && st.Meta.Status == jobs.Failed, calls, st.Meta)
	}, harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes = 3000 }))
}

// Proves J10: the turn that terminates an overdue job begins no run of it.
func TestTerminateOfAnOverdueJob(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := scheduled(s, time.Hour)
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		s.Crash(harness.Kill)
		s.Advance(2 * time.Hour)
		s.Restart()
		before := len(s.World().Log())
		s.OK(j.Terminate(s.Context(), s, "a", ""))
		s.Advance(2 * time.Hour)
		s.Always("no run any more", len(s.World().Log()) == before, s.World().Log())
	})
}

// A call of many jobs calls 64 of them at a time.
func TestEachAtItsDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := continuous.New(continuous.Config[int]{Name: "job", Run: func(context.Context, *continuous.Run[int]) error { return nil }})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, j)
		if err != nil {
			t.Fatal(err)
		}
		for asked, want := range map[int]int{0: 64, -1: 64, 1: 1, 65: 65, 1000: 100} {
			var running, most atomic.Int64
			names := ids(100)
			engine.Each(h, names, asked, func(int) {
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Second)
				running.Add(-1)
			})
			if int(most.Load()) != want {
				t.Errorf("asked for %d at once: %d, want %d", asked, most.Load(), want)
			}
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Proves C5: Rearm reads 256 jobs at a time.
func TestRearmPage(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		const page = 256
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour), StartLater: true})
		s.Host(j)
		for i := range page + 1 {
			start(s, j, fmt.Sprint(i))
		}
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			var told []int
			_, err := j.Rearm(ctx, h, jobs.RearmOptions{Progress: func(r jobs.Rearmed) { told = append(told, r.Jobs) }})
			s.Always("told of a page and of the rest", len(told) == 2 && told[0] == page && told[1] == page+1, told)
			for _, size := range []int{1, -1} {
				told = nil
				_, err2 := j.Rearm(ctx, h, jobs.RearmOptions{Page: size, Progress: func(r jobs.Rearmed) { told = append(told, r.Jobs) }})
				s.OK(err2)
				s.Always("a page has at least one job", len(told) == page+1 && told[0] == 1, size, len(told))
			}
			return err
		}))
	})
}

// Proves J8: the end of a run that was cancelled with its job is stale and is counted.
func TestStaleEndIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := continuous.New(continuous.Config[int]{Name: "job", Run: func(context.Context, *continuous.Run[int]) error {
			time.Sleep(time.Minute) // and not until ctx ends
			return nil
		}})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Start(t.Context(), h, "a", 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := j.Stop(t.Context(), h, "a", "enough"); err != nil {
			t.Fatal(err)
		}
		before := executions(t, h, "stale")
		time.Sleep(2 * time.Minute)
		if n := executions(t, h, "stale"); before != 0 || n != 1 {
			t.Errorf("%v stale ends before the run has ended, %v after it", before, n)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// executions is the metric of the executions with an outcome.
func executions(t *testing.T, h *object.Host, outcome string) (n float64) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "holdfast_executions_total" && l.GetName() == "outcome" && l.GetValue() == outcome {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// timers is a clock that counts the timers of a certain length that are armed.
type timers struct {
	seam.Clock
	length time.Duration

	mu    sync.Mutex
	armed int
}

func (c *timers) add(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed += n
	return c.armed
}

type countedTimer struct {
	seam.Timer
	c *timers
}

func (c *timers) AfterFunc(d time.Duration, f func()) seam.Timer {
	if d != c.length {
		return c.Clock.AfterFunc(d, f)
	}
	c.add(1)
	return countedTimer{c.Clock.AfterFunc(d, f), c}
}

func (t countedTimer) Stop() bool {
	stopped := t.Timer.Stop()
	if stopped {
		t.c.add(-1)
	}
	return stopped
}

// Proves J7: the timer of an execution's timeout ends with the execution.
func TestTimeoutLeavesNoTimer(t *testing.T) {
	for name, end := range map[string]error{"success": nil, "failure": errors.New("boom")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &timers{Clock: seam.Seams{}.WithDefaults().Clock, length: 17 * time.Minute}
				seen := 0
				j := continuous.New(continuous.Config[int]{Name: "job", Timeout: clock.length, Run: func(context.Context, *continuous.Run[int]) error {
					seen = clock.add(0)
					return end
				}})
				h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Seams: seam.Seams{Clock: clock}}, j)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := j.Start(t.Context(), h, "a", 0); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if left := clock.add(0); seen != 1 || left != 0 {
					t.Errorf("%d timers while it runs, %d after it", seen, left)
				}
				if err := h.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
