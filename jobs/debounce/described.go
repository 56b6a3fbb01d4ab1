package debounce

import (
	"context"
	"reflect"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// described is the argument of the verb add.
type described[E any] struct {
	Event E `json:"event"`
	// ID is the EventID; empty: the event has none.
	ID string `json:"id,omitempty"`
}

// Verbs describes the methods of the job by name, for callers that have no Go types (G1).
func (j *Job[E, S]) Verbs() *verbs.Table {
	return j.d.verbs(
		verbs.NewUntyped("add", verbs.Call, "add an event, once for each id if it has one", reflect.TypeFor[described[E]](), reflect.TypeFor[Ack](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				var a described[E]
				if err := read(&a); err != nil {
					return nil, err
				}
				return j.Add(ctx, from, id, a.Event, eventOptions(a.ID)...)
			}),
		verbs.NewUntyped("pending", verbs.Reader, "show the events, or the state, that wait for the next flush", reflect.TypeFor[verbs.None](), reflect.TypeFor[Pending[E, S]](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				if err := read(new(verbs.None)); err != nil {
					return nil, err
				}
				return j.Pending(ctx, from, id)
			}),
	)
}

// eventOptions are those of an event with an id; empty: it has none.
func eventOptions(id string) []EventOption {
	if id == "" {
		return nil
	}
	return []EventOption{EventID(id)}
}

// verbs describes the methods of the job by name. add and pending have types of the job.
func (d *definition) verbs(add, pending verbs.Verb) *verbs.Table {
	j := &control{d}
	return verbs.NewTable(d.Name, "debounce", []verbs.Verb{
		add.As(verbs.Lasting),
		verbs.New("flush", verbs.Operator, "make a flush of all stored events due now", verbs.Ask(j.FlushNow)).As(verbs.Harmless),
		verbs.New("clear", verbs.Operator, "delete the events that wait for the next flush", verbs.Ask(j.Clear)).As(verbs.Final),
		verbs.New("pause", verbs.Operator, "collect events and begin no flush until resume", verbs.Plain(j.Pause)).As(verbs.Harmless),
		verbs.New("resume", verbs.Operator, "end a pause or a failure", verbs.Plain(j.Resume)).As(verbs.Harmless),
		verbs.New("terminate", verbs.Operator, "delete the job with its events", verbs.Because(j.Terminate)).Optional().As(verbs.Final),
	}, []verbs.Verb{
		verbs.New("status", verbs.Reader, "show the metadata, the events that wait and when their flush is due", verbs.Ask(j.Status)),
		pending,
	})
}
