package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

const (
	healPortion = 10                     // jobs that are tried at the same time
	healEvery   = 100 * time.Millisecond // from the begin of a portion to that of the next
	// healInMemory bounds the memory of a walk to about 10 MB. If more jobs are stuck, the
	// walk reads the rest when it has tried these.
	healInMemory = 100_000
)

// Heal tries the stuck jobs of a class again, those stuck for the longest time first, and not
// more than 100 a second, in portions of 10. It is for Class.AtOpen: the process that was
// opened may have the code with which they can go on. It finds them by their label, without a
// look at the other jobs. A job that rests because crashes have used up its recoveries is not
// tried, because it may kill the process.
//
// try calls the method of the class that calls Job.TryAgain. Heal keeps nothing on disk: after a
// crash the next open begins anew, with the jobs that are stuck then. It returns when all were
// tried, or ctx or the host has ended, and then logs one line with the counts, if it has tried any.
func Heal(ctx context.Context, h *object.Host, log *slog.Logger, class string, try func(ctx context.Context, name string) error) {
	w := healing{host: h, class: class, try: try, most: healInMemory}
	err := w.all(ctx)
	if w.tried == 0 {
		return
	}
	args := []any{"tried", w.tried, "failed", w.failed}
	if err = cmp.Or(err, w.fault); err != nil {
		args = append(args, "error", err)
	}
	log.Info("stuck jobs were tried again", args...)
}

// healing is one walk of Heal.
type healing struct {
	host  *object.Host
	class string
	try   func(ctx context.Context, name string) error
	most  int // jobs in memory

	began         time.Time // of the newest portion, by the steady clock
	tried, failed int
	fault         error // of the first call of try that failed
}

// stuckJob is a job that is to be tried.
type stuckJob struct {
	since time.Time // begin of the execution that found it stuck
	name  string
}

// before orders jobs by the time since which they are stuck.
func (a stuckJob) before(b stuckJob) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name))
}

// all tries all jobs that are stuck. A job that is stuck again keeps its time, so it is not
// found twice.
func (w *healing) all(ctx context.Context) error {
	var after stuckJob
	for {
		found, more, err := w.oldest(ctx, after)
		if err == nil {
			err = w.tryAll(ctx, found)
		}
		if err != nil || !more {
			return err
		}
		after = found[len(found)-1]
	}
}

// oldest returns the jobs behind after that are stuck for the longest time, in order, and
// whether there are more than w.most.
func (w *healing) oldest(ctx context.Context, after stuckJob) (found []stuckJob, more bool, err error) {
	label, err := storage.NewLabel(jobs.Stuck.Label())
	if err != nil {
		return nil, false, err
	}
	keep := func() {
		slices.SortFunc(found, stuckJob.before)
		if len(found) > w.most {
			found, more = found[:w.most], true
		}
	}
	var fault error
	err = w.host.Store().Labelled(w.class, label, "", func(id storage.ID) bool {
		since, tries, err := w.look(id)
		if fault = cmp.Or(err, seam.Cause(ctx)); fault != nil {
			return false
		}
		if j := (stuckJob{since, id.Name}); tries && after.before(j) < 0 {
			found = append(found, j)
		}
		if len(found) >= 2*w.most {
			keep()
		}
		return true
	})
	keep()
	return found, more, cmp.Or(fault, err)
}

// look reads since when a job is stuck, and whether it is tried again. A job with metadata
// that are no JSON comes first: its own turn decides then.
func (w *healing) look(id storage.ID) (since time.Time, tries bool, err error) {
	s := w.host.Store()
	o, err := s.Find(id)
	if err != nil {
		return since, false, err
	}
	raw, ok, err := s.Data(nil, o, jobs.MetaKey)
	if err != nil || !ok {
		return since, false, err
	}
	var m jobs.Meta
	if json.Unmarshal(raw, &m) != nil {
		return since, true, nil
	}
	return m.Run.FirstAt, m.Status == jobs.Stuck && !m.Run.RetryAt.IsZero(), nil
}

// tryAll tries the jobs in portions. A portion that takes longer than healEvery makes the next
// one later, and no later one comes sooner for that.
func (w *healing) tryAll(ctx context.Context, found []stuckJob) error {
	seams := w.host.Seams()
	for portion := range slices.Chunk(found, healPortion) {
		if w.tried > 0 {
			if err := seams.Sleep(ctx, healEvery-seams.Steady().Sub(w.began)); err != nil {
				return err
			}
		}
		w.began = seams.Steady()
		names := make([]string, len(portion))
		for i, j := range portion {
			names[i] = j.name
		}
		faults := make([]error, len(names))
		Each(w.host, names, healPortion, func(i int) { faults[i] = w.try(ctx, names[i]) })
		w.tried += len(names)
		if ctx.Err() != nil {
			return seam.Cause(ctx)
		}
		for _, err := range faults {
			if err != nil {
				w.failed++
				w.fault = cmp.Or(w.fault, err)
			}
		}
	}
	return nil
}
