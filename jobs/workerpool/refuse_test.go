package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Submissions that a partition refuses while tasks run in it.

// inMemory opens a host without a disk that is shut down with the test.
func inMemory(t testing.TB, o object.Options, defs ...object.Definition) *object.Host {
	t.Helper()
	o.Storage = storage.Options{Engine: memstore.New()}
	h, err := object.Open(o, defs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, h) })
	return h
}

// busy is a pool in which one task runs until it is let go.
type busy struct {
	*pool
	host *object.Host
	ref  workerpool.TaskRef
	free chan struct{} // lets it go
	cut  chan struct{} // closed when it was cut off
}

func newBusy(t *testing.T, c config, o object.Options) busy {
	b := busy{free: make(chan struct{}), cut: make(chan struct{})}
	began := make(chan struct{}, 100)
	c.Name, c.Concurrency = "busy", 1
	c.Work = func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
		if t.In != "first" {
			return "", nil
		}
		began <- struct{}{}
		select {
		case <-b.free:
			return "whole", nil
		case <-ctx.Done():
			close(b.cut)
			return "", ctx.Err()
		}
	}
	b.pool = workerpool.New(c)
	b.host = inMemory(t, o, b.pool)
	b.ref = must(b.Enqueue(ctx, b.host, "first"))
	<-began
	return b
}

// ends lets the first task go and checks that it has run once.
func (b busy) ends(t *testing.T) {
	t.Helper()
	select {
	case b.free <- struct{}{}:
	case <-b.cut:
		t.Fatal("the task that ran was cut off")
	}
	if out, err := b.Wait(ctx, b.host, b.ref.ID); out != "whole" || err != nil {
		t.Errorf("the task that ran ended with %q, %v", out, err)
	}
	if s := must(b.Stats(ctx, b.host)); s.Lost != 0 || s.Check() != nil {
		t.Errorf("stats %+v", s)
	}
}

// Proves W6, W7. Case PL1. A batch that is refused at one of its items names the item and
// adds nothing. Running work goes on.
func TestRefusedBatchLeavesRunningWork(t *testing.T) {
	large := strings.Repeat("x", 40<<10)
	many := func(n int, in string) (items []workerpool.Item[string]) {
		for range n {
			items = append(items, item(in))
		}
		return items
	}
	for name, c := range map[string]struct {
		items []workerpool.Item[string]
		want  error
		index string
	}{
		"full":          {many(4, "a"), workerpool.ErrQueueFull, "task 3: "},
		"unknown queue": {append(many(2, "a"), item("b", workerpool.Queue("none"))), jobs.ErrInvalid, "task 2: "},
		"too large":     {append(many(1, "a"), item(large)), object.ErrValueTooLarge, "task 1: "},
		"all too large": {many(3, large[:30<<10]), object.ErrBatchTooLarge, "task 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBusy(t, config{MaxQueued: 3}, object.Options{MaxValueBytes: 40 << 10, MaxBatchBytes: 64 << 10})
			_, err := b.EnqueueBatch(ctx, b.host, c.items)
			if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.index) {
				t.Errorf("the batch was refused with %v, want %v at %q", err, c.want, c.index)
			}
			if s := must(b.Stats(ctx, b.host)); s.Submitted != 1 {
				t.Errorf("%d tasks are submitted, want 1", s.Submitted)
			}
			b.ends(t)
		})
	}
}

// Proves W7. A queue takes tasks up to its limit, also in one batch, and refuses one
// more. Repeats, also within a batch, take no place.
func TestBatchFillsTheQueue(t *testing.T) {
	b := newBusy(t, config{MaxQueued: 3}, object.Options{})
	once := workerpool.Idempotent("one", 0)
	refs := must(b.EnqueueBatch(ctx, b.host, []workerpool.Item[string]{item("a", once), item("a", once), item("b"), item("c")}))
	if !refs[1].Repeated || refs[1].ID != refs[0].ID || refs[2].Repeated {
		t.Errorf("refs %+v", refs)
	}
	if again, err := b.EnqueueBatch(ctx, b.host, []workerpool.Item[string]{item("a", once)}); err != nil || again[0].ID != refs[0].ID {
		t.Errorf("a repeat in a full queue: %+v, %v", again, err)
	}
	if _, err := b.Enqueue(ctx, b.host, "d"); !errors.Is(err, workerpool.ErrQueueFull) {
		t.Errorf("one more: %v", err)
	}
	b.ends(t)
}

// Proves W2. The largest batch that is accepted fits in one commit with all executions
// that the turn begins. A larger batch is refused before the first write.
func TestWholeBatchesFit(t *testing.T) {
	for name, options := range map[string]func(name string) []workerpool.Option{
		"plain":      func(string) []workerpool.Option { return nil },
		"queue":      func(string) []workerpool.Option { return []workerpool.Option{workerpool.Queue("queue")} },
		"key":        func(n string) []workerpool.Option { return []workerpool.Option{workerpool.Key(n)} },
		"idempotent": func(n string) []workerpool.Option { return []workerpool.Option{workerpool.Idempotent(n, 0)} },
		"all": func(n string) []workerpool.Option {
			return []workerpool.Option{workerpool.Key(n), workerpool.Idempotent(n, 0), workerpool.Queue("queue"), workerpool.Delay(1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := workerpool.New(config{Name: "fit", Concurrency: 1000, Queues: map[string]int{"queue": 2}, Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", nil }})
			h := inMemory(t, object.Options{MaxBatchBytes: 32 << 10}, p)
			largest := sort.Search(1000, func(n int) bool {
				var items []workerpool.Item[string]
				for i := range n {
					items = append(items, item("", options(fmt.Sprintf("%0100d", n<<10+i))...))
				}
				_, err := p.EnqueueBatch(ctx, h, items)
				if errors.Is(err, object.ErrBatchTooLarge) && !strings.HasPrefix(err.Error(), "task ") {
					t.Errorf("%d tasks: refused after the first write: %v", n, err)
				}
				return err != nil
			})
			if largest < 30 || largest == 1000 {
				t.Errorf("a batch of %d tasks is refused", largest)
			}
			if err := p.Drain(ctx, h); err != nil {
				t.Error(err)
			}
		})
	}
}

// Proves W6. A page of dead letters ends at some MiB.
func TestPagesOfLargeDeadLetters(t *testing.T) {
	p := workerpool.New(config{
		Name: "pages", Retry: jobs.Retry{MaxAttempts: 1},
		Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("no") },
	})
	h := inMemory(t, object.Options{}, p)
	input := strings.Repeat("x", 3<<19)
	for range 5 {
		must(p.Enqueue(ctx, h, input))
	}
	if err := p.Drain(ctx, h); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[uint64]int{0: 3, 3: 2, 5: 0} {
		page := must(p.DeadLetters(ctx, h, workerpool.TaskID{Number: after}, 100))
		if len(page) != want {
			t.Errorf("a page after %d has %d letters, want %d", after, len(page), want)
		}
	}
}

// Proves W6. Case PL2. Dead letters that are more than one batch can hold are listed,
// replayed and discarded, in several turns, and none twice.
func TestLargeDeadLetters(t *testing.T) {
	const letters = 20
	fails := true
	p := workerpool.New(config{
		Name: "large", Retry: jobs.Retry{MaxAttempts: 1},
		Work: func(context.Context, *workerpool.Task[string]) (string, error) {
			if fails {
				return "", errors.New("no")
			}
			return "", nil
		},
	})
	h := inMemory(t, object.Options{MaxBatchBytes: 64 << 10}, p)
	input := strings.Repeat("x", 6<<10)
	for range letters {
		must(p.Enqueue(ctx, h, input))
	}
	drained := func() {
		t.Helper()
		if err := p.Drain(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	drained()
	var all []workerpool.TaskID
	for _, d := range must(p.DeadLetters(ctx, h, workerpool.TaskID{}, 100)) {
		all = append(all, d.ID)
	}
	if len(all) != letters {
		t.Fatalf("%d letters are listed, want %d", len(all), letters)
	}
	if n, err := p.ReplayAll(ctx, h); n != letters || err != nil {
		t.Fatalf("%d replayed, %v", n, err)
	}
	drained()
	gone := workerpool.TaskID{Number: letters + 1}
	if n, err := p.Replay(ctx, h, append(all[:letters:letters], gone)...); n != 0 || !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("with one that is no letter: %d replayed, %v", n, err)
	}
	fails = false
	if n, err := p.Replay(ctx, h, append(all[:8:8], all[0])...); n != 8 || err != nil {
		t.Errorf("%d replayed, %v", n, err)
	}
	drained()
	if n, err := p.DiscardDead(ctx, h, all[8:]...); n != letters-8 || err != nil {
		t.Errorf("%d discarded, %v", n, err)
	}
	if s := must(p.Stats(ctx, h)); s.Done != 8 || s.Cancelled != letters-8 || s.Check() != nil {
		t.Errorf("stats %+v", s)
	}
}

// Proves W2. A task still ends if its failures would make its row larger than a value may
// be, because it drops some of them.
func TestFailuresFitInTheRow(t *testing.T) {
	p := workerpool.New(config{
		Name: "rows", Retry: jobs.Retry{MaxAttempts: 4, Backoff: jobs.Constant(0)},
		Work: func(context.Context, *workerpool.Task[string]) (string, error) {
			return "", errors.New(strings.Repeat("y", 2000))
		},
	})
	h := inMemory(t, object.Options{MaxValueBytes: 16 << 10}, p)
	ref := must(p.Enqueue(ctx, h, strings.Repeat("x", 13<<10)))
	if _, err := p.Wait(ctx, h, ref.ID); !errors.Is(err, workerpool.ErrFailed) {
		t.Errorf("the task ended with %v", err)
	}
	if info := must(p.Status(ctx, h, ref.ID)); len(info.Failures) == 0 || info.Attempt != 4 {
		t.Errorf("%d failures of %d attempts", len(info.Failures), info.Attempt)
	}
}

// Proves W7. Case PL16. Discarded tasks of one key leave none behind, and a task of theirs that
// comes later runs.
func TestDiscardOfKeys(t *testing.T) {
	b := newBusy(t, config{}, object.Options{MaxBatchBytes: 64 << 10})
	for i := range 20 {
		key := workerpool.Key(string(rune('a' + i%3)))
		var items []workerpool.Item[string]
		for range 10 {
			items = append(items, item("in", key))
		}
		must(b.EnqueueBatch(ctx, b.host, items))
	}
	if n, err := b.Discard(ctx, b.host); n != 200 || err != nil {
		t.Errorf("%d discarded, %v", n, err)
	}
	last := must(b.Enqueue(ctx, b.host, "last", workerpool.Key("a")))
	b.ends(t)
	if _, err := b.Wait(ctx, b.host, last.ID); err != nil {
		t.Errorf("the task after the discarded: %v", err)
	}
}
