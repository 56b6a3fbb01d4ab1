package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// Proves J3, J9: each verb changes the metadata as it says, or nothing; its events tell of
// each change, and no others.
func TestVerbsInFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newErrandKind(&errandKind{period: time.Hour, options: engine.JobOptions{Options: engine.Options{Retry: jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Minute)}}}})
		k.work = func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			select {
			case <-ctx.Done():
				return engine.Result{}, ctx.Err()
			case <-time.After(10 * time.Second):
				return engine.Result{}, errors.New("no")
			}
		}
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, k)
		if err != nil {
			t.Fatal(err)
		}
		do := func(verb string) (before, after jobs.Meta, err error) {
			time.Sleep(time.Second)
			before, _ = k.meta.Call(t.Context(), h, "a", 0)
			_, err = k.do.Call(t.Context(), h, "a", verb)
			after, _ = k.meta.Call(t.Context(), h, "a", 0)
			return before, after, err
		}
		for _, verb := range []string{"run", "pause", "resume", "stop", "terminate"} {
			if _, _, err := do(verb); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%s of no job: %v", verb, err)
			}
		}
		if _, m, err := do("create"); err != nil || m.Status != jobs.Executing || m.Run.Number != 1 || m.Run.Attempt != 1 {
			t.Errorf("create: %+v, %v", m, err)
		}
		if _, _, err := do("create"); !errors.Is(err, jobs.ErrIllegalMove) {
			t.Errorf("a second create: %v", err)
		}
		if before, after, err := do("resume"); err != nil || after != before {
			t.Errorf("resume of a job that executes: %+v, then %+v, %v", before, after, err)
		}
		if before, after, err := do("pause"); err != nil || !after.Pausing || after.Status != jobs.Executing || before.Pausing {
			t.Errorf("pause of a job that executes: %+v, %v", after, err)
		}
		if before, after, err := do("pause"); err != nil || after != before {
			t.Errorf("a second pause: %+v, then %+v, %v", before, after, err)
		}
		if _, after, err := do("resume"); err != nil || after.Pausing || after.Status != jobs.Executing {
			t.Errorf("resume of a job to be paused: %+v, %v", after, err)
		}
		time.Sleep(10 * time.Second)
		if before, after, err := do("resume"); err != nil || after != before || after.Status != jobs.Running || after.Run.Failures != 1 {
			t.Errorf("resume of a job that waits: %+v, then %+v, %v", before, after, err)
		}
		before, after, err := do("run")
		if err != nil || after.Status != jobs.Executing || after.Run.Failures != 0 || after.Run.Number != 1 || after.Run.Attempt != 2 ||
			!after.Run.FirstAt.Equal(time.Now()) || after.Run.Cause != before.Run.Cause || !after.Run.RetryAt.IsZero() {
			t.Errorf("run of a retry: %+v, %v", after, err)
		}
		if before, after, err := do("run"); err != nil || after.NextCause != "asked" || !after.NextAt.Equal(time.Now()) || after.ExecutionID != before.ExecutionID {
			t.Errorf("run of a job that executes: %+v, %v", after, err)
		}
		if _, after, err := do("stop"); err != nil || after.Status != jobs.Stopped || after.StopReason != "enough" || after.Run != (jobs.Run{}) ||
			after.ExecutionID != "" || !after.ExecutingAt.IsZero() {
			t.Errorf("stop: %+v, %v", after, err)
		}
		for _, verb := range []string{"run", "pause", "stop"} {
			if before, after, err := do(verb); !errors.Is(err, jobs.ErrIllegalMove) || after != before {
				t.Errorf("%s of a stopped job: %+v, then %+v, %v", verb, before, after, err)
			}
		}
		if _, after, err := do("resume"); err != nil || after.Status != jobs.Executing || after.StopReason != "" || after.Run.Cause != "asked" || after.Failures != 0 {
			t.Errorf("resume of a stopped job: %+v, %v", after, err)
		}
		if _, after, err := do("terminate"); err != nil || after.Status != jobs.None {
			t.Errorf("terminate: %+v, %v", after, err)
		}
		events, err := h.Events(t.Context(), k.ID("a"), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
		want := []string{
			jobs.EventCreated, jobs.EventStart, jobs.EventFailure, jobs.EventRetry, jobs.EventStart,
			jobs.EventStopped, jobs.EventResumed, jobs.EventStart, jobs.EventTerminated,
		}
		if got := strings.Join(kinds, " "); got != strings.Join(want, " ") {
			t.Errorf("events %s, want %s", got, strings.Join(want, " "))
		}
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Proves J4, J8: an execution has the key of its object and run; a quiet engine tells of
// failures alone; and no work is cancelled where there is none.
func TestQuietExecutions(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		k := newBagKind(&bagKind{options: engine.Options{Quiet: quiet}, work: func(_ context.Context, x engine.Execution) (engine.Result, error) {
			time.Sleep(time.Second)
			switch {
			case x.Subject == "fails":
				return engine.Result{}, errors.New("no")
			case x.Subject == "snoozes" && x.Run.FirstAt.Second() == 0:
				return engine.Result{}, jobs.Snooze(time.Hour)
			}
			return engine.Result{}, nil
		}})
		inBubble(t, k, func(h *object.Host, _ *loglines.Recorder) {
			ctx := context.Background()
			if _, err := k.put.Call(ctx, h, "b", []string{"fails", "good", "snoozes"}); err != nil {
				t.Fatal(err)
			}
			open, err := k.open.Call(ctx, h, "b", 0)
			if err != nil || len(open) != 3 || open[0].Key != "bag/b/1" || len(open[0].Token) != 16 {
				t.Errorf("open are %+v, %v", open, err)
			}
			if asked, err := k.cancel.Call(ctx, h, "b", "other"); err != nil || asked {
				t.Errorf("a work that is not there is cancelled: %t, %v", asked, err)
			}
			time.Sleep(time.Minute)
			events, err := h.Events(ctx, k.ID("b"), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, e := range events {
				count[e.Kind]++
			}
			want := map[string]int{jobs.EventFailure: 1, jobs.EventExhausted: 1}
			if !quiet {
				want[jobs.EventStart], want[jobs.EventSuccess], want[jobs.EventSnooze] = 3, 1, 1
			}
			if fmt.Sprint(count) != fmt.Sprint(want) {
				t.Errorf("quiet %t: events %v, want %v", quiet, count, want)
			}
		})
	}
}
