package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// visitor counts visits.
type visitor struct{ state *object.State }

var (
	visitors = object.Define("visitor", func(_ context.Context, s *object.State) (*visitor, error) { return &visitor{s}, nil })
	visit    = object.Handle(visitors, "visit", func(v *visitor, ctx context.Context, _ struct{}) (int, error) {
		var n int
		if _, err := v.state.Storage().GetInto(ctx, "n", &n); err != nil {
			return 0, err
		}
		return n + 1, v.state.Storage().Put(ctx, "n", n+1)
	})
)

// cities is two nodes of a cluster in one process, over a log in memory. In production each is a process on a machine of its own, and the log is
// that of package pglog.
type cities struct {
	log        *memlog.Log
	clock      seam.Clock
	dir        string
	rome, oslo *cluster.Node // nil until they join
}

func (c *cities) join(id string) *cluster.Node {
	node, err := cluster.Join(context.Background(), cluster.Options{
		Log: c.log, ID: id, Addr: id + ".example:7070", Dir: filepath.Join(c.dir, id),
		Dial:   func(context.Context, string) error { return nil }, // the addresses are only names here
		Logger: slog.New(slog.DiscardHandler),
		Seams:  seam.Seams{Clock: c.clock},
	}, visitors)
	if err != nil {
		panic(err)
	}
	return node
}

// begin starts rome, which serves.
func begin(clock seam.Clock) *cities {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		panic(err)
	}
	c := &cities{log: memlog.New(), clock: clock, dir: dir}
	c.log.SetClock(clock.Now)
	c.rome = c.join("rome")
	if _, err := c.rome.Serving(context.Background()); err != nil {
		panic(err)
	}
	return c
}

// slow is a clock for these examples, by which a second takes 1,000 seconds: so oslo doesn't take over from rome, however busy the machine is
// that runs them. Nodes in production use the default.
type slow struct{ from time.Time }

func (s slow) Now() time.Time    { return s.from.Add(time.Since(s.from) / 1000) }
func (s slow) Steady() time.Time { return s.Now() }

func (s slow) AfterFunc(d time.Duration, f func()) seam.Timer { return time.AfterFunc(1000*d, f) }

// both starts rome, which serves, and oslo, which has seen rome and waits.
func both() *cities {
	c := begin(slow{time.Now()})
	c.oslo = c.join("oslo")
	for changed := c.oslo.Changed(); ; changed = c.oslo.Changed() {
		var moved *cluster.ErrMoved
		if _, err := visit.Call(context.Background(), c.oslo, "ann", struct{}{}); errors.As(err, &moved) && moved.Addr != "" {
			return c
		}
		<-changed
	}
}

func (c *cities) end() {
	for _, node := range []*cluster.Node{c.oslo, c.rome} {
		if node == nil {
			continue
		}
		if err := node.Drain(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	if err := os.RemoveAll(c.dir); err != nil {
		fmt.Println(err)
	}
}

// The first node serves. A node is a caller as a host is.
func ExampleJoin() {
	c := both()
	defer c.end()
	for range 2 {
		n, err := visit.Call(context.Background(), c.rome, "ann", struct{}{})
		fmt.Println(n, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// A node that waits names the one that serves.
func ExampleErrMoved() {
	c := both()
	defer c.end()
	_, err := visit.Call(context.Background(), c.oslo, "ann", struct{}{})
	var moved *cluster.ErrMoved
	if errors.As(err, &moved) {
		fmt.Println("try", moved.Addr)
	}
	// Output:
	// try rome.example:7070
}

// A node that drains ends in order, and the next one has all that it acknowledged.
func ExampleNode_Drain() {
	ctx := context.Background() // in production with a limit, because calls in flight may take as long as they like
	c := begin(slow{time.Now()})
	defer c.end()
	_, err := visit.Call(ctx, c.rome, "ann", struct{}{})
	fmt.Println(err)
	fmt.Println(c.rome.Drain(ctx), c.rome.Err())
	c.oslo = c.join("oslo")
	if _, err := c.oslo.Serving(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(visit.Call(ctx, c.oslo, "ann", struct{}{}))
	// Output:
	// <nil>
	// <nil> cluster: the node has left the cluster
	// 2 <nil>
}

// An operator drains a node from a process of its own, without a connection to the node.
func ExampleDrain() {
	ctx := context.Background()
	c := begin(seam.Seams{}.WithDefaults().Clock) // the node finds the order at its next heartbeat
	defer c.end()
	fmt.Println(cluster.Drain(ctx, c.log, 0, "rome", seam.Seams{}))
	<-c.rome.Done()
	fmt.Println(c.rome.Err())
	// Output:
	// <nil>
	// cluster: the node has left the cluster
}

// A program that does its own work on the node that serves, for example one that reads a queue, waits until it is that node.
func ExampleNode_Serving() {
	ctx := context.Background()
	c := both()
	defer c.end()
	host, err := c.rome.Serving(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(host.Err())
	_, active := c.oslo.Active()
	fmt.Println(active)
	// Output:
	// <nil>
	// false
}

// A status is for people and for programs, and changes nothing.
func ExampleReadStatus() {
	c := both()
	defer c.end()
	status, err := cluster.ReadStatus(context.Background(), c.log, 0, seam.Seams{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status.Owner, status.Term)
	for _, n := range status.Nodes {
		fmt.Println(n.ID, n.Addr, n.Owner, n.Draining)
	}
	// Output:
	// rome 1
	// oslo oslo.example:7070 false false
	// rome rome.example:7070 true false
}

// A node has the status at hand, because it looks at the others twice a second.
func ExampleNode_Status() {
	c := both()
	defer c.end()
	status, err := c.oslo.Status(context.Background())
	fmt.Println(status.Owner, len(status.Nodes), err)
	// Output:
	// rome 2 <nil>
}
