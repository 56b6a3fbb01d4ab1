package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

const (
	// readAttempts is how often a file is read that cannot be.
	readAttempts = 3
	// crashesMax is how many kills in its middle an execution survives. The
	// next run takes up again the executions that were given up for them.
	crashesMax = 100
	// remembered is how long ids and keys are known: longer than a run may lie
	// unfinished.
	remembered = 10 * 365 * 24 * time.Hour
)

// task is to read a file and to tell its package of the change.
type task struct {
	Path string `json:"path"` // escaped
}

// program is the definitions that a host is opened with, and their surroundings.
type program struct {
	source  source
	measure func(path string) (*measure, stamp, error)
	fail    func(error) // ends the whole program: the error does not pass by itself

	readers *workerpool.Pool[task, struct{}]
	gather  *debounce.Job[change, struct{}]
	watch   *continuous.Job[int]
}

func newProgram(src source, workers int, fail func(error)) *program {
	p := &program{source: src, measure: measureFile, fail: fail}
	p.readers = workerpool.New(workerpool.Config[task, struct{}]{
		Name:        "readers",
		Concurrency: workers,
		Retention:   jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce},
		Retry: jobs.Retry{
			MaxAttempts: crashesMax,
			Backoff:     jobs.Exponential(50*time.Millisecond, time.Second),
			RetryIf:     func(err error) bool { return !errors.As(err, new(*unreadable)) },
		},
		Work: p.index,
	})
	p.gather = debounce.New(debounce.Config[change, struct{}]{
		Name:          "gather",
		Quiet:         200 * time.Millisecond,
		MaxWait:       time.Second,
		MaxEvents:     500,
		Dedup:         remembered,
		Retry:         jobs.Retry{MaxAttempts: crashesMax, Backoff: jobs.Exponential(50*time.Millisecond, time.Second)},
		MaxRecoveries: crashesMax,
		Flush:         p.flush,
	})
	p.watch = continuous.New(continuous.Config[int]{
		Name:          "watch",
		Schedule:      jobs.Every(time.Second),
		MaxRecoveries: crashesMax,
		Run:           p.snapshot,
	})
	return p
}

func (p *program) definitions() []object.Definition {
	return []object.Definition{files, packages, ledgers, p.readers, p.gather, p.watch}
}

// unreadable is the error of a file that is not tried again.
type unreadable struct{ err error }

func (e *unreadable) Error() string { return e.err.Error() }
func (e *unreadable) Unwrap() error { return e.err }

// index is the work of a task. It may be repeated at any point: the file's object
// has one change for each reading, and the change's id is added once.
func (p *program) index(ctx context.Context, t *workerpool.Task[task]) (struct{}, error) {
	path := t.In.Path
	m, s, err := p.measure(p.source.file(path))
	if err != nil {
		if t.Attempt >= readAttempts {
			err = &unreadable{err}
		}
		return struct{}{}, err
	}
	c, err := record.Call(ctx, t, nameOf(path), reading{path, s, m})
	if err == nil && c != nil {
		_, err = p.gather.Add(ctx, t, packageOf(path), *c, debounce.EventID(c.ID))
	}
	return struct{}{}, p.watchFor(ctx, err)
}

// flush folds a generation of changes into the totals of its package. The key of
// the flush makes it once.
func (p *program) flush(ctx context.Context, f *debounce.Flush[change, struct{}]) error {
	if f.Recovering {
		if _, err := reflushed.Call(ctx, f, theLedger, struct{}{}); err != nil {
			return p.watchFor(ctx, err)
		}
	}
	_, err := fold.Call(ctx, f, f.ID, f.Events, object.Idempotent(f.Key, remembered))
	return p.watchFor(ctx, err)
}

// hurry takes the next snapshot now.
func (p *program) hurry(ctx context.Context, from object.Caller) error {
	return unlessMoved(p.watch.Trigger(ctx, from, theLedger))
}

// unlessMoved drops the error of a call that came too late: the job has gone on,
// or has ended, since it was looked at.
func unlessMoved(err error) error {
	if errors.Is(err, jobs.ErrNotFound) || errors.Is(err, jobs.ErrIllegalMove) {
		return nil
	}
	return err
}

// watchFor ends the program for an error that no retry helps against, and leaves
// the work that is under way to the next run. It returns other errors as they are.
func (p *program) watchFor(ctx context.Context, err error) error {
	if !errors.Is(err, object.ErrNoSpace) {
		return err
	}
	p.fail(err)
	<-ctx.Done()
	return context.Cause(ctx)
}

// snapshot is the work of the continuous job: it notes how far everything is, and
// ends the job when nothing is left. Gathered changes are flushed at once when no
// task is left that could add to it.
func (p *program) snapshot(ctx context.Context, run *continuous.Run[int]) error {
	b, err := bookOf.Call(ctx, run, theLedger, struct{}{}) // before the rest, so that no task that is enqueued later is missed
	if err != nil {
		return err
	}
	left, err := p.left(ctx, run)
	if err != nil {
		return err
	}
	s := snapshot{Left: left, Done: left == 0 && b.Current}
	for _, name := range b.Packages {
		waiting, err := p.gathered(ctx, run, name, left == 0)
		if err != nil {
			return err
		}
		s.Done = s.Done && !waiting
		t, err := sumsOf.Call(ctx, run, name, struct{}{})
		if err != nil {
			return err
		}
		s.Sums.plus(t)
	}
	run.State++
	if s.Done {
		run.Terminate("all is indexed")
	}
	_, err = note.Call(ctx, run, theLedger, progress{run.Key, s})
	return p.watchFor(ctx, err)
}

// settled reports whether nothing is left anywhere.
func (p *program) settled(ctx context.Context, from object.Caller, packages []string) (bool, error) {
	left, err := p.left(ctx, from)
	if err != nil || left > 0 {
		return false, err
	}
	for _, name := range packages {
		if waiting, err := p.gathered(ctx, from, name, false); waiting || err != nil {
			return false, err
		}
	}
	return true, nil
}

// left is how many tasks have yet to end.
func (p *program) left(ctx context.Context, from object.Caller) (uint64, error) {
	s, err := p.readers.Stats(ctx, from)
	return s.Pending + s.Running, err
}

// gathered reports whether changes of a package have yet to be folded, and if
// asked to hurries them.
func (p *program) gathered(ctx context.Context, from object.Caller, name string, hurry bool) (waiting bool, err error) {
	s, err := p.gather.Status(ctx, from, name)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return false, nil
	case err != nil || s.Events+s.Flushing == 0:
		return false, err
	case s.Meta.Status == jobs.Failed:
		err = p.gather.Resume(ctx, from, name)
	case hurry && s.Events > 0:
		_, err = p.gather.FlushNow(ctx, from, name)
	}
	return true, unlessMoved(err)
}

// worthAnother reports whether a dead letter should be tried again: its file can
// be read now, or is gone, or was never the reason.
func (p *program) worthAnother(d workerpool.DeadLetter[task]) bool {
	if d.Reason != jobs.ReasonNotRetryable {
		return true
	}
	f, err := os.Open(p.source.file(d.In.Path))
	if err == nil {
		f.Close()
	}
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
