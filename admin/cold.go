package admin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow/workflowrow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// cold asks a view of a store without a host.
func (a *Admin) cold(ctx context.Context, id storage.ID, view string, arg []byte) (raw []byte, err error) {
	table := verbs.NewTable(id.Class, "stored class", nil, []verbs.Verb{
		verbs.New("status", verbs.Reader, "show the stored metadata of a job", coldView(id, a.coldStatus)),
		verbs.New("state", verbs.Reader, "show the stored state of a continuous job", coldView(id, a.coldState)),
		verbs.New("history", verbs.Reader, "show a page of the stored rows of a run in words", coldPage(id, a.coldHistory)).Optional(),
		verbs.New("tasks", verbs.Reader, "list pending, running and dead tasks", coldPage(id, a.coldTasks)).OfWhole().Optional(),
	})
	return table.View(ctx, nil, id.Name, view, arg)
}

// coldView adapts a view without an argument.
func coldView[R any](id storage.ID, view func(context.Context, storage.ID) (R, error)) func(context.Context, object.Caller, string, verbs.None) (R, error) {
	return func(ctx context.Context, _ object.Caller, _ string, _ verbs.None) (R, error) { return view(ctx, id) }
}

// coldPage adapts a view with an argument.
func coldPage[A, R any](id storage.ID, view func(context.Context, storage.ID, A) (R, error)) func(context.Context, object.Caller, string, A) (R, error) {
	return func(ctx context.Context, _ object.Caller, _ string, arg A) (R, error) { return view(ctx, id, arg) }
}

// coldStatus reads the metadata of a job.
func (a *Admin) coldStatus(ctx context.Context, id storage.ID) (s struct {
	Meta jobs.Meta `json:"meta"`
}, err error) {
	s.Meta, err = mustMeta(ctx, a.reader, id)
	return s, err
}

// coldState reads the state of a continuous job. It is JSON if the codec of its host made JSON, and
// otherwise the bytes in base64.
func (a *Admin) coldState(ctx context.Context, id storage.ID) (any, error) {
	const stateKey = "state" // see package continuous
	m, err := mustMeta(ctx, a.reader, id)
	if err == nil && m.Type != "continuous" {
		err = fmt.Errorf("%w: %s is a job of type %s, and the rows of a continuous one have a state", jobs.ErrInvalid, id, m.Type)
	}
	if err != nil {
		return nil, err
	}
	raw, _, err := a.reader.Value(ctx, id, stateKey)
	if err == nil && json.Valid(raw) {
		return json.RawMessage(raw), nil
	}
	return raw, err
}

// rowsArg is the argument of the view history, and of none in a program.
type rowsArg struct {
	// Start is the key at which the page begins: Next of the page before. Empty: the first.
	Start []byte `json:"start,omitempty"`
}

// rowsPage is a page of rows in words.
type rowsPage struct {
	Rows []wordRow `json:"rows"`
	Next []byte    `json:"next,omitempty"`
}

// wordRow is a row in words.
type wordRow struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// coldHistory reads entries, signals, variables and children of a run.
func (a *Admin) coldHistory(ctx context.Context, id storage.ID, arg rowsArg) (rowsPage, error) {
	m, err := mustMeta(ctx, a.reader, id)
	if err == nil && m.Type != "workflow" {
		err = fmt.Errorf("%w: %s is a job of type %s, and the rows of a workflow have a history", jobs.ErrInvalid, id, m.Type)
	}
	if err != nil {
		return rowsPage{}, err
	}
	keys, err := a.reader.Keys(ctx, id, object.KeysOptions{Start: string(arg.Start), Values: true})
	page := rowsPage{Rows: []wordRow{}, Next: []byte(keys.Next)}
	for _, k := range keys.Keys {
		if name, text, ok := workflowrow.Text(k.Key, k.Value, m.CreatedAt); ok {
			page.Rows = append(page.Rows, wordRow{name, text})
		}
	}
	return page, err
}

// coldTasks lists tasks of a pool.
func (a *Admin) coldTasks(ctx context.Context, id storage.ID, o workerpool.TasksOptions) (workerpool.TaskPage, error) {
	return a.Tasks(ctx, id.Class, o)
}
