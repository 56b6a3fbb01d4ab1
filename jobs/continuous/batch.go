package continuous

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Start is a job to be started by StartAll.
type Start[S any] struct {
	ID    string
	State S
}

// StartResult is what became of a Start.
type StartResult struct {
	Started Started
	Err     error // nil: as Started says
}

// StartAll makes many jobs, as Start makes one, and returns the results in the order
// of its argument. Each job is a commit of its own: one that fails does not concern
// the others. At most 64 are called at a time, and they share the syncs of the store,
// so that many take little longer than one. When ctx ends, those that were not called
// yet get its cause.
func (j *Job[S]) StartAll(ctx context.Context, h *object.Host, all []Start[S]) []StartResult {
	names, results := make([]string, len(all)), make([]StartResult, len(all))
	for i, s := range all {
		names[i] = s.ID
	}
	jobs.Each(h, names, 0, func(i int) {
		r := &results[i]
		if r.Err = context.Cause(ctx); r.Err == nil {
			r.Started, r.Err = j.Start(ctx, h, all[i].ID, all[i].State)
		}
	})
	return results
}
