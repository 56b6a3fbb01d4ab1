package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/internal/testing/seeds"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves O13, W1: an operation of the store that fails ends the host, and the call that
// needed it gets the error. That holds for each operation in verbs, works, claims and
// recovery. After it nothing is acknowledged, and the next process ends each acknowledged
// task.
func TestEachOperationOfTheStoreFails(t *testing.T) {
	n := 1
	for failed := true; failed && !t.Failed(); n++ {
		synctest.Test(t, func(t *testing.T) {
			d := &dying{t: t, disk: failing.At(n), mem: memstore.New(), acked: make(map[workerpool.TaskID]bool)}
			d.live()
			failed = d.disk.Failed()
		})
	}
	if n < 300 {
		t.Errorf("the scenario has only %d operations", n)
	}
}

// dying is two pools over some processes. The disk fails in one of them.
type dying struct {
	t      *testing.T
	disk   *failing.Disk
	mem    *memstore.Store
	life   atomic.Int32 // which process it is, from 1
	host   *object.Host
	tasks  *pool                      // runs its tasks here
	claims *pool                      // its tasks wait for outside workers
	acked  map[workerpool.TaskID]bool // tasks of tasks that were taken
	over   bool                       // the process runs on a disk that does not fail
}

func (d *dying) live() {
	retry := jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)}
	d.tasks = workerpool.New(config{
		Name: "tasks", Partitions: 2, Retention: jobs.Retention{Completed: 24 * time.Hour, Cancelled: 24 * time.Hour}, Retry: retry, Work: d.work,
		Queues:  map[string]int{"slow": 2},
		OnDead:  func(context.Context, workerpool.DeadLetter[string]) error { return d.later(nil) },
		OnEmpty: func(context.Context, int) error { return d.later(nil) },
	})
	d.claims = workerpool.New(config{Name: "claims", Retry: retry})
	for _, life := range []func(){d.first, d.second} {
		if !d.open(d.disk.Engine(d.mem)) {
			break
		}
		life()
		left := d.mem.Crash(0)
		_ = d.host.Shutdown(ended())
		if d.mem = left; d.disk.Failed() {
			break
		}
	}
	d.verify()
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (d *dying) open(e engine.Engine) bool {
	d.life.Add(1)
	h, err := object.Open(object.Options{
		Storage: storage.Options{Engine: e, Shards: 2}, Logger: slog.New(slog.DiscardHandler),
		Seams: seam.Seams{Rand: seeds.Source(1)},
	}, d.tasks, d.claims)
	if err != nil {
		if !errors.Is(err, object.ErrStorage) || !d.disk.Failed() {
			d.t.Fatalf("%v: Open: %v", d.disk, err)
		}
		d.mem = d.mem.Crash(0)
		return false
	}
	d.host = h
	d.after("Open", nil)
	return true
}

// later ends work that runs beside the verbs, a millisecond after its begin. So no
// operation of the work falls into a verb, which would not be told of its failure.
func (d *dying) later(err error) error {
	time.Sleep(time.Millisecond)
	return err
}

// work runs a task, as its text says.
func (d *dying) work(ctx context.Context, t *workerpool.Task[string]) (string, error) {
	_ = d.later(nil)
	switch {
	case strings.HasPrefix(t.In, "bad"):
		return "", errors.New("bad")
	case strings.HasPrefix(t.In, "hangs") && d.life.Load() == 1:
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "out of " + t.In, nil
}

// after looks at the host after a step: it lives, or the disk has failed and it has
// ended.
func (d *dying) after(step string, err error) {
	d.t.Helper()
	synctest.Wait()
	if !d.disk.Failed() || d.over {
		if err != nil {
			d.t.Fatalf("%v has not failed yet: %s: %v", d.disk, step, err)
		}
		return
	}
	select {
	case <-d.host.Done():
	default:
		d.t.Fatalf("O13: %v failed by %s, and the host goes on", d.disk, step)
	}
}

// do does a step. If the disk has failed before the step or in it, the step must return
// an error.
func (d *dying) do(step string, f func() error) bool {
	d.t.Helper()
	before := d.disk.Failed()
	err := f()
	if d.disk.Failed() && !d.over {
		if err == nil && (before || !d.disk.Aside()) || err != nil && !before && !errors.Is(err, object.ErrStorage) {
			d.t.Errorf("O13: %v failed before %s: %v, or under it, which says %v", d.disk, step, before, err)
		}
		err = nil
	}
	d.after(step, err)
	return !d.disk.Failed()
}

// enqueue submits a task, and notes that it was taken.
func (d *dying) enqueue(p *pool, in string, opts ...workerpool.Option) (id workerpool.TaskID) {
	d.t.Helper()
	d.do("Enqueue of "+in, func() error {
		ref, err := p.Enqueue(ctx, d.host, in, opts...)
		id = ref.ID
		if err == nil && p == d.tasks {
			d.acked[id] = true
		}
		return err
	})
	return id
}

func (d *dying) pass(t time.Duration) {
	d.t.Helper()
	if !d.disk.Failed() {
		time.Sleep(t)
		d.after(fmt.Sprint("the time that passes, ", t), nil)
	}
}

func (d *dying) first() {
	h := d.host
	d.do("Pause", func() error { return d.tasks.Pause(ctx, h) })
	plain := d.enqueue(d.tasks, "plain")
	for range 2 {
		d.enqueue(d.tasks, "once", workerpool.Idempotent("the key", time.Hour))
		d.enqueue(d.tasks, "unique", workerpool.Unique("the only"))
	}
	for _, in := range []string{"bad", "hangs", "keyed"} {
		d.enqueue(d.tasks, in, workerpool.Key("key of "+in), workerpool.Priority(len(in)))
		d.enqueue(d.tasks, in+" again", workerpool.Key("key of "+in))
	}
	d.enqueue(d.tasks, "delayed", workerpool.Delay(5*time.Second))
	d.enqueue(d.tasks, "queued", workerpool.Queue("slow"))
	gone := d.enqueue(d.tasks, "cancelled", workerpool.Delay(time.Hour))
	d.do("EnqueueBatch", func() error {
		refs, err := d.tasks.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("b1"), item("b2", workerpool.Key("b2")), item("b3", workerpool.Key("other"))})
		if err != nil {
			return err
		}
		for _, ref := range refs {
			d.acked[ref.ID] = true
		}
		return nil
	})
	d.do("Status", func() error { _, err := d.tasks.Status(ctx, h, plain); return err })
	d.do("Cancel", func() error { _, err := d.tasks.Cancel(ctx, h, gone); return err })
	d.do("Resume", func() error { return d.tasks.Resume(ctx, h) })
	d.pass(10 * time.Second)
	d.do("Wait", func() error {
		out, err := d.tasks.Wait(ctx, h, plain)
		if err == nil && out != "out of plain" {
			d.t.Errorf("%v: the output is %q", d.disk, out)
		}
		return err
	})
	d.do("Stats", func() error {
		s, err := d.tasks.Stats(ctx, h)
		return errors.Join(err, s.Check())
	})
	d.letters()
	d.outside()
}

// letters are the verbs of dead letters.
func (d *dying) letters() {
	h := d.host
	var dead []workerpool.DeadLetter[string]
	d.do("DeadLetters", func() (err error) {
		dead, err = d.tasks.DeadLetters(ctx, h, workerpool.TaskID{}, 10)
		if err == nil && len(dead) != 2 {
			d.t.Errorf("%v: %d dead letters", d.disk, len(dead))
		}
		return err
	})
	if len(dead) != 2 {
		return
	}
	d.do("Replay", func() error { _, err := d.tasks.Replay(ctx, h, dead[0].ID); return err })
	d.pass(3 * time.Second)
	d.do("ReplayAll", func() error { _, err := d.tasks.ReplayAll(ctx, h); return err })
	d.pass(3 * time.Second)
	d.do("DiscardDead", func() error { _, err := d.tasks.DiscardDead(ctx, h, dead[0].ID); return err })
}

// outside are claims of tasks by an outside worker.
func (d *dying) outside() {
	h := d.host
	for i := range 3 {
		d.enqueue(d.claims, fmt.Sprint("claim ", i))
	}
	var got []workerpool.Claim[string]
	d.do("Claim", func() (err error) {
		got, err = d.claims.Claim(ctx, h, 3, time.Minute)
		return err
	})
	if len(got) != 3 {
		return
	}
	lease := got[0].Lease
	d.do("Heartbeat", func() (err error) {
		lease, err = d.claims.Heartbeat(ctx, h, lease)
		return err
	})
	d.do("Ack", func() error { return d.claims.Ack(ctx, h, lease, "out") })
	d.do("Nack", func() error { return d.claims.Nack(ctx, h, got[1].Lease, errors.New("no")) })
	d.pass(2 * time.Second)
	d.do("Discard", func() error { _, err := d.claims.Discard(ctx, h); return err })
}

// second is a process that recovers the work left by the first, and ends in order.
func (d *dying) second() {
	d.enqueue(d.tasks, "second")
	d.pass(time.Minute)
	d.do("Drain", func() error { return d.tasks.Drain(ctx, d.host) })
	d.pass(2 * time.Hour) // the claims that have ended are forgotten
	if err := d.host.Shutdown(ctx); errors.Is(err, object.ErrStorage) != d.disk.Failed() {
		d.t.Errorf("O13: %v: Shutdown says %v", d.disk, err)
	}
}

// verify opens a process on the durable rows, on a disk that does not fail. It ends each
// acknowledged task.
func (d *dying) verify() {
	d.over = true
	if !d.open(d.mem.Crash(0)) {
		return
	}
	d.do("Resume at last", func() error { return d.tasks.Resume(ctx, d.host) })
	time.Sleep(2 * time.Hour)
	for id := range d.acked {
		if in := must(d.tasks.Status(ctx, d.host, id)); in.State != workerpool.Done && in.State != workerpool.Dead && in.State != workerpool.Cancelled {
			d.t.Errorf("W2: %v: a task that was taken is %v", d.disk, in.State)
		}
	}
	if s := must(d.tasks.Stats(ctx, d.host)); s.Check() != nil || s.Submitted < uint64(len(d.acked)) {
		d.t.Errorf("W1: %v: %d tasks were taken: %+v", d.disk, len(d.acked), s)
	}
	if err := d.host.Shutdown(ctx); err != nil {
		d.t.Error(err)
	}
}
