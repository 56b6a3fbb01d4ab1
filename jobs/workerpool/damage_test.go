package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// hurt is a paused pool with a task of each kind, one row of which is cut short.
type hurt struct {
	p           *pool
	h           *object.Host
	plain, dead workerpool.TaskID
}

// Proves S9: a row that is damaged is an error of each verb that reads it, and never
// another answer.
func TestDamagedRows(t *testing.T) {
	type verb struct {
		name string
		do   func(d *hurt) error
	}
	status := func(name string, of func(d *hurt) workerpool.TaskID) verb {
		return verb{"Status of the " + name, func(d *hurt) error { _, err := d.p.Status(ctx, d.h, of(d)); return err }}
	}
	stats := verb{"Stats", func(d *hurt) error { _, err := d.p.Stats(ctx, d.h); return err }}
	resume := verb{"Resume", func(d *hurt) error { return d.p.Resume(ctx, d.h) }}
	discard := verb{"Discard", func(d *hurt) error { _, err := d.p.Discard(ctx, d.h); return err }}
	for prefix, verbs := range map[string][]verb{
		"c": {stats, resume},
		"t/": {
			status("task", func(d *hurt) workerpool.TaskID { return d.plain }),
			{"Cancel", func(d *hurt) error { _, err := d.p.Cancel(ctx, d.h, d.plain); return err }},
			discard, resume,
		},
		"z/": {
			status("dead letter", func(d *hurt) workerpool.TaskID { return d.dead }),
			{"Replay", func(d *hurt) error { _, err := d.p.Replay(ctx, d.h, d.dead); return err }},
			{"ReplayAll", func(d *hurt) error { _, err := d.p.ReplayAll(ctx, d.h); return err }},
			{"DiscardDead", func(d *hurt) error { _, err := d.p.DiscardDead(ctx, d.h, d.dead); return err }},
			{"DeadLetters", func(d *hurt) error { _, err := d.p.DeadLetters(ctx, d.h, workerpool.TaskID{}, 10); return err }},
			{"Cancel", func(d *hurt) error { _, err := d.p.Cancel(ctx, d.h, d.dead); return err }},
		},
		"u/": {{"Enqueue", func(d *hurt) error {
			_, err := d.p.Enqueue(ctx, d.h, "x", workerpool.Unique("the only"))
			return err
		}}},
		"r/": {stats},
		"w/": {stats},
	} {
		for _, v := range verbs {
			synctest.Test(t, func(t *testing.T) {
				d := newHurt(t, prefix)
				if err := v.do(d); !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("a row of %s is damaged, and %s says %v", prefix, v.name, err)
				}
				_ = d.h.Shutdown(ctx)
			})
		}
	}
}

func newHurt(t *testing.T, prefix string) *hurt {
	t.Helper()
	mem := memstore.New()
	d := &hurt{p: workerpool.New(config{
		Name: "tasks", Retry: jobs.Retry{MaxAttempts: 1},
		Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) { return "", errors.New("bad") },
	})}
	open := func(e engine.Engine) {
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: e, Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, d.p)
		if err != nil {
			t.Fatal(err)
		}
		d.h = h
	}
	open(mem)
	d.dead = must(d.p.Enqueue(ctx, d.h, "dead")).ID
	synctest.Wait()
	if err := d.p.Pause(ctx, d.h); err != nil {
		t.Fatal(err)
	}
	d.plain = must(d.p.Enqueue(ctx, d.h, "plain", workerpool.Priority(100))).ID
	must(d.p.Enqueue(ctx, d.h, "unique", workerpool.Unique("the only")))
	must(d.p.Enqueue(ctx, d.h, "delayed", workerpool.Delay(time.Hour)))
	if err := d.h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	mem = mem.Crash(0)
	cutShort(t, mem, d.p.ID("0"), prefix)
	open(mem)
	return d
}

// cutShort takes the last byte off the first row of an object that has the prefix.
func cutShort(t *testing.T, mem *memstore.Store, id storage.ID, prefix string) {
	t.Helper()
	s, err := storage.Open(storage.Options{Engine: notClosed{mem}, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	it, err := s.ListData(nil, o, "", "", false)
	if err != nil {
		t.Fatal(err)
	}
	var b storage.Batch
	for it.Next() {
		if key := string(it.Key()); b.Empty() && strings.HasPrefix(key, prefix) {
			b.SetData(o, key, slices.Clone(it.Value()[:len(it.Value())-1]))
		}
	}
	if b.Empty() {
		t.Fatalf("no row begins with %s", prefix)
	}
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(it.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// notClosed is an engine that stays open when its store closes, so that another store can
// use it.
type notClosed struct{ engine.Engine }

func (e notClosed) Close() error { return e.Sync() }

// Proves W7: Discard drops all pending tasks, in as many turns as it takes.
func TestDiscardInSeveralTurns(t *testing.T) {
	for _, n := range []int{1999, 2000, 2001} {
		p := workerpool.New(config{Name: "tasks"})
		h := inMemory(t, object.Options{}, p)
		var items []workerpool.Item[string]
		for i := range n {
			items = append(items, item(fmt.Sprint(i)))
		}
		must(p.EnqueueBatch(ctx, h, items))
		if got := must(p.Discard(ctx, h)); got != n {
			t.Errorf("W7: %d tasks of %d are dropped", got, n)
		}
		if s := must(p.Stats(ctx, h)); s.Pending != 0 || s.Cancelled != uint64(n) || s.Check() != nil {
			t.Errorf("W7: after Discard of %d: %+v", n, s)
		}
	}
}

// Proves W6: a call of OnDead that fails is made ten times, each after its backoff, however few
// attempts a task has.
func TestOnDeadIsTriedTenTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		p := workerpool.New(config{
			Name: "tasks", Retry: jobs.Retry{MaxAttempts: 1},
			Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("bad") },
			OnDead: func(context.Context, workerpool.DeadLetter[string]) error {
				at = append(at, time.Since(began))
				return errors.New("nobody hears it")
			},
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, p)
		if err != nil {
			t.Fatal(err)
		}
		must(p.Enqueue(ctx, h, "a"))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(at) != 10 {
			t.Errorf("W6: it was called at %v", at)
		}
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < time.Second/2 {
				t.Errorf("W6: call %d came %v after the one before", i+1, at[i]-at[i-1])
			}
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A task that runs and is cancelled twice is asked to end once.
func TestSecondCancelWritesNothing(t *testing.T) {
	begun, end := make(chan bool, 1), make(chan bool)
	p := workerpool.New(config{Name: "tasks", Work: func(context.Context, *workerpool.Task[string]) (string, error) {
		begun <- true
		<-end
		return "", nil
	}})
	h := inMemory(t, object.Options{}, p)
	ref := must(p.Enqueue(ctx, h, "a"))
	<-begun
	var applied [3]storage.Ticket
	for i := range applied {
		if i > 0 {
			if s := must(p.Cancel(ctx, h, ref.ID)); s != workerpool.Running {
				t.Errorf("the task is %v", s)
			}
		}
		applied[i] = h.Store().Applied()
	}
	close(end)
	if applied[1] == applied[0] || applied[2] != applied[1] {
		t.Errorf("commits before, after the first and after the second: %v", applied)
	}
}

// Proves J4: a batch has at most 10,000 tasks; one more is refused, and none is taken.
func TestBatchOfTooManyTasks(t *testing.T) {
	p := workerpool.New(config{Name: "tasks"})
	h := inMemory(t, object.Options{}, p)
	items := make([]workerpool.Item[string], 10_001)
	if _, err := p.EnqueueBatch(ctx, h, items); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("J4: 10,001 tasks: %v", err)
	}
	if s := must(p.Stats(ctx, h)); s.Submitted != 0 {
		t.Errorf("J4: %d tasks are taken", s.Submitted)
	}
	if _, err := p.EnqueueBatch(ctx, h, items[1:]); err != nil {
		t.Errorf("10,000 tasks: %v", err)
	}
}
