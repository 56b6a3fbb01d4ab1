package workerpool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves R2. More lost tasks than fit in one batch, by the bytes of their inputs,
// are recovered in several.
func TestManyLargeTasksAreRecovered(t *testing.T) {
	const tasks = 12
	input := strings.Repeat("x", 3<<19) // all of them are more than a batch may hold
	mem := memstore.New()
	begun, killed := make(chan struct{}, tasks), false
	p := workerpool.New(config{
		Name: "large", Concurrency: tasks,
		Work: func(ctx context.Context, _ *workerpool.Task[string]) (string, error) {
			if killed {
				return "done", nil
			}
			begun <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		},
	})
	host := func() *object.Host {
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem}}, p)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := host()
	var refs []workerpool.TaskRef
	for range tasks {
		refs = append(refs, must(p.Enqueue(ctx, h, input)))
	}
	for range tasks {
		<-begun
	}
	survives := mem.Crash(0)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = h.Shutdown(ended) // as a killed process: nothing of it is kept
	mem, killed = survives, true
	h = host()
	defer shut(t, h)
	for _, ref := range refs {
		if out, err := p.Wait(ctx, h, ref.ID); err != nil || out != "done" {
			t.Errorf("task %s: %q, %v", ref.ID, out, err)
		}
	}
}
