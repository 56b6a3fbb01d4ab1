package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// nodeConfig is the line that a child of role clusterNode reads first.
type nodeConfig struct{ ID, Dir, DSN, Schema string }

// The lines that such a child prints: one for each call that is answered there, and one with the owner's id behind it when the node begins to wait.
const (
	answered = "answered"
	follows  = "follows"
)

// beNode is a node of a cluster until in ends. One caller increments a counter through it without a pause.
func beNode(in io.Reader, out io.Writer) error {
	var c nodeConfig
	if err := json.NewDecoder(in).Decode(&c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error ends it too
		cancel(io.EOF)
	}()
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer door.Close()
	go welcome(door)
	quiet := slog.New(slog.DiscardHandler)
	l, err := pglog.Open(ctx, pglog.Options{DSN: c.DSN, Schema: c.Schema, Node: c.ID, Log: quiet})
	if err != nil {
		return err
	}
	defer l.Close()
	node, err := cluster.Join(ctx, cluster.Options{Log: l, ID: c.ID, Addr: door.Addr().String(), Dir: c.Dir, Logger: quiet}, counters)
	if err != nil {
		return err
	}
	return errors.Join(callThrough(ctx, node, out), node.Close())
}

// welcome takes the connections of a node that looks whether this process lives.
func welcome(door net.Listener) {
	for {
		c, err := door.Accept()
		if err != nil {
			return // the node ends
		}
		_ = c.Close()
	}
}

// callThrough calls through a node and prints what comes of it, until ctx ends.
func callThrough(ctx context.Context, node *cluster.Node, out io.Writer) error {
	owner := ""
	for ctx.Err() == nil {
		changed := node.Changed()
		_, err := increment.Call(ctx, node, Name(0), 1)
		var moved *cluster.ErrMoved
		switch {
		case err == nil:
			owner = ""
			if _, err := fmt.Fprintln(out, answered); err != nil {
				return err
			}
			continue
		case errors.As(err, &moved) && moved.Addr != "" && moved.Owner != owner:
			owner = moved.Owner
			if _, err := fmt.Fprintln(out, follows, owner); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-node.Done():
			return node.Err()
		case <-ctx.Done():
		}
	}
	return nil
}
