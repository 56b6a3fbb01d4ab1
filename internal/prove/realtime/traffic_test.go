package realtime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// traffic is objects and jobs of every type, clients that keep them busy, and the
// answers of the clients.
type traffic struct {
	t     *testing.T
	rand  *rand.Rand // guarded by mu
	busy  *object.Class[busy]
	do    *object.Method[errand, int]
	runs  *continuous.Job[int]
	calls *debounce.Job[string, struct{}]
	tasks *workerpool.Pool[time.Duration, int]

	clients sync.WaitGroup

	mu      sync.Mutex
	told    map[string]*count          // by name of the busy object
	events  map[string]bool            // acknowledged, of the debounce job
	flushed map[string]string          // the key of the flush that had the event
	tickets map[workerpool.TaskID]bool // acknowledged tasks
}

// count is the calls of an object that count up.
type count struct{ acknowledged, unknown int }

// errand is a call that takes a time.
type errand struct {
	how  string
	time time.Duration
}

// busy counts calls, in various ways slowly.
type busy struct {
	tr *traffic
	st *object.State
	n  int
}

func newTraffic(t *testing.T, seed uint64) *traffic {
	tr := &traffic{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), told: make(map[string]*count), events: make(map[string]bool),
		flushed: make(map[string]string), tickets: make(map[workerpool.TaskID]bool),
	}
	tr.busy = object.Define("busy", func(ctx context.Context, st *object.State) (*busy, error) {
		b := &busy{tr: tr, st: st}
		_, err := st.Storage().GetInto(ctx, "n", &b.n)
		return b, err
	})
	tr.do = object.Handle(tr.busy, "do", (*busy).do)
	tr.runs = continuous.New(continuous.Config[int]{
		Name: "runs", Schedule: jobs.Every(100 * time.Millisecond),
		Run: func(ctx context.Context, run *continuous.Run[int]) error {
			run.State++
			return tr.sleep(ctx, 400*time.Millisecond)
		},
	})
	tr.calls = debounce.New(debounce.Config[string, struct{}]{
		Name: "calls", Quiet: 50 * time.Millisecond, MaxWait: 200 * time.Millisecond,
		Flush: tr.flush,
	})
	tr.tasks = workerpool.New(workerpool.Config[time.Duration, int]{
		Name: "tasks", Partitions: 2, Concurrency: 4, Retry: jobs.Retry{MaxAttempts: 1}, Retention: jobs.Retention{Completed: time.Hour, Cancelled: time.Hour},
		Work: func(ctx context.Context, t *workerpool.Task[time.Duration]) (int, error) {
			return 1, tr.sleep(ctx, t.In)
		},
	})
	return tr
}

func (tr *traffic) definitions() []object.Definition {
	return []object.Definition{tr.busy, tr.runs, tr.calls, tr.tasks}
}

// below is a random time.
func (tr *traffic) below(d time.Duration) time.Duration {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return time.Duration(tr.rand.Int64N(int64(d)))
}

// sleep waits a random time below most, or until ctx ends.
func (tr *traffic) sleep(ctx context.Context, most time.Duration) error {
	select {
	case <-time.After(tr.below(most)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *busy) do(ctx context.Context, e errand) (int, error) {
	wait := func(ctx context.Context) error { return b.tr.sleep(ctx, e.time) }
	var err error
	switch e.how {
	case "turn":
		err = wait(ctx)
	case "release":
		err = b.st.Release(ctx, wait)
	case "block":
		err = b.st.BlockConcurrencyWhile(ctx, wait)
	case "alarm":
		err = b.st.SetAlarm(ctx, b.st.Now().Add(e.time))
	case "work":
		err = b.st.Go(ctx, "work", b.work)
	case "look":
		return b.n, nil
	}
	if err != nil {
		return 0, err
	}
	b.n++
	return b.n, b.save(ctx)
}

func (b *busy) save(ctx context.Context) error {
	if err := b.st.Emit(ctx, "counted", b.n); err != nil {
		return err
	}
	return b.st.Storage().Put(ctx, "n", b.n)
}

// work goes on for some seconds, or until it is cancelled.
func (b *busy) work(ctx context.Context) {
	for range 50 {
		if b.tr.sleep(ctx, 100*time.Millisecond) != nil {
			return
		}
		err := b.st.Do(ctx, func(ctx context.Context) error { return b.st.Storage().Put(ctx, "worked", true) })
		if err != nil {
			return
		}
	}
}

// Alarm sets itself again for ever. No shutdown costs it an attempt.
func (b *busy) Alarm(ctx context.Context, info object.AlarmInfo) error {
	if info.Attempt != 1 || info.Crashed {
		b.tr.t.Errorf("alarm of %s: %+v", b.st.Name(), info)
	}
	if err := b.tr.sleep(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	return b.st.SetAlarm(ctx, b.st.Now().Add(100*time.Millisecond))
}

// flush notes in which flush an event was; it is never another one.
func (tr *traffic) flush(ctx context.Context, f *debounce.Flush[string, struct{}]) error {
	tr.mu.Lock()
	for _, e := range f.Events {
		if key := tr.flushed[e]; key != "" && key != f.Key {
			tr.t.Errorf("event %s is in the flushes %s and %s", e, key, f.Key)
		}
		tr.flushed[e] = f.Key
	}
	tr.mu.Unlock()
	return tr.sleep(ctx, 300*time.Millisecond)
}

// busyNames are the names of the objects that clients call. A call of each keeps the host
// busy in another way.
var busyNames = []string{"turn", "release", "block", "alarm", "work"}

// start lets clients call h until it refuses them.
func (tr *traffic) start(h *object.Host) {
	ctx := context.Background()
	if _, err := tr.runs.Start(ctx, h, "it", 0); err != nil {
		tr.t.Fatal(err)
	}
	for i, name := range busyNames {
		for range 2 {
			tr.client(func() error { return tr.call(h, name, errand{name, 200 * time.Millisecond}) })
		}
		tr.client(func() error { return tr.add(h, i) })
		tr.client(func() error { return tr.enqueue(h) })
		tr.clients.Go(func() { tr.watch(h, name) })
	}
}

// client repeats a call, with pauses, until it fails.
func (tr *traffic) client(call func() error) {
	tr.clients.Go(func() {
		for call() == nil {
			_ = tr.sleep(context.Background(), 50*time.Millisecond)
		}
	})
}

func (tr *traffic) call(h *object.Host, name string, e errand) error {
	_, err := tr.do.Call(context.Background(), h, name, e)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	c := tr.told[name]
	if c == nil {
		c = new(count)
		tr.told[name] = c
	}
	if err == nil {
		c.acknowledged++
	} else {
		c.unknown++
	}
	return err
}

func (tr *traffic) add(h *object.Host, client int) error {
	event := fmt.Sprintf("%d-%d", client, tr.below(time.Hour))
	_, err := tr.calls.Add(context.Background(), h, "it", event)
	if err == nil {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.events[event] = true
	}
	return err
}

// enqueue adds a task and, sometimes, waits for it.
func (tr *traffic) enqueue(h *object.Host) error {
	ref, err := tr.tasks.Enqueue(context.Background(), h, tr.below(2*time.Second)+1)
	if err != nil {
		return err
	}
	tr.mu.Lock()
	tr.tickets[ref.ID] = true
	wait := tr.rand.IntN(4) == 0
	tr.mu.Unlock()
	if wait {
		_, err = tr.tasks.Wait(context.Background(), h, ref.ID)
	}
	return err
}
