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

// killed makes processes with a bag that die a second after their begin, and returns the
// log of the last one and its recoveries.
func killed(t *testing.T, lives int, k *bagKind, begin func(h *object.Host)) (log string, told []object.Recovery) {
	t.Helper()
	mem, ctx := memstore.New(), context.Background()
	over, cancel := context.WithCancel(ctx)
	cancel()
	for life := range lives {
		var r loglines.Recorder
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 1}, Logger: r.Logger()}, k)
		if err != nil {
			t.Fatal(err)
		}
		if life == 0 {
			begin(h)
		}
		time.Sleep(time.Second)
		left := mem.Crash(0)
		log = r.Text(slog.LevelInfo)
		told, _ = h.Recoveries()
		_ = h.Shutdown(over)
		mem = left
	}
	return log, told
}

// Proves R2, R6: the report and the log tell of a recovery: the item, its cause,
// how old it was and how often it was lost.
func TestRecoveriesInFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBagKind(&bagKind{work: func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			<-ctx.Done()
			return engine.Result{}, ctx.Err()
		}})
		log, told := killed(t, 2, k, func(h *object.Host) {
			if _, err := k.put.Call(context.Background(), h, "b", []string{"a"}); err != nil {
				t.Fatal(err)
			}
		})
		if want := "INFO recovered class=bag object=b cause=crash age=1.1s attempt=1 action=re-run task=a"; log != want {
			t.Errorf("logged is\n%s\nwant\n%s", log, want)
		}
		if len(told) != 1 {
			t.Fatalf("recoveries %+v", told)
		}
		if r := told[0]; r.ID != k.ID("b") || r.Task != "a" || r.Cause != "crash" || r.Age != 1100*time.Millisecond || r.Attempt != 1 || r.Action != "re-run" || r.GivenUp {
			t.Errorf("the recovery is told as %+v", r)
		}
	})
}

// Proves J9: a failure is one line of the log, a warning while it is tried again and an
// error when it is given up, with the stack of a panic; and a success is none.
func TestLogOfFailures(t *testing.T) {
	var calls atomic.Int32
	k := newBagKind(&bagKind{
		options: engine.Options{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}, Timeout: 10 * time.Second},
		work: func(ctx context.Context, x engine.Execution) (engine.Result, error) {
			calls.Add(1)
			switch x.Subject {
			case "fails":
				return engine.Result{}, errors.New("no")
			case "panics":
				panic("ouch")
			case "slow":
				<-ctx.Done()
				return engine.Result{}, context.Cause(ctx)
			case "stuck":
				time.Sleep(time.Hour)
			}
			return engine.Result{}, nil
		},
	})
	inBubble(t, k, func(h *object.Host, r *loglines.Recorder) {
		for _, name := range []string{"good", "fails", "panics", "slow", "stuck"} {
			if _, err := k.put.Call(context.Background(), h, "b", []string{name}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(3 * time.Hour)
		var stacks []string
		for _, l := range r.From(slog.LevelDebug) {
			if l.Attrs["stack"] != "" {
				stacks = append(stacks, l.Attrs["task"])
			}
			if s := l.Attrs["stack"]; s != "" && !strings.Contains(s, "told_test.go") {
				t.Errorf("the stack is %s", s)
			}
		}
		if got := strings.Join(stacks, " "); got != "panics panics" {
			t.Errorf("stacks are logged of %s", got)
		}
		want := `WARN execution failed class=bag object=b task=fails run=1 attempt=1 error=no next=2000-01-01T00:01:00Z
WARN execution failed class=bag object=b task=panics run=1 attempt=1 error=panic: ouch next=2000-01-01T00:01:00Z
WARN execution failed class=bag object=b task=slow run=1 attempt=1 error=jobs: execution timed out next=2000-01-01T00:01:10Z
WARN execution failed class=bag object=b task=stuck run=1 attempt=1 error=jobs: execution timed out and did not return next=2000-01-01T00:01:40Z
ERROR run given up class=bag object=b task=fails run=1 attempt=2 error=no reason=attempts
ERROR run given up class=bag object=b task=panics run=1 attempt=2 error=panic: ouch reason=attempts
ERROR run given up class=bag object=b task=slow run=1 attempt=2 error=jobs: execution timed out reason=attempts
ERROR run given up class=bag object=b task=stuck run=1 attempt=2 error=jobs: execution timed out and did not return reason=attempts`
		// Works that end at the same time end in any order.
		inOrder := func(lines string) string {
			return strings.Join(slices.Sorted(strings.SplitSeq(lines, "\n")), "\n")
		}
		if got := r.Text(slog.LevelInfo); inOrder(got) != inOrder(want) || calls.Load() != 9 {
			t.Errorf("after %d calls logged is\n%s\nwant\n%s", calls.Load(), got, want)
		}
	})
}
