package continuous

import (
	"context"
	"reflect"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// Verbs describes the methods of the job by name, for callers that have no Go types (G1).
func (j *Job[S]) Verbs() *verbs.Table {
	s := reflect.TypeFor[S]()
	return j.d.verbs(
		verbs.NewUntyped("start", verbs.Call, "create the job with its first state, or leave one that exists as it is", s, reflect.TypeFor[Started](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				var state S
				if err := read(&state); err != nil {
					return nil, err
				}
				return j.Start(ctx, from, id, state)
			}),
		verbs.NewUntyped("state", verbs.Reader, "show the state that the last successful run left", reflect.TypeFor[verbs.None](), s,
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				if err := read(new(verbs.None)); err != nil {
					return nil, err
				}
				return j.State(ctx, from, id)
			}),
	)
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
