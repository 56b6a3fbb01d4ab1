package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// JobsOptions say which jobs Jobs lists. All of them apply together, and the zero value lists the
// first object.DefaultPage jobs of the store.
type JobsOptions struct {
	// Class lists only the jobs of this definition.
	Class string `json:"class,omitempty"`
	// Label lists only the jobs with this status, and reads no others: failed, paused, stuck,
	// stopped, completed or cancelled. Running and executing jobs have no label; they are
	// listed with the others if Label is empty.
	Label string `json:"label,omitempty"`
	// Prefix lists only the jobs with ids that begin with it.
	Prefix string `json:"prefix,omitempty"`
	// After begins behind a page: it is the Next of that page.
	After string `json:"after,omitempty"`
	// Limit is how many jobs a page has at most. Zero means object.DefaultPage; it may be up
	// to object.MaxPage.
	Limit int `json:"limit,omitempty"`
}

// Job is a job as Jobs lists it, from its stored rows. Its JSON is for tools, and fields may be
// added to it.
type Job struct {
	ID     storage.ID  `json:"id"`
	Kind   string      `json:"kind"` // the job type, for example continuous
	Status jobs.Status `json:"status"`
	// Updated is when its metadata last changed: of a job that rests, when it came to rest.
	Updated time.Time `json:"updated"`
	// Alarm is when it next wakes up: for a run, a retry, a check of its lease, or its end. Zero
	// means that it waits for a verb or an event.
	Alarm     time.Time `json:"alarm,omitzero"`
	Attempt   int       `json:"attempt,omitempty"` // executions of the present run so far
	LastError string    `json:"lastError,omitempty"`
	Reason    string    `json:"reason,omitempty"` // why it has ended, is paused or rests
}

// JobPage is a page of jobs, in the order of their classes and then of their ids. A page may have
// fewer jobs than its limit, or none, and not be the last one, because it reads 2,000 objects at
// most.
type JobPage struct {
	Jobs []Job `json:"jobs,omitempty"`
	// Next is where the next page begins, to be passed as JobsOptions.After: opaque text. It
	// is empty after the last page.
	Next string `json:"next,omitempty"`
}

// maxJobsRead is how many objects a page reads at most, and the first of those of a class that a
// list of all classes looks at to see whether it is a class of jobs.
const (
	maxJobsRead = 2000
	probed      = 8
)

// Jobs lists a page of the jobs of all job types but worker pools, which have tasks instead; see
// Tasks. It reads stored rows alone, so jobs of classes that the program does not define are
// listed too. A job that stays, with its label, is in exactly one page; one that begins or ends
// meanwhile may be in a page or not.
//
// It returns a jobs.ErrInvalid for options that do not fit, and object.ErrBadName for a class or a
// prefix that no object can have.
func (a *Admin) Jobs(ctx context.Context, o JobsOptions) (JobPage, error) {
	after, err := o.check()
	if err != nil {
		return JobPage{}, fmt.Errorf("admin: Jobs: %w", err)
	}
	l := jobList{o: o, known: a.known(), classes: []string{o.Class}}
	if o.Class == "" {
		if l.classes, err = a.classes(ctx); err != nil {
			return JobPage{}, err
		}
	}
	err = a.read(ctx, func(r object.Reader) error {
		l.rows = r
		return l.list(ctx, after)
	})
	return l.page, err
}

// check sets the defaults of the options and returns the object behind which the page begins.
func (o *JobsOptions) check() (after storage.ID, err error) {
	if o.Limit < 0 || o.Limit > object.MaxPage {
		return after, fmt.Errorf("%w: limit %d is not from 0 to %d", jobs.ErrInvalid, o.Limit, object.MaxPage)
	}
	o.Limit = cmp.Or(o.Limit, object.DefaultPage)
	if s := jobs.Status(o.Label); o.Label != "" && (!s.Valid() || s.Label() != o.Label || s == jobs.Initializing || s == jobs.Terminated) {
		return after, fmt.Errorf("%w: label %q is none that a stored job has: failed, paused, stuck, stopped, completed or cancelled", jobs.ErrInvalid, o.Label)
	}
	if o.After == "" {
		return after, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(o.After)
	if err == nil {
		err = json.Unmarshal(raw, &after)
	}
	if err == nil {
		err = after.Validate()
	}
	if err != nil || o.Class != "" && o.Class != after.Class {
		return after, fmt.Errorf("%w: after %q is the end of no page of this list", jobs.ErrInvalid, o.After)
	}
	return after, nil
}

// cursor is the text of a place behind an object.
func cursor(id storage.ID) string {
	raw, err := json.Marshal(id)
	if err != nil {
		panic("admin: encode a cursor: " + err.Error()) // two strings always encode
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// jobList is one call of Jobs.
type jobList struct {
	rows  object.Reader
	known map[string]bool // see Admin.known
	o     JobsOptions
	// classes are sorted. Those of a list of all jobs are at least the ones that have objects.
	classes []string
	page    JobPage
	read    int // objects
}

// list lists the jobs behind after.
func (l *jobList) list(ctx context.Context, after storage.ID) error {
	for _, class := range l.classes {
		from := ""
		switch {
		case class < after.Class:
			continue
		case class == after.Class:
			from = after.Name
		}
		if err := l.class(ctx, class, from); err != nil || l.page.Next != "" {
			return err
		}
	}
	return nil
}

// classes returns the classes whose objects may be jobs. A host knows its own without a read.
func (a *Admin) classes(ctx context.Context) ([]string, error) {
	if a.host != nil {
		return a.host.KnownClasses(ctx)
	}
	return a.rows.StoredClasses(ctx)
}

// class lists the jobs of a class with ids behind after.
func (l *jobList) class(ctx context.Context, class, after string) error {
	if is, err := l.ofJobs(ctx, class); err != nil || !is {
		return err
	}
	for {
		o := object.ObjectsOptions{Prefix: l.o.Prefix, Label: l.o.Label, After: after, Limit: l.o.Limit}
		found, err := l.rows.Objects(ctx, class, o)
		if err != nil {
			return err
		}
		for _, info := range found {
			job, ok, err := jobOf(ctx, l.rows, info)
			if err != nil {
				return err
			}
			if l.read++; ok {
				l.page.Jobs = append(l.page.Jobs, job)
			}
			if len(l.page.Jobs) == l.o.Limit || l.read >= maxJobsRead {
				l.page.Next = cursor(info.ID)
				return nil
			}
		}
		if len(found) < l.o.Limit {
			return nil
		}
		after = found[len(found)-1].ID.Name
	}
}

// known tells of classes whether they are ones of jobs, as the definitions of the program say, so that a list of all jobs
// asks no rows of them: a look at the first objects of a class is a seek in each shard. Those of job types are internal.
func (a *Admin) known() map[string]bool {
	if a.host == nil {
		return nil
	}
	known := make(map[string]bool)
	for _, info := range a.host.Classes() {
		if !info.Options.Internal {
			known[info.Name] = false
		}
	}
	for class, table := range a.tables {
		known[class] = table.Kind() != "workerpool"
	}
	return known
}

// ofJobs reports whether a class may be one of jobs. A label is only on jobs, and a class that the
// caller names is listed in any case, because a wrong guess would hide its jobs.
func (l *jobList) ofJobs(ctx context.Context, class string) (bool, error) {
	if l.o.Label != "" || l.o.Class != "" {
		return true, nil
	}
	if is, ok := l.known[class]; ok {
		return is, nil
	}
	first, err := l.rows.Objects(ctx, class, object.ObjectsOptions{Limit: probed})
	if err != nil {
		return false, err
	}
	for _, info := range first {
		if _, ok, err := metaOf(ctx, l.rows, info.ID); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// jobOf reads the metadata of a job, and reports whether the object is one.
func jobOf(ctx context.Context, rows object.Reader, info object.ObjectInfo) (job Job, ok bool, err error) {
	m, ok, err := metaOf(ctx, rows, info.ID)
	if !ok || err != nil {
		return job, false, err
	}
	return Job{
		ID: info.ID, Kind: m.Type, Status: m.Status, Updated: m.UpdatedAt, Alarm: info.Alarm,
		Attempt: m.Attempt, LastError: m.LastError, Reason: m.StopReason,
	}, true, nil
}

// Found is one job, from its stored rows. Its JSON is for tools, and fields may be added to it.
type Found struct {
	Meta jobs.Meta `json:"meta"`
	// Alarm is Job.Alarm.
	Alarm time.Time `json:"alarm,omitzero"`
}

// Job returns one job. As Jobs does, it reads stored rows alone, also of a class that the program
// does not define. It returns jobs.ErrNotFound if the object is no job, and object.ErrBadName for an
// id that no object can have.
func (a *Admin) Job(ctx context.Context, id storage.ID) (found Found, err error) {
	err = a.read(ctx, func(r object.Reader) (err error) {
		if found.Meta, err = mustMeta(ctx, r, id); err != nil {
			return err
		}
		first, err := r.Objects(ctx, id.Class, object.ObjectsOptions{Prefix: id.Name, Limit: 1})
		if err == nil && len(first) > 0 && first[0].ID == id {
			found.Alarm = first[0].Alarm
		}
		return err
	})
	return found, err
}

// metaOf reads the stored metadata of a job; ok is false if the object is none.
func metaOf(ctx context.Context, rows object.Reader, id storage.ID) (m jobs.Meta, ok bool, err error) {
	raw, _, err := rows.Value(ctx, id, jobs.MetaKey)
	if err != nil {
		return jobs.Meta{}, false, err
	}
	ok = m.Read(id.Class, id.Name, raw)
	return m, ok, nil
}

// mustMeta is metaOf, with jobs.ErrNotFound if the object is no job.
func mustMeta(ctx context.Context, rows object.Reader, id storage.ID) (jobs.Meta, error) {
	m, ok, err := metaOf(ctx, rows, id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s", jobs.ErrNotFound, id)
	}
	return m, err
}
