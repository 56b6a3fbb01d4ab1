package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Pools on a real host.

// open opens a host on dir that is shut down with the test, unless it was before.
func open(t testing.TB, dir string, defs ...object.Definition) *object.Host {
	t.Helper()
	h, err := object.Open(object.Options{Dir: dir}, defs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, h) })
	return h
}

func shut(t testing.TB, h *object.Host) {
	t.Helper()
	if err := h.Shutdown(context.Background()); err != nil && !errors.Is(err, object.ErrShutdown) {
		t.Error(err)
	}
}

// must returns the result of a call that may not fail.
func must[R any](r R, err error) R {
	if err != nil {
		panic(err)
	}
	return r
}

// journal is a list that works add to.
type journal struct {
	mu   sync.Mutex
	list []string
}

func (l *journal) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, s)
}

// all returns what was added.
func (l *journal) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

var ctx = context.Background()

// ordered is a pool of one worker that notes the order of its tasks.
func ordered(c config) (*pool, *journal) {
	l := &journal{}
	c.Name, c.Concurrency = "ordered", 1
	c.Work = func(_ context.Context, t *workerpool.Task[string]) (string, error) {
		l.add(t.In)
		return "", nil
	}
	return workerpool.New(c), l
}

// runAll submits tasks to a paused pool and then lets it run them.
func runAll(t *testing.T, p *pool, items []workerpool.Item[string]) {
	t.Helper()
	h := open(t, t.TempDir(), p)
	if err := p.Pause(ctx, h); err != nil {
		t.Fatal(err)
	}
	refs := must(p.EnqueueBatch(ctx, h, items))
	if len(refs) != len(items) {
		t.Fatalf("%d ids for %d tasks", len(refs), len(items))
	}
	if err := p.Drain(ctx, h); err != nil {
		t.Fatal(err)
	}
	if s := must(p.Stats(ctx, h)); s.Check() != nil || s.Done != uint64(len(items)) {
		t.Errorf("stats %+v", s)
	}
}

func item(in string, opts ...workerpool.Option) workerpool.Item[string] {
	return workerpool.Item[string]{In: in, Options: opts}
}

// Proves W4: tasks of a backlog run in the order of their priorities, with their own
// inputs, though memory does not hold their rows and reads a few at a time.
func TestBacklogRunsInOrder(t *testing.T) {
	for name, priority := range map[string]func(i int) int{
		"none":  func(int) int { return 0 },
		"two":   func(i int) int { return i % 2 },
		"mixed": func(i int) int { return i * 7 % 40 },
	} {
		t.Run(name, func(t *testing.T) {
			p, ran := ordered(config{})
			p.SetWindow(70)
			var items []workerpool.Item[string]
			for i := range 400 {
				in := fmt.Sprint(i)
				if i%31 == 7 {
					in += strings.Repeat(" large", 200)
				}
				items = append(items, item(in, workerpool.Priority(priority(i))))
			}
			runAll(t, p, items)
			order := make([]int, len(items))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(i, j int) int { return priority(j) - priority(i) })
			for i, n := range order {
				if ran.list[i] != items[n].In {
					t.Fatalf("task %d to run was %.10q, want %.10q", i, ran.list[i], items[n].In)
				}
			}
		})
	}
}

// Proves W4. Tasks go to all partitions, by their keys.
func TestTasksGoToPartitions(t *testing.T) {
	p := workerpool.New(workerpool.Config[int, string]{
		Name: "tasks", Concurrency: 8, Partitions: 3,
		Work: func(_ context.Context, t *workerpool.Task[int]) (string, error) { return fmt.Sprint(t.In), nil },
	})
	h := open(t, t.TempDir(), p)
	parts := make(map[int]int)
	for i := range 60 {
		ref := must(p.Enqueue(ctx, h, i, workerpool.Key(fmt.Sprint(i%20))))
		if out := must(p.Wait(ctx, h, ref.ID)); out != fmt.Sprint(i) {
			t.Errorf("task %s: output %q, want %d", ref.ID, out, i)
		}
		if again := must(p.Enqueue(ctx, h, i, workerpool.Key(fmt.Sprint(i%20)))); again.ID.Partition != ref.ID.Partition {
			t.Errorf("key %d went to partitions %d and %d", i%20, ref.ID.Partition, again.ID.Partition)
		}
		parts[ref.ID.Partition]++
	}
	for range 30 {
		must(p.Enqueue(ctx, h, 0)) // the same input, and no key: anywhere
	}
	if err := p.Drain(ctx, h); err != nil || len(parts) != 3 {
		t.Errorf("tasks went to partitions %v, want all three (%v)", parts, err)
	}
	s := must(p.Stats(ctx, h))
	if err := s.Check(); err != nil || s.Done != 150 || s.Pending+s.Running != 0 || len(s.Partitions) != 3 {
		t.Errorf("stats %+v, %v", s, err)
	}
}

// Proves W4. In a queue the highest priority goes first, and among equals the task that
// was submitted first. That holds beyond the part of the queue in memory too.
func TestPriorities(t *testing.T) {
	for _, window := range []int{1, 7, 1024} {
		p, log := ordered(config{})
		p.SetWindow(window)
		var items []workerpool.Item[string]
		var want []string
		for i := range 120 {
			priority := i * 7 % 5
			in := fmt.Sprintf("%d/%03d", 9-priority, i)
			items = append(items, item(in, workerpool.Priority(priority)))
			want = append(want, in)
		}
		slices.Sort(want)
		runAll(t, p, items)
		if !slices.Equal(log.list, want) {
			t.Errorf("window %d: tasks ran in the order %v", window, log.list)
		}
	}
}

// Proves W4. No queue starves: they share the workers by weight.
func TestQueuesShareByWeight(t *testing.T) {
	p, log := ordered(config{Queues: map[string]int{"heavy": 3, "light": 1}})
	var items []workerpool.Item[string]
	for range 40 {
		items = append(items, item("heavy", workerpool.Queue("heavy"), workerpool.Priority(1000)))
	}
	for range 40 {
		items = append(items, item("light", workerpool.Queue("light")))
	}
	runAll(t, p, items)
	light := strings.Count(strings.Join(log.list[:40], " "), "light")
	if light < 9 || light > 11 {
		t.Errorf("of the first 40 tasks %d are light, want 10", light)
	}
}

// Proves W3. At no time do more tasks run than the pool or the key allows.
func TestLimits(t *testing.T) {
	var mu sync.Mutex
	running, most := map[string]int{}, map[string]int{}
	p := workerpool.New(workerpool.Config[string, string]{
		Name: "limits", Concurrency: 5, Partitions: 2, PerKey: 2,
		Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			mu.Lock()
			for _, k := range []string{"all", t.Key} {
				running[k]++
				most[k] = max(most[k], running[k])
			}
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				running["all"]--
				running[t.Key]--
			}()
			return "", nil
		},
	})
	var items []workerpool.Item[string]
	for i := range 300 {
		items = append(items, item("", workerpool.Key([]string{"a", "b", "c"}[i%3])))
	}
	runAll(t, p, items)
	if most["all"] > 5 || most["a"] > 2 || most["b"] > 2 || most["c"] > 2 {
		t.Errorf("most tasks at a time: %v", most)
	}
}

// Proves W7. Tasks that cannot be accepted are refused, and leave nothing behind.
func TestRefusals(t *testing.T) {
	p := workerpool.New(workerpool.Config[picky, string]{Name: "refusals", MaxQueued: 2, Queues: map[string]int{"q": 1}})
	h := open(t, t.TempDir(), p)
	for name, try := range map[string]struct {
		in   picky
		opts []workerpool.Option
		want error
	}{
		"bad input":      {in: -1, want: errPicky},
		"no such queue":  {opts: []workerpool.Option{workerpool.Queue("x")}, want: jobs.ErrInvalid},
		"priority":       {opts: []workerpool.Option{workerpool.Priority(1001)}, want: jobs.ErrInvalid},
		"negative delay": {opts: []workerpool.Option{workerpool.Delay(-1)}, want: jobs.ErrInvalid},
		"ancient time":   {opts: []workerpool.Option{workerpool.At(time.Unix(-5, 0))}, want: jobs.ErrInvalid},
		"long key":       {opts: []workerpool.Option{workerpool.Key(strings.Repeat("k", 600))}, want: jobs.ErrInvalid},
		"unencodable":    {in: 666, want: errPicky},
	} {
		if _, err := p.Enqueue(ctx, h, try.in, try.opts...); !errors.Is(err, try.want) {
			t.Errorf("%s: %v, want %v", name, err, try.want)
		}
	}
	if os := must(h.Objects(ctx, "refusals", object.ObjectsOptions{Limit: 10})); len(os) != 0 {
		t.Errorf("refused tasks left objects: %+v", os)
	}
	must(p.Enqueue(ctx, h, 1))
	must(p.Enqueue(ctx, h, 1))
	if _, err := p.Enqueue(ctx, h, 1); !errors.Is(err, workerpool.ErrQueueFull) {
		t.Errorf("a full queue answers %v", err)
	}
	if _, err := p.Status(ctx, h, workerpool.TaskID{Number: 99}); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("status of no task: %v", err)
	}
	if _, err := p.Cancel(ctx, h, workerpool.TaskID{Partition: 7, Number: 99}); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("cancel of no task: %v", err)
	}
	if _, err := p.Replay(ctx, h, workerpool.TaskID{Number: 1}); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("replay of a task that is not dead: %v", err)
	}
	if s := must(p.Stats(ctx, h)); s.Submitted != 2 || s.Check() != nil {
		t.Errorf("stats %+v", s)
	}
}

// picky is an input that can be wrong.
type picky int

var errPicky = errors.New("picky")

func (p picky) Validate() error {
	if p < 0 {
		return errPicky
	}
	return nil
}

func (p picky) MarshalJSON() ([]byte, error) {
	if p == 666 {
		return nil, errPicky
	}
	return fmt.Appendf(nil, "%d", p), nil
}

func TestBadDefinitions(t *testing.T) {
	for name, c := range map[string]config{
		"no name":           {},
		"few workers":       {Name: "x", Concurrency: 2, Partitions: 3},
		"many partitions":   {Name: "x", Partitions: 5000, Concurrency: 5000},
		"negative limit":    {Name: "x", PerKey: -1},
		"weight":            {Name: "x", Queues: map[string]int{"q": 0}},
		"long queue":        {Name: "x", Queues: map[string]int{strings.Repeat("q", 99): 1}},
		"negative timeout":  {Name: "x", Timeout: -1},
		"heartbeat > lease": {Name: "x", Heartbeat: time.Minute},
		"retry":             {Name: "x", Retry: jobs.Retry{MaxAttempts: -1}},
	} {
		if h, err := object.Open(object.Options{Dir: t.TempDir()}, workerpool.New(c)); err == nil {
			t.Errorf("%s: taken", name)
			shut(t, h)
		}
	}
}

// An error or panic of a work fails its own task, and no other.
func TestFailuresOfTheWork(t *testing.T) {
	p := workerpool.New(workerpool.Config[string, any]{
		Name: "failures", Retry: jobs.Retry{MaxAttempts: 1}, Timeout: 20 * time.Millisecond,
		Work: func(ctx context.Context, t *workerpool.Task[string]) (any, error) {
			switch t.In {
			case "panic":
				panic("ouch")
			case "output":
				return func() {}, nil
			case "large":
				return strings.Repeat("x", 3<<20), nil
			case "slow":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return 1, nil
		},
	})
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		for in, want := range map[string]string{"panic": "ouch", "output": "unsupported type", "large": "too large", "slow": "timed out"} {
			ref := must(p.Enqueue(ctx, h, in))
			if _, err := p.Wait(ctx, h, ref.ID); !errors.Is(err, workerpool.ErrFailed) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", in, err)
			}
		}
		if _, err := p.Wait(ctx, h, must(p.Enqueue(ctx, h, "good")).ID); err != nil {
			t.Error(err)
		}
		if n := must(p.ReplayAll(ctx, h)); n != 4 {
			t.Errorf("replayed %d", n)
		}
	})
}

// Proves W6. A running task that is cancelled learns of it, and its status tells how it
// ended: cancelled if it gives up, done if it succeeds all the same.
func TestCancelRunning(t *testing.T) {
	begun := make(chan struct{}, 1)
	p := workerpool.New(config{
		Name: "cancel", Concurrency: 1,
		Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			if t.In == "stubborn" {
				return "did it", nil
			}
			return "", context.Cause(ctx)
		},
	})
	h := open(t, t.TempDir(), p)
	for in, want := range map[string]workerpool.State{"yielding": workerpool.Cancelled, "stubborn": workerpool.Done} {
		ref := must(p.Enqueue(ctx, h, in))
		<-begun
		if state := must(p.Cancel(ctx, h, ref.ID)); state != workerpool.Running {
			t.Errorf("%s: Cancel says %s", in, state)
		}
		_, err := p.Wait(ctx, h, ref.ID)
		if (want == workerpool.Cancelled) != errors.Is(err, workerpool.ErrCancelled) {
			t.Errorf("%s: %v", in, err)
		}
		if state := must(p.Cancel(ctx, h, ref.ID)); state != want {
			t.Errorf("%s: it became %s, want %s", in, state, want)
		}
	}
}

// Case 18. A pool goes on with its tasks when its number of partitions changes, and never
// runs more at a time than it may.
func TestPartitionsChange(t *testing.T) {
	dir := t.TempDir()
	wide := workerpool.New(config{Name: "pool", Partitions: 4, Concurrency: 4})
	h := open(t, dir, wide)
	var ids []workerpool.TaskID
	for i := range 40 {
		ids = append(ids, must(wide.Enqueue(ctx, h, fmt.Sprint(i), workerpool.Key(fmt.Sprint(i)))).ID)
	}
	shut(t, h)

	narrow := workerpool.New(config{
		Name: "pool", Partitions: 2, Concurrency: 4,
		Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) { return t.In, nil },
	})
	h = open(t, dir, narrow)
	if err := narrow.Resume(ctx, h); err != nil {
		t.Fatal(err)
	}
	if s := must(narrow.Stats(ctx, h)); len(s.Partitions) != 4 || s.Submitted != 40 {
		t.Errorf("stats %+v", s)
	}
	for i, id := range ids {
		if id.Partition > 1 {
			if _, err := narrow.Status(ctx, h, id); err != nil {
				t.Errorf("task %d: %v", i, err)
			}
		}
	}
	if err := narrow.Drain(ctx, h); err != nil {
		t.Fatal(err)
	}
	if s := must(narrow.Stats(ctx, h)); s.Done != 40 {
		t.Errorf("stats %+v", s)
	}
}

// A work calls other objects with its task.
func TestTaskIsACaller(t *testing.T) {
	inner := workerpool.New(config{Name: "inner", Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
		return t.In + "!", nil
	}})
	outer := workerpool.New(config{Name: "outer", Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
		ref, err := inner.Enqueue(ctx, t, t.In, workerpool.Idempotent(t.OutsideKey, 0))
		if err != nil {
			return "", err
		}
		return inner.Wait(ctx, t, ref.ID)
	}})
	h := open(t, t.TempDir(), inner, outer)
	if out := must(outer.Wait(ctx, h, must(outer.Enqueue(ctx, h, "hey")).ID)); out != "hey!" {
		t.Errorf("output %q", out)
	}
}

// Tasks of a batch with many keys all run, those of one key in order.
func TestBatchOfManyKeys(t *testing.T) {
	p, log := ordered(config{PerKey: 2})
	var items []workerpool.Item[string]
	for i := range 3000 {
		items = append(items, item(fmt.Sprintf("%04d", i), workerpool.Key(fmt.Sprint(i%1000))))
	}
	runAll(t, p, items)
	seen := map[string]string{}
	for _, in := range log.list {
		var n int
		fmt.Sscan(in, &n)
		key := fmt.Sprint(n % 1000)
		if in < seen[key] {
			t.Fatalf("task %s of key %s ran after %s", in, key, seen[key])
		}
		seen[key] = in
	}
	if len(log.list) != 3000 {
		t.Errorf("%d tasks ran", len(log.list))
	}
}

// Proves W7. Case 20. Discard drops all pending tasks, in memory or not.
func TestDiscardOfMany(t *testing.T) {
	p := workerpool.New(config{Name: "many", Partitions: 2})
	h := open(t, t.TempDir(), p)
	var items []workerpool.Item[string]
	for i := range 2500 {
		var opts []workerpool.Option
		switch i % 3 {
		case 1:
			opts = append(opts, workerpool.Delay(time.Hour))
		case 2:
			opts = append(opts, workerpool.Key(fmt.Sprint(i%100)))
		}
		items = append(items, item(fmt.Sprint(i), opts...))
	}
	must(p.EnqueueBatch(ctx, h, items))
	if n := must(p.Discard(ctx, h)); n != 2500 {
		t.Errorf("discarded %d", n)
	}
	s := must(p.Stats(ctx, h))
	if s.Cancelled != 2500 || s.Pending != 0 || s.Check() != nil {
		t.Errorf("stats %+v", s)
	}
	for i := range 2 {
		if err := workerpool.Audit(h.Store(), "many", i+1, 16, 1); err != nil {
			t.Error(err)
		}
	}
}
