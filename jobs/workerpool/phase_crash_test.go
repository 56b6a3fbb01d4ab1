package workerpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Phases under crashes. The audit of each stored state checks their rows (H1, H2, H3).

var phaseNames = []string{"a", "b", "c"}

// phased is a pool with three phases. The function of a phase is noted in the World as
// "run/" and its name, and a phase that has returned as "stored/".
func phased(s *harness.Sim, c config, fn func(ctx context.Context, t *workerpool.Task[string], phase string) error) *pool {
	c.Phases = phaseNames
	c.Work = func(ctx context.Context, t *workerpool.Task[string]) (out string, err error) {
		for _, name := range phaseNames {
			got, err := workerpool.Phase(ctx, t, name, func(ctx context.Context) (string, error) {
				s.World().Do("run/"+name, nil)
				return "did " + name, fn(ctx, t, name)
			})
			if err != nil {
				return "", err
			}
			s.World().Do("stored/"+name, nil)
			out += got + " "
		}
		return out, nil
	}
	return newPool(s, c)
}

// notAgain checks that no phase was run after it was stored, and none more than so often
// beside the crashes.
func notAgain(s *harness.Sim, most map[string]int) {
	seen := map[string]bool{}
	for _, e := range s.World().Log() {
		if name, ok := cutKey(e.Key, "run/"); ok && seen["stored/"+name] {
			s.Errorf("H1: phase %s was run again after its result was stored", name)
		}
		seen[e.Key] = true
	}
	for _, name := range phaseNames {
		if n := s.World().Count("run/" + name); n > max(1, most[name])+s.Crashes() {
			s.Errorf("H1: phase %s was run %d times with %d crashes", name, n, s.Crashes())
		}
	}
}

func cutKey(key, prefix string) (string, bool) {
	if len(key) < len(prefix) || key[:len(prefix)] != prefix {
		return "", false
	}
	return key[len(prefix):], true
}

// told is a part of the events of the pool that tests look at.
type told struct {
	kind string
	jobs.Event
	Phase   workerpool.PhaseStatus
	Percent int
}

func eventsOf(s *harness.Sim, p *pool) (all []told) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		list, err := h.Events(ctx, p.ID("0"), 0, 1000)
		all = nil
		for _, e := range list {
			one := told{kind: e.Kind}
			if err := json.Unmarshal(e.Data, &one); err != nil {
				return err
			}
			all = append(all, one)
		}
		return err
	}))
	return all
}

// states lists the states of the phases of a task.
func states(f workerpool.Status[string]) (all []workerpool.State) {
	for _, ph := range f.Phases {
		all = append(all, ph.State)
	}
	return all
}

// Proves H1, H2, H3, J6. Cases PH1, PH2 and PH3. The second of three phases fails once, and
// tells its progress. Finished phases are not run again, the events of each phase fit, and
// no event tells of less progress than one before it in the same execution.
func TestCrashPhases(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := phased(s, config{}, func(ctx context.Context, t *workerpool.Task[string], phase string) error {
			if phase != "b" {
				return nil
			}
			for _, percent := range []int{25, 50} { // the second waits for the end of the phase
				if err := t.Progress(ctx, percent, "some"); err != nil {
					return err
				}
			}
			if t.Attempt == 1 {
				return errors.New("not yet")
			}
			return nil
		})
		s.Host(p)
		id := enqueue(s, p, "x")
		finally(s, func() {
			info := status(s, p, id)
			if info.State != workerpool.Done || info.Result != "did a did b did c " || info.Percent != 100 || !slices.Equal(states(info), []workerpool.State{workerpool.Done, workerpool.Done, workerpool.Done}) {
				s.Errorf("H1: the task is %+v", info)
			}
			if len(info.Failures) != 1 {
				s.Errorf("H1: a crash counts as a failure: %+v", info.Failures)
			}
			notAgain(s, map[string]int{"b": 2})
			phaseEvents(s, p)
			oneEnd(s, p, info.Phases, jobs.EventSuccess)
		})
	})
}

// phaseEvents checks the events of a task that is done.
func phaseEvents(s *harness.Sim, p *pool) {
	percent, count, another := 0, map[string]int{}, false
	for _, e := range eventsOf(s, p) {
		if e.kind != workerpool.EventPhase {
			continue
		}
		if e.Reason == "start" && (another || s.Crashes() > 0) { // of the next execution
			percent = min(percent, e.Percent)
		}
		another = e.Reason == "failure"
		if e.Percent < percent {
			s.Errorf("H2: the progress falls from %d to %d: %+v", percent, e.Percent, e)
		}
		percent = e.Percent
		count[e.Reason+" "+e.Phase.Name]++
	}
	for _, name := range phaseNames {
		if n := count["success "+name]; n != 1 {
			s.Errorf("H1: the end of phase %s was told %d times", name, n)
		}
		if n := count["start "+name]; n != s.World().Count("run/"+name) && s.Crashes() == 0 {
			s.Errorf("H1: the start of phase %s was told %d times", name, n)
		}
	}
	if n := count["failure b"]; n < 1 || n > 1+s.Crashes() {
		s.Errorf("H1: the failure was told %d times", n)
	}
	if n := count["progress b"]; n != 4 && s.Crashes() == 0 {
		s.Errorf("H2: the progress was told %d times, want 4", n)
	}
}

// Proves H3, W6. Case PH4. The scenario of a Cancel between two phases: no further phase
// begins, the task and its unfinished phases are cancelled, and one event tells of it.
func TestCrashCancelBetweenPhases(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := phased(s, config{}, func(ctx context.Context, t *workerpool.Task[string], phase string) error {
			if phase != "b" {
				return nil
			}
			if _, err := t.Pool().Cancel(context.WithoutCancel(ctx), t, t.ID); err != nil {
				return err
			}
			s.World().Do("cancelled", nil)
			return nil // the phase succeeds all the same, and its result is stored
		})
		s.Host(p)
		id := enqueue(s, p, "x")
		finally(s, func() {
			info := status(s, p, id)
			if info.State != workerpool.Cancelled || s.World().Count("run/c") > 0 {
				s.Errorf("H3: %d times in the last phase: %+v", s.World().Count("run/c"), info)
			}
			last := states(info)
			if len(last) != 3 || last[0] != workerpool.Done || last[1] != workerpool.Done && s.Crashes() == 0 || last[2] != workerpool.Cancelled || last[1] == workerpool.Pending || last[1] == workerpool.Running {
				s.Errorf("H3: the phases are %v", last)
			}
			oneEnd(s, p, info.Phases, workerpool.EventCancelled)
			notAgain(s, nil)
		})
	})
}

// oneEnd checks that the only task of the pool has the given terminal events, one for each of its
// lives, that no event of a phase comes after the last, and that each cancelled phase is told once.
func oneEnd(s *harness.Sim, p *pool, phases []workerpool.PhaseStatus, want ...string) {
	var ends, cancelled []string
	for _, e := range eventsOf(s, p) {
		switch e.kind {
		case jobs.EventSuccess, jobs.EventExhausted, workerpool.EventCancelled:
			ends = append(ends, e.kind)
		case workerpool.EventPhase:
			if len(ends) == len(want) {
				s.Errorf("H3: after the end of the task: %+v", e)
			}
			if e.Reason == "cancelled" {
				cancelled = append(cancelled, e.Phase.Name)
			}
		}
	}
	if !slices.Equal(ends, want) {
		s.Errorf("H3: the events of the end are %v, want %v", ends, want)
	}
	var unfinished []string
	for _, f := range phases {
		if f.State == workerpool.Cancelled {
			unfinished = append(unfinished, f.Name)
		}
	}
	if !slices.Equal(cancelled, unfinished) && len(phases) > 0 {
		s.Errorf("H3: the phases %v are told as cancelled, and are %v", cancelled, unfinished)
	}
}

// Proves H3. Case PH4. A task that waits for its retry after a phase is cancelled: its
// unfinished phases are cancelled in the same batch.
func TestCrashCancelBeforeTheNextAttempt(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := phased(s, config{Retry: jobs.Retry{MaxAttempts: 9, Backoff: jobs.Constant(time.Hour)}}, func(_ context.Context, _ *workerpool.Task[string], phase string) error {
			if phase == "b" {
				return errors.New("not yet")
			}
			return nil
		})
		s.Host(p)
		id := enqueue(s, p, "x")
		s.Advance(10 * time.Second)
		before := status(s, p, id)
		if want := []workerpool.State{workerpool.Done, workerpool.Pending, workerpool.Pending}; before.State != workerpool.Pending || !slices.Equal(states(before), want) || before.Percent != 33 {
			s.Errorf("H3: after the first attempt: %+v", before)
		}
		ask(s, func() (workerpool.State, error) { return p.Cancel(s.Context(), s, id) })
		finally(s, func() {
			info := status(s, p, id)
			if want := []workerpool.State{workerpool.Done, workerpool.Cancelled, workerpool.Cancelled}; info.State != workerpool.Cancelled || !slices.Equal(states(info), want) {
				s.Errorf("H3: %+v", info)
			}
			oneEnd(s, p, info.Phases, workerpool.EventCancelled)
			notAgain(s, nil)
		})
	})
}

// Proves H1, H3. Case PH6. A dead letter keeps its finished phases for a replay, and a
// replayed task goes on behind them; its result can be read meanwhile.
func TestCrashReplayGoesOnBehindFinishedPhases(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		healed := false
		p := phased(s, config{Retry: jobs.Retry{MaxAttempts: 1}}, func(_ context.Context, _ *workerpool.Task[string], phase string) error {
			if phase == "b" && !healed {
				return errors.New("broken")
			}
			return nil
		})
		s.Host(p)
		id := enqueue(s, p, "x")
		s.Advance(10 * time.Second)
		if dead := status(s, p, id); !slices.Equal(states(dead), []workerpool.State{workerpool.Done, workerpool.Dead, workerpool.Dead}) {
			s.Errorf("H3: the dead task is %+v", dead)
		}
		result := ""
		if ok := ask(s, func() (bool, error) { return p.PhaseResult(s.Context(), s, id, "a", &result) }); !ok || result != "did a" {
			s.Errorf("H1: the result of a dead letter is %q", result)
		}
		healed = true
		unknown := false
		s.OK(s.Retry(func() error {
			_, err := p.Replay(s.Context(), s, id)
			if unknown && errors.Is(err, jobs.ErrNotFound) {
				return nil // the first was stored
			}
			unknown = unknown || harness.Unknown(err)
			return err
		}))
		finally(s, func() {
			if info := status(s, p, id); info.State != workerpool.Done || info.Result != "did a did b did c " {
				s.Errorf("H1: after the replay: %+v", info)
			}
			oneEnd(s, p, nil, jobs.EventExhausted, jobs.EventSuccess)
			notAgain(s, map[string]int{"b": 2})
		})
	})
}

// Proves H3. Cases PH5 and PH6. A dead letter that is discarded, and tasks that are, are cancelled
// with their phases, and leave no rows: the audit of each stored state sees to that.
func TestCrashDiscardWithPhases(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := phased(s, config{Retry: jobs.Retry{MaxAttempts: 1}}, func(_ context.Context, _ *workerpool.Task[string], phase string) error {
			if phase == "b" {
				return errors.New("broken")
			}
			return nil
		})
		s.Host(p)
		id := enqueue(s, p, "x")
		s.Advance(10 * time.Second)
		later := enqueue(s, p, "later", workerpool.Delay(time.Hour))
		s.OK(s.Retry(func() error {
			_, err := p.DiscardDead(s.Context(), s, id)
			if errors.Is(err, jobs.ErrNotFound) {
				return nil // an earlier try was stored
			}
			return err
		}))
		ask(s, func() (int, error) { return p.Discard(s.Context(), s) })
		finally(s, func() {
			for id, want := range map[workerpool.TaskID][]workerpool.State{
				id:    {workerpool.Done, workerpool.Cancelled, workerpool.Cancelled},
				later: {workerpool.Cancelled, workerpool.Cancelled, workerpool.Cancelled},
			} {
				if info := status(s, p, id); info.State != workerpool.Cancelled || !slices.Equal(states(info), want) {
					s.Errorf("H3: %+v", info)
				}
			}
		})
	})
}

// Proves H1, R4. A task that kills its process between each two of its phases goes on: each
// stored phase forgets the crashes before it, so that six crashes are not too many.
func TestCrashBetweenPhasesIsForgiven(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var names []string
		for i := range 8 {
			names = append(names, fmt.Sprint("phase ", i))
		}
		p := newPool(s, config{Phases: names, Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			for _, name := range names {
				if _, err := workerpool.Phase(ctx, t, name, func(context.Context) (int, error) {
					s.World().Do(name, nil)
					return 0, nil
				}); err != nil {
					return "", err
				}
				if s.World().Count(name+" over") == 0 {
					s.World().Do(name+" over", nil)
					s.Sleep(time.Hour)
				}
			}
			return "", nil
		}})
		s.Host(p)
		id := enqueue(s, p, "x")
		for _, name := range names {
			for n := 0; s.World().Count(name+" over") == 0; n++ {
				if s.Advance(time.Second); n == 60 {
					s.Fatalf("R4: the task does not come to %s: %+v", name, status(s, p, id))
				}
			}
			if n := s.World().Count(name); n != 1 {
				s.Errorf("H1: %s was run %d times", name, n)
			}
			s.Crash(harness.Kill)
			s.Restart()
		}
		s.Advance(time.Hour)
		if info := status(s, p, id); info.State != workerpool.Done {
			s.Errorf("R4: %+v", info)
		}
	})
}
