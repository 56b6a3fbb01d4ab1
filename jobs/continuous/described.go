package continuous

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// Verbs describes the methods of the job by name, for callers that have no Go types (G1).
func (j *Job[S]) Verbs() *verbs.Table {
	return j.d.verbs(
		verbs.New("start", verbs.Call, "create the job with its first state, or leave one that exists as it is", j.Start),
		verbs.New("state", verbs.Reader, "show the state that the last successful run left", j.stateDescribed),
	)
}

func (j *Job[S]) stateDescribed(ctx context.Context, from object.Caller, id string, _ verbs.None) (S, error) {
	return j.State(ctx, from, id)
}

// verbs describes the methods of the job by name. start and state need the type of its state.
func (d *definition) verbs(start, state verbs.Verb) *verbs.Table {
	j := &control{d}
	return verbs.NewTable(d.Name, "continuous", []verbs.Verb{
		start.As(verbs.Lasting),
		verbs.New("trigger", verbs.Operator, "begin a run now; the schedule counts from now on", verbs.Plain(j.Trigger)).As(verbs.Harmless),
		verbs.New("pause", verbs.Operator, "begin no run until resume; a run that executes ends first", verbs.Plain(j.Pause)).As(verbs.Harmless),
		verbs.New("resume", verbs.Operator, "let a paused, stopped or failed job go on", verbs.Plain(j.Resume)).As(verbs.Harmless),
		verbs.New("stop", verbs.Operator, "end the job, keep its state, and cancel a run that executes", verbs.Because(j.Stop)).Optional().As(verbs.Final),
		verbs.New("terminate", verbs.Operator, "delete the job with its state", verbs.Because(j.Terminate)).Optional().As(verbs.Final),
	}, []verbs.Verb{
		verbs.New("status", verbs.Reader, "show the metadata and when the next run is due", verbs.Ask(j.Status)),
		state,
	})
}
