package object_test

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/object"
)

// A job type shows in the host's metrics what tasks an object holds. Its constructor
// asks for the Backlog, and each turn that changes the tasks sets it.
func ExampleState_Backlog() {
	ctx := context.Background()
	class, do := shelf(func(s *Shelf, _ context.Context) error {
		b := s.st.Backlog()
		b.Set(object.Tasks{Pending: 2, Running: 1})
		b.Waited(time.Second)
		b.Ran(time.Minute)
		return nil
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	_, err := do.Call(ctx, host, "a", struct{}{})

	registry := prometheus.NewRegistry()
	registry.MustRegister(host.Collector())
	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "holdfast_tasks_pending" {
			fmt.Println(f.GetMetric()[0].GetGauge().GetValue(), err)
		}
	}
	// Output: 2 <nil>
}
