package object_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/object"
)

// A job type asks what is known about an execution before it starts its work.
func ExampleState_StartSuspect() {
	ctx, ended := context.Background(), make(chan struct{})
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		var w object.Work
		run := func(context.Context) { close(ended) }
		const cuts, epoch = 2, 1 // crashes in a row have cut run 7 off, the last by the end of opening 1
		if s.st.Suspicion("run 7").Held(cuts, epoch) {
			return s.st.StartSuspect(ctx, &w, "run 7", "work", run)
		}
		return s.st.Start(ctx, &w, "work", run)
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	_, err := do.Call(ctx, host, "a", struct{}{})
	<-ended
	fmt.Println(err)
	// Output: <nil>
}
