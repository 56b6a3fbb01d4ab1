package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// Parameters of the pages of one job, one task and one letter.
var (
	ofClass = param{name: "class", help: "of the object or the job"}
	ofName  = param{name: "name", help: "of the object, or the id of the job"}
)

// workflowKind is the name of the tables of workflows.
const workflowKind = "workflow"

// historyPage is how many entries of a history a page has.
const historyPage = 100

// jobPages are the pages of jobs.
func (s *Server) jobPages() []route {
	return []route{
		shows("jobs", viewer, (*exchange).jobsPage, classParam, param{name: "label", help: "only jobs with this label"}, prefixParam, afterParam, limitParam),
		ofOne(shows("job", viewer, (*exchange).jobPage, ofClass, ofName, param{name: "after", kind: number, help: "only entries of the history from this one on"})),
		ofOne(shows("view", tabled, (*exchange).viewPage, ofClass, ofName, param{name: "view", help: "the view"})),
	}
}

func (x *exchange) jobsPage() error {
	list, err := x.jobList()
	if err != nil {
		return err
	}
	p := dashboard.Jobs{Class: x.param("class"), Label: x.param("label"), Prefix: x.param("prefix"), Next: list.Next}
	if p.Jobs, err = shown(x, list.Jobs); err != nil {
		return err
	}
	for _, t := range x.operations.admin.Types() {
		if t.Kind() != poolKind {
			p.Types = append(p.Types, x.labelled(dashboard.Class{Name: t.Class(), Job: true}))
		}
	}
	return x.page(p)
}

func (x *exchange) jobPage() error {
	id, err := x.id()
	if err != nil {
		return err
	}
	found, err := x.operations.admin.Job(x.r.Context(), id)
	if err != nil {
		return err
	}
	p := dashboard.Job{ID: id, Alarm: found.Alarm}
	if p.Meta, err = shown(x, found.Meta); err != nil {
		return err
	}
	a, err := why.Job(x.r.Context(), x.source, id)
	if err != nil {
		return err
	}
	if p.Why, err = shown(x, x.hide(a)); err != nil {
		return err
	}
	in, err := x.inspection(x.r.Context(), id)
	if err != nil {
		return err
	}
	if in, err = shown(x, in); err != nil {
		return err
	}
	p.Events, p.Dead = in.Events, in.DeadLetters
	if t, err := x.operations.table(id.Class, false); err == nil {
		p.Verbs, p.Views = x.jobVerbs(t, id), x.jobViews(t, id)
		p.Run, err = x.runOf(t, id)
		if err != nil {
			return err
		}
	}
	return x.page(p)
}

// runOf asks the run of a workflow for its progress; nil if the job is none, or the principal may not see it.
func (x *exchange) runOf(t *verbs.Table, id storage.ID) (*dashboard.Run, error) {
	if t.Kind() != workflowKind || !x.can(auth.Reader) {
		return nil, nil
	}
	ctx, cancel := x.untilEnd(x.r.Context(), x.limits.pageTime)
	defer cancel()
	r := &dashboard.Run{}
	first := uint64(x.number("after"))
	entries, err := asked[[]workflow.Entry](ctx, x, t, id.Name, "history", fmt.Appendf(nil, `{"after": %d, "limit": %d}`, first, historyPage))
	if err == nil {
		r.Status, err = asked[workflow.Status](ctx, x, t, id.Name, "status", nil)
	}
	if errors.Is(err, jobs.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return &dashboard.Run{Error: err.Error()}, nil
	}
	r.Entries = timed(entries, r.Status.Meta.CreatedAt, first)
	if len(entries) == historyPage {
		r.Next = strconv.FormatUint(entries[historyPage-1].Seq+1, 10)
	}
	r.Signals = x.who.MayCall(id.Class, id.Name, signalVerb)
	return r, nil
}

// timed are entries with the times between those of one scope. The first of the run is measured from its creation;
// the first of a scope, and of a later page, has none before it here.
func timed(entries []workflow.Entry, created time.Time, first uint64) []dashboard.Entry {
	last := map[string]time.Time{}
	if first == 0 {
		last[""] = created
	}
	all := make([]dashboard.Entry, len(entries))
	for i, e := range entries {
		all[i] = dashboard.Entry{Entry: e, Took: -1}
		if before, ok := last[e.Scope]; ok {
			all[i].Took = max(0, e.At.Sub(before))
		}
		last[e.Scope] = e.At
	}
	return all
}

// asked asks a view and decodes its answer. The caller has checked the right.
func asked[T any](ctx context.Context, x *exchange, t *verbs.Table, id, view string, arg []byte) (v T, err error) {
	raw, err := t.View(ctx, x.host, id, view, arg)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("page: the view %s of %s: %w", view, t.Class(), err)
	}
	return v, nil
}

// hasPage reports whether a view has a page of its own: the others need an argument, wait, or are a part of the
// page of the job.
func hasPage(d verbs.Description) bool {
	return d.Argument == "" && !d.Whole && d.Name != waitView && d.Name != "status"
}

// jobViews are the views of a job that have a page which the principal may see.
func (x *exchange) jobViews(t *verbs.Table, id storage.ID) (names []string) {
	for _, d := range t.Views() {
		if hasPage(d) && x.may(d, id.Class, id.Name) == nil {
			names = append(names, d.Name)
		}
	}
	return names
}

func (x *exchange) viewPage() error {
	class, name := x.param("class"), x.param("name")
	t, d, err := x.find((*verbs.Table).Views, x.param("view"), false, class, name)
	if err != nil {
		return err
	}
	if !hasPage(d) {
		return badRequest("the view has no page: ask the API for it")
	}
	raw, err := x.view(t, d, name, nil)
	if err != nil {
		return err
	}
	text, err := indented(raw)
	if err != nil {
		return fmt.Errorf("page: the view %s of %s: %w", d.Name, class, err)
	}
	return x.page(dashboard.View{ID: storage.ID{Class: class, Name: name}, View: d.Name, JSON: text})
}

// seeJob goes to the page of a job after a verb, or to the list if the verb has deleted it.
func (x *exchange) seeJob(id storage.ID) error {
	_, err := x.operations.admin.Job(x.r.Context(), id)
	if errors.Is(err, jobs.ErrNotFound) && x.seesAll() {
		return x.see("jobs", "class", id.Class)
	}
	return x.see("job", "class", id.Class, "name", id.Name)
}

// pageOf is the address of the page of an object, a job, or a task of a pool's partition.
func (x *exchange) pageOf(id storage.ID, task string) dashboard.Link {
	to := jobLink("object", id)
	t := x.operations.tables[id.Class]
	switch {
	case t == nil:
	case t.Kind() != poolKind:
		to.Route = "job"
	case task != "":
		return taskLink("task", id.Class, task)
	default:
		if typed, err := workerpool.ParseTaskID(id.Name); err == nil { // somebody has written pool/task
			return taskLink("task", id.Class, typed.String())
		}
	}
	return to
}
