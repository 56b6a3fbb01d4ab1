package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// inBubble runs fn with a host on virtual time that logs to r.
func inBubble(t *testing.T, k *bagKind, fn func(h *object.Host, r *loglines.Recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var r loglines.Recorder
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: r.Logger()}, k)
		if err != nil {
			t.Fatal(err)
		}
		fn(h, &r)
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Proves J7, R2: an end batch that fails before it has written anything is told as a
// warning. Its executions, and no others, are lost with it: they are repeated once
// they are stale.
func TestEndsThatAreNotStored(t *testing.T) {
	var calls atomic.Int32
	k := newBagKind(&bagKind{work: func(_ context.Context, x engine.Execution) (engine.Result, error) {
		if x.Subject == "long" {
			time.Sleep(35 * time.Second)
			return engine.Result{}, nil
		}
		return engine.Result{Store: func(context.Context) error {
			if calls.Add(1) == 1 {
				return errors.New("not now")
			}
			return nil
		}}, nil
	}})
	inBubble(t, k, func(h *object.Host, r *loglines.Recorder) {
		ctx := context.Background()
		if _, err := k.put.Call(ctx, h, "b", []string{"a", "long"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		if lines := r.Text(slog.LevelDebug); lines != "WARN end of executions not stored class=bag object=b executions=1 error=not now" {
			t.Errorf("logged\n%s", lines)
		}
		open, err := k.open.Call(ctx, h, "b", 0)
		if err != nil || len(open) != 2 {
			t.Errorf("J7: before they are stale these are open: %+v, %v", open, err)
		}
		time.Sleep(2 * time.Second)
		ends, err := k.ends.Call(ctx, h, "b", 0)
		if err != nil || ends["a"] != "done after 2" || ends["long"] != "" || calls.Load() != 2 {
			t.Errorf("R2: once they are stale, and after %d ends: %v, %v", calls.Load(), ends, err)
		}
		lines, n := h.Recoveries()
		if n != 1 || lines[0].Task != "a" || lines[0].Attempt != 1 || lines[0].Age != 30*time.Second || lines[0].Cause != "stale" || lines[0].GivenUp {
			t.Errorf("R2: recoveries %+v", lines)
		}
		events, err := h.Events(ctx, k.ID("b"), 0, 100)
		told := slices.ContainsFunc(events, func(e object.Event) bool {
			return e.Kind == jobs.EventRecovery && strings.Contains(string(e.Data), `"reason":"stale","recoveries":1`)
		})
		if !told || err != nil {
			t.Errorf("J11: the events %v tell of no stale execution, %v", events, err)
		}
		time.Sleep(10 * time.Second)
		if ends, err = k.ends.Call(ctx, h, "b", 0); err != nil || ends["long"] != "done after 1" {
			t.Errorf("J7: the other has ended: %v, %v", ends, err)
		}
	})
}

// Proves J8, R2: an end batch that fails after it wrote resets the activation. The ends
// that wait behind it were cut off with it, which is no warning. All are repeated.
func TestEndsBehindAFailedBatch(t *testing.T) {
	names := []string{"b", "c", "d"} // those that end while the end of a is stored
	free := make(map[string]chan bool)
	work := func(_ context.Context, x engine.Execution) (engine.Result, error) {
		switch {
		case x.Run.Attempt > 1:
			return engine.Result{}, nil
		case x.Subject == "a":
			return engine.Result{Store: func(context.Context) error {
				for _, name := range names {
					close(free[name])
					synctest.Wait() // until its end is in the queue
				}
				return nil
			}}, nil
		}
		<-free[x.Subject]
		return engine.Result{Store: func(context.Context) error {
			if x.Subject == "c" {
				return errors.New("not now") // the end of b is written by then
			}
			return nil
		}}, nil
	}
	k := newBagKind(&bagKind{options: engine.Options{MergeEnds: 2}, work: work})
	inBubble(t, k, func(h *object.Host, r *loglines.Recorder) {
		ctx := context.Background()
		for _, name := range names {
			free[name] = make(chan bool)
		}
		if _, err := k.put.Call(ctx, h, "b", append([]string{"a"}, names...)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		ends, err := k.ends.Call(ctx, h, "b", 0)
		if err != nil || ends["a"] != "done after 1" || ends["b"] != "done after 2" || ends["c"] != "done after 2" || ends["d"] != "done after 2" {
			t.Errorf("R2: %v, %v", ends, err)
		}
		var lines []string
		for _, l := range r.From(slog.LevelDebug) {
			if l.Text == "end of executions not stored" {
				lines = append(lines, l.String())
			}
		}
		if want := []string{
			"WARN end of executions not stored class=bag object=b executions=2 error=not now",
			"DEBUG end of executions not stored class=bag object=b executions=1 error=bag/b: " + object.ErrReset.Error(),
		}; !slices.Equal(lines, want) {
			t.Errorf("logged %q, want %q", lines, want)
		}
	})
}
