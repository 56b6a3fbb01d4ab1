package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// campaign runs the two processes, kills them by plan, and waits for the orders.
type campaign struct {
	s       settings
	dir     *directory
	socket  *os.File // the listener of the payment server; this process accepts nothing
	address string
	tally   *tally
	meter   *meter
	stall   time.Duration // stallTime, or less in tests

	children map[role]*child
	upTo     int          // orders that the worker may place
	kills    map[role]int // so far
}

// stallTime is how long no order may move before the program gives up waiting. Tests wait longer.
var stallTime = time.Minute

var (
	errInterrupted = errors.New("interrupted")
	errStalled     = errors.New("no order moves any more")
)

// newCampaign listens on a free port of the loopback interface. The socket outlives each
// payment server, so no other program gets its port, and connections wait for the next
// server in the queue of the kernel.
func newCampaign(s settings, dir *directory, m *meter) (*campaign, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	socket, err := l.(*net.TCPListener).File()
	if err := errors.Join(err, l.Close()); err != nil { // socket is a copy that stays open
		return nil, err
	}
	return &campaign{
		s: s, dir: dir, socket: socket, address: l.Addr().String(), tally: newTally(), meter: m, stall: stallTime,
		children: make(map[role]*child), kills: make(map[role]int),
	}, nil
}

// run plays the campaign and ends both processes in order, the worker first, because the
// payment server may have to answer it.
func (c *campaign) run(ctx context.Context) error {
	err := c.play(ctx)
	for _, r := range []role{worker, paymentServer} {
		if child := c.children[r]; child != nil {
			err = errors.Join(err, child.end())
		}
	}
	return errors.Join(err, c.socket.Close())
}

// play kills by plan until each strike was made, and then waits until all orders have
// ended.
func (c *campaign) play(ctx context.Context) error {
	for _, r := range []role{paymentServer, worker} {
		if err := c.start(r); err != nil {
			return err
		}
	}
	if err := c.await(ctx, func() bool { return c.tally.readyCount(worker) > 0 && c.tally.readyCount(paymentServer) > 0 }); err != nil {
		return err
	}
	last := 0
	for _, s := range plan(c.s.orders, c.s.kills, c.s.serverKills, c.s.seed) {
		c.allow(s.upTo)
		if err := c.await(ctx, func() bool { return c.tally.paidIn(last, s.upTo) >= s.paid }); err != nil {
			return err
		}
		if err := c.pause(ctx, s.delay); err != nil {
			return err
		}
		if err := c.strike(s.target); err != nil {
			return err
		}
		last = s.upTo
	}
	c.allow(c.s.orders)
	return c.await(ctx, func() bool { return c.tally.ended() >= c.s.orders })
}

// start starts the process of a role.
func (c *campaign) start(r role) error {
	files, config := []*os.File{c.dir.lock}, any(workerConfig{Store: c.dir.store(), Payments: c.address})
	if r == paymentServer {
		files, config = append(files, c.socket), paymentsConfig{Book: c.dir.book(), Seed: c.s.seed}
	}
	child, err := startChild(r, config, files, c.tally.hear(r))
	if err != nil {
		return err
	}
	c.children[r] = child
	if r == worker {
		child.send(allowance{c.upTo})
	}
	return nil
}

// allow lets the worker place the orders up to a number.
func (c *campaign) allow(upTo int) {
	c.upTo = upTo
	c.children[worker].send(allowance{upTo})
}

// strike kills the process of a role and starts its next.
func (c *campaign) strike(r role) error {
	child := c.children[r]
	if !child.kill() {
		return c.died(child)
	}
	c.kills[r]++
	err := c.start(r)
	c.meter.print(c)
	return err
}

// await waits until done. It returns an error if a process ends by itself, if ctx ends, or
// if no order moves for long.
func (c *campaign) await(ctx context.Context, done func() bool) error {
	limit := time.NewTimer(c.stall)
	defer limit.Stop()
	moved := c.moved()
	for {
		switch { // Ctrl-C wins
		case ctx.Err() != nil:
			return errInterrupted
		case done():
			return nil
		}
		select {
		case <-c.tally.changed:
		case <-c.children[worker].over:
			return c.died(c.children[worker])
		case <-c.children[paymentServer].over:
			return c.died(c.children[paymentServer])
		case <-limit.C:
			return errStalled
		case <-ctx.Done():
		}
		if now := c.moved(); now != moved {
			moved = now
			limit.Reset(c.stall)
		}
		c.meter.show(c)
	}
}

// moved changes when an order moves.
func (c *campaign) moved() int { return c.tally.ended() + c.tally.paidIn(0, c.s.orders) }

// died is the error of a process that has ended by itself.
func (c *campaign) died(child *child) error {
	delete(c.children, child.role)
	if err := child.failure(); err != nil {
		return err
	}
	return fmt.Errorf("the %s has ended too early", child.role)
}

// pause lets time pass.
func (c *campaign) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errInterrupted
	}
}
