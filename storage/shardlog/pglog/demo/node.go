package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/program"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// nodeConfig is the first line that a node reads. A program.Config follows for each time that it serves, and one
// more takes the place of the one before.
type nodeConfig struct{ ID, Dir, DSN string }

// beAlone is the program on one machine.
func beAlone(in io.Reader, out io.Writer) int {
	c, err := program.ReadConfig(in)
	if err != nil {
		fmt.Fprintln(os.Stderr, "alone:", err)
		return program.ExitShutdown
	}
	return program.Main(c, out)
}

// beNode is a node until a SIGTERM, or until its standard input ends.
func beNode(in io.Reader, out io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lines := json.NewDecoder(in)
	var c nodeConfig
	err := lines.Decode(&c)
	if err == nil {
		err = node(ctx, c, lines, program.New(out, true, 500*time.Millisecond))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		return program.ExitFailed
	}
	return program.ExitOK
}

// node joins the cluster and runs the program whenever the node serves.
func node(ctx context.Context, c nodeConfig, lines *json.Decoder, p *program.Program) (err error) {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer door.Close()
	go open(door)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	configs := make(chan program.Config)
	go read(ctx, lines, configs, cancel)

	log, err := connect(ctx, pglog.Options{DSN: c.DSN, Node: c.ID, Log: p.Logger()})
	if err != nil {
		return ended(ctx, err)
	}
	defer log.Close()
	o := cluster.Options{
		Log: log, ID: c.ID, Addr: door.Addr().String(), Dir: c.Dir, Storage: program.StoreOptions(""), Logger: p.Logger(),
		Snapshots: cluster.Snapshots{EveryBytes: 256 << 10, Every: 5 * time.Second}, // so that there are many in a short demo
	}
	n, err := cluster.Join(ctx, o, p.Definitions()...)
	if err != nil {
		return err
	}
	p.Say(judge.Line{Kind: judge.Began})
	err = serve(ctx, n, configs, p)
	limit, done := context.WithTimeout(context.Background(), endTime/2)
	defer done()
	return errors.Join(err, n.Drain(limit))
}

// connect opens the log. A node may start while PostgreSQL is down, so it tries again, as a service manager would.
func connect(ctx context.Context, o pglog.Options) (*pglog.Log, error) {
	for {
		log, err := pglog.Open(ctx, o)
		if err == nil {
			return log, nil
		}
		o.Log.Warn("the log cannot be opened, and is tried again", "error", err)
		if seams.Sleep(ctx, 200*time.Millisecond) != nil {
			return nil, err
		}
	}
}

// open takes the connections of nodes that want to know whether this process lives.
func open(door net.Listener) {
	for {
		c, err := door.Accept()
		if err != nil {
			return // the node ends
		}
		_ = c.Close()
	}
}

// read passes the configurations on, and ends the node with its parent.
func read(ctx context.Context, lines *json.Decoder, configs chan<- program.Config, end context.CancelCauseFunc) {
	for {
		var c program.Config
		if err := lines.Decode(&c); err != nil {
			end(err)
			return
		}
		select {
		case configs <- c:
		case <-ctx.Done():
			return
		}
	}
}

// serve runs the program each time that the node has opened the store, until ctx ends.
func serve(ctx context.Context, n *cluster.Node, configs <-chan program.Config, p *program.Program) error {
	for {
		host, err := n.Serving(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		p.Say(judge.Line{Kind: judge.Opened})
		if err := runOn(ctx, host, configs, p); err != nil {
			return ended(ctx, err)
		}
	}
}

// ended is the error of a node whose context may have ended, which is no error.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runOn runs the program on one host, with one configuration after the other, until the host is gone.
func runOn(ctx context.Context, host *object.Host, configs <-chan program.Config, p *program.Program) error {
	var c program.Config
	select {
	case c = <-configs:
	case <-host.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		part, end := context.WithCancel(ctx)
		over := make(chan error, 1)
		go func() { over <- p.Serve(part, host, c) }()
		again := false
		select {
		case c = <-configs:
			again = true
		case <-host.Done():
		case <-ctx.Done():
		case err := <-over:
			over <- err
		}
		end()
		err := <-over
		switch {
		case again:
			continue
		case c.Finish && err == nil && ctx.Err() == nil && host.Err() == nil:
			p.Say(judge.Line{Kind: judge.Finished})
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return context.Cause(ctx) // the host is gone, or the node ends
	}
}
