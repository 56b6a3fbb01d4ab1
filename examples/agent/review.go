package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// shutdownTime is how long turns that run may take to end after Ctrl-C. Tests wait longer.
var shutdownTime = 2 * time.Second

const (
	// lookEvery is how often the program asks how far the agent is, and tellEvery how many
	// looks later it tells.
	lookEvery = 20 * time.Millisecond
	tellEvery = 50
)

// probe is told of each point where a crash can matter. Tests die at some.
var probe seam.Probe

// errInterrupted is returned after Ctrl-C, when all has been told.
var errInterrupted = errors.New("interrupted")

// review is the whole program, up to the printing of its result.
func review(ctx context.Context, s settings, stderr io.Writer) (report, error) {
	root, err := rootOf(s.src)
	if err != nil {
		return report{}, err
	}
	queue, err := newSource(os.DirFS(root), s.limit)
	if err != nil {
		return report{}, err
	}
	dir, temp := s.dir, s.dir == ""
	if temp {
		if dir, err = os.MkdirTemp("", "holdfast-agent-"); err != nil {
			return report{}, err
		}
	}
	fmt.Fprintf(stderr, "Source: %s\nStore:  %s\n", root, dir)
	r, err := process(ctx, strconv.Itoa(s.limit)+" of "+root, queue, dir, s, stderr)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "Stopped. To go on, run the same command with -dir %s\n", dir)
		return report{}, errInterrupted
	case err == nil && temp && len(r.differences) == 0:
		err = os.RemoveAll(dir)
	}
	return r, err
}

// process opens the store and lets the agent of that name work until it has seen all files.
func process(ctx context.Context, name string, queue *source, dir string, s settings, stderr io.Writer) (r report, err error) {
	a := newAgents(queue)
	host, err := object.Open(object.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), Seams: seam.Seams{Probe: probe}}, a.class)
	if err != nil {
		return report{}, err
	}
	defer func() {
		late, stop := context.WithTimeout(context.Background(), shutdownTime)
		defer stop()
		err = errors.Join(err, host.Shutdown(late))
	}()
	r, err = a.work(ctx, host, name, len(queue.paths), stderr)
	if err != nil {
		return r, err
	}
	if s.at > 0 {
		at, err := a.asOf.Call(ctx, host, name, uint64(s.at))
		if err != nil {
			return r, err
		}
		r.At = &at
	}
	if s.check {
		r.differences, err = a.check(ctx, host, name, queue, r.state)
		equal := len(r.differences) == 0
		r.Equal = &equal
	}
	return r, err
}

// work begins the agent, or lets it go on, and tells its progress until it has ended.
func (a *agents) work(ctx context.Context, host object.Caller, name string, files int, stderr io.Writer) (r report, err error) {
	s, err := a.begin.Call(ctx, host, name, struct{}{})
	if err != nil {
		return r, err
	}
	r.From = s.State.Seen
	fmt.Fprintf(stderr, "The journal has %d of %d files.\n", r.From, files)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 1; !s.Done; n++ {
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-tick.C:
		}
		if s, err = a.look.Call(ctx, host, name, struct{}{}); err != nil {
			return r, err
		}
		if n%tellEvery == 0 {
			fmt.Fprintf(stderr, "%d of %d files\n", s.State.Seen, files)
		}
	}
	r.state = s.State
	return r, nil
}
