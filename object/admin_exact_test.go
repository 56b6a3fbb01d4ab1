package object_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves O15: Inspect shows the first 1,000 keys in order, and tells of calls that wait
// and of the execution.
func TestInspectShowsWhatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		look := func() object.Inspection {
			in, err := f.host.Inspect(context.Background(), f.id("a"))
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		if in := look(); in.Exists || in.Live || in.Execution || in.Alarm != nil || in.Waiting != 0 {
			t.Errorf("of no object: %+v", in)
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			for i := range 1001 {
				if err := th.st.Storage().PutBytes(ctx, fmt.Sprintf("k%04d", i), make([]byte, i)); err != nil {
					return nil, err
				}
			}
			return nil, th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour))
		})
		at := time.Now().Add(time.Hour)
		in := look()
		if len(in.Keys) != 1000 || in.Keys[0].Key != "k0000" || in.Keys[999].Key != "k0999" || in.Keys[999].SizeBytes != 999 || in.NextKey != "k1000" {
			t.Errorf("%d keys are shown, want the first 1000", len(in.Keys))
		}
		if in.Execution || !in.Exists || !in.Live || !in.Alarm.Due.Equal(at) || !in.Alarm.Scheduled.Equal(at) || in.Alarm.Attempts != 0 || in.Alarm.LastError != "" {
			t.Errorf("shown: %+v, alarm %+v", in, in.Alarm)
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().OpenExecution(ctx, nil) })
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 3 { // one runs
			wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
			synctest.Wait()
			if in := look(); in.Waiting != i || !in.Execution {
				t.Errorf("with %d calls: %d wait, execution %v", i+1, in.Waiting, in.Execution)
			}
		}
		close(gate)
		wg.Wait()
		pass(time.Hour / 2)
		if in := look(); in.Live || in.Waiting != 0 {
			t.Errorf("of an object out of memory: live %v, %d wait", in.Live, in.Waiting)
		}
	})
}

// Proves O15: Objects lists exactly as many as it is asked for, with their alarms.
func TestObjectsAtTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		for _, name := range []string{"a", "b", "c"} {
			f.must(name, put("k", "v"))
		}
		f.must("b", setAlarm(time.Hour))
		at := time.Now().Add(time.Hour)
		seen := map[string]time.Time{}
		for limit, want := range []int{3, 1, 2, 3, 3} {
			all, err := f.host.Objects(context.Background(), "thing", object.ObjectsOptions{Limit: limit})
			if err != nil || len(all) != want {
				t.Errorf("up to %d: %d objects, %v, want %d", limit, len(all), err, want)
			}
			for _, o := range all {
				seen[o.ID.String()] = o.Alarm
			}
		}
		if len(seen) != 3 || !seen["thing/a"].IsZero() || !seen["thing/b"].Equal(at) || !seen["thing/c"].IsZero() {
			t.Errorf("listed with their alarms: %v", seen)
		}
	})
}

// Proves O15: Delete of an object that does not exist stores nothing. Delete of the first
// object of a store removes it, whether its class is registered or not.
func TestDeleteOfTheFirstAndOfNone(t *testing.T) {
	for _, registered := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			f.must("a", put("k", "v")) // the first object
			f.must("b", put("k", "v"))
			f.must("b", setAlarm(time.Hour))
			f.close()
			defs := []object.Definition{f.class}
			if !registered {
				defs = nil
			}
			o := f.options
			o.Storage = storage.Options{Engine: f.mem, Shards: 2}
			h, err := object.Open(o, defs...)
			if err != nil {
				t.Fatal(err)
			}
			f.host = h
			defer f.end()
			synctest.Wait() // for the scheduler, which reads the alarms
			wantValues(t, f, map[string]float64{"holdfast_alarms_held": 1})
			before := h.Store().Applied()
			if err := h.Delete(context.Background(), f.id("none")); err != nil || h.Store().Applied() != before {
				t.Errorf("registered %v: Delete of nothing: %v, commits %v and %v", registered, err, before, h.Store().Applied())
			}
			for _, name := range []string{"a", "b"} {
				if err := h.Delete(context.Background(), f.id(name)); err != nil {
					t.Error(err)
				}
				if in, err := h.Inspect(context.Background(), f.id(name)); err != nil || in.Exists {
					t.Errorf("registered %v: after Delete of %s: %+v, %v", registered, name, in, err)
				}
			}
			wantValues(t, f, map[string]float64{"holdfast_alarms_held": 0})
			if err := h.Store().Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Proves O15, O8: an object is deleted while calls and a work wait for its turn. The
// calls run on a new activation, and the work gets ErrReset.
func TestCallsThatWaitForADeletedObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		gate, begin := make(chan struct{}), make(chan struct{})
		var work error
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			th.n = 7
			err := th.st.Storage().PutBytes(ctx, "k", []byte("old"))
			return nil, errors.Join(err, th.st.Go(ctx, "w", func(context.Context) {
				<-begin
				work = th.st.Do(context.Background(), func(context.Context) error { t.Error("the work ran"); return nil })
			}))
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := f.call("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil })
			if !errors.Is(err, object.ErrReset) {
				t.Errorf("O15: the turn that was fenced: %v", err)
			}
		})
		synctest.Wait()
		close(begin)
		synctest.Wait()
		ran := 0
		for range 3 {
			wg.Go(func() {
				f.must("a", func(th *thing, ctx context.Context) (any, error) {
					if ran++; th.n != 0 {
						t.Errorf("O15: a call that waited finds memory %d", th.n)
					}
					return nil, th.st.Storage().PutBytes(ctx, "late", nil) // it came before Delete, which removes this too
				})
			})
			synctest.Wait()
		}
		if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if in, err := f.host.Inspect(context.Background(), f.id("a")); err != nil || in.Exists {
			t.Errorf("O15: after Delete: %+v, %v", in, err)
		}
		if ran != 3 || !errors.Is(work, object.ErrReset) {
			t.Errorf("O15: %d of 3 calls ran beside the turn that was fenced, the work got %v", ran, work)
		}
		close(gate)
		wg.Wait()
	})
}

// applying is an engine that can hold up the batches that it is given.
type applying struct {
	*memstore.Store
	hold atomic.Bool
	gate chan struct{}
}

func (a *applying) Apply(repr []byte) error {
	if a.hold.Load() {
		<-a.gate
	}
	return a.Store.Apply(repr)
}

// Proves O15: a removal that comes while a commit of the object is being applied waits
// for the commit, which succeeds and is removed with the object.
func TestDeleteWhileACommitIsApplied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		e := &applying{Store: f.mem, gate: make(chan struct{})}
		f.options.Storage.Engine = e
		f.open()
		defer f.end()
		f.must("a", put("k", "v"))
		e.hold.Store(true)
		var wg sync.WaitGroup
		wg.Go(func() { f.must("a", put("k", "w")) })
		synctest.Wait()
		var deleted atomic.Int32
		for range 2 {
			wg.Go(func() {
				if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
					t.Error(err)
				}
				deleted.Add(1)
			})
			synctest.Wait()
		}
		if deleted.Load() != 0 {
			t.Error("O15: Delete has returned while a commit is under way")
		}
		e.hold.Store(false)
		close(e.gate)
		wg.Wait()
		if in, err := f.host.Inspect(context.Background(), f.id("a")); err != nil || in.Exists || deleted.Load() != 2 {
			t.Errorf("O15: after %d calls of Delete: %+v, %v", deleted.Load(), in, err)
		}
	})
}

// Metrics forget the tasks of an object that is deleted while it is out of memory.
func TestBacklogOfAnEvictedObjectThatIsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		for name, n := range map[string]uint64{"a": 1, "b": 2} {
			f.must(name, func(th *thing, ctx context.Context) (any, error) {
				th.st.Driver().Backlog().Set(object.Tasks{Pending: n, Running: 10 * n, Dead: 100 * n})
				return nil, th.st.Storage().PutBytes(ctx, "k", nil)
			})
		}
		pass(time.Hour)
		wantValues(t, f, map[string]float64{"holdfast_tasks_pending": 3, "holdfast_tasks_running": 30, "holdfast_tasks_dead": 300})
		if err := f.host.Delete(context.Background(), f.id("b")); err != nil {
			t.Fatal(err)
		}
		wantValues(t, f, map[string]float64{"holdfast_tasks_pending": 1, "holdfast_tasks_running": 10, "holdfast_tasks_dead": 100})
	})
}
