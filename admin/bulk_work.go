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
	return a.count(ctx, Bulk{Verb: verb, Arg: slices.Clone(arg), Jobs: o, At: a.now()})
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
	var m jobs.Meta
	var ok bool
	err := a.read(ctx, func(r object.Reader) (err error) {
		m, ok, err = metaOf(ctx, r, job.ID)
		return err
	})
	switch {
	case err != nil:
		return err
	case !ok || m.Status != job.Status || !m.UpdatedAt.Equal(job.Updated):
		return errSkipped
	}
	_, err = a.Do(ctx, job.ID, verb, arg)
	return err
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
	b := Bulk{Verb: discardDead, Dead: o, At: a.now()}
	if replay {
		b.Verb = replayDead
	}
	if o.DiedBefore.IsZero() || o.DiedBefore.After(b.At) {
		b.Dead.DiedBefore = b.At
	}
	return a.count(ctx, b)
}

// count counts the jobs or letters of a bulk verb.
func (a *Admin) count(ctx context.Context, b Bulk) (Count, error) {
	var c Count
	for next := b; !next.Ended && !c.More; {
		items, behind, err := a.part(ctx, next)
		if err != nil {
			return Count{}, err
		}
		for _, i := range items {
			c.add(i)
		}
		next = behind
	}
	return a.counted(c, b), nil
}

// add counts one more, up to a bound.
func (c *Count) add(i item) {
	switch {
	case c.More:
	case i.damaged != nil:
		c.Damaged++
		c.LastError = i.damaged.Error()
	case c.Matches == maxCounted:
		c.More = true
	default:
		c.Matches++
	}
}

// item is a job or a letter of a bulk verb, or the error of a letter that cannot be read.
type item struct {
	job     Job
	letter  object.DeadLetter
	damaged error
}

// part reads the next jobs or letters of a bulk verb, and returns it with the place behind them.
func (a *Admin) part(ctx context.Context, b Bulk) (items []item, behind Bulk, err error) {
	if b.Jobs.Class != "" {
		return a.partOfJobs(ctx, b)
	}
	b.Dead.Limit = stepped
	page, damaged := a.rows.DeadLetters(ctx, b.Dead)
	if damaged != nil && len(page.Next) == 0 {
		return nil, b, damaged
	}
	for _, d := range page.Letters {
		items = append(items, item{letter: d})
	}
	if damaged != nil {
		items = append(items, item{damaged: damaged})
	}
	b.Dead.After, b.Ended = page.Next, len(page.Next) == 0
	return items, b, nil
}

// partOfJobs is part for jobs: those that came to rest before the count.
func (a *Admin) partOfJobs(ctx context.Context, b Bulk) (items []item, behind Bulk, err error) {
	b.Jobs.Limit = stepped
	page, err := a.Jobs(ctx, b.Jobs)
	if err != nil {
		return nil, b, err
	}
	for _, job := range page.Jobs {
		if job.Updated.Before(b.At) {
			items = append(items, item{job: job})
		}
	}
	b.Jobs.After, b.Ended = page.Next, page.Next == ""
	return items, b, nil
}

// act runs a bulk verb on one job or letter.
func (a *Admin) act(ctx context.Context, b *Bulk, i item) error {
	switch {
	case i.damaged != nil:
		return i.damaged
	case b.Jobs.Class != "":
		return a.doUnmoved(ctx, i.job, b.Verb, b.Arg)
	case b.Verb == replayDead:
		return a.ReplayDead(ctx, i.letter.ID, i.letter.Seq, false)
	}
	return a.DiscardDead(ctx, i.letter.ID, i.letter.Seq)
}

// now is the wall clock of the host. A directory does not change, so all of it counts.
func (a *Admin) now() time.Time {
	if a.host == nil {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return a.host.Seams().Clock.Now()
}
