package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// open opens a host on dir that is shut down with the test, unless it was before.
func open(t testing.TB, dir string, defs ...object.Definition) *object.Host {
	t.Helper()
	h, err := object.Open(object.Options{Dir: dir}, defs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, h) })
	return h
}

func shut(t testing.TB, h *object.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil && !errors.Is(err, object.ErrShutdown) {
		t.Error(err)
	}
}

// must returns the result of a call that may not fail.
func must[R any](r R, err error) R {
	if err != nil {
		panic(err)
	}
	return r
}

func TestTasksAreDone(t *testing.T) {
	pool := workerpool.New(workerpool.Config[int, string]{
		Name: "tasks", Concurrency: 8, Partitions: 3,
		Work: func(_ context.Context, t *workerpool.Task[int]) (string, error) { return fmt.Sprint(t.In), nil },
	})
	h := open(t, t.TempDir(), pool)
	ctx := context.Background()
	ids := make(map[int]workerpool.TaskID)
	for i := range 60 {
		ref, err := pool.Enqueue(ctx, h, i)
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = ref.ID
	}
	parts := make(map[int]int)
	for i, id := range ids {
		out := must(pool.Wait(ctx, h, id))
		if out != fmt.Sprint(i) {
			t.Errorf("task %s: output %q, want %d", id, out, i)
		}
		parts[id.Partition]++
	}
	if len(parts) != 3 {
		t.Errorf("tasks went to partitions %v, want all three", parts)
	}
	s := must(pool.Stats(ctx, h))
	if err := s.Check(); err != nil || s.Done != 60 || s.Pending+s.Running != 0 {
		t.Errorf("stats %+v, %v", s, err)
	}
}
