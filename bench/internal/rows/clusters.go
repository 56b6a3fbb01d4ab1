package rows

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/cluster"
)

const (
	// snapshotRounds is how many times as long as that of other rows a round of P49 is, because a node looks once a second whether a snapshot is due.
	snapshotRounds = 5
	// snapshotMost is how long a round waits for its snapshots beyond its time.
	snapshotMost = time.Minute
	// many is how many objects P49 has beside those of P44.
	many = 100_000
)

// p49 is the increments of p44 by a node that takes snapshots, uploads them and truncates the log, beside one that does not. The snapshots are far
// more frequent than those of production, so that several fall into each round. With more objects more tables are new in each.
func p49(s Size) (cases []*Case) {
	callers, named := pick(s, 8, 1024, 1024), pick(s, "8 callers", "1,024 callers", "1,024 callers")
	for _, objects := range pick(s, []int{hot}, []int{hot, many}, []int{hot, many}) {
		cases = append(cases, &Case{
			ID: "P49", What: "durable increments over a log while snapshots are taken, " + named, Size: fmt.Sprintf("objects=%d", objects), N: float64(objects), Unit: "/s",
			Against: "the same without snapshots", Targets: []Target{ratio(0.7)}, Needs: needsPostgreSQL,
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				with := snapshotted{callers, objects, cluster.Snapshots{EveryBytes: pick[uint64](s, 1, 1<<20, 1<<20)}, pick[int64](s, 1, 3, 3)}
				return c.owner(ctx, with), c.owner(ctx, snapshotted{callers, objects, cluster.Snapshots{Off: true}, 0})
			}),
		})
	}
	return cases
}

// snapshotted is one side of p49.
type snapshotted struct {
	callers, objects int
	snapshots        cluster.Snapshots
	least            int64 // snapshots that a round has
}

// owner measures increments at a node that joins for each round, so that its last snapshot ends with the round.
func (c *setup) owner(ctx context.Context, with snapshotted) Side {
	l, dir := c.log(ctx), c.dir()
	return func(ctx context.Context) (_ Sample, err error) {
		o, err := l.Own(ctx, dir, with.objects, with.snapshots)
		if err != nil {
			return Sample{}, err
		}
		defer func() { err = errors.Join(err, o.Close()) }()
		u := o.Uploads
		start := measure.Start(o.Meters())
		run, err := atLeastSo(ctx, with.callers, snapshotRounds*c.For, func() bool { return u.Taken() >= with.least }, o.Increment)
		if err != nil {
			return Sample{}, err
		}
		const mebi = 1 << 20
		counts := Counts{"snapshots": float64(u.Taken()), "MiB uploaded": float64(u.Bytes()) / mebi, "truncations": float64(u.Truncations()), "seconds": run.Elapsed.Seconds()}
		return Sample{Value: run.PerSecond(), Lat: &run.Lat, Costs: start.PerOp(run.Ops), Counts: counts}, nil
	}
}

var errEnough = errors.New("enough")

// atLeastSo is measure.Closed for d, and on until enough is true, for at most snapshotMost.
func atLeastSo(ctx context.Context, callers int, d time.Duration, enough func() bool, op func(i int) error) (measure.Run, error) {
	end := time.Now().Add(d)
	run, err := measure.Closed(ctx, callers, d+snapshotMost, func(i int) error {
		if enough() && !time.Now().Before(end) {
			return errEnough
		}
		return op(i)
	})
	switch {
	case errors.Is(err, errEnough):
		return run, nil
	case err == nil:
		err = fmt.Errorf("too few snapshots were taken in %v: is the disk full, or PostgreSQL slow?", d+snapshotMost)
	}
	return measure.Run{}, err
}

// failovers is how many fail-overs a row makes in a second of -seconds.
const failovers = 20

// silence is the setting beside which a fail-over stands, in milliseconds.
var silence = float64(workload.Silence.Milliseconds())

// p50Paused is the time from the moment at which a node stands still until the other one has answered a durable call, beside the silence that is set.
func p50Paused(Size) []*Case {
	return []*Case{{
		ID: "P50", What: "fail-over to a warm follower, owner paused by SIGSTOP, p50", Unit: "ms",
		Against: "the silence that is set", Set: silence, Rounds: 1, Needs: needsPostgreSQL,
		Targets: []Target{times(1.4, 0, "≤ 1.4 × reference"), p99Times(4, "p99 ≤ 4 × reference")},
		Prepare: prepared(failingOver(workload.Paused)),
	}}
}

// p50Killed is the same when the process of the owner is dead, which its address tells before the silence does.
func p50Killed(Size) []*Case {
	return []*Case{{
		ID: "P50", What: "fail-over to a warm follower, owner killed with -9, p50", Unit: "ms",
		Against: "the silence that is set", Set: silence, Rounds: 1, Needs: needsPostgreSQL,
		Targets: []Target{atMost(700, "≤ 0.7 s"), p99Times(4, "p99 ≤ 4 × reference")},
		Prepare: prepared(failingOver(workload.Killed)),
	}}
}

// failingOver prepares fail-overs by a fault.
func failingOver(f workload.Fault) func(context.Context, *setup) (ours, reference Side) {
	return func(_ context.Context, c *setup) (ours, reference Side) {
		dir := c.dir()
		return func(ctx context.Context) (Sample, error) {
			return failOvers(ctx, dir, f, max(1, int(math.Round(failovers*c.For.Seconds()))))
		}, nil
	}
}

// failOvers makes n fail-overs between two nodes. The processor time is that of the nodes, with their load and their other lives, and of this process.
func failOvers(ctx context.Context, dir string, f workload.Fault, n int) (Sample, error) {
	draw := rand.New(rand.NewPCG(50, uint64(n)))
	start := measure.Start(nil)
	nodes, err := workload.OpenNodes(ctx, dir, func(most time.Duration) time.Duration { return time.Duration(draw.Int64N(int64(most))) })
	if err != nil {
		return Sample{}, err
	}
	var took []time.Duration
	for err == nil && len(took) < n {
		var d time.Duration
		if d, err = nodes.FailOver(ctx, f); err == nil {
			took = append(took, d)
		}
	}
	extra := 0
	if err == nil {
		extra, err = nodes.FalseTerms(ctx)
	}
	if err = errors.Join(err, nodes.Close()); err != nil {
		return Sample{}, err
	}
	processor := start.PerOp(int64(n))[measure.ProcessorNanos] + float64(nodes.Processor())/float64(n)
	return summed(took, processor, extra), nil
}

// summed sums up fail-overs: their median in milliseconds, their latencies, the processor time of one, and how many terms began without one.
func summed(took []time.Duration, processorNanos float64, extra int) Sample {
	lat := measure.NewLatencies()
	var millis []float64
	for _, d := range took {
		lat.Record(d)
		millis = append(millis, float64(d)/float64(time.Millisecond))
	}
	q := lat.Quantiles()
	return Sample{
		Value: measure.Median(millis), Lat: &q, Costs: measure.Costs{measure.ProcessorNanos: processorNanos},
		Counts: Counts{"fail-overs": float64(len(took)), "false terms": float64(extra)},
	}
}
