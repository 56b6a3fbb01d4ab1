package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves O13, D1: an operation of the store that fails ends the host, and the call that
// needed it gets the error. That holds for each operation in adds, verbs, flushes and
// recovery, with and without Reduce. The next process flushes each acknowledged event
// once.
func TestEachOperationOfTheStoreFails(t *testing.T) {
	n := 1
	for failed := true; failed && !t.Failed(); n++ {
		synctest.Test(t, func(t *testing.T) {
			d := &dying{t: t, disk: failing.At(n), mem: memstore.New(), acked: map[string]bool{}, flushed: map[string]map[string]uint64{}}
			d.live()
			failed = d.disk.Failed()
		})
	}
	if n < 150 {
		t.Errorf("the scenario has only %d operations", n)
	}
}

// dying is two debounce jobs over some processes. The disk fails in one of them.
type dying struct {
	t       *testing.T
	disk    *failing.Disk
	mem     *memstore.Store
	host    *object.Host
	plain   *debounce.Job[string, struct{}]
	folded  *debounce.Job[string, []string]
	acked   map[string]bool
	mu      sync.Mutex                   // guards flushed: two jobs flush at a time
	flushed map[string]map[string]uint64 // by id and event: the generation it was flushed with
	over    bool                         // the process runs on a disk that does not fail
}

func (d *dying) live() {
	retry := jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Minute)}
	d.plain = debounce.New(debounce.Config[string, struct{}]{
		Name: "plain", Quiet: 5 * time.Second, MaxEvents: 4, Retry: retry,
		Flush: func(_ context.Context, f *debounce.Flush[string, struct{}]) error {
			return d.flush(f.ID, f.Generation, f.Attempt, f.Events)
		},
	})
	d.folded = debounce.New(debounce.Config[string, []string]{
		Name: "folded", Quiet: 5 * time.Second, Retry: retry,
		Reduce: func(state []string, _ bool, ev string) ([]string, error) { return append(state, ev), nil },
		Flush: func(_ context.Context, f *debounce.Flush[string, []string]) error {
			return d.flush(f.ID, f.Generation, f.Attempt, f.State)
		},
	})
	for life := range 2 {
		if !d.open(d.disk.Engine(d.mem)) {
			break
		}
		d.use(life)
		left := d.mem.Crash(0)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = d.host.Shutdown(ended)
		if d.mem = left; d.disk.Failed() {
			break
		}
	}
	d.over = true
	if !d.open(d.mem.Crash(0)) {
		return
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	for ev := range d.acked {
		if d.flushed["plain"][ev] == 0 && d.flushed["folded"][ev] == 0 {
			d.t.Errorf("D1: %v: %q was acknowledged and not flushed", d.disk, ev)
		}
	}
	if err := d.host.Shutdown(context.Background()); err != nil {
		d.t.Error(err)
	}
}

// flush notes the events. The first attempt of the first generation fails.
func (d *dying) flush(id string, generation uint64, attempt int, events []string) error {
	if generation == 1 && attempt == 1 {
		return errors.New("not yet")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flushed[id] == nil {
		d.flushed[id] = map[string]uint64{}
	}
	for _, ev := range events {
		if g := d.flushed[id][ev]; g != 0 && g != generation {
			d.t.Errorf("D3: %v: %q is in the generations %d and %d", d.disk, ev, g, generation)
		}
		d.flushed[id][ev] = generation
	}
	return nil
}

func (d *dying) open(e engine.Engine) bool {
	h, err := object.Open(object.Options{
		Storage: storage.Options{Engine: e, Shards: 2}, Logger: slog.New(slog.DiscardHandler),
	}, d.plain, d.folded)
	if err != nil {
		if !errors.Is(err, object.ErrStorage) || !d.disk.Failed() || d.over {
			d.t.Fatalf("%v: Open: %v", d.disk, err)
		}
		d.mem = d.mem.Crash(0)
		return false
	}
	d.host = h
	return true
}

// use adds events, and asks for flushes.
func (d *dying) use(life int) {
	ctx, h := context.Background(), d.host
	for i := range 3 {
		for _, id := range []string{"plain", "folded"} {
			add, ev := d.plain.Add, fmt.Sprintf("%s%d%d", id, life, i)
			if id == "folded" {
				add = d.folded.Add
			}
			for range 2 {
				d.do("Add of "+ev, func() error {
					_, err := add(ctx, h, id, ev, debounce.EventID(ev))
					if err == nil {
						d.acked[ev] = true
					}
					return err
				})
			}
		}
	}
	d.do("Pending", func() error {
		p, err := d.plain.Pending(ctx, h, "plain")
		if err == nil && life == 0 && !slices.Equal(p.Events, []string{"plain00", "plain01", "plain02"}) {
			d.t.Errorf("%v: pending are %q", d.disk, p.Events)
		}
		return err
	})
	d.do("Pending of a state", func() error { _, err := d.folded.Pending(ctx, h, "folded"); return err })
	d.do("FlushNow", func() error { _, err := d.folded.FlushNow(ctx, h, "folded"); return err })
	d.do("Status", func() error { _, err := d.folded.Status(ctx, h, "folded"); return err })
	d.pass(10 * time.Second)
	d.do("FlushNow in a backoff", func() error { _, err := d.plain.FlushNow(ctx, h, "plain"); return err })
	d.do("Pause", func() error { return d.plain.Pause(ctx, h, "plain") })
	d.do("Resume", func() error { return d.plain.Resume(ctx, h, "plain") })
	if life == 1 {
		d.pass(5 * time.Minute)
	}
}

func (d *dying) pass(t time.Duration) {
	d.t.Helper()
	if !d.disk.Failed() {
		time.Sleep(t)
		d.ended(fmt.Sprint("the time that passes, ", t))
	}
}

// ended checks that the host has ended once its disk has failed.
func (d *dying) ended(step string) {
	d.t.Helper()
	synctest.Wait()
	if !d.disk.Failed() {
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
func (d *dying) do(step string, f func() error) {
	d.t.Helper()
	before := d.disk.Failed()
	switch err := f(); {
	case !d.disk.Failed() && err != nil:
		d.t.Fatalf("%v has not failed yet: %s: %v", d.disk, step, err)
	case d.disk.Failed() && (err == nil && (before || !d.disk.Aside()) || err != nil && !before && !errors.Is(err, object.ErrStorage)):
		d.t.Errorf("O13: %v failed before %s: %v, or under it, which says %v", d.disk, step, before, err)
	}
	d.ended(step)
}
