package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
)

// hit is an event that the node which serves meets.
type hit struct {
	text  string
	count func(*figures) *int
	// strike makes the fault, and heal ends it when another node serves. Without heal no node need take over.
	strike, heal func(ctx context.Context, c *campaign, name string) error
}

// again starts a node that was killed. Each fourth one comes back with an empty directory, as on a new machine.
func again(_ context.Context, c *campaign, name string) error {
	if c.figures.Kills%4 == 0 {
		c.figures.Empty++
		if err := os.RemoveAll(c.home(name)); err != nil {
			return err
		}
	}
	return c.join(name)
}

var kill = hit{"is killed with -9", func(f *figures) *int { return &f.Kills }, func(_ context.Context, c *campaign, name string) error {
	c.node(name).kill()
	return nil
}, again}

var pause = hit{"is paused", func(f *figures) *int { return &f.Pauses }, func(_ context.Context, c *campaign, name string) error {
	c.node(name).pause()
	return nil
}, func(_ context.Context, c *campaign, name string) error {
	c.node(name).resume()
	return nil
}}

var drain = hit{"is drained", func(f *figures) *int { return &f.Drains }, func(_ context.Context, c *campaign, name string) error {
	c.node(name).terminate()
	return nil
}, func(ctx context.Context, c *campaign, name string) error {
	if err := c.node(name).wait(ctx); err != nil {
		return err
	}
	return c.join(name)
}}

var crash = hit{text: "loses PostgreSQL, which crashes", count: func(f *figures) *int { return &f.Crashes }, strike: func(_ context.Context, c *campaign, _ string) error {
	if err := c.pair.Primary.StopNow(); err != nil {
		return err
	}
	return c.pair.Primary.Start()
}}

// cut is a node that is cut off from PostgreSQL in some directions.
func cut(text string, ways ...pgtest.Direction) hit {
	return hit{text, func(f *figures) *int { return &f.Cuts }, func(_ context.Context, c *campaign, name string) error {
		c.proxies[name].Hold(ways...)
		return nil
	}, func(_ context.Context, c *campaign, name string) error {
		c.proxies[name].Free()
		return nil
	}}
}

// others are the hits after each second kill.
var others = []hit{
	pause,
	cut("is cut off from PostgreSQL", pgtest.ToServer, pgtest.ToClient),
	crash,
	cut("can send nothing to PostgreSQL", pgtest.ToServer),
	cut("hears nothing from PostgreSQL", pgtest.ToClient),
	drain,
}

// hits hits the node that serves, again and again.
func (c *campaign) hits(ctx context.Context) error {
	for n := range c.o.kills {
		if err := c.hit(ctx, kill); err != nil {
			return err
		}
		if n%2 == 0 {
			continue
		}
		if err := c.hit(ctx, others[n/2%len(others)]); err != nil {
			return err
		}
	}
	return nil
}

// hit lets the program run for a moment, makes a fault, and waits until calls are answered again.
func (c *campaign) hit(ctx context.Context, h hit) error {
	name, err := c.running(ctx)
	if err != nil {
		return err
	}
	*h.count(&c.figures)++
	at := seams.Clock.Now()
	if err := h.strike(ctx, c, name); err != nil {
		return err
	}
	if h.heal == nil {
		at = seams.Clock.Now()
		name = ""
	}
	var next string
	var first time.Time
	err = c.watch.until(ctx, endTime, "an answer after node "+name+" "+h.text, func() bool {
		next, first = c.watch.answered(name, at)
		return next != ""
	})
	if err != nil {
		return err
	}
	took := first.Sub(at)
	if h.heal == nil {
		fmt.Fprintf(c.tell, "a node %s; node %s answers %d ms after it is back\n", h.text, next, took.Milliseconds())
		return nil
	}
	c.times = append(c.times, took)
	fmt.Fprintf(c.tell, "node %s %s; node %s answers after %d ms\n", name, h.text, next, took.Milliseconds())
	return h.heal(ctx, c, name)
}

// running waits until a node answers calls, lets it go on for a moment, and returns it. One that has been replaced meanwhile is left.
func (c *campaign) running(ctx context.Context) (name string, err error) {
	for {
		from := seams.Clock.Now()
		err := c.watch.until(ctx, endTime, "a call that is answered", func() bool {
			name = c.watch.serves
			return c.watch.acked[name].After(from)
		})
		if err == nil {
			err = seams.Sleep(ctx, 300*time.Millisecond+time.Duration(c.rand.Int64N(int64(time.Second))))
		}
		if err != nil || c.watch.owner() == name {
			return name, err
		}
	}
}
