package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/program"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// errInterrupted is the error of a demo that was told to end.
var errInterrupted = errors.New("interrupted: its processes are ended, and nothing was compared")

// names are the nodes.
var names = []string{"a", "b", "c"}

// campaign is one cluster and all that happens to it.
type campaign struct {
	o    options
	dir  string
	tell io.Writer
	rand *rand.Rand

	pair    *pgtest.Pair
	proxies map[string]*pgtest.Proxy // by node
	watch   *watch
	figures figures
	times   []time.Duration // of the fail-overs

	mu    sync.Mutex // guards the fields below
	nodes map[string]*process
	lives uint64     // numbers the calls of one life apart from those of others
	seeds *rand.Rand // of the lives
	last  bool       // the next life runs until nothing is left to do
}

// play plays all of it. After a failure the directories are kept.
func play(ctx context.Context, o options, bin string, tell io.Writer) (f figures, err error) {
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return f, err
	}
	c := &campaign{
		o: o, dir: dir, tell: tell, rand: rand.New(rand.NewPCG(o.seed, 0)), seeds: rand.New(rand.NewPCG(o.seed, 1)),
		proxies: make(map[string]*pgtest.Proxy), nodes: make(map[string]*process), figures: figures{Seed: o.seed},
	}
	if c.watch, err = newWatch(dir); err != nil {
		return c.figures, errors.Join(err, os.RemoveAll(dir))
	}
	err = c.play(ctx, bin)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	err = errors.Join(err, c.end())
	c.figures.times(c.times)
	c.figures.Acked = c.watch.book.Acked // also of a demo that did not come to its end
	if err != nil && ctx.Err() == nil || o.keep {
		fmt.Fprintln(tell, "the stores and logs are kept in", dir)
		return c.figures, err
	}
	return c.figures, errors.Join(err, os.RemoveAll(dir))
}

// end ends all processes that still run.
func (c *campaign) end() (err error) {
	for _, p := range c.nodes {
		p.resume()
		p.kill()
	}
	for _, p := range c.proxies {
		p.Close()
	}
	if c.pair != nil {
		err = c.pair.Close()
	}
	return errors.Join(err, c.watch.close())
}

func (c *campaign) play(ctx context.Context, bin string) (err error) {
	fmt.Fprintln(c.tell, "starting PostgreSQL, a primary and a synchronous standby")
	if c.pair, err = pgtest.Start(bin); err != nil {
		return err
	}
	o := pglog.Options{DSN: pgtest.DSN(c.pair.Primary.Port), Node: "demo"}
	if err := pglog.Init(ctx, o); err != nil {
		return err
	}
	if err := c.alone(ctx); err != nil {
		return err
	}
	if err := c.imports(ctx, o); err != nil {
		return err
	}
	if err := c.cluster(ctx); err != nil {
		return err
	}
	return c.check(ctx, o)
}

// store is the directory of the store of one machine that is imported.
func (c *campaign) store() string { return filepath.Join(c.dir, "store") }

// alone makes that store: the program runs on it for a second.
func (c *campaign) alone(ctx context.Context) error {
	fmt.Fprintln(c.tell, "making a store on one machine")
	c.mu.Lock()
	config := c.config()
	c.mu.Unlock()
	config.Dir = c.store()
	p, err := start("alone", "alone", c.dir, config, c.watch.reader("alone"))
	if err != nil {
		return err
	}
	c.nodes["alone"] = p
	err = c.watch.until(ctx, endTime, "the first call on one machine", func() bool { return !c.watch.acked["alone"].IsZero() })
	if err == nil {
		err = seams.Sleep(ctx, time.Second)
	}
	p.terminate()
	err = errors.Join(err, p.wait(ctx))
	delete(c.nodes, "alone")
	c.watch.forget()
	return err
}

// cluster runs the nodes from their start to their end.
func (c *campaign) cluster(ctx context.Context) (err error) {
	for _, name := range names {
		if c.proxies[name], err = pgtest.NewProxy(c.pair.Primary); err != nil {
			return err
		}
		if err := c.join(name); err != nil {
			return err
		}
	}
	feeding, cancel := context.WithCancelCause(ctx)
	var feeder sync.WaitGroup
	feeder.Go(func() { cancel(c.feed(feeding)) })
	err = c.hits(feeding)
	if err == nil {
		err = c.finish(feeding)
	}
	cancel(nil)
	feeder.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx) // end kills the nodes
	}
	for _, p := range c.nodes {
		p.terminate()
	}
	for name, p := range c.nodes {
		err = errors.Join(err, p.wait(ctx))
		delete(c.nodes, name)
	}
	return err
}

// home is the directory of a node.
func (c *campaign) home(name string) string { return filepath.Join(c.dir, name) }

// join starts a node with a directory of its own, which it may have used before.
func (c *campaign) join(name string) error {
	config := nodeConfig{ID: name, Dir: c.home(name), DSN: pgtest.DSN(c.proxies[name].Port)}
	p, err := start("node", name, c.dir, config, c.watch.reader(name))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = p
	return nil
}

// node is the process of a node.
func (c *campaign) node(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[name]
}

// config is the configuration of the next life. The caller holds mu.
func (c *campaign) config() program.Config {
	c.lives++
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	return program.Config{Seed: c.seeds.Uint64(), FirstOp: c.lives << 32, Repeat: c.watch.book.Repeats(c.seeds, 1000, 30), Finish: c.last}
}

// feed sends each node that has opened the store a configuration, until ctx ends.
func (c *campaign) feed(ctx context.Context) error {
	for fed := 0; ; {
		var name string
		err := c.watch.wait(ctx, func() bool {
			name = c.watch.serves
			return c.watch.opened > fed
		})
		if err != nil {
			return err
		}
		fed++ // an owner that was replaced already needs none
		if err := c.send(name); err != nil {
			return err
		}
	}
}

// send sends a node a configuration. A node that has ended needs none.
func (c *campaign) send(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.nodes[name].config.Encode(c.config()); err != nil {
		select {
		case <-c.nodes[name].ended:
		default:
			return fmt.Errorf("node %s takes no configuration: %w", name, err)
		}
	}
	return nil
}

// finish lets the program run until nothing is left to do.
func (c *campaign) finish(ctx context.Context) error {
	fmt.Fprintln(c.tell, "no more faults: the program runs until nothing is left to do")
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	if err := c.send(c.watch.owner()); err != nil {
		return err
	}
	return c.watch.until(ctx, 5*endTime, "the end of all work", func() bool { return c.watch.finished })
}

// report sets the figures that the log says, and returns all that is wrong.
func (c *campaign) report(found []judge.Violation, order error) error {
	f := &c.figures
	f.Recovered, f.Linearizable, f.Violations = c.watch.book.Recovered, order == nil, len(found)
	all := []error{order}
	for _, v := range found {
		f.AckedLost += v.Lost
		if v.Double {
			f.DoubleEffects++
		}
		all = append(all, errors.New(v.String()))
	}
	return errors.Join(all...)
}
