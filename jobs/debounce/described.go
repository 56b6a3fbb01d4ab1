package debounce

import (
	"context"

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
		verbs.New("add", verbs.Call, "add an event, once for each id if it has one", j.addDescribed),
		verbs.New("pending", verbs.Reader, "show the events, or the state, that wait for the next flush", j.pendingDescribed),
	)
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

func (j *Job[E, S]) pendingDescribed(ctx context.Context, from object.Caller, id string, _ verbs.None) (Pending[E, S], error) {
	return j.Pending(ctx, from, id)
}

// addDescribed is Add with the id of the event in the argument.
func (j *Job[E, S]) addDescribed(ctx context.Context, from object.Caller, id string, a described[E]) (Ack, error) {
	if a.ID == "" {
		return j.Add(ctx, from, id, a.Event)
	}
	return j.Add(ctx, from, id, a.Event, EventID(a.ID))
}
