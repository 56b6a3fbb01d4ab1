package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

const (
	// shutdownTime is how long work that is under way may take to end after
	// Ctrl-C.
	shutdownTime = 500 * time.Millisecond
	// stall is how long no task may end until a snapshot is asked for; if the store
	// refuses to write, the answer says so.
	stall = 3 * time.Second
	// lookEvery is how often the progress is looked at to be shown.
	lookEvery = 100 * time.Millisecond
)

// probe is told of each point where a crash can matter. Tests die at some.
var probe seam.Probe

// errInterrupted is returned after Ctrl-C, when everything has been told.
var errInterrupted = errors.New("interrupted")

// ingest is the whole program. Its errors are one line that says what to do.
func ingest(signalled context.Context, s settings, stdout, stderr io.Writer) error {
	src, s, err := prepare(s)
	if err != nil {
		return errors.New(explain(err, s))
	}
	ctx, cancel := context.WithCancelCause(signalled)
	defer cancel(nil)
	p := newProgram(src, s.workers, cancel)
	host, err := object.Open(object.Options{
		Dir: s.data, Logger: slog.New(slog.DiscardHandler), Seams: seam.Seams{Probe: probe},
	}, p.definitions()...)
	if err != nil {
		return errors.New(explain(err, s))
	}
	fmt.Fprintf(stderr, "Source: %s\nStore:  %s\n", src.root, s.data)
	j := &journey{p: p, host: host, settings: s, meter: newMeter(stderr)}
	r, err := j.run(ctx)
	if err != nil {
		err = j.cause(ctx, err)
	}
	j.meter.end()
	late, stop := context.WithTimeout(context.Background(), shutdownTime)
	defer stop()
	closed := host.Shutdown(late)
	switch {
	case signalled.Err() != nil:
		fmt.Fprintf(stderr, "Stopped%s. The same command goes on from here.\n", j.meter.how())
		return errInterrupted
	case err != nil:
		return errors.New(explain(err, s))
	case closed != nil:
		return errors.New(explain(closed, s))
	}
	return r.print(stdout, s.json)
}

// prepare finds the source and the store, and deletes the old store with -fresh.
func prepare(s settings) (source, settings, error) {
	var err error
	if s.src == "" {
		if s.src, err = toolchainSource(); err != nil {
			return source{}, s, err
		}
	}
	src, err := openSource(s.src)
	if err == nil && s.data == "" {
		s.data, err = defaultData(src.root)
	}
	if err == nil && s.fresh {
		err = discard(s.data)
	}
	return src, s, err
}

// journey is one run of the program over an open store.
type journey struct {
	p        *program
	host     *object.Host
	settings settings
	meter    meter
	base     uint64 // tasks that had ended before this run

	ended   uint64    // tasks that have ended
	endedAt time.Time // when one was last seen to
}

// cause is the first reason why a run failed.
func (j *journey) cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err := j.host.Err(); err != nil {
		return err
	}
	return err
}

// run does all that is to be done and returns the report.
func (j *journey) run(ctx context.Context) (report, error) {
	began := time.Now()
	known, err := begin.Call(ctx, j.host, theLedger, j.p.source.root)
	if err != nil {
		return report{}, err
	}
	stats, err := j.p.readers.Stats(ctx, j.host)
	if err != nil {
		return report{}, err
	}
	j.base = stats.Done + stats.Dead
	unread, work, err := j.feed(ctx, known)
	if err != nil {
		return report{}, err
	}
	if !work && !known.Finished.IsZero() {
		j.meter.say("Nothing has changed since %s: all is indexed.", known.Finished.Local().Format(time.DateTime))
	} else if err := j.watch(ctx); err != nil {
		return report{}, err
	}
	r, err := j.report(ctx)
	r.Unread, r.took = unread, time.Since(began)
	return r, err
}

// feed enqueues what is to be done, and reports whether that is anything, or
// something was left from an earlier run.
func (j *journey) feed(ctx context.Context, known book) (unread []string, work bool, err error) {
	f := j.p.feeder(j.host, func() error { _, err := j.progress(ctx); return err })
	unread, err = f.feed(ctx, j.host)
	if err != nil {
		return nil, false, err
	}
	if _, err := j.p.again(ctx, j.host); err != nil {
		return nil, false, err
	}
	all := f.all(known.Packages)
	settled, err := j.p.settled(ctx, j.host, all)
	if err != nil {
		return nil, false, err
	}
	_, err = walked.Call(ctx, j.host, theLedger, walk{Packages: all, Work: !settled})
	return unread, !settled, err
}

// watch starts the continuous job and shows the progress until it has ended.
func (j *journey) watch(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		over, err := j.look(ctx)
		if over || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-j.host.Done():
			return j.host.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// progress shows how far the tasks are.
func (j *journey) progress(ctx context.Context) (workerpool.Stats, error) {
	s, err := j.p.readers.Stats(ctx, j.host)
	if err != nil {
		return s, err
	}
	if ended := s.Done + s.Dead; ended != j.ended || j.endedAt.IsZero() {
		j.ended, j.endedAt = ended, time.Now()
	}
	j.base = min(j.base, j.ended) // less by the dead letters that are tried again
	j.meter.show(j.ended-j.base, s.Submitted-s.Cancelled-j.base)
	return s, nil
}

// look shows how far it all is, and reports whether it is over: all is done, and
// the continuous job has seen it and ended.
func (j *journey) look(ctx context.Context) (over bool, err error) {
	s, err := j.progress(ctx)
	if err != nil {
		return false, err
	}
	b, err := bookOf.Call(ctx, j.host, theLedger, struct{}{})
	if err != nil {
		return false, err
	}
	watch, err := j.p.watch.Status(ctx, j.host, theLedger)
	switch gone := errors.Is(err, jobs.ErrNotFound); {
	case gone && !b.Finished.IsZero() && b.Current:
		return true, nil
	case gone:
		_, err = j.p.watch.Start(ctx, j.host, theLedger, 0)
		return false, err
	case watch.Meta.Status == jobs.Failed:
		return false, unlessMoved(j.p.watch.Resume(ctx, j.host, theLedger))
	case err == nil && (s.Pending+s.Running == 0 || time.Since(j.endedAt) > stall):
		return false, j.p.hurry(ctx, j.host)
	}
	return false, err
}
