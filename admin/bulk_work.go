package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// ofHost reports whether an error is that of the host and not of one job or letter, so that each
// later act would meet it too.
func ofHost(err error) bool {
	return errors.Is(err, object.ErrStorage) || errors.Is(err, object.ErrShutdown) || errors.Is(err, object.ErrNoSpace)
}

// CountJobs counts the jobs of one definition with a label that a bulk verb would act on; see Run.
// o.Class and o.Label must be given, and After and Limit must not. arg is the argument of the verb;
// with the prefix it has at most 64 KiB. A directory is counted without a token. Error: as of Jobs, ErrNoType, and verbs.ErrUnknown for
// a verb that the definition lacks.
func (a *Admin) CountJobs(ctx context.Context, verb string, arg []byte, o JobsOptions) (Count, error) {
	if o.Class == "" || o.Label == "" || o.After != "" || o.Limit != 0 {
		return Count{}, fmt.Errorf("admin: CountJobs: %w: give a class and a label, and no page", jobs.ErrInvalid)
	}
	if err := bounded(len(arg) + len(o.Prefix)); err != nil {
		return Count{}, fmt.Errorf("admin: CountJobs: %w", err)
	}
	if a.host != nil {
		if err := a.hasVerb(o.Class, verb); err != nil {
			return Count{}, err
		}
	}
	var c Count
	at := a.now()
	err := a.eachJob(ctx, o, at, func(Job) error { return c.add() })
	if err = c.ended(err); err != nil {
		return Count{}, err
	}
	arg = slices.Clone(arg)
	return a.counted(c, at, func(ctx context.Context, each func(func() error) error) error {
		return a.eachJob(ctx, o, at, func(job Job) error {
			return each(func() error { return a.doUnmoved(ctx, job, verb, arg) })
		})
	}), nil
}

// bounded refuses texts that a token would keep for ten minutes.
func bounded(n int) error {
	if n > maxTokenBytes {
		return fmt.Errorf("%w: the argument and the filter have %d bytes, the limit is %d", jobs.ErrInvalid, n, maxTokenBytes)
	}
	return nil
}

// hasVerb returns the error of a class, or a verb of it, that the program does not define.
func (a *Admin) hasVerb(class, verb string) error {
	table, err := a.table(class)
	if err != nil {
		return err
	}
	if all := table.Verbs(); !slices.ContainsFunc(all, func(d verbs.Description) bool { return d.Name == verb && !d.Whole }) {
		return fmt.Errorf("%w: %s %s has no verb %q of one job", verbs.ErrUnknown, table.Kind(), class, verb)
	}
	return nil
}

// doUnmoved runs a verb on a job that is as it was listed.
func (a *Admin) doUnmoved(ctx context.Context, job Job, verb string, arg []byte) error {
	m, ok, err := a.meta(ctx, job.ID)
	switch {
	case err != nil:
		return err
	case !ok || m.Status != job.Status || !m.UpdatedAt.Equal(job.Updated):
		return errSkipped
	}
	_, err = a.Do(ctx, job.ID, verb, arg)
	return err
}

// eachJob calls f for each job of the options that came to rest before a time.
func (a *Admin) eachJob(ctx context.Context, o JobsOptions, before time.Time, f func(Job) error) error {
	for {
		page, err := a.Jobs(ctx, o)
		if err != nil {
			return err
		}
		for _, job := range page.Jobs {
			if !job.Updated.Before(before) {
				continue
			}
			if err := f(job); err != nil {
				return err
			}
		}
		if o.After = page.Next; page.Next == "" {
			return nil
		}
	}
}

// CountDead counts the dead letters that a replay, or a discard if replay is false, would act on;
// see Run. o.After and o.Limit must not be given, and the texts of o have at most 64 KiB. A directory is counted without a token. Alarms and
// messages are replayed by the host, tasks and runs by the verbs of their job types; letters of
// types that the program does not define, and of timers, are refused by Run. To discard the letter
// of a run is to terminate the run. Errors: those of Host.DeadLetters.
func (a *Admin) CountDead(ctx context.Context, replay bool, o object.DeadLettersOptions) (Count, error) {
	if len(o.After) > 0 || o.Limit != 0 {
		return Count{}, fmt.Errorf("admin: CountDead: %w: give no page", jobs.ErrInvalid)
	}
	if err := bounded(len(o.Class) + len(o.Name) + len(o.Kind) + len(o.Reason) + len(o.Error)); err != nil {
		return Count{}, fmt.Errorf("admin: CountDead: %w", err)
	}
	var c Count
	at := a.now()
	if o.DiedBefore.IsZero() || o.DiedBefore.After(at) {
		o.DiedBefore = at
	}
	err := a.eachLetter(ctx, o, func(object.DeadLetter) error { return c.add() }, c.damaged)
	if err = c.ended(err); err != nil {
		return Count{}, err
	}
	return a.counted(c, at, func(ctx context.Context, each func(func() error) error) error {
		return a.eachLetter(ctx, o, func(d object.DeadLetter) error {
			return each(func() error {
				if replay {
					return a.ReplayDead(ctx, d.ID, d.Seq, false)
				}
				return a.DiscardDead(ctx, d.ID, d.Seq)
			})
		}, func(damaged error) error {
			return each(func() error { return damaged })
		})
	}), nil
}

// eachLetter calls f for each dead letter of the options, and damaged for the error of each that cannot be
// read.
func (a *Admin) eachLetter(ctx context.Context, o object.DeadLettersOptions, f func(object.DeadLetter) error, damaged func(error) error) error {
	for {
		page, bad := a.rows.DeadLetters(ctx, o)
		if bad != nil && len(page.Next) == 0 {
			return bad
		}
		for _, d := range page.Letters {
			if err := f(d); err != nil {
				return err
			}
		}
		if bad != nil {
			if err := damaged(bad); err != nil {
				return err
			}
		}
		if o.After = page.Next; len(page.Next) == 0 {
			return nil
		}
	}
}

// errCounted ends a count that has reached its bound.
var errCounted = fmt.Errorf("admin: counted %d", maxCounted)

// add counts one more, or ends the count.
func (c *Count) add() error {
	if c.Matches == maxCounted {
		c.More = true
		return errCounted
	}
	c.Matches++
	return nil
}

// damaged counts a letter that cannot be read.
func (c *Count) damaged(err error) error {
	c.Damaged++
	c.LastError = err.Error()
	return nil
}

// ended is the error of a walk that counts.
func (c *Count) ended(err error) error {
	if c.More {
		return nil
	}
	return err
}

// now is the wall clock of the host. A directory does not change, so all of it counts.
func (a *Admin) now() time.Time {
	if a.host == nil {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return a.host.Seams().Clock.Now()
}
