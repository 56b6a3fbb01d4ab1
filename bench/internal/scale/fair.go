package scale

import (
	"context"
	"math"
	"path/filepath"
	"sync"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// weights are those of the queues of the fair scenario; priorities those of its
// tasks.
var (
	weights    = map[string]int{"one": 1, "two": 2, "five": 5}
	priorities = []int{0, 5, 10}
)

// starts notes the order in which tasks began.
type starts struct {
	mu    sync.Mutex
	order []start
	left  int
	done  chan struct{}
}

type start struct {
	queue    string
	priority int
}

func (s *starts) work(_ context.Context, t *workerpool.Task[int]) (struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, start{t.Queue, t.Priority})
	if s.left--; s.left == 0 {
		close(s.done)
	}
	return struct{}{}, nil
}

// fair saturates a pool and looks in which order its tasks began.
func fair(ctx context.Context, o Options, r *Result) {
	n := o.of(100_000, 3000)
	var byQueue, byPriority []workerpool.Item[int]
	for i := range n {
		for q := range weights {
			byQueue = append(byQueue, workerpool.Item[int]{In: i, Options: []workerpool.Option{workerpool.Queue(q)}})
		}
		byPriority = append(byPriority, workerpool.Item[int]{In: i, Options: []workerpool.Option{workerpool.Priority(priorities[i%len(priorities)])}})
	}
	judgeWeights(r, saturate(ctx, filepath.Join(o.Dir, "weights"), byQueue), n)
	judgePriorities(r, saturate(ctx, filepath.Join(o.Dir, "priorities"), byPriority))
}

// saturate queues the items while the pool is paused, and returns the order in
// which they began.
func saturate(ctx context.Context, dir string, items []workerpool.Item[int]) []start {
	s := &starts{left: len(items), done: make(chan struct{})}
	pool := workerpool.New(workerpool.Config[int, struct{}]{
		Name: "fair", Partitions: 4, Concurrency: 16, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}, Queues: weights, Work: s.work,
	})
	h := fail.Must(workload.OpenHost(dir, object.Options{}, pool))
	defer h.Close()
	fail.On(pool.Pause(ctx, h))
	const each = 10_000
	for len(items) > 0 {
		some := items[:min(each, len(items))]
		fail.Must(pool.EnqueueBatch(ctx, h, some))
		items = items[len(some):]
	}
	fail.On(pool.Resume(ctx, h))
	select {
	case <-s.done:
	case <-ctx.Done():
		fail.On(context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order
}

// judgeWeights compares the share of each queue with its weight for as long as
// all of them have tasks, and looks for the longest wait of the least one. each is
// how many tasks a queue has.
func judgeWeights(r *Result, order []start, each int) {
	began, last := map[string]int{}, 0
	worst, longest, total := 0.0, 0, 0
	sum := 0
	for _, w := range weights {
		sum += w
	}
	for i, s := range order {
		began[s.queue]++
		total++
		if s.queue == "one" {
			longest, last = max(longest, i-last), i
		}
		if began[s.queue] >= each*9/10 { // before the first of the partitions runs dry
			break
		}
	}
	for q, w := range weights {
		share, want := float64(began[q])/float64(total), float64(w)/float64(sum)
		worst = max(worst, math.Abs(share-want)/want)
	}
	r.figure("tasks in each of the queues with weights 1, 2 and 5", float64(each), "")
	r.check("share of a queue differs from its weight by at most", 100*worst, "%", "≤ 5", worst <= 0.05)
	r.check("longest wait of the queue with weight 1", float64(longest), "starts of others", "≤ 800", longest <= 800)
}

// judgePriorities counts the tasks that began although one of higher priority
// was queued.
func judgePriorities(r *Result, order []start) {
	queued := map[int]int{}
	for _, s := range order {
		queued[s.priority]++
	}
	early := 0
	for _, s := range order {
		for p, n := range queued {
			if p > s.priority && n > 0 {
				early++
				break
			}
		}
		queued[s.priority]--
	}
	share := 100 * float64(early) / float64(max(len(order), 1))
	r.check("tasks that began before one of higher priority", share, "%", "≤ 5", share <= 5)
}
