package rows

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// p31 and p32 are durable increments over HTTP, of one object and of 1,000.
func p31(s Size) []*Case {
	return []*Case{web(s, "P31", "durable increments over HTTP, one object", ratio(0.8), oneMore(1))}
}

func p32(s Size) []*Case {
	return []*Case{web(s, "P32", "durable increments over HTTP, 1,000 objects", ratio(0.8), oneMore(hot))}
}

// p33 is calls over HTTP that read memory, beside plain net/http, and beside net/http with headers of safety and deadlines.
func p33(s Size) []*Case {
	o := workload.WebOptions{Objects: hot, Method: "read", Argument: "null"}
	plain := web(s, "P33", "reads over HTTP, 1,000 objects", ratio(0.9), o)
	o.Bounded = true
	bounded := web(s, "P33", "reads over HTTP, beside a server with headers of safety and deadlines, 1,000 objects", ratio(0.9), o)
	bounded.Against += " with headers of safety and deadlines"
	return []*Case{plain, bounded}
}

// p34 is P31 with the parts that a client of a real service adds, each alone and together.
func p34(s Size) (cases []*Case) {
	for _, part := range []struct {
		what        string
		token, keys bool
	}{{"a token", true, false}, {"an Idempotency-Key", false, true}, {"a token and an Idempotency-Key", true, true}} {
		o := oneMore(1)
		o.Token, o.Keys = part.token, part.keys
		cases = append(cases, web(s, "P34", "durable increments over HTTP, one object, with "+part.what, ratio(0.6), o))
	}
	return cases
}

// oneMore adds one.
func oneMore(objects int) workload.WebOptions {
	return workload.WebOptions{Objects: objects, Method: "increment", Argument: "1"}
}

// web is a case over HTTP beside a plain net/http server, which knows neither tokens nor keys.
func web(s Size, id, what string, target Target, o workload.WebOptions) *Case {
	o.Connections = pick(s, 8, 64, 64)
	return &Case{
		ID: id, What: what, Size: fmt.Sprintf("connections=%d", o.Connections), N: float64(o.Connections), Unit: "/s",
		Against: "the bare turn loop behind plain net/http",
		Targets: []Target{target},
		Prepare: prepared(func(_ context.Context, c *setup) (ours, reference Side) {
			h := c.counters(o.Objects, object.Options{})
			tokens := c.dir()
			served := keep(c, fail.Must(h.Serve(o, tokens)))
			turns, disk := c.turns(o.Objects)
			plain := o
			plain.Token, plain.Keys = false, false
			strawman := keep(c, fail.Must(workload.ServeRaw(turns, plain)))
			return rate(o.Connections, c.For, h.Meters(), served.Send), rate(o.Connections, c.For, disk.Meters(), strawman.Send)
		}),
	}
}
