package verbs_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// tally is the state of the continuous jobs.
type tally struct{ Runs int }

// Validate refuses a state that no job has.
func (s tally) Validate() error {
	if s.Runs < 0 {
		return errors.New("Runs is negative")
	}
	return nil
}

// types are a definition of each job type.
type types struct {
	reports *continuous.Job[tally]
	hooks   *debounce.Job[string, struct{}]
	images  *workerpool.Pool[int, int]
	orders  *workflow.Workflow[int, string]
}

var approve = workflow.NewSignal[int]("approve")

func define() types {
	d := types{
		reports: continuous.New(continuous.Config[tally]{
			Name: "report", StartLater: true,
			Run: func(_ context.Context, run *continuous.Run[tally]) error { run.State.Runs++; return nil },
		}),
		hooks: debounce.New(debounce.Config[string, struct{}]{
			Name: "hook", Quiet: time.Hour, Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
		}),
		images: workerpool.New(workerpool.Config[int, int]{
			Name: "image", Partitions: 2,
			Work: func(_ context.Context, t *workerpool.Task[int]) (int, error) {
				if t.In < 0 {
					return 0, object.Permanent(errors.New("negative"))
				}
				return 2 * t.In, nil
			},
		}),
		orders: workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approve}}),
	}
	stage := workflow.NewVar[string]("stage")
	d.orders.Func(func(ctx *workflow.Context, cents int) (string, error) {
		stage.Set(ctx, "waiting")
		by, err := approve.Wait(ctx, 0)
		if err != nil {
			return "", err
		}
		return strings.Repeat("€", by), nil
	})
	return d
}

func (d types) all() []verbs.Described {
	return []verbs.Described{d.reports, d.hooks, d.images, d.orders}
}

// open opens a host with a definition of each job type.
func open(t *testing.T) (*object.Host, types) {
	t.Helper()
	d := define()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, d.reports, d.hooks, d.images, d.orders)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return host, d
}

// Proves G1: each type describes all that a caller needs to know, once for each name, and of each verb how far it can
// be taken back.
func TestTablesAreWhole(t *testing.T) {
	for _, d := range define().all() {
		table := d.Verbs()
		if table.Class() != d.Name() || table.Kind() == "" {
			t.Errorf("the table of %s says class %q, kind %q", d.Name(), table.Class(), table.Kind())
		}
		for i, list := range [][]verbs.Description{table.Verbs(), table.Views()} {
			inVerbs := i == 0
			seen := map[string]bool{}
			for _, v := range list {
				roles := []verbs.Role{verbs.Viewer, verbs.Reader, verbs.Operator, verbs.Call}
				if seen[v.Name] || v.Help == "" || strings.Contains(v.Help, "\n") || !slices.Contains(roles, v.Role) {
					t.Errorf("%s: %+v", d.Name(), v)
				}
				if told := v.Effect == verbs.Harmless || v.Effect == verbs.Lasting || v.Effect == verbs.Final; told != inVerbs {
					t.Errorf("G1: %s: %s tells the effect %q", d.Name(), v.Name, v.Effect)
				}
				if v.Optional && v.Argument == "" {
					t.Errorf("%s: %s has no argument that may be left out", d.Name(), v.Name)
				}
				seen[v.Name] = true
			}
		}
		for _, v := range table.Views() {
			if v.Role != verbs.Viewer && v.Role != verbs.Reader {
				t.Errorf("%s: view %s is for %s", d.Name(), v.Name, v.Role)
			}
		}
	}
}

// Proves G1: a verb by name has the effect and the answer of the typed method, and a view its
// answer.
func TestVerbsAreTheTypedMethods(t *testing.T) {
	host, d := open(t)
	ctx := t.Context()
	do := func(of verbs.Described, id, verb, arg, want string) {
		t.Helper()
		got, err := of.Verbs().Do(ctx, host, id, verb, []byte(arg))
		if err != nil || string(got) != want {
			t.Errorf("%s %s %s: %s, %v, want %s", verb, of.Name(), id, got, err, want)
		}
	}
	view := func(of verbs.Described, id, view, arg string, want any) {
		t.Helper()
		got, err := of.Verbs().View(ctx, host, id, view, []byte(arg))
		text, _ := json.Marshal(want)
		if err != nil || string(got) != string(text) {
			t.Errorf("%s of %s %s: %s, %v, want %s", view, of.Name(), id, got, err, text)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	do(d.reports, "a", "start", `{"Runs": 7}`, `{"created":true,"status":"running"}`)
	do(d.reports, "a", "start", `{"Runs": 8}`, `{"created":false,"status":"running"}`)
	do(d.reports, "a", "pause", "", "")
	st, err := d.reports.Status(ctx, host, "a")
	must(err)
	if st.Meta.Status != jobs.Paused {
		t.Errorf("after pause: %+v", st)
	}
	view(d.reports, "a", "status", "", st)
	view(d.reports, "a", "state", "", tally{7})
	do(d.reports, "a", "resume", "null", "")
	do(d.reports, "a", "stop", `{"reason": "enough"}`, "")
	if st, err = d.reports.Status(ctx, host, "a"); err != nil || st.Meta.StopReason != "enough" {
		t.Errorf("after stop: %+v, %v", st, err)
	}
	do(d.reports, "a", "terminate", "", "")
	if _, err = d.reports.Status(ctx, host, "a"); !errors.Is(err, jobs.ErrNotFound) {
		t.Errorf("after terminate: %v", err)
	}

	do(d.hooks, "h", "add", `{"event": "x", "id": "1"}`, `{"g":1,"n":1}`)
	do(d.hooks, "h", "add", `{"event": "x", "id": "1"}`, `{"g":1,"n":1}`)
	do(d.hooks, "h", "add", `{"event": "y"}`, `{"g":1,"n":2}`)
	pending, err := d.hooks.Pending(ctx, host, "h")
	must(err)
	if !slices.Equal(pending.Events, []string{"x", "y"}) {
		t.Errorf("after three adds: %+v", pending)
	}
	view(d.hooks, "h", "pending", "", pending)
	do(d.hooks, "h", "clear", "", "2")
	do(d.hooks, "h", "flush", "", "0")

	do(d.images, "", "enqueue", `{"in": 4, "key": "k", "idempotent": "once"}`, mustRef(t, d, host, 4, "k"))
	task := struct{ ID workerpool.TaskID }{}
	must(json.Unmarshal([]byte(mustRef(t, d, host, 4, "k")), &task))
	view(d.images, task.ID.String(), "wait", "", 8)
	stats, err := d.images.Stats(ctx, host)
	must(err)
	view(d.images, "", "stats", "", stats)
	do(d.images, "", "pause", "", "")
	if stats, err = d.images.Stats(ctx, host); err != nil || stats.Mode != workerpool.Paused {
		t.Errorf("after pause: %+v, %v", stats, err)
	}
	do(d.images, "", "resume", "", "")
	dead, err := d.images.Enqueue(ctx, host, -1)
	must(err)
	if _, err := d.images.Verbs().View(ctx, host, dead.ID.String(), "wait", nil); !errors.Is(err, workerpool.ErrFailed) {
		t.Errorf("wait for a dead task: %v", err)
	}
	do(d.images, dead.ID.String(), "discardDead", "", "1")
	do(d.images, dead.ID.String(), "cancel", "", `"cancelled"`)
	do(d.images, "", "replayAll", "", "0")

	do(d.orders, "o", "start", "499", `{"created":true,"status":"executing"}`)
	do(d.orders, "o", "signal", `{"name": "approve", "value": 3, "key": "k"}`, "")
	do(d.orders, "o", "signal", `{"name": "approve", "value": 3, "key": "k"}`, "") // a repeat, also after the end
	view(d.orders, "o", "wait", "", "€€€")
	do(d.orders, "o", "start", "499", `{"created":false,"status":"completed"}`)
	view(d.orders, "o", "vars", "", []map[string]string{{"name": "stage", "value": "waiting"}})
	entries, err := d.orders.History(ctx, host, "o", 0, 0)
	must(err)
	view(d.orders, "o", "history", "", entries)
	view(d.orders, "o", "history", `{"after": 0, "limit": 1}`, entries[:1])
	do(d.orders, "p", "start", "1", `{"created":true,"status":"executing"}`)
	do(d.orders, "p", "pause", `{"reason": "look", "until": "2100-01-01T00:00:00Z"}`, "")
	do(d.orders, "p", "terminate", "", "")
	do(d.orders, "o", "restart", "1", "")
	do(d.orders, "o", "pause", `{"reason": "look", "until": "2100-01-01T00:00:00Z"}`, "")
	do(d.orders, "o", "cancel", `{"reason": "enough"}`, "")
	if _, err := d.orders.Wait(ctx, host, "o"); !errors.Is(err, workflow.ErrCancelled) {
		t.Errorf("after cancel: %v", err)
	}
}

// mustRef is the answer of a repeat of the one submission that has the idempotency key.
func mustRef(t *testing.T, d types, host *object.Host, in int, key string) string {
	t.Helper()
	ref, err := d.images.Enqueue(t.Context(), host, in, workerpool.Key(key), workerpool.Idempotent("once", 24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	ref.Repeated = true
	text, _ := json.Marshal(ref)
	return string(text)
}

// Proves G1: a name that is not there is an error that lists the names that are, an argument that
// the verb does not take one that shows the form, and the errors of the typed methods stay theirs.
// None of them changes anything.
func TestMistakesByName(t *testing.T) {
	host, d := open(t)
	if _, err := d.reports.Start(t.Context(), host, "there", tally{Runs: 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of            verbs.Described
		id, verb, arg string
		is            error
		text          string
	}{
		{d.reports, "a", "fly", "", verbs.ErrUnknown, "it has start, trigger, pause, resume, stop, terminate"},
		{d.reports, "a", "status", "", verbs.ErrUnknown, `no verb "status"`},
		{d.orders, "a", "replay", "", verbs.ErrUnknown, "signal, cancel"},
		{d.reports, "a", "start", "", jobs.ErrInvalid, `its argument is missing; the argument is {"Runs": 0}`},
		{d.reports, "a", "start", "null", jobs.ErrInvalid, "missing"},
		{d.reports, "a", "start", `{"Runs": "x"}`, jobs.ErrInvalid, `the argument is {"Runs": 0}`},
		{d.reports, "a", "start", `{"Runs": 1} {}`, jobs.ErrInvalid, "more follows"},
		{d.reports, "a", "start", `{"Run": 1}`, jobs.ErrInvalid, `unknown field "Run"`},
		{d.reports, "a", "start", `{`, jobs.ErrInvalid, "unexpected EOF"},
		{d.reports, "a", "start", `{"Runs": -1}`, jobs.ErrInvalid, "Runs is negative"},
		{d.reports, "", "start", `{}`, jobs.ErrInvalid, "it needs an id"},
		{d.reports, "there", "pause", `{"reason": "x"}`, jobs.ErrInvalid, "takes no argument"},
		{d.reports, "there", "stop", `{"why": "x"}`, jobs.ErrInvalid, `the argument is {"reason": "text"}`},
		{d.reports, "none", "stop", "", jobs.ErrNotFound, "report/none"},
		{d.images, "0-1", "pause", "", jobs.ErrInvalid, "leave the id"},
		{d.images, "seven", "cancel", "", jobs.ErrInvalid, "0-17"},
		{d.images, "0-99", "cancel", "", jobs.ErrNotFound, "0-99"},
		{d.orders, "o", "signal", `{"name": "deny"}`, workflow.ErrUnknownSignal, `["approve"]`},
		{d.orders, "o", "signal", `{"name": "approve", "value": "x"}`, jobs.ErrInvalid, `signal "approve"`},
		{d.orders, "o", "signal", `{"name": "approve", "value": 1}`, jobs.ErrNotFound, "order/o"},
		{d.hooks, "h", "add", `{"event": 7}`, jobs.ErrInvalid, `{"event": "text", "id": "text"}`},
	} {
		got, err := c.of.Verbs().Do(t.Context(), host, c.id, c.verb, []byte(c.arg))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || got != nil {
			t.Errorf("%s %s %s %s: %s, %v, want %v with %q", c.verb, c.of.Name(), c.id, c.arg, got, err, c.is, c.text)
		}
	}
	if _, err := d.reports.Verbs().View(t.Context(), host, "there", "pause", nil); !errors.Is(err, verbs.ErrUnknown) || !strings.Contains(err.Error(), "it has status, state") {
		t.Errorf("a verb as a view: %v", err)
	}
	for class, want := range map[string]int{"report": 1, "hook": 0, "order": 0} {
		if found, err := host.Objects(t.Context(), class, object.ObjectsOptions{}); err != nil || len(found) != want {
			t.Errorf("the refused verbs have left %d objects of class %s, want %d: %v", len(found), class, want, err)
		}
	}
	st, err := d.reports.Status(t.Context(), host, "there")
	if err != nil || st.Meta.Status != jobs.Running {
		t.Errorf("the refused verbs have changed the job: %+v, %v", st, err)
	}
}

// explosive panics when it is decoded or encoded.
type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error  { panic("decode") }
func (explosive) MarshalJSON() ([]byte, error) { panic("encode") }

// itself is a type that holds itself.
type itself struct {
	Next    *itself
	Skipped int `json:"-"`
	At      time.Time
	Raw     []byte
	Map     map[string]bool
	Any     any
}

// Proves G1: a panic of the type of an argument or an answer is an error, and the form of a type
// that holds itself ends.
func TestTypesOfUsers(t *testing.T) {
	table := verbs.NewTable("x", "test", []verbs.Verb{
		verbs.New("take", verbs.Call, "take one", func(context.Context, object.Caller, string, explosive) (verbs.None, error) { return verbs.None{}, nil }),
		verbs.New("give", verbs.Call, "give one", func(context.Context, object.Caller, string, verbs.None) (explosive, error) { return explosive{}, nil }),
		verbs.New("show", verbs.Call, "show the form", func(context.Context, object.Caller, string, itself) (verbs.None, error) { return verbs.None{}, nil }),
	}, nil)
	if _, err := table.Do(t.Context(), nil, "a", "take", []byte("{}")); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "decode") {
		t.Error(err)
	}
	if _, err := table.Do(t.Context(), nil, "a", "give", nil); err == nil || !strings.Contains(err.Error(), "encode the answer") {
		t.Error(err)
	}
	if got := table.Verbs()[2].Argument; !strings.HasPrefix(got, `{"Next": {"Next": {"Next": {"Next": …`) || !strings.HasSuffix(got, `"At": "2006-01-02T15:04:05Z", "Raw": "base64", "Map": {"key": false}, "Any": …}`) {
		t.Errorf("the form is %s", got)
	}
}
