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
	dir        string
	rome, oslo *cluster.Node
}

func (c *cities) join(id string) *cluster.Node {
	node, err := cluster.Join(context.Background(), cluster.Options{
		Log: c.log, ID: id, Addr: id + ".example:7070", Dir: filepath.Join(c.dir, id),
		Dial:   func(context.Context, string) error { return nil }, // the addresses are only names here
		Logger: slog.New(slog.DiscardHandler),
	}, visitors)
	if err != nil {
		panic(err)
	}
	return node
}

func begin() *cities {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		panic(err)
	}
	c := &cities{log: memlog.New(), dir: dir}
	c.log.SetClock(time.Now)
	c.rome = c.join("rome")
	if _, err := c.rome.Serving(context.Background()); err != nil {
		panic(err)
	}
	c.oslo = c.join("oslo")
	for changed := c.oslo.Changed(); ; changed = c.oslo.Changed() { // until oslo has seen rome
		var moved *cluster.ErrMoved
		if _, err := visit.Call(context.Background(), c.oslo, "ann", struct{}{}); errors.As(err, &moved) && moved.Addr != "" {
			return c
		}
		<-changed
	}
}

func (c *cities) end() {
	if err := errors.Join(c.oslo.Close(), c.rome.Close(), os.RemoveAll(c.dir)); err != nil {
		fmt.Println(err)
	}
}

// The first node serves. A node is a caller as a host is.
func ExampleJoin() {
	c := begin()
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
	c := begin()
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
	ctx := context.Background()
	c := begin()
	defer c.end()
	_, err := visit.Call(ctx, c.rome, "ann", struct{}{})
	fmt.Println(err)
	limit, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	fmt.Println(c.rome.Drain(limit), c.rome.Err())
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
	c := begin()
	defer c.end()
	limit, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	fmt.Println(cluster.Drain(limit, c.log, 0, "rome", seam.Seams{}))
	<-c.rome.Done()
	fmt.Println(c.rome.Err())
	// Output:
	// <nil>
	// cluster: the node has left the cluster
}

// A program that does its own work on the node that serves, for example one that reads a queue, waits until it is that node.
func ExampleNode_Serving() {
	ctx := context.Background()
	c := begin()
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
	c := begin()
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
	c := begin()
	defer c.end()
	status, err := c.oslo.Status(context.Background())
	fmt.Println(status.Owner, len(status.Nodes), err)
	// Output:
	// rome 2 <nil>
}
