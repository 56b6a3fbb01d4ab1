package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves H1: mistakes of Phase and Progress are refused before anything is written.
func TestMistakesOfPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []error
		p := three(config{}, func(ctx context.Context, t *task) (string, error) {
			got = append(got, phase(ctx, t, "d", fine), t.Progress(ctx, 1, ""))
			return "", phase(ctx, t, "a", func(ctx context.Context) error {
				got = append(got, phase(ctx, t, "b", fine), t.Progress(ctx, -1, ""), t.Progress(ctx, 101, ""))
				return nil
			})
		})
		h, s := spied(t, memstore.New(), object.Options{}, p)
		must(p.Stats(ctx, h))
		commits := s.during(func() { must(p.Enqueue(ctx, h, "")) })
		if commits != 4 { // enqueue with begin, begin and end of the phase, end of the task
			t.Errorf("H1: %d commits", commits)
		}
		for i, want := range []string{
			`tasks: invalid: task 0-1: phase "d" is not in Config.Phases ["a" "b" "c"]`,
			`tasks: invalid: task 0-1: Progress without a phase under way: call it in the function of a Phase`,
			`tasks: invalid: task 0-1: phase "b" was called while phase "a" is under way: phases run one after another`,
			`tasks: invalid: task 0-1: Progress of -1 percent: it must be from 0 to 100`,
			`tasks: invalid: task 0-1: Progress of 101 percent: it must be from 0 to 100`,
		} {
			if i >= len(got) || got[i] == nil || got[i].Error() != want || !errors.Is(got[i], jobs.ErrInvalid) {
				t.Errorf("the errors are %v, want at %d %q", got, i, want)
			}
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	claimed := &task{}
	for _, err := range []error{phase(ctx, claimed, "a", fine), claimed.Progress(ctx, 1, "")} {
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "needs Config.Phases, and a task that Config.Work runs") {
			t.Errorf("of a task without phases: %v", err)
		}
	}
	if claimed.Pool() != nil {
		t.Error("a task of the program's own has a pool")
	}
}

// Proves H1: the bounds of Config.Phases, each on both sides.
func TestBoundsOfPhases(t *testing.T) {
	work := func(context.Context, *task) (string, error) { return "", nil }
	many := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint(i))
		}
		return names
	}
	for _, c := range []struct {
		names []string
		work  func(context.Context, *task) (string, error)
		bad   string
	}{
		{many(64), work, ""},
		{many(65), work, "65 Phases, at most 64 are allowed"},
		{[]string{strings.Repeat("x", 128)}, work, ""},
		{[]string{strings.Repeat("x", 129)}, work, "must be 1 to 128 bytes"},
		{[]string{"a", ""}, work, "must be 1 to 128 bytes"},
		{[]string{"a\n"}, work, "without control characters"},
		{[]string{"a\xff"}, work, "of UTF-8"},
		{[]string{"a", "b", "a"}, work, `phase "a" is in Phases twice`},
		{[]string{"a"}, nil, "Phases without Work"},
		{nil, nil, ""},
	} {
		p := workerpool.New(config{Name: "tasks", Phases: c.names, Work: c.work})
		h, err := object.Open(object.Options{Dir: t.TempDir()}, p)
		switch {
		case err == nil && c.bad == "":
			shut(t, h)
		case err == nil || c.bad == "" || !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), c.bad):
			t.Errorf("%q: %v, want %q", c.names, err, c.bad)
		}
	}
}

// Proves H1: a result that is one byte too large, or that cannot be encoded, fails its phase
// with a clear error; the largest one is stored. With a small batch the limit is half of it.
func TestLargeResults(t *testing.T) {
	for _, o := range []object.Options{{MaxValueBytes: 1000}, {MaxBatchBytes: 2000, MaxValueBytes: 2000}} {
		synctest.Test(t, func(t *testing.T) {
			var large, odd error
			most := 0
			p := three(config{}, func(ctx context.Context, t *task) (string, error) {
				result := func(n int) error {
					_, err := workerpool.Phase(ctx, t, "a", func(context.Context) (string, error) { return strings.Repeat("x", n), nil })
					return err
				}
				most = 1000 - len("\x01\x01a") - 2 // version, name, quotes
				large = result(most + 1)
				_, odd = workerpool.Phase(ctx, t, "b", func(context.Context) (chan int, error) { return nil, nil })
				return "", result(most)
			})
			h, _ := spied(t, memstore.New(), o, p)
			id := must(p.Enqueue(ctx, h, "")).ID
			must(p.Wait(ctx, h, id))
			if !errors.Is(large, object.ErrValueTooLarge) || !strings.Contains(large.Error(), `phase "a" of task 0-1 returned 1001 bytes with its name, the limit is 1000: store it outside and return its name`) {
				t.Errorf("H1: a result that is too large: %v", large)
			}
			if odd == nil || !strings.Contains(odd.Error(), `tasks/0: encode result of phase "b" of task 0-1`) {
				t.Errorf("H1: a result that cannot be encoded: %v", odd)
			}
			same(t, "H3: the phases", states(must(p.Status(ctx, h, id))), []workerpool.State{workerpool.Done, workerpool.Pending, workerpool.Pending})
			if err := h.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// Proves H1: after a deploy that puts a phase in front, an attempt fails with both names and
// runs nothing. With the old order, and with a name at the end, the task goes on.
func TestPhaseOfAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		ran := map[string]int{}
		deploy := func(names ...string) (*pool, *object.Host) {
			p := workerpool.New(config{Name: "tasks", Phases: names, Retry: jobs.Retry{MaxAttempts: 1}, Work: func(ctx context.Context, t *task) (string, error) {
				for _, name := range names {
					if err := phase(ctx, t, name, func(context.Context) error {
						if ran[name]++; name == "parse" && ran[name] == 1 {
							return errors.New("broken")
						}
						return nil
					}); err != nil {
						return "", err
					}
				}
				return "", nil
			}})
			h, _ := spied(t, mem, object.Options{}, p)
			return p, h
		}
		p, h := deploy("download", "parse")
		id := must(p.Enqueue(ctx, h, "")).ID
		_, _ = p.Wait(ctx, h, id)
		shut(t, h)
		mem = mem.Crash(0)
		p, h = deploy("check", "download", "parse")
		same(t, "the letter", states(must(p.Status(ctx, h, id))), []workerpool.State{workerpool.Done, workerpool.Dead, workerpool.Dead})
		if _, err := p.Replay(ctx, h, id); err != nil {
			t.Errorf("H1: the task is not dead: %v", err)
		}
		_, err := p.Wait(ctx, h, id)
		if want := `phase 1 is "check" in Config.Phases, but the task has stored the result of "download" there`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("H1: %v, want %q", err, want)
		}
		if ran["check"] != 0 || ran["download"] != 1 || ran["parse"] != 1 {
			t.Errorf("H1: phases were run: %v", ran)
		}
		shut(t, h)
		mem = mem.Crash(0)
		p, h = deploy("download", "parse", "index")
		if _, err := p.Replay(ctx, h, id); err != nil {
			t.Errorf("H1: the task is not dead: %v", err)
		}
		if _, err := p.Wait(ctx, h, id); err != nil {
			t.Errorf("H1: with the old order: %v", err)
		}
		if ran["download"] != 1 || ran["parse"] != 2 || ran["index"] != 1 {
			t.Errorf("H1: phases were run: %v", ran)
		}
		shut(t, h)
	})
}

// Proves H3. A pool that has phases no more removes and shows those that are stored.
func TestPhasesOfAnEarlierConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		p := three(config{Retry: jobs.Retry{MaxAttempts: 1}}, func(ctx context.Context, t *task) (string, error) {
			return "", errors.Join(phase(ctx, t, "a", fine), errors.New("broken"))
		})
		h, _ := spied(t, mem, object.Options{}, p)
		ids := []workerpool.TaskID{must(p.Enqueue(ctx, h, "1")).ID, must(p.Enqueue(ctx, h, "2")).ID}
		for _, id := range ids {
			_, _ = p.Wait(ctx, h, id)
		}
		shut(t, h)
		p = workerpool.New(config{Name: "tasks", Work: func(context.Context, *task) (string, error) { return "", nil }})
		mem = mem.Crash(0)
		h, _ = spied(t, mem, object.Options{}, p)
		if n := must(p.DiscardDead(ctx, h, ids[0])) + must(p.Replay(ctx, h, ids[1])); n != 2 {
			t.Errorf("%d letters were taken", n)
		}
		must(p.Wait(ctx, h, ids[1]))
		for _, id := range ids {
			same(t, "the phases", states(must(p.Status(ctx, h, id))), []workerpool.State{workerpool.Done})
		}
		shut(t, h)
		rewrite(t, mem.Crash(0), func(all rows) {
			for key := range all {
				if strings.HasPrefix(key, "p/") {
					t.Errorf("H3: left is %q", key)
				}
			}
		})
	})
}
