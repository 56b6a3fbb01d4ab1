package continuous

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Start is a job for StartAll.
type Start[S any] struct {
	ID    string
	State S
}

// StartResult is the result of one Start of a StartAll.
type StartResult struct {
	Started Started
	Err     error // nil if the job exists now; see Started
}

// StartAll starts many jobs and returns one result for each, in the order of
// all. Each job is a commit of its own, so a job that fails does not stop the
// others. StartAll calls up to 64 objects concurrently; they share the syncs of
// the store, so that many jobs take little longer than one. When ctx ends, the
// jobs that were not started yet get its cause as their error.
func (j *Job[S]) StartAll(ctx context.Context, h *object.Host, all []Start[S]) []StartResult {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.ID
	}
	return startAll(ctx, h, names, func(i int) (Started, error) { return j.Start(ctx, h, all[i].ID, all[i].State) })
}

// startAll is StartAll for jobs with these names.
func startAll(ctx context.Context, h *object.Host, names []string, start func(i int) (Started, error)) []StartResult {
	results := make([]StartResult, len(names))
	engine.Each(h, names, 0, func(i int) {
		r := &results[i]
		if r.Err = seam.Cause(ctx); r.Err == nil {
			r.Started, r.Err = start(i)
		}
	})
	return results
}
