package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves W1, W2, W3, W7: a process has less room for keys, for values or for a batch than
// the one before. It refuses a write that does not fit, and the turn then changes
// nothing. After each verb the rows fit together, and once there is room again each task
// ends.
func TestLessRoom(t *testing.T) {
	var limits []object.Options
	// Keys: c 1, t z h 10, marks of ended tasks 12, w x 18, r 19 and 59, u 72, k 101,
	// idempotency marks 124. So each limit refuses rows of some kinds and takes the others.
	for _, n := range []int{9, 11, 17, 18, 58, 71, 100, 123} {
		limits = append(limits, object.Options{MaxKeyBytes: n})
	}
	for n := 7; n < 160; n += 9 {
		limits = append(limits, object.Options{MaxValueBytes: n})
	}
	for n := 120; n < 4000; n += 29 + n/20 {
		limits = append(limits, object.Options{MaxBatchBytes: n})
	}
	for _, limit := range limits {
		synctest.Test(t, func(t *testing.T) {
			c := &cramped{t: t, mem: memstore.New(), told: make(map[workerpool.TaskID]bool)}
			c.limit = fmt.Sprintf("keys of %d, values of %d, batches of %d", limit.MaxKeyBytes, limit.MaxValueBytes, limit.MaxBatchBytes)
			c.lives(limit)
		})
		if t.Failed() {
			break
		}
	}
}

// cramped is two pools over three processes, of which the second has little room.
type cramped struct {
	t     *testing.T
	limit string
	mem   *memstore.Store
	host  *object.Host

	claims, works      *pool
	acked              []workerpool.TaskID // tasks of the pool claims
	worked             []workerpool.TaskID // tasks of the pool works
	leases             map[string]workerpool.Lease
	ids                map[string]workerpool.TaskID
	mu                 sync.Mutex                 // guards told and empty
	told               map[workerpool.TaskID]bool // dead letters reported to OnDead
	empty              int                        // calls of OnEmpty
	cancelled, replays int                        // acknowledged calls of Cancel and of Replay
	modes              int
}

// Names of different lengths, so that the keys of their rows have such lengths.
var (
	longQueue  = strings.Repeat("q", 40)
	longUnique = strings.Repeat("u", 70)
	longKey    = strings.Repeat("k", 90)
	longOnce   = strings.Repeat("o", 120)
)

// pools defines the pools. The windows are so small that most tasks are stored alone.
func (c *cramped) pools(version string) {
	retry := jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)}
	c.claims = workerpool.New(config{
		Name: "claims", Version: version, Concurrency: 8, Retention: jobs.Retention{Completed: 100 * time.Hour, Cancelled: 100 * time.Hour}, Retry: retry, Queues: map[string]int{longQueue: 2},
		OnDead: func(_ context.Context, d workerpool.DeadLetter[string]) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told[d.ID] = true
			return nil
		},
		OnEmpty: func(context.Context, int) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.empty++
			return nil
		},
	})
	c.claims.SetWindow(2)
	c.works = workerpool.New(config{
		Name: "works", Version: version, Concurrency: 1, Retention: jobs.Retention{Completed: 100 * time.Hour, Cancelled: 100 * time.Hour}, Retry: retry, Queues: map[string]int{longQueue: 2},
		Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
			if strings.HasPrefix(t.In, "bad") {
				return "", errors.New(t.In)
			}
			return t.In, nil
		},
		OnDead:  func(context.Context, workerpool.DeadLetter[string]) error { return nil },
		OnEmpty: func(context.Context, int) error { return nil },
	})
}

func (c *cramped) lives(limit object.Options) {
	c.pools("")
	c.open(object.Options{})
	c.fill()
	c.close()
	c.pools("the second version")
	c.open(limit)
	c.use()
	c.close()
	c.open(object.Options{})
	c.end()
	c.close()
}

func (c *cramped) open(o object.Options) {
	o.Storage, o.Logger = storage.Options{Engine: c.mem, Shards: 1}, slog.New(slog.DiscardHandler)
	h, err := object.Open(o, c.claims, c.works)
	if err != nil {
		c.t.Fatalf("%s: %v", c.limit, err)
	}
	c.host = h
}

func (c *cramped) close() {
	if err := c.host.Shutdown(ctx); err != nil {
		c.t.Errorf("%s: %v", c.limit, err)
	}
	c.mem = c.mem.Crash(0)
}

// fill makes tasks of all kinds.
func (c *cramped) fill() {
	p, h := c.claims, c.host
	c.ids = make(map[string]workerpool.TaskID)
	add := func(in string, opts ...workerpool.Option) {
		c.ids[in] = must(p.Enqueue(ctx, h, in+strings.Repeat(".", 10*len(in)), opts...)).ID
		c.acked = append(c.acked, c.ids[in])
	}
	add("dead unique", workerpool.Unique(longUnique))
	add("dead keyed", workerpool.Key(longKey))
	add("dead plain")
	for _, got := range must(p.Claim(ctx, h, 9, 0)) {
		if err := p.Nack(ctx, h, got.Lease, jobs.Permanent(errors.New("no"))); err != nil {
			c.t.Fatal(err)
		}
	}
	names := []string{"ack", "nack", "cancel", "beat", "die", "unique", "queue"}
	add("ack", workerpool.Key(longKey))
	for _, in := range names[1:5] {
		add(in)
	}
	add("unique", workerpool.Unique(longUnique+"2"))
	add("queue", workerpool.Queue(longQueue))
	c.leases = make(map[string]workerpool.Lease)
	for _, got := range must(p.Claim(ctx, h, 7, time.Hour)) {
		c.leases[strings.TrimRight(got.Task.In, ".")] = got.Lease
	}
	if len(c.leases) != len(names) {
		c.t.Fatalf("claimed %v", c.leases)
	}
	add("ack's next", workerpool.Key(longKey))
	add("head", workerpool.Key("k2"))
	add("tail", workerpool.Key("k2"))
	add("long head", workerpool.Key(longKey+"2"))
	add("long tail", workerpool.Key(longKey+"2"))
	add("unique pending", workerpool.Unique(longUnique+"3"))
	add("queued", workerpool.Queue(longQueue))
	add("delayed", workerpool.Delay(10*time.Second))
	for i := range 3 {
		add(fmt.Sprint("many", i), workerpool.Delay(time.Hour))
	}
	if err := c.works.Pause(ctx, h); err != nil {
		c.t.Fatal(err)
	}
	for i, in := range []string{"good", "bad", "good again", "bad again"} {
		for _, opts := range [][]workerpool.Option{nil, {workerpool.Key(longKey)}, {workerpool.Queue(longQueue), workerpool.Unique(longUnique + fmt.Sprint(i))}, {workerpool.Delay(5 * time.Second)}} {
			c.worked = append(c.worked, must(c.works.Enqueue(ctx, h, in+strings.Repeat("!", 40*i), opts...)).ID)
		}
	}
}

// step does a verb, and audits the store. It reports whether the verb succeeded.
func (c *cramped) step(name string, f func() error) bool {
	c.t.Helper()
	err := f()
	synctest.Wait()
	if bad := errors.Join(workerpool.Audit(c.host.Store(), "claims", 1, 8, 1), workerpool.Audit(c.host.Store(), "works", 1, 1, 1)); bad != nil {
		c.t.Fatalf("%s: after %s (%v): %v", c.limit, name, err, bad)
	}
	return err == nil
}

// is checks the state of a task. A task that should be done may have failed instead,
// because its result could not be stored.
func (c *cramped) is(name string, id workerpool.TaskID, want workerpool.State) {
	c.t.Helper()
	info, err := c.claims.Status(ctx, c.host, id)
	if err != nil || info.State != want && !(want == workerpool.Done && len(info.Failures) > 0) {
		c.t.Errorf("%s: %s says nothing of an error, and the task is %+v, %v", c.limit, name, info, err)
	}
}

func (c *cramped) use() {
	p, h := c.claims, c.host
	c.step("the open", func() error { return nil })
	c.step("Resume of the works", func() error { return c.works.Resume(ctx, h) })
	c.enqueue("plain")
	c.enqueue("keyed", workerpool.Key(longKey))
	c.enqueue("once", workerpool.Idempotent(longOnce, time.Hour))
	c.enqueue("unique", workerpool.Unique(longUnique+"4"))
	c.enqueue("queued", workerpool.Queue(longQueue))
	c.enqueue("delayed", workerpool.Delay(time.Hour))
	c.step("EnqueueBatch", func() error {
		refs, err := p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("b1", workerpool.Key(longKey+"3")), item("b2", workerpool.Unique("short")), item("b3")})
		for i, ref := range refs {
			if err == nil {
				c.acked = append(c.acked, ref.ID)
				c.is(fmt.Sprint("EnqueueBatch of task ", i), ref.ID, workerpool.Pending)
			}
		}
		return err
	})
	c.outside()
	for _, in := range []string{"head", "long head", "unique pending", "many0"} {
		if c.step("Cancel of "+in, func() error { _, err := p.Cancel(ctx, h, c.ids[in]); return err }) {
			c.cancelled++
			c.is("Cancel of "+in, c.ids[in], workerpool.Cancelled)
		}
	}
	for _, in := range []string{"dead unique", "dead keyed"} {
		if c.step("Replay of "+in, func() error { _, err := p.Replay(ctx, h, c.ids[in]); return err }) {
			c.replays++
			c.is("Replay of "+in, c.ids[in], workerpool.Pending)
		}
	}
	if c.step("DiscardDead", func() error { _, err := p.DiscardDead(ctx, h, c.ids["dead plain"]); return err }) {
		c.cancelled++
		c.is("DiscardDead", c.ids["dead plain"], workerpool.Cancelled)
	}
	for _, set := range []func(context.Context, object.Caller) error{p.Pause, p.Resume} {
		before := must(p.Stats(ctx, h)).Mode
		done := c.step("a change of the mode", func() error { return set(ctx, h) })
		switch changed := must(p.Stats(ctx, h)).Mode != before; {
		case changed && !done:
			c.t.Errorf("%s: a change of the mode from %v is refused and made", c.limit, before)
		case changed:
			c.modes++
		}
	}
	c.step("15 s", func() error { time.Sleep(15 * time.Second); return nil })
	c.step("Claim", func() error { _, err := p.Claim(ctx, h, 2, time.Minute); return err })
	c.step("Discard", func() error {
		n, err := p.Discard(ctx, h)
		c.cancelled += n
		return err
	})
	c.step("5 m", func() error { time.Sleep(5 * time.Minute); return nil })
}

func (c *cramped) enqueue(name string, opts ...workerpool.Option) {
	c.t.Helper()
	var ref workerpool.TaskRef
	if !c.step("Enqueue of "+name, func() (err error) {
		ref, err = c.claims.Enqueue(ctx, c.host, "late "+name, opts...)
		return err
	}) {
		return
	}
	c.acked = append(c.acked, ref.ID)
	c.is("Enqueue of "+name, ref.ID, workerpool.Pending)
	if name == "once" || name == "unique" {
		if again, err := c.claims.Enqueue(ctx, c.host, "again", opts...); err != nil || !again.Repeated || again.ID != ref.ID {
			c.t.Errorf("%s: a repeat of %s is %+v, %v; want %v", c.limit, name, again, err, ref.ID)
		}
	}
}

// outside are the verbs of an outside worker that has held its leases since before.
func (c *cramped) outside() {
	p, h := c.claims, c.host
	if c.step("Heartbeat", func() error { _, err := p.Heartbeat(ctx, h, c.leases["beat"]); return err }) {
		c.is("Heartbeat", c.ids["beat"], workerpool.Running)
	}
	for _, in := range []string{"ack", "unique", "queue"} {
		if c.step("Ack of "+in, func() error { return p.Ack(ctx, h, c.leases[in], strings.Repeat("out", 20)) }) {
			c.is("Ack of "+in, c.ids[in], workerpool.Done)
		}
	}
	if c.step("Nack", func() error { return p.Nack(ctx, h, c.leases["nack"], errors.New("no")) }) {
		c.is("Nack", c.ids["nack"], workerpool.Pending)
	}
	if c.step("Nack for good", func() error { return p.Nack(ctx, h, c.leases["die"], jobs.Permanent(errors.New("no"))) }) {
		c.is("Nack for good", c.ids["die"], workerpool.Dead)
	}
	cancel := func() error { _, err := p.Cancel(ctx, h, c.ids["cancel"]); return err }
	if c.step("Cancel of a running task", cancel) {
		if info, err := p.Status(ctx, h, c.ids["cancel"]); err != nil || !info.Cancelling {
			c.t.Errorf("%s: Cancel of a running task says nothing of an error, and it is %+v, %v", c.limit, info, err)
		}
	}
	if c.step("Nack of a cancelled task", func() error { return p.Nack(ctx, h, c.leases["cancel"], errors.New("no")) }) {
		if info, err := p.Status(ctx, h, c.ids["cancel"]); err == nil && info.State == workerpool.Cancelled {
			c.cancelled++
		} else if err != nil || info.State != workerpool.Pending {
			c.t.Errorf("%s: after Nack of a cancelled task it is %+v, %v", c.limit, info, err)
		}
	}
}

// end lets all tasks end, with room for them.
func (c *cramped) end() {
	p, h := c.claims, c.host
	c.step("the last open", func() error { return errors.Join(p.Resume(ctx, h), c.works.Resume(ctx, h)) })
	for range 20 {
		for _, got := range must(p.Claim(ctx, h, 100, 0)) {
			if err := p.Ack(ctx, h, got.Lease, ""); err != nil {
				c.t.Errorf("%s: Ack at last: %v", c.limit, err)
			}
		}
		time.Sleep(10 * time.Minute)
	}
	for _, pool := range []*pool{p, c.works} {
		acked := c.acked
		if pool == c.works {
			acked = c.worked
		}
		s, err := pool.Stats(ctx, h)
		if err != nil || s.Check() != nil || s.Pending+s.Running > 0 || s.Submitted < uint64(len(acked)) {
			c.t.Errorf("W1: %s: %d tasks were taken: %+v, %v", c.limit, len(acked), s, err)
		}
		for _, id := range acked {
			if info, err := pool.Status(ctx, h, id); err != nil || !info.State.Ended() {
				c.t.Errorf("W2: %s: the task %v is %+v, %v", c.limit, id, info, err)
			}
		}
	}
	for _, d := range must(p.DeadLetters(ctx, h, workerpool.TaskID{}, 100)) {
		if !c.told[d.ID] {
			c.t.Errorf("W6: %s: OnDead was not told of %v", c.limit, d.ID)
		}
	}
	if c.empty == 0 {
		c.t.Errorf("%s: OnEmpty was not called", c.limit)
	}
	c.events()
}

// events checks that the events tell of each change that was made.
func (c *cramped) events() {
	kinds := make(map[string]int)
	for _, e := range must(c.host.Events(ctx, c.claims.ID("0"), 0, 1000)) {
		kinds[e.Kind]++
	}
	s := must(c.claims.Stats(ctx, c.host))
	if got := kinds[workerpool.EventCancelled]; got != int(s.Cancelled) || got < c.cancelled {
		c.t.Errorf("%s: %d events of cancelled tasks, %d are counted, %d were acknowledged", c.limit, got, s.Cancelled, c.cancelled)
	}
	if got := kinds[workerpool.EventReplayed]; got != c.replays {
		c.t.Errorf("%s: %d events of replays, %d were acknowledged", c.limit, got, c.replays)
	}
	if got := kinds[workerpool.EventMode]; got < c.modes || got > c.modes+1 {
		c.t.Errorf("%s: %d events of modes, %d were acknowledged", c.limit, got, c.modes)
	}
}

// Proves W6: a call of OnDead or OnEmpty that a process could not make, or could not note
// as failed, for want of room is made by the next process that has room.
func TestHooksWithLessRoom(t *testing.T) {
	var limits []object.Options
	for n := 40; n < 420; n += 6 {
		limits = append(limits, object.Options{MaxValueBytes: n}, object.Options{MaxBatchBytes: 2 * n})
	}
	for _, n := range []int{9, 17} {
		limits = append(limits, object.Options{MaxKeyBytes: n})
	}
	for _, limit := range limits {
		synctest.Test(t, func(t *testing.T) { hooksWithin(t, limit) })
	}
}

func hooksWithin(t *testing.T, limit object.Options) {
	mem, told, late := memstore.New(), make(map[string]int), errors.New("not yet")
	var mu sync.Mutex // guards told
	tell := func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		told[name]++
		return late
	}
	p := workerpool.New(config{
		Name: "hooks", Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}, Retry: jobs.Retry{MaxAttempts: 1},
		OnDead:  func(_ context.Context, d workerpool.DeadLetter[string]) error { return tell(d.In) },
		OnEmpty: func(context.Context, int) error { return tell("empty") },
	})
	in := func(o object.Options, use func(h *object.Host)) {
		o.Storage, o.Logger = storage.Options{Engine: mem, Shards: 1}, slog.New(slog.DiscardHandler)
		h := must(object.Open(o, p))
		use(h)
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		mem = mem.Crash(0)
	}
	in(object.Options{}, func(h *object.Host) {
		refs := must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("b")}))
		for _, c := range must(p.Claim(ctx, h, 2, 0)) {
			if err := p.Nack(ctx, h, c.Lease, errors.New("no")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if told["a"] == 0 || told["b"] == 0 || told["empty"] == 0 || len(refs) != 2 {
			t.Errorf("the hooks were called so often: %v", told)
		}
	})
	in(limit, func(*object.Host) { time.Sleep(10 * time.Second) })
	late = nil
	clear(told)
	in(object.Options{}, func(h *object.Host) {
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if told["a"] != 1 || told["b"] != 1 || told["empty"] != 1 {
			t.Errorf("values of %d, batches of %d, keys of %d: then the hooks were called so often: %v", limit.MaxValueBytes, limit.MaxBatchBytes, limit.MaxKeyBytes, told)
		}
		if err := workerpool.Audit(h.Store(), "hooks", 1, 16, 1); err != nil {
			t.Error(err)
		}
	})
}
