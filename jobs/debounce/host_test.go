package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// open opens a host of the real thing in dir.
func open(t testing.TB, dir string, defs ...object.Definition) *object.Host {
	t.Helper()
	h, err := object.Open(object.Options{Dir: dir}, defs...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func shut(t testing.TB, h *object.Host) {
	t.Helper()
	if err := h.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// disk is a store in memory with one shard, for the processes of a test, one after
// another. Their hosts log nothing.
type disk struct {
	t     testing.TB
	mem   *memstore.Store
	about string // begins each failure
}

func newDisk(t testing.TB) *disk { return &disk{t: t, mem: memstore.New()} }

// open opens the host of the next process, with the limits of o.
func (d *disk) open(o object.Options, defs ...object.Definition) *object.Host {
	d.t.Helper()
	o.Storage, o.Logger = storage.Options{Engine: d.mem, Shards: 1}, slog.New(slog.DiscardHandler)
	h, err := object.Open(o, defs...)
	if err != nil {
		d.t.Fatalf("%sOpen: %v", d.about, err)
	}
	return h
}

// shut ends a process in order. The next one opens the store that it leaves.
func (d *disk) shut(h *object.Host) {
	d.t.Helper()
	if err := h.Shutdown(context.Background()); err != nil {
		d.t.Errorf("%sShutdown: %v", d.about, err)
	}
	d.mem = d.mem.Crash(0)
}

// On real files and the real clock: events before and after a restart are in one
// flush.
func TestRestart(t *testing.T) {
	flushed := make(chan flush, 1)
	job := debounce.New(config{Name: "hooks", Quiet: time.Hour, MaxEvents: 3, Flush: func(_ context.Context, f *flush) error {
		flushed <- *f
		return nil
	}})
	dir, ctx := t.TempDir(), context.Background()
	h := open(t, dir, job)
	for _, id := range []string{"a", "b", "a"} {
		if _, err := job.Add(ctx, h, name, event{ID: id}, debounce.EventID(id)); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, h)
	h = open(t, dir, job)
	defer shut(t, h)
	p, err := job.Pending(ctx, h, name)
	if err != nil || !slices.Equal(p.Events, []event{{ID: "a"}, {ID: "b"}}) {
		t.Fatalf("pending %+v, %v", p, err)
	}
	if _, err := job.Add(ctx, h, name, event{ID: "c"}, debounce.EventID("c")); err != nil {
		t.Fatal(err)
	}
	f := <-flushed
	if got := ids(&f); !slices.Equal(got, []string{"a", "b", "c"}) || f.Reason != debounce.ReasonMaxEvents {
		t.Errorf("flushed %q for %s", got, f.Reason)
	}
}

// A large generation is removed with one range delete, and the events that came
// meanwhile stay.
func TestLargeGeneration(t *testing.T) {
	begun, end := make(chan int), make(chan struct{})
	job := debounce.New(config{Name: "hooks", Quiet: time.Hour, Flush: func(_ context.Context, f *flush) error {
		begun <- f.Count
		<-end
		return nil
	}})
	ctx := context.Background()
	h := open(t, t.TempDir(), job)
	defer shut(t, h)
	add := func(n int) {
		t.Helper()
		if _, err := job.Add(ctx, h, name, event{N: n}); err != nil {
			t.Fatal(err)
		}
	}
	const many = 300
	for i := range many {
		add(i)
	}
	if _, err := job.FlushNow(ctx, h, name); err != nil {
		t.Fatal(err)
	}
	if n := <-begun; n != many {
		t.Errorf("flush of %d events, want %d", n, many)
	}
	add(1000)
	close(end)
	for e, err := range h.Watch(ctx, job.ID(name), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == debounce.EventFlushed {
			break
		}
	}
	p, err := job.Pending(ctx, h, name)
	if err != nil || len(p.Events) != 1 || p.Events[0].N != 1000 {
		t.Errorf("pending %+v, %v", p, err)
	}
	in, err := h.Keys(ctx, job.ID(name), object.KeysOptions{Limit: object.MaxPage, Values: true})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]byte{}
	for _, item := range in.Keys {
		rows[item.Key] = item.Value
	}
	if err := debounce.CheckRows(rows); err != nil {
		t.Error(err)
	}
}

// Events that cannot be accepted are refused, and change nothing.
func TestRefusals(t *testing.T) {
	job := debounce.New(config{Name: "hooks", Quiet: time.Hour, MaxPending: 1, Flush: nop})
	ctx := context.Background()
	h := open(t, t.TempDir(), job)
	defer shut(t, h)
	if _, err := job.Status(ctx, h, name); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("status of nothing: %v", err)
	}
	if _, err := job.FlushNow(ctx, h, name); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("flush of nothing: %v", err)
	}
	if err := job.Terminate(ctx, h, name, ""); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("terminate of nothing: %v", err)
	}
	if _, err := job.Add(ctx, h, name, event{}, debounce.EventID("")); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("empty event id: %v", err)
	}
	if _, err := job.Add(ctx, h, name, event{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Add(ctx, h, name, event{ID: "b"}); !errors.Is(err, debounce.ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	if err := job.Resume(ctx, h, name); err != nil {
		t.Errorf("resume of a running job: %v", err)
	}
	st, err := job.Status(ctx, h, name)
	if err != nil || st.Events != 1 || st.Meta.Status != jobs.Running {
		t.Errorf("status %+v, %v", st, err)
	}
}

// A deployment that removes or adds Reduce cannot go on with the events of the other
// definition, and says so.
func TestChangedDefinition(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	folding := debounce.New(config{Name: "hooks", Quiet: time.Hour, Flush: nop, Reduce: collect})
	h := open(t, dir, folding)
	if _, err := folding.Add(ctx, h, name, event{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	shut(t, h)
	keeping := debounce.New(config{Name: "hooks", Quiet: time.Hour, Flush: nop})
	h = open(t, dir, keeping)
	defer shut(t, h)
	if _, err := keeping.Add(ctx, h, name, event{ID: "b"}); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("add with another definition: %v", err)
	}
	if st, err := keeping.Status(ctx, h, name); err != nil || st.Events != 1 {
		t.Errorf("status %+v, %v", st, err)
	}
}

// The context of a flush ends when the flush takes too long, and the flush fails.
func TestTimeout(t *testing.T) {
	job := debounce.New(config{
		Name: "hooks", Quiet: time.Hour, MaxEvents: 1, Timeout: time.Millisecond,
		Flush: func(ctx context.Context, _ *flush) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	ctx := context.Background()
	h := open(t, t.TempDir(), job)
	defer shut(t, h)
	if _, err := job.Add(ctx, h, name, event{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	for e, err := range h.Watch(ctx, job.ID(name), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == jobs.EventFailed {
			break
		}
	}
	st, err := job.Status(ctx, h, name)
	if err != nil || st.Meta.Status != jobs.Failed || st.Flushing != 1 || !strings.Contains(st.Meta.LastError, jobs.ErrTimeout.Error()) {
		t.Errorf("status %+v, %v", st, err)
	}
}

func benchmarkAdd(b *testing.B, objects int) {
	job := debounce.New(config{
		Name: "hooks", Quiet: time.Hour, MaxPending: 1 << 30,
		Flush: nop,
	})
	dir, err := os.MkdirTemp("", "debounce")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	h := open(b, dir, job)
	defer shut(b, h)
	ctx := context.Background()
	names := make([]string, objects)
	for i := range names {
		names[i] = fmt.Sprintf("object %d", i)
	}
	var next atomic.Int64
	b.SetParallelism(512)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(next.Add(1))
			id := fmt.Sprintf("event %d", i)
			if _, err := job.Add(ctx, h, names[i%objects], event{ID: id, N: i}, debounce.EventID(id)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "adds/s")
}

// BenchmarkAdd adds events with ids to one object and to many, from 1024 tasks.
func BenchmarkAdd(b *testing.B) {
	for _, objects := range []int{1, 1000} {
		b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) { benchmarkAdd(b, objects) })
	}
}
