package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/stored"
	"github.com/holdfast-dev/holdfast/storage/shardlog/move"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// imports makes the store of one machine the store of the cluster.
func (c *campaign) imports(ctx context.Context, o pglog.Options) (err error) {
	fmt.Fprintln(c.tell, "importing it")
	log, err := pglog.Open(ctx, o)
	if err != nil {
		return err
	}
	defer log.Close()
	name, err := log.Cluster(ctx)
	if err != nil {
		return err
	}
	return ways(log).Import(ctx, c.store(), name)
}

// ways are the options of the import and of the export.
func ways(log *pglog.Log) move.Options {
	return move.Options{Snapshots: snapshot.Options{Directory: log, Blobs: log, Log: log}}
}

// check exports the store, opens it alone, and compares it with the log of all processes.
func (c *campaign) check(ctx context.Context, o pglog.Options) error {
	fmt.Fprintln(c.tell, "exporting the store, and opening it alone")
	log, err := pglog.Open(ctx, o)
	if err != nil {
		return err
	}
	defer log.Close()
	head, err := log.Head(ctx, 0)
	if err != nil {
		return err
	}
	c.figures.Terms = head.Term
	f := &c.figures
	f.FalseTerms = int(head.Term) - 1 - f.Kills - f.Pauses - f.Cuts - f.Drains
	dir := filepath.Join(c.dir, "exported")
	if err := ways(log).Export(ctx, dir); err != nil {
		return err
	}
	copied, err := stored.Copy(dir)
	if err != nil {
		return err
	}
	found, _, err := stored.Look(copied)
	if err != nil {
		return fmt.Errorf("look at the exported store: %w", err)
	}
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	if c.watch.book.Acked == 0 {
		return errors.New("no call was acknowledged")
	}
	return c.report(c.watch.book.Check(&found, true), c.watch.order.Check())
}
