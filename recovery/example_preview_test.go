package recovery_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The store of a program that was killed while an execution was open. A tool opens the
// directory: storage.Options{Dir: "data"}.
func ExampleLookAhead() {
	type job struct{ st *object.State }
	ctx, mem := context.Background(), memstore.New()
	class := object.Define("report", func(_ context.Context, st *object.State) (*job, error) { return &job{st}, nil })
	begin := object.Handle(class, "begin", func(j *job, ctx context.Context, _ struct{}) (int, error) {
		return 0, j.st.Driver().OpenExecution(ctx, nil)
	})
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem}}, class)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := begin.Call(ctx, h, "daily", struct{}{}); err != nil {
		log.Fatal(err)
	}
	killed := mem.Crash(0) // the store as a kill leaves it
	if err := h.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	store, err := storage.OpenReadOnly(storage.Options{Engine: killed})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ahead, err := recovery.LookAhead(ctx, store, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ended in order:", ahead.Previous.Clean, "- nothing to repair:", ahead.Clean())
	executions, total, err := object.NewReader(store).Executions(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(total, "open:", executions[0].ID)
	// Output:
	// ended in order: false - nothing to repair: false
	// 1 open: report/daily
}
