package workerpool_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// inBubble runs fn with a host on virtual time that logs to r.
func inBubble(t *testing.T, def object.Definition, fn func(t *testing.T, h *object.Host, r *loglines.Recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var r loglines.Recorder
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 2}, Logger: r.Logger()}, def)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, h)
		fn(t, h, &r)
	})
}

// Proves J13, J14, Case JB1: Permanent, RetryAfter and Snooze steer a task, whether
// its work returns them or an outside worker nacks with them.
func TestAdviceForTasks(t *testing.T) {
	boom := errors.New("boom")
	advice := map[string]error{
		"permanent": object.Permanent(boom),
		"after":     jobs.RetryAfter(time.Hour, boom),
		"snooze":    jobs.Snooze(time.Hour),
		"plain":     boom,
	}
	retry := jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)}
	// look asks how the tasks are, a second after the first attempt of each.
	look := func(t *testing.T, h *object.Host, p *pool, ids map[string]workerpool.TaskID) {
		t.Helper()
		for in, want := range map[string]struct {
			state    workerpool.State
			attempt  int
			failures int
			wait     time.Duration
		}{
			"permanent": {workerpool.Dead, 1, 1, 0},
			"after":     {workerpool.Pending, 1, 1, time.Hour},
			"snooze":    {workerpool.Pending, 0, 0, time.Hour},
			"plain":     {workerpool.Pending, 1, 1, time.Second},
		} {
			info := must(p.Status(ctx, h, ids[in]))
			if info.State != want.state || info.Attempt != want.attempt || len(info.Failures) != want.failures {
				t.Errorf("%s: %+v", in, info)
			}
			if want.wait > 0 && info.NotBefore.Sub(info.Enqueued) != want.wait {
				t.Errorf("%s: waits until %v", in, info.NotBefore)
			}
		}
		letters := must(p.DeadLetters(ctx, h, workerpool.TaskID{}, 10))
		if len(letters) != 1 || letters[0].Reason != jobs.ReasonPermanent || letters[0].Failures[0].Error != "boom" {
			t.Errorf("dead letters %+v", letters)
		}
	}
	t.Run("work", func(t *testing.T) {
		p := workerpool.New(config{Name: "pool", Retry: retry, Work: func(_ context.Context, task *workerpool.Task[string]) (string, error) {
			if task.Attempt > 1 || time.Since(task.Enqueued) > 0 {
				return "done", nil
			}
			return "", advice[task.In]
		}})
		inBubble(t, p, func(t *testing.T, h *object.Host, r *loglines.Recorder) {
			ids := map[string]workerpool.TaskID{}
			for in := range advice {
				ids[in] = must(p.Enqueue(ctx, h, in)).ID
			}
			synctest.Wait()
			look(t, h, p, ids)
			if got := r.Text(slog.LevelError); got != "ERROR run given up class=pool object=0 task="+ids["permanent"].String()+" run=1 attempt=1 error=boom reason=permanent" {
				t.Errorf("logged\n%s", r.Text(slog.LevelInfo))
			}
			if n := len(r.From(slog.LevelWarn)); n != 3 {
				t.Errorf("%d lines of warnings and errors, want 3:\n%s", n, r.Text(slog.LevelInfo))
			}
			time.Sleep(90 * time.Minute)
			if info := must(p.Status(ctx, h, ids["snooze"])); info.State != workerpool.Done || info.Attempt != 1 {
				t.Errorf("after its wait: %+v", info)
			}
		})
	})
	t.Run("nack", func(t *testing.T) {
		p := workerpool.New(config{Name: "pool", Retry: retry})
		inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
			ids := map[string]workerpool.TaskID{}
			for in := range advice {
				ids[in] = must(p.Enqueue(ctx, h, in)).ID
			}
			for _, c := range must(p.Claim(ctx, h, 10, time.Minute)) {
				if err := p.Nack(ctx, h, c.Lease, advice[c.Task.In]); err != nil {
					t.Error(err)
				}
			}
			look(t, h, p, ids)
		})
	})
}

// Proves W6, J13, Case JB2: a dead letter has the stack of its last attempt if that
// panicked, and none if only an earlier one did.
func TestStackOfADeadLetter(t *testing.T) {
	p := workerpool.New(config{Name: "pool", Retry: jobs.Retry{MaxAttempts: 2}, Work: func(_ context.Context, task *workerpool.Task[string]) (string, error) {
		if (task.In == "late") == (task.Attempt == 2) {
			panic("ouch")
		}
		return "", errors.New("boom")
	}})
	inBubble(t, p, func(t *testing.T, h *object.Host, r *loglines.Recorder) {
		for _, in := range []string{"late", "early"} {
			must(p.Enqueue(ctx, h, in))
		}
		time.Sleep(time.Minute)
		for _, d := range must(p.DeadLetters(ctx, h, workerpool.TaskID{}, 10)) {
			if has := strings.Contains(d.Stack, "advice_test.go"); has != (d.In == "late") || len(d.Stack) > object.MaxStackBytes {
				t.Errorf("%s: stack %q", d.In, d.Stack)
			}
			for _, f := range d.Failures {
				if strings.Contains(f.Error, "\n") {
					t.Errorf("%s: error %q", d.In, f.Error)
				}
			}
		}
		if n := len(r.From(slog.LevelInfo)); n != 4 {
			t.Errorf("%d lines, want one for each failure:\n%s", n, r.Text(slog.LevelInfo))
		}
	})
}
