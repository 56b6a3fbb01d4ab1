package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// shutdownTime is how long the steps that run may take to end after Ctrl-C. Tests wait longer.
var shutdownTime = 2 * time.Second

// lookEvery is how often the program asks how far the run is.
const lookEvery = 100 * time.Millisecond

// probe is told of each point where a crash can matter. Tests die at some.
var probe seam.Probe

// errInterrupted is returned after Ctrl-C, when all has been told.
var errInterrupted = errors.New("interrupted")

// documents is the whole program, up to the printing of its result.
func documents(ctx context.Context, s settings, stderr io.Writer) (report, error) {
	root, err := sourceOf(s.src)
	if err != nil {
		return report{}, err
	}
	dir, temp, err := directory(s.dir)
	if err != nil {
		return report{}, err
	}
	fmt.Fprintf(stderr, "Source: %s\nStore:  %s\n", root, dir)
	r, err := process(ctx, root, dir, s, stderr)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "Stopped. To go on, run the same command with -dir %s\n", dir)
		return report{}, errInterrupted
	case err == nil && temp && len(r.differences) == 0:
		err = os.RemoveAll(dir)
	}
	return r, err
}

// directory makes the directory of the store. With an empty path it is a new one for
// temporary files.
func directory(path string) (dir string, temp bool, err error) {
	if path == "" {
		dir, err = os.MkdirTemp("", "holdfast-documents-")
		return dir, true, err
	}
	return path, false, os.MkdirAll(path, 0o755)
}

// process opens the store, and begins the run or goes on with it.
func process(ctx context.Context, root, dir string, s settings, stderr io.Writer) (r report, err error) {
	p := newProgram(os.DirFS(root), max(2, runtime.GOMAXPROCS(0)))
	host, err := object.Open(object.Options{
		Dir: dir, Logger: slog.New(slog.DiscardHandler), Seams: seam.Seams{Probe: probe},
	}, p.definitions()...)
	if err != nil {
		return report{}, err
	}
	defer func() {
		late, stop := context.WithTimeout(context.Background(), shutdownTime)
		defer stop()
		err = errors.Join(err, host.Shutdown(late))
	}()
	began := time.Now()
	m := newMeter(stderr)
	id := runID(root, s.limit)
	t, err := p.count(ctx, host, id, s.limit, m)
	m.end()
	if err != nil {
		return report{}, err
	}
	r = report{totals: t, Seconds: time.Since(began).Round(time.Millisecond).Seconds()}
	if s.check {
		r.differences, err = p.check(ctx, host, id, s.limit, t)
		equal := len(r.differences) == 0
		r.Equal = &equal
	}
	return r, err
}

// count runs the workflow, or goes on with it, and returns its output.
func (p *program) count(ctx context.Context, host *object.Host, id string, limit int, m *meter) (totals, error) {
	started, err := p.runs.Start(ctx, host, id, request{Limit: limit, Group: groupSize, Shards: shardCount})
	if err != nil {
		return totals{}, err
	}
	if started.Status == jobs.Failed {
		err := p.runs.Retry(ctx, host, id)
		if errors.Is(err, workflow.ErrUndone) {
			return totals{}, errors.New("an earlier run has failed: name another directory with -dir")
		}
		if err != nil {
			return totals{}, err
		}
	}
	return p.await(ctx, host, id, m)
}

// await shows how far the run is until it has ended.
func (p *program) await(ctx context.Context, host *object.Host, id string, m *meter) (t totals, err error) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		t, err = p.runs.Wait(ctx, host, id)
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return t, err
		case <-tick.C:
			if look, err := p.look(ctx, host, id); err == nil { // an error reaches Wait too
				m.show(look)
			}
		}
	}
}

// look is how far a run is.
type look struct {
	size   size
	read   int // packages
	merged int // shards
	stuck  string
}

// look asks the run and its children.
func (p *program) look(ctx context.Context, host *object.Host, id string) (l look, err error) {
	if l.size, _, err = sizeVar.Get(ctx, host, p.runs, id); err != nil {
		return l, err
	}
	if l.merged, _, err = mergedVar.Get(ctx, host, p.runs, id); err != nil {
		return l, err
	}
	for n := range l.size.Groups {
		read, _, err := packagesVar.Get(ctx, host, p.groups, groupID(id, n))
		if err != nil && !errors.Is(err, jobs.ErrNotFound) { // a child that has yet to begin
			return l, err
		}
		l.read += read
	}
	l.stuck, err = p.stuck(ctx, host)
	return l, err
}

// stuck says why a run or a child is stuck, or nothing. It finds them by their label,
// without a look at the others.
func (p *program) stuck(ctx context.Context, host *object.Host) (string, error) {
	o := workflow.ListOptions{Label: jobs.Stuck}
	for run, err := range p.runs.List(ctx, host, o) {
		return run.Meta.LastError, err
	}
	for child, err := range p.groups.List(ctx, host, o) {
		return child.Meta.LastError, err
	}
	return "", nil
}
