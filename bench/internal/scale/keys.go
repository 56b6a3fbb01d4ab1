package scale

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// hotKey is one more key than there are.
const hotKey = "hot"

// keyed is a pool of tasks with keys. It notes each task that runs out of the order of
// its key, or beside another of its key.
type keyed struct {
	host *workload.Host
	pool *workerpool.Pool[keyTask, struct{}]

	keys       []keyState
	violations atomic.Int64
	left       atomic.Int64 // tasks of other keys than the hot one
	done       chan struct{}
	hot        atomic.Int64 // tasks of the hot key that have run
}

type keyTask struct{ Key, Seq int }

type keyState struct {
	running atomic.Bool
	last    atomic.Int64 // sequence number of the last task that ran, from 1
}

func openKeyed(dir string, keys int) (*keyed, error) {
	k := &keyed{keys: make([]keyState, keys), done: make(chan struct{})}
	k.pool = workerpool.New(workerpool.Config[keyTask, struct{}]{
		Name: "keyed", Partitions: 4, Concurrency: 1024, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}, Work: k.work,
	})
	var err error
	k.host, err = workload.OpenHost(dir, object.Options{}, k.pool)
	return k, err
}

// slow is how long a task of the hot key takes.
const slow = time.Millisecond

func (k *keyed) work(ctx context.Context, t *workerpool.Task[keyTask]) (struct{}, error) {
	if t.In.Key < 0 {
		k.hot.Add(1)
		select {
		case <-time.After(slow):
		case <-ctx.Done():
		}
		return struct{}{}, context.Cause(ctx)
	}
	s := &k.keys[t.In.Key]
	if !s.running.CompareAndSwap(false, true) || s.last.Swap(int64(t.In.Seq)) != int64(t.In.Seq)-1 {
		k.violations.Add(1)
	}
	s.running.Store(false)
	if k.left.Add(-1) == 0 {
		close(k.done)
	}
	return struct{}{}, nil
}

// submit queues n tasks, spread over all keys, and hot ones among them if asked
// for: one for each tenth.
func (k *keyed) submit(ctx context.Context, n int, hot bool) {
	const each = 10_000
	k.left.Store(int64(n))
	var items []workerpool.Item[keyTask]
	flush := func() {
		fail.Must(k.pool.EnqueueBatch(ctx, k.host, items))
		items = items[:0]
	}
	add := func(t keyTask, key string) {
		items = append(items, workerpool.Item[keyTask]{In: t, Options: []workerpool.Option{workerpool.Key(key)}})
	}
	for i := range n {
		key := i % len(k.keys)
		add(keyTask{key, i/len(k.keys) + 1}, strconv.Itoa(key))
		if hot && i%10 == 0 {
			add(keyTask{-1, 0}, hotKey)
		}
		if len(items) >= each-1 {
			flush()
		}
	}
	flush()
}

// run queues the tasks while the pool is paused, and measures from its resumption
// to the end of the last task of the keys that are not hot.
func (k *keyed) run(ctx context.Context, n int, hot bool) (queued, ran time.Duration) {
	fail.On(k.pool.Pause(ctx, k.host))
	start := time.Now()
	k.submit(ctx, n, hot)
	queued, start = time.Since(start), time.Now()
	fail.On(k.pool.Resume(ctx, k.host))
	select {
	case <-k.done:
	case <-ctx.Done():
		fail.On(context.Cause(ctx))
	}
	return queued, time.Since(start)
}

// shut ends the host without waiting for the queued tasks.
func (k *keyed) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = k.host.Shutdown(ctx) // work of the hot key may be cut off
}

// keys runs many tasks over many keys, and again with a hot key among them.
func keys(ctx context.Context, o Options, r *Result) {
	n, count := o.of(1_000_000, 5000), o.of(100_000, 500)
	took := map[bool]time.Duration{}
	for _, hot := range []bool{false, true} {
		k := fail.Must(openKeyed(filepath.Join(o.Dir, fmt.Sprint("hot-", hot)), count))
		defer k.shut()
		queued, ran := k.run(ctx, n, hot)
		took[hot] = ran
		if !hot {
			r.figure("tasks", float64(n), "")
			r.figure("keys", float64(count), "")
			r.figure("queued in batches", float64(n)/queued.Seconds(), "/s")
			r.figure("heap with all of them queued and done", heapMiB(), "MiB")
		} else {
			r.figure("tasks of the hot key that ran meanwhile, 1 ms each", float64(k.hot.Load()), "")
		}
		v := k.violations.Load()
		r.check(fmt.Sprintf("out of order or at once, hot key %t", hot), float64(v), "tasks", "none", v == 0)
		k.shut()
	}
	r.figure("tasks a second, no hot key", float64(n)/took[false].Seconds(), "/s")
	ratio := took[false].Seconds() / took[true].Seconds()
	r.check("the same beside a hot key with a tenth as many tasks, in ratio", ratio, "", "≥ 0.8", ratio >= 0.8)
}
