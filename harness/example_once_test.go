package harness_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// bills is a scenario: a pool of tasks charges cards. The bank knows keys: it takes the money
// once for each, and answers with the number of the receipt.
func bills(key func(t *workerpool.Task[string]) string) harness.Scenario {
	return func(s *harness.Sim) {
		receipts := 0
		pool := workerpool.New(workerpool.Config[string, int]{
			Name: "bills",
			Work: func(_ context.Context, t *workerpool.Task[string]) (int, error) {
				return harness.DoOnce(s.World(), "charge/"+t.In, key(t), func() int {
					receipts++
					return receipts
				})
			},
		})
		s.Host(pool)
		s.OK(s.Retry(func() error {
			_, err := pool.Enqueue(s.Context(), s, "lunch", workerpool.Idempotent("lunch", time.Hour))
			return err
		}))
		s.Advance(time.Hour)
	}
}

// DoOnce is a bank that knows keys. OutsideKey is the same in each attempt at a task. With a key
// for each attempt, an answer that gets lost is a second charge.
func ExampleDoOnce() {
	for _, key := range []func(t *workerpool.Task[string]) string{
		func(t *workerpool.Task[string]) string { return t.OutsideKey },
		func(t *workerpool.Task[string]) string { return fmt.Sprint(t.OutsideKey, "-", t.Attempt) },
	} {
		_, err := harness.Explore(bills(key), harness.NoDoubleEffect("charge/"), harness.AllowFaults(harness.Faults{LostAnswer: 1}))
		var found *harness.Failure
		if errors.As(err, &found) {
			fmt.Println(found.Problem)
		} else {
			fmt.Println("charged once")
		}
	}
	// Output:
	// charged once
	// NoDoubleEffect: the effect "charge/lunch" was done twice: at 0s by start 1, and at 1s by start 1
}
