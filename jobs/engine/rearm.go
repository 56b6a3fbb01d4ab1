package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

const (
	rearmPage   = 256
	rearmAtOnce = 16
	rearmErrors = 10
)

// Rearm makes a new definition count for all jobs of a class, also for those that
// are not in memory: an alarm that is later than the definition asks for moves to the
// earlier time (C5). No alarm moves to a later time, because a wake-up that comes too
// early finds nothing to do and arms the rest.
//
// A job that is called or woken is looked at without Rearm. So Rearm is for a deploy
// that shortens a schedule much, when waiting jobs should hear of it before their
// next wake-up. It reads the jobs in pages, wakes those with an alarm to come,
// and returns early, with its counts so far and the cause, when ctx ends or the host
// does. It may be called from any task, and again.
func Rearm(ctx context.Context, h *object.Host, class string, o jobs.RearmOptions) (jobs.Rearmed, error) {
	r := rearm{host: h, class: class, atOnce: max(cmp.Or(o.AtOnce, rearmAtOnce), 1)}
	size := min(max(cmp.Or(o.Page, rearmPage), 1), object.MaxPage)
	for after := ""; ; {
		page, err := h.Objects(ctx, class, object.ObjectsOptions{After: after, Limit: size})
		if err != nil || len(page) == 0 {
			return r.done, err
		}
		if err := r.wake(ctx, page); err != nil {
			return r.done, err
		}
		if err := r.count(ctx, after, page); err != nil {
			return r.done, err
		}
		if o.Progress != nil {
			o.Progress(r.done)
		}
		after = page[len(page)-1].ID.Name
	}
}

// rearm is one walk.
type rearm struct {
	host   *object.Host
	class  string
	atOnce int

	mu   sync.Mutex // guards the fields below while jobs are woken
	done jobs.Rearmed
	errs []error
	end  error // of the host
}

// wake wakes the jobs of a page that have an alarm to come, and waits for the last. If it is cut off, the page does not
// count: a wake-up that has ended with the context has not failed.
func (r *rearm) wake(ctx context.Context, page []object.ObjectInfo) error {
	now := r.host.Seams().Clock.Now()
	var names []string
	for _, o := range page {
		if o.Alarm.After(now) {
			names = append(names, o.ID.Name)
		}
	}
	failed := r.done.Failed
	Each(r.host, names, r.atOnce, func(i int) {
		if ctx.Err() == nil {
			r.woken(r.host.Wake(ctx, storage.ID{Class: r.class, Name: names[i]}))
		}
	})
	err := cmp.Or(r.end, seam.Cause(ctx))
	if err != nil {
		r.done.Failed = failed
	}
	return err
}

// woken notes how the wake-up of a job ended.
func (r *rearm) woken(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, object.ErrShutdown), errors.Is(err, object.ErrStorage):
		r.end = err
	default:
		r.done.Failed++
		if len(r.errs) < rearmErrors {
			r.errs = append(r.errs, err)
		}
	}
}

// count compares a page with the rows as they are now.
func (r *rearm) count(ctx context.Context, after string, page []object.ObjectInfo) error {
	now, err := r.host.Objects(ctx, r.class, object.ObjectsOptions{After: after, Limit: len(page)})
	if err != nil {
		return err
	}
	armed := make(map[string]time.Time, len(now))
	for _, o := range now {
		armed[o.ID.Name] = o.Alarm
	}
	for _, o := range page {
		if at := armed[o.ID.Name]; !at.IsZero() && at.Before(o.Alarm) {
			r.done.Moved++
		}
	}
	r.done.Jobs += len(page)
	r.done.Err = errors.Join(r.errs...)
	return nil
}
