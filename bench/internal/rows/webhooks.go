package rows

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// p37 is deliveries of webhooks, each from its event to the answer of a receiver on the loopback.
func p37(s Size) (cases []*Case) {
	n := pick(s, 200, 20_000, 60_000)
	for _, subscriptions := range []int{1, 16} {
		cases = append(cases, &Case{
			ID: "P37", What: "webhooks, event to answer on the loopback, 64 callers", Size: fmt.Sprintf("subscriptions=%d", subscriptions), N: float64(subscriptions), Unit: "/s",
			Against: "empty tasks of a worker pool",
			Targets: []Target{atLeast(3000, "≥ 3,000/s")},
			Prepare: prepared(func(_ context.Context, c *setup) (ours, reference Side) {
				w := keep(c, fail.Must(workload.OpenWebhooks(c.dir(), subscriptions)))
				p := c.pool(workerpool.AtOnce)
				return amount(n, w.Meters(), func(ctx context.Context) error { return w.Deliver(ctx, n) }), tasks(p, n)
			}),
		})
	}
	return cases
}
