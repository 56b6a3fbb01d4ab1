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

// shutdownTime is how long work that is in flight may take to end after Ctrl-C. Tests wait longer.
var shutdownTime = 500 * time.Millisecond

const (
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

// ingest is the whole program. Its errors are one sentence that tells the user how to go on.
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
		return errors.New(explain(cannotOpen(s.data, err), s))
	}
	fmt.Fprintf(stderr, "Source: %s\nStore:  %s\n", printable(src.root), printable(s.data))
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
		say(stderr, "Stopped%s. To go on from here, run %s.", j.meter.how(), s.again())
		return errInterrupted
	case err != nil:
		return errors.New(explain(err, s))
	case closed != nil:
		return errors.New(explain(closed, s))
	}
	if err := r.print(stdout, stderr, s.json); err != nil {
		return fmt.Errorf("cannot print the result: %w: all is indexed, and %s prints it", err, s.again())
	}
	return nil
}

// prepare finds the source and the store. With -fresh it deletes the old store.
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
		err = cannotOpen(s.data, discard(s.data))
	}
	if err == nil {
		err = makeStore(s.data)
	}
	return src, s, err
}

// journey is one run of the program over an open store.
type journey struct {
	p        *program
	host     *object.Host
	settings settings
	meter    meter
	total    uint64 // files of the source, and those that are gone and have yet to be taken out
	done     uint64 // of these, as shown: it never goes back

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

// feed enqueues a task for each file that differs, and reports whether there is work:
// such a task, or one that is left from an earlier run.
func (j *journey) feed(ctx context.Context, known book) (unread []string, work bool, err error) {
	var f *feeder
	f = j.p.feeder(j.host, func() error { _, err := j.progress(ctx, len(f.unsent)); return err })
	unread, err = f.survey(ctx, j.host)
	if err != nil {
		return nil, false, err
	}
	j.start(known, f)
	if err := f.send(ctx); err != nil {
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

// start says how much is kept of earlier runs, and shows the progress from there.
func (j *journey) start(known book, f *feeder) {
	j.total, j.done = uint64(f.compared), uint64(f.kept())
	of := fmt.Sprintf("%s of %s", grouped(f.kept()), plural(f.compared, "file"))
	switch {
	case j.host.Epoch() == 1:
	case known.Finished.IsZero():
		j.meter.say("Going on from an earlier run: %s are indexed already.", of)
	case len(f.unsent) > 0:
		j.meter.say("%s are indexed already. The others are new, changed or gone.", of)
	default:
		return // nothing may be left to show
	}
	j.meter.show(j.done, j.total)
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

// progress shows how many files have no task any more, while unsent files have yet
// to be given one.
func (j *journey) progress(ctx context.Context, unsent int) (workerpool.Stats, error) {
	s, err := j.p.readers.Stats(ctx, j.host)
	if err != nil {
		return s, err
	}
	if ended := s.Done + s.Dead; ended != j.ended || j.endedAt.IsZero() {
		j.ended, j.endedAt = ended, time.Now()
	}
	left := s.Pending + s.Running + uint64(unsent) // too many if some have a task of an earlier run
	j.done = max(j.done, j.total-min(j.total, left))
	j.meter.show(j.done, j.total)
	return s, nil
}

// look shows how far it all is, and reports whether it is over: all is done, and
// the continuous job has seen it and ended.
func (j *journey) look(ctx context.Context) (over bool, err error) {
	s, err := j.progress(ctx, 0)
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
