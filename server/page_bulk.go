package server

import (
	"net/url"

	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// bulkPages are the pages of a verb over many dead letters: the count, and a run with its token.
func (s *Server) bulkPages() []route {
	do := param{name: "do", help: "replay or discard"}
	id := param{name: "id", help: "of the run"}
	return []route{
		shows("bulk", operator, (*exchange).bulkPage, append([]param{do}, bulkFilters...)...),
		acts("bulk", operator, (*exchange).bulkForm),
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
	p := run.Bulk.Progress
	page := dashboard.BulkRun{
		Do: run.Bulk.Verb, Matches: run.Matches, Done: p.Done, Skipped: p.Skipped, Refused: p.Refused, LastError: p.LastError,
		Ended: !run.Ended.IsZero(), Stop: dashboard.Link{Route: "bulkstop", Query: url.Values{"id": {x.param("id")}}},
	}
	if run.Problem != nil {
		page.Problem = run.Problem.Title
	}
	if !page.Ended {
		x.w.Header().Set("Refresh", "1")
	}
	return x.page(page)
}

func (x *exchange) bulkStopForm() error {
	if err := x.stopRun(x.param("id")); err != nil {
		return err
	}
	return x.see("bulkrun", "id", x.param("id"))
}
