package engine_test

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
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves C5: Rearm wakes as many jobs at a time as it is told, at least one, in pages of
// the size that it is told, and ends with its counts when its context does.
func TestRearmAtOnce(t *testing.T) {
	for atOnce, want := range map[int]int32{-1: 1, 0: 16, 1: 1, 2: 2, 20: 20} {
		synctest.Test(t, func(t *testing.T) {
			const n = 20
			mem := memstore.New()
			k := newErrandKind(&errandKind{period: time.Hour, work: func(context.Context, engine.Execution) (engine.Result, error) {
				return engine.Result{}, nil
			}})
			open := func() *object.Host {
				h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, k)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			h := open()
			for i := range n {
				if _, err := k.do.Call(t.Context(), h, fmt.Sprintf("%02d", i), "create"); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			left := mem.Crash(0)
			_ = h.Shutdown(cut())
			mem = left
			h = open()
			var now, peak atomic.Int32
			ctx, cancel := context.WithCancel(t.Context())
			k.load = func() {
				peak.Store(max(peak.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
			}
			k.period = time.Minute
			pages := 0
			done, err := engine.Rearm(ctx, h, "errand", jobs.RearmOptions{AtOnce: atOnce, Progress: func(jobs.Rearmed) { pages++ }})
			if err != nil || peak.Load() != want || done.Jobs != n || done.Moved != n || done.Failed != 0 || done.Err != nil || pages != 1 {
				t.Errorf("%d at once: %d at a time, %d pages, %+v, %v", atOnce, peak.Load(), pages, done, err)
			}
			pages = 0
			done, err = engine.Rearm(ctx, h, "errand", jobs.RearmOptions{AtOnce: atOnce, Page: 7, Progress: func(jobs.Rearmed) { pages++ }})
			if err != nil || done.Jobs != n || done.Moved != 0 || pages != 3 {
				t.Errorf("pages of 7: %d, %+v, %v", pages, done, err)
			}
			left = mem.Crash(0)
			_ = h.Shutdown(cut())
			mem = left
			h = open()
			k.load = cancel
			if done, err := engine.Rearm(ctx, h, "errand", jobs.RearmOptions{AtOnce: atOnce}); !errors.Is(err, context.Canceled) || done.Jobs != 0 {
				t.Errorf("its context ended: %+v, %v", done, err)
			}
			if err := h.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Proves C5, O13: Rearm on a store that fails ends with the error of the store, at each
// operation that may fail, and the next process moves each alarm that is left.
func TestRearmOnAFailingStore(t *testing.T) {
	for n, failed := 1, true; failed; n++ {
		synctest.Test(t, func(t *testing.T) {
			k := newErrandKind(&errandKind{period: time.Hour, work: func(context.Context, engine.Execution) (engine.Result, error) {
				return engine.Result{}, nil
			}})
			mem := memstore.New()
			open := func(d *failing.Disk) (*object.Host, error) {
				return object.Open(object.Options{Storage: storage.Options{Engine: d.Engine(mem), Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, k)
			}
			die := func(h *object.Host) {
				left := mem.Crash(0)
				_ = h.Shutdown(cut())
				mem = left
			}
			h, err := open(failing.At(0))
			if err != nil {
				t.Fatal(err)
			}
			const all = 3
			for i := range all {
				if _, err := k.do.Call(t.Context(), h, fmt.Sprint(i), "create"); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			die(h)
			k.period = time.Minute
			d := failing.At(n)
			if h, err = open(d); err == nil {
				done, err := engine.Rearm(t.Context(), h, "errand", jobs.RearmOptions{AtOnce: 1, Page: 2})
				synctest.Wait()
				switch {
				case d.Failed() && err == nil && d.Aside(): // after its last look, or beside it
				case d.Failed() && !errors.Is(err, object.ErrStorage):
					t.Errorf("%v: %+v, %v", d, done, err)
				case d.Failed() && (done.Jobs > all || done.Failed > 0):
					t.Errorf("%v: %+v", d, done)
				case !d.Failed() && (err != nil || done.Jobs != all || done.Moved != all):
					t.Errorf("without a failure: %+v, %v", done, err)
				}
				die(h)
			} else if !d.Failed() || !errors.Is(err, object.ErrStorage) {
				t.Fatalf("%v: open: %v", d, err)
			} else {
				mem = mem.Crash(0) // a failed Open has closed it
			}
			failed = d.Failed()
			if h, err = open(failing.At(0)); err != nil {
				t.Fatal(err)
			}
			if done, err := engine.Rearm(t.Context(), h, "errand", jobs.RearmOptions{}); err != nil || done.Jobs != all {
				t.Errorf("%v: the next process: %+v, %v", d, done, err)
			}
			infos, err := h.Objects(t.Context(), "errand", object.ObjectsOptions{Limit: all})
			for _, o := range infos {
				if wait := time.Until(o.Alarm); wait > time.Minute {
					t.Errorf("%v: the alarm of %v is in %v", d, o.ID, wait)
				}
			}
			if err != nil || len(infos) != all {
				t.Errorf("%v: %v, %v", d, infos, err)
			}
			if err := h.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Proves J5: a job type that neither begins its run nor moves it is told so, and its turn
// stores nothing.
func TestRunThatIsNeitherBegunNorMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newErrandKind(&errandKind{period: time.Hour})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, k)
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.do.Call(t.Context(), h, "a", "create")
		if err == nil || !strings.Contains(err.Error(), "errand/a: run due at 1970-01-01 00:00:01") || !strings.Contains(err.Error(), "was neither begun nor moved") {
			t.Errorf("error %v", err)
		}
		if in, err := h.Inspect(t.Context(), k.ID("a")); err != nil || in.Exists {
			t.Errorf("stored is %+v, %v", in, err)
		}
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Proves W5, J7: an execution that is held outside is looked at when its lease ends, and
// not before, also in the process that began it.
func TestLeaseOfAnOutsideExecution(t *testing.T) {
	k := newBagKind(&bagKind{})
	inBubble(t, k, func(h *object.Host, _ *loglines.Recorder) {
		ctx := context.Background()
		if _, err := k.put.Call(ctx, h, "b", []string{"left"}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{1, 2} {
			open, err := k.open.Call(ctx, h, "b", 0)
			if err != nil || len(open) != 1 || open[0].Run.Attempt != want || !open[0].Outside {
				t.Fatalf("life %d: open are %+v, %v", i, open, err)
			}
			if asked, err := k.cancel.Call(ctx, h, "b", "left"); err != nil || asked {
				t.Errorf("a work outside is cancelled: %t, %v", asked, err)
			}
			time.Sleep(time.Until(open[0].Lease) - 1)
			if again, err := k.open.Call(ctx, h, "b", 0); err != nil || len(again) != 1 || again[0].Token != open[0].Token {
				t.Errorf("before its lease ends: %+v, %v", again, err)
			}
			time.Sleep(time.Second)
		}
	})
}
