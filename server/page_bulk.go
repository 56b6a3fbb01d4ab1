package server

import (
	"cmp"
	"net/url"

	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// bulkPages are the pages of verbs over many: the count of dead letters and a run with its token, and the list of all
// runs.
func (s *Server) bulkPages() []route {
	do := param{name: "do", help: "replay or discard"}
	id := param{name: "id", help: "of the run"}
	return []route{
		shows("bulk", operator, (*exchange).bulkPage, append([]param{do}, bulkFilters...)...),
		acts("bulk", operator, (*exchange).bulkForm),
		shows("bulkruns", operator, (*exchange).bulkRunsPage, bulkParams...),
		shows("bulkrun", operator, (*exchange).bulkRunPage, id),
		acts("bulkstop", operator, (*exchange).bulkStopForm, id),
	}
}

// bulkPage counts, and asks whether it is meant.
func (x *exchange) bulkPage() error {
	do := x.param("do")
	if do != replayVerb && do != discardVerb {
		return badRequest("do is replay or discard")
	}
	o, err := x.filter()
	if err != nil {
		return err
	}
	c, t, err := x.deadCount(do, o)
	if err != nil {
		return err
	}
	if c, err = x.sealed(deadOf, c, t); err != nil {
		return err
	}
	back := dashboard.Link{Route: "dead", Query: url.Values{}}
	for _, f := range bulkFilters {
		if x.query.Has(f.name) {
			back.Query.Set(f.name, x.param(f.name))
		}
	}
	return x.page(dashboard.Bulk{
		Do: do, Matches: c.Matches, More: c.More, Damaged: c.Damaged, LastError: c.LastError, At: c.At, Token: c.Token, Back: back, Run: dashboard.Link{Route: "bulk"},
	})
}

// bulkForm begins the run of a token.
func (x *exchange) bulkForm() error {
	form, err := x.form(x.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	id, _, err := x.beginRun(deadOf, form.Get("token"))
	if err != nil {
		return err
	}
	return x.see("bulkrun", "id", id)
}

// bulkRunPage tells how far a run is. The browser asks again each second until it has ended, also without script.
func (x *exchange) bulkRunPage() error {
	run, err := x.bulkOf(x.param("id"))
	if err != nil {
		return err
	}
	page := shownBulk(statusOf(x.param("id"), run))
	if run.Ended.IsZero() {
		x.w.Header().Set("Refresh", "1")
	}
	return x.page(page)
}

// shownBulk is a run for a page.
func shownBulk(s bulkStatus) dashboard.BulkRun {
	r := dashboard.BulkRun{
		ID: s.ID, State: s.State, Do: s.Verb, Of: s.Of, Filter: string(s.Filter), Who: cmp.Or(s.Name, s.Who), Matches: s.Matches,
		Done: s.Done, Skipped: s.Skipped, Refused: s.Refused, LastError: s.LastError, Counted: s.CountedAt, Began: s.Began, Ended: s.Ended,
		Stop: dashboard.Link{Route: "bulkstop", Query: url.Values{"id": {s.ID}}},
	}
	if s.Of == deadOf {
		r.Of = "dead letters"
	}
	if s.Problem != nil {
		r.Problem, r.LastError = s.Problem.Title, cmp.Or(s.LastError, s.Problem.Detail)
	}
	return r
}

// bulkRunsPage lists the runs of all principals.
func (x *exchange) bulkRunsPage() error {
	list, err := x.runs()
	if err != nil {
		return err
	}
	page := dashboard.BulkRuns{Running: x.flag("running"), Next: list.Next}
	for _, run := range list.Runs {
		page.Runs = append(page.Runs, shownBulk(run))
	}
	return x.page(page)
}

func (x *exchange) bulkStopForm() error {
	if err := x.stopRun(x.param("id")); err != nil {
		return err
	}
	return x.see("bulkrun", "id", x.param("id"))
}
