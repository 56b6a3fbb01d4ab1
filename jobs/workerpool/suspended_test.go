package workerpool_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/silent"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// overLog runs fn in a bubble with a pool over a log.
func overLog(t *testing.T, p *pool, fn func(t *testing.T, h *object.Host, log *silent.Log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &silent.Log{Log: memlog.New()}
		e, err := shardlog.Open(shardlog.Options{Log: log, Owner: "a"}, memstore.New())
		if err != nil {
			t.Fatal(err)
		}
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: e, Shards: 2}, Logger: slog.New(slog.DiscardHandler)}, p)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, h)
		fn(t, h, log)
	})
}

// aMinute waits for a minute, or until ctx ends.
func aMinute(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
		return nil
	}
}

// A task that is cut off because the log does not answer runs again when it answers, and that costs it no attempt, also the only one
// that it has. A pool with OverlapWhileUnconfirmed lets it go on.
//
// Proves N5 and O14 over a log.
func TestTasksOverASilentLog(t *testing.T) {
	for _, c := range []struct {
		silent  time.Duration
		overlap bool
		begins  int
	}{{1900 * time.Millisecond, false, 1}, {2100 * time.Millisecond, false, 2}, {50 * time.Second, false, 2}, {2100 * time.Millisecond, true, 1}, {50 * time.Second, true, 1}} {
		var began journal
		p := workerpool.New(config{
			Name: "tasks", OverlapWhileUnconfirmed: c.overlap, Retry: jobs.Retry{MaxAttempts: 1},
			Work: func(ctx context.Context, t *task) (string, error) { began.add(t.In); return "", aMinute(ctx) },
		})
		overLog(t, p, func(t *testing.T, h *object.Host, log *silent.Log) {
			id := must(p.Enqueue(ctx, h, "x")).ID
			time.Sleep(10 * time.Second)
			synctest.Wait()
			answer := log.Stop()
			time.Sleep(c.silent)
			answer()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if got := must(p.Status(ctx, h, id)); got.State != workerpool.Done || got.Attempt != 1 || len(got.Failures) != 0 {
				t.Errorf("silent for %v, overlap %t: the task is %+v", c.silent, c.overlap, got)
			}
			if n := len(began.all()); n != c.begins {
				t.Errorf("silent for %v, overlap %t: the task began %d times, want %d", c.silent, c.overlap, n, c.begins)
			}
		})
	}
}

// A phase that is cut off because the log does not answer has not failed, and its next run needs no result of the one before. A phase
// that fails by itself has, also while the log is silent.
//
// Proves H1 and N5 over a log.
func TestPhaseOverASilentLog(t *testing.T) {
	own := errors.New("its own")
	for _, c := range []struct {
		overlap bool
		fails   error // after three seconds of silence; nil: the phase goes on for a minute
		begins  []string
		failed  bool
	}{{false, nil, []string{"a", "b", "b", "c"}, false}, {true, nil, []string{"a", "b", "c"}, false}, {true, own, []string{"a", "b", "b", "c"}, true}} {
		var began journal
		p := three(config{OverlapWhileUnconfirmed: c.overlap, Retry: jobs.Retry{MaxAttempts: 2}}, func(ctx context.Context, t *task) (string, error) {
			for _, name := range phaseNames {
				if err := phase(ctx, t, name, func(ctx context.Context) error {
					began.add(name)
					switch {
					case name != "b":
						return nil
					case c.fails != nil && t.Attempt == 1:
						time.Sleep(13 * time.Second)
						return c.fails
					default:
						return aMinute(ctx)
					}
				}); err != nil {
					return "", err
				}
			}
			return "", nil
		})
		overLog(t, p, func(t *testing.T, h *object.Host, log *silent.Log) {
			id := must(p.Enqueue(ctx, h, "x")).ID
			time.Sleep(10 * time.Second)
			synctest.Wait()
			answer := log.Stop()
			time.Sleep(20 * time.Second)
			answer()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			if got := must(p.Status(ctx, h, id)); got.State != workerpool.Done {
				t.Errorf("overlap %t, fails with %v: the task is %+v", c.overlap, c.fails, got)
			}
			if got := began.all(); !slices.Equal(got, c.begins) {
				t.Errorf("overlap %t, fails with %v: the phases %q have begun, want %q", c.overlap, c.fails, got, c.begins)
			}
			told := phaseTold(t, h, p)
			if failed := slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, jobs.EventFailure+" b") }); failed != c.failed {
				t.Errorf("overlap %t, fails with %v: the events tell of a failed phase: %t in %q", c.overlap, c.fails, failed, told)
			}
		})
	}
}
