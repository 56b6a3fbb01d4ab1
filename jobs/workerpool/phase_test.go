package workerpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

type task = workerpool.Task[string]

// three is a pool with three phases and the given work.
func three(c config, work func(ctx context.Context, t *task) (string, error)) *pool {
	c.Name, c.Phases, c.Work = "tasks", phaseNames, work
	return workerpool.New(c)
}

// phase runs a phase that returns its name.
func phase(ctx context.Context, t *task, name string, fn func(ctx context.Context) error) error {
	_, err := workerpool.Phase(ctx, t, name, func(ctx context.Context) (string, error) {
		return name, fn(ctx)
	})
	return err
}

func fine(context.Context) error { return nil }

// phaseTold lists the events of phases of partition 0, as text.
func phaseTold(t *testing.T, h *object.Host, p *pool) (all []string) {
	t.Helper()
	for _, e := range must(h.Events(ctx, p.ID("0"), 0, 1000)) {
		var one told
		if err := json.Unmarshal(e.Data, &one); err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case workerpool.EventPhase:
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s/%d %s %s %s %d%% %d%% %s", one.Subject, one.Attempt, one.Reason, one.Phase.Name, one.Phase.State, one.Phase.Percent, one.Percent, one.Phase.Note+one.Error)))
		case workerpool.EventCancelled:
			all = append(all, e.Kind)
		}
	}
	return all
}

// Proves H1, H2, H3, J6: a task is told in full at each moment: its phases, its progress and
// its events. The second attempt gets the result of the first phase without running it.
func TestPhasesInEachState(t *testing.T) {
	var step chan error // made in the bubble
	ran := 0
	p := three(config{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}}, func(ctx context.Context, t *task) (string, error) {
		got, err := workerpool.Phase(ctx, t, "a", func(context.Context) (int, error) {
			ran++
			return 7, <-step
		})
		if err != nil || got != 7 {
			return "", fmt.Errorf("a gave %d: %w", got, err)
		}
		if err := phase(ctx, t, "b", func(ctx context.Context) error {
			if err := t.Progress(ctx, 40, "forty"); err != nil {
				return err
			}
			return <-step
		}); err != nil {
			return "", err
		}
		return "out", phase(ctx, t, "c", fine)
	})
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		step = make(chan error)
		look := func(name string, id workerpool.TaskID, percent int, want ...workerpool.PhaseStatus) {
			t.Helper()
			synctest.Wait()
			got := must(p.Status(ctx, h, id))
			same(t, name, got.Phases, want)
			same(t, name, got.Percent, percent)
		}
		type ps = workerpool.PhaseStatus
		done := func(name string) ps { return ps{Name: name, State: workerpool.Done, Percent: 100} }
		later := must(p.Enqueue(ctx, h, "later", workerpool.Delay(time.Hour))).ID
		look("before", later, 0, ps{Name: "a"}, ps{Name: "b"}, ps{Name: "c"})
		id := must(p.Enqueue(ctx, h, "x")).ID
		look("in the first phase", id, 0, ps{Name: "a", State: workerpool.Running}, ps{Name: "b"}, ps{Name: "c"})
		step <- nil
		look("in the second phase", id, 47, done("a"), ps{Name: "b", State: workerpool.Running, Percent: 40, Note: "forty"}, ps{Name: "c"})
		var n int
		if ok, err := p.PhaseResult(ctx, h, id, "a", &n); !ok || n != 7 || err != nil {
			t.Errorf("H1: the result of the first phase is %d, %v, %v", n, ok, err)
		}
		if ok, err := p.PhaseResult(ctx, h, id, "b", &n); ok || n != 7 || err != nil {
			t.Errorf("H1: the second phase has the result %d, %v, %v", n, ok, err)
		}
		results := []workerpool.PhaseResult{{Name: "a", Raw: []byte("7")}}
		same(t, "H1: the results in the second phase", must(p.PhaseResults(ctx, h, id)), results)
		same(t, "H1: the results before the first phase", len(must(p.PhaseResults(ctx, h, later))), 0)
		step <- errors.New("no")
		look("waits for its retry", id, 33, done("a"), ps{Name: "b", Note: "forty", Error: "no"}, ps{Name: "c"})
		time.Sleep(time.Minute)
		look("in the second phase again", id, 47, done("a"), ps{Name: "b", State: workerpool.Running, Percent: 40, Note: "forty"}, ps{Name: "c"})
		step <- nil
		look("done", id, 100, done("a"), done("b"), done("c"))
		if ok, err := p.PhaseResult(ctx, h, id, "a", &n); ok || err != nil {
			t.Errorf("H3: the result of a task that is done: %v, %v", ok, err)
		}
		same(t, "H3: the results of a task that is done", len(must(p.PhaseResults(ctx, h, id))), 0)
		if _, err := p.PhaseResults(ctx, h, workerpool.TaskID{Number: 9}); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("the results of an unknown task: %v", err)
		}
		if _, err := p.PhaseResult(ctx, h, workerpool.TaskID{Number: 9}, "a", &n); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("the result of an unknown task: %v", err)
		}
		if ran != 1 {
			t.Errorf("H1: the first phase was run %d times", ran)
		}
		must(p.Cancel(ctx, h, later))
		look("cancelled", later, 0, ps{Name: "a", State: workerpool.Cancelled}, ps{Name: "b", State: workerpool.Cancelled}, ps{Name: "c", State: workerpool.Cancelled})
		same(t, "events", phaseTold(t, h, p), []string{
			"task/2/1 start a running 0% 0%", "task/2/1 success a done 100% 33%",
			"task/2/1 start b running 0% 33%", "task/2/1 progress b running 40% 47% forty", "task/2/1 failure b pending 0% 47% fortyno",
			"task/2/2 start b running 0% 33%", "task/2/2 progress b running 40% 47% forty", "task/2/2 success b done 100% 67%",
			"task/2/2 start c running 0% 67%", "task/2/2 success c done 100% 100%", "cancelled",
		})
	})
}

// Proves H2: the overall progress, as the promise reckons it, and both bounds.
func TestOverallProgress(t *testing.T) {
	for _, c := range []struct{ phase, percent, want int }{
		{0, 0, 0}, {0, 1, 0}, {0, 2, 1}, {0, 50, 17}, {0, 100, 33}, {1, 0, 33}, {1, 25, 42}, {2, 80, 93}, {2, 98, 99}, {2, 99, 100}, {2, 100, 100},
	} {
		var hold chan error // made in the bubble
		p := three(config{}, func(ctx context.Context, t *task) (string, error) {
			for _, name := range phaseNames[:c.phase] {
				if err := phase(ctx, t, name, fine); err != nil {
					return "", err
				}
			}
			return "", phase(ctx, t, phaseNames[c.phase], func(ctx context.Context) error {
				if err := t.Progress(ctx, c.percent, ""); err != nil {
					return err
				}
				return <-hold
			})
		})
		inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
			hold = make(chan error)
			id := must(p.Enqueue(ctx, h, "")).ID
			synctest.Wait()
			if got := must(p.Status(ctx, h, id)); got.Percent != c.want || got.State != workerpool.Running {
				t.Errorf("H2: %d %% of phase %d of three are %d %%, want %d", c.percent, c.phase, got.Percent, c.want)
			}
			hold <- nil
		})
	}
}

// Proves H2: progress never falls while an execution runs, whether a phase tells less, runs
// again, or comes after a later one. The next execution begins with the phases that are done.
func TestProgressNeverFalls(t *testing.T) {
	var p *pool
	var h *object.Host
	var seen []int
	p = three(config{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)}}, func(ctx context.Context, t *task) (string, error) {
		look := func(err error) {
			if err != nil {
				panic(err)
			}
			seen = append(seen, must(p.Status(ctx, h, t.ID)).Percent)
		}
		if t.Attempt == 2 {
			look(nil)
			return "", nil
		}
		look(phase(ctx, t, "b", func(ctx context.Context) error {
			for _, percent := range []int{50, 20, 60} {
				time.Sleep(time.Second)
				look(t.Progress(ctx, percent, fmt.Sprint(percent)))
			}
			return nil
		}))
		for range 2 {
			_ = phase(ctx, t, "a", func(ctx context.Context) error {
				look(t.Progress(ctx, 100, ""))
				return errors.New("again")
			})
			look(nil)
		}
		look(phase(ctx, t, "c", fine))
		return "", errors.New("another attempt")
	})
	inBubble(t, p, func(t *testing.T, host *object.Host, _ *loglines.Recorder) {
		h = host
		id := must(p.Enqueue(ctx, h, "")).ID
		_, _ = p.Wait(ctx, h, id)
		same(t, "H2: the progress", seen, []int{50, 50, 53, 67, 67, 67, 67, 67, 100, 67})
	})
}

// Proves H2: a progress is stored at once or a quarter of a second after the last one, so at
// most four times a second, and the last is stored always: by a timer, with the end of its
// phase, or with its failure.
func TestProgressIsStoredFourTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begin time.Time
		p := three(config{Retry: jobs.Retry{MaxAttempts: 1}}, func(ctx context.Context, t *task) (string, error) {
			err := phase(ctx, t, "a", func(ctx context.Context) error {
				begin = time.Now()
				for i := range 70 { // for half a second
					if err := t.Progress(ctx, i/2, "note "+fmt.Sprint(i)); err != nil {
						return err
					}
					time.Sleep(7 * time.Millisecond)
				}
				time.Sleep(2 * time.Second)
				return t.Progress(ctx, 90, "silence")
			})
			if err != nil {
				return "", err
			}
			return "", phase(ctx, t, "b", func(ctx context.Context) error {
				return errors.Join(t.Progress(ctx, 10, "ten"), t.Progress(ctx, 20, "twenty"), errors.New("broken"))
			})
		})
		h, _ := spied(t, memstore.New(), object.Options{}, p)
		id := must(p.Enqueue(ctx, h, "")).ID
		if _, err := p.Wait(ctx, h, id); !errors.Is(err, workerpool.ErrFailed) {
			t.Error(err)
		}
		var got []string
		for _, e := range must(h.Events(ctx, p.ID("0"), 0, 1000)) {
			var one told
			if err := json.Unmarshal(e.Data, &one); err != nil {
				t.Fatal(err)
			}
			if one.Reason == "progress" {
				got = append(got, fmt.Sprintf("%v %s %d%% %s", e.At.Sub(begin), one.Phase.Name, one.Phase.Percent, one.Phase.Note))
			}
		}
		same(t, "H2: the stored progress", got, []string{
			"0s a 0% note 0", "250ms a 17% note 35", "500ms a 34% note 69", "2.49s a 90% silence", "2.49s b 20% twenty",
		})
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Proves H2: a progress does not wait for the disk.
func TestProgressIsUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		hold := make(chan error)
		p := three(config{}, func(ctx context.Context, t *task) (string, error) {
			return "", phase(ctx, t, "a", func(ctx context.Context) error {
				if err := t.Progress(ctx, 10, ""); err != nil {
					return err
				}
				return <-hold
			})
		})
		h, _ := spied(t, mem, object.Options{}, p)
		id := must(p.Enqueue(ctx, h, "")).ID
		synctest.Wait()
		if mem.Unsynced() != 1 {
			t.Errorf("H2: %d commits are not durable, want that of the progress", mem.Unsynced())
		}
		if got := must(p.Status(ctx, h, id)); got.Percent != 3 || mem.Unsynced() != 0 {
			t.Errorf("H2: told are %d %%, and %d commits are not durable", got.Percent, mem.Unsynced())
		}
		hold <- nil
		must(p.Wait(ctx, h, id))
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Proves H3, J8. An attempt that was given up, because it has ignored its timeout for a lease,
// stores no phase and no progress later.
func TestStaleAttemptStoresNoPhase(t *testing.T) {
	var late []error
	var hold chan error // made in the bubble
	p := three(config{Timeout: time.Second, Lease: 3 * time.Second, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)}}, func(ctx context.Context, t *task) (string, error) {
		err := phase(ctx, t, "a", func(context.Context) error {
			err := <-hold
			late = append(late, t.Progress(context.Background(), 50, ""))
			return err
		})
		late = append(late, err)
		return "", err
	})
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		hold = make(chan error)
		id := must(p.Enqueue(ctx, h, "")).ID
		time.Sleep(time.Minute)
		before := must(p.Status(ctx, h, id))
		same(t, "given up", before.State, workerpool.Pending)
		hold <- nil
		synctest.Wait()
		if len(late) != 2 || !errors.Is(late[0], jobs.ErrStaleExecution) || !errors.Is(late[1], jobs.ErrStaleExecution) {
			t.Errorf("J8: %v", late)
		}
		same(t, "H3: the task", must(p.Status(ctx, h, id)), before)
		same(t, "events", phaseTold(t, h, p), []string{"task/1/1 start a running 0% 0%"})
	})
}

// Proves H3, W6. The end of a running task that is cancelled tells of the phase under way
// before it tells of the task. A phase that ends with a result is stored all the same, and none begins.
func TestCancelOfARunningPhase(t *testing.T) {
	for _, fails := range []bool{true, false} {
		var next error
		p := three(config{}, func(ctx context.Context, t *task) (string, error) {
			err := phase(ctx, t, "a", func(ctx context.Context) error {
				err := t.Sleep(ctx, time.Hour)
				if fails {
					return err
				}
				return nil
			})
			if err == nil {
				err = phase(context.WithoutCancel(ctx), t, "b", fine)
				next = phase(ctx, t, "c", fine)
			}
			return "", err
		})
		inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
			id := must(p.Enqueue(ctx, h, "")).ID
			synctest.Wait()
			must(p.Cancel(ctx, h, id))
			if _, err := p.Wait(ctx, h, id); !errors.Is(err, workerpool.ErrCancelled) {
				t.Error(err)
			}
			want, first := []string{"task/1/1 start a running 0% 0%", "task/1/1 cancelled a cancelled 0% 0%", "task/1/1 cancelled b cancelled 0% 0%", "task/1/1 cancelled c cancelled 0% 0%", "cancelled"}, workerpool.Cancelled
			if !fails {
				want, first = []string{want[0], "task/1/1 success a done 100% 33%", "task/1/1 cancelled b cancelled 0% 33%", "task/1/1 cancelled c cancelled 0% 33%", "cancelled"}, workerpool.Done
				if !errors.Is(next, workerpool.ErrCancelled) {
					t.Errorf("H3: with the context of a cancelled task: %v", next)
				}
			}
			same(t, "H3: events", phaseTold(t, h, p), want)
			same(t, "H3: phases", states(must(p.Status(ctx, h, id))), []workerpool.State{first, workerpool.Cancelled, workerpool.Cancelled})
		})
	}
}

// A phase that panics or ends its goroutine has failed, with one event; a snooze is no failure.
func TestOddEndsOfPhases(t *testing.T) {
	for _, c := range []struct {
		name string
		fn   func() error
		want []string
	}{
		{"panic", func() error { panic("ouch") }, []string{"task/1/1 failure a pending 0% 0% panic: ouch"}},
		{"exit", func() error { runtime.Goexit(); return nil }, []string{"task/1/1 failure a pending 0% 0% panic: <nil>"}},
		{"snooze", func() error { return jobs.Snooze(time.Hour) }, nil},
	} {
		p := three(config{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)}}, func(ctx context.Context, t *task) (string, error) {
			return "", phase(ctx, t, "a", func(context.Context) error { return c.fn() })
		})
		inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
			id := must(p.Enqueue(ctx, h, "")).ID
			synctest.Wait()
			same(t, c.name, phaseTold(t, h, p), slices.Concat([]string{"task/1/1 start a running 0% 0%"}, c.want))
			if f := must(p.Status(ctx, h, id)); f.State != workerpool.Pending || (f.Phases[0].Error != "") != (c.want != nil) || f.Phases[0].State != workerpool.Pending {
				t.Errorf("%s: the task is %+v", c.name, f)
			}
		})
	}
}
