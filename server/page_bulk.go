package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// bulkPages are the pages of a verb over many dead letters: the count, and a run with its token.
func (s *Server) bulkPages() []route {
	do, matches := param{name: "do", help: "replay or discard"}, param{name: "matches", kind: number, help: "of the count"}
	id := param{name: "id", help: "of the run"}
	return []route{
		shows("bulk", operator, (*exchange).bulkPage, append([]param{do}, bulkFilters...)...),
		acts("bulk", operator, (*exchange).bulkForm, do, matches),
		shows("bulkrun", operator, (*exchange).bulkRunPage, id),
		acts("bulkstop", operator, (*exchange).bulkStopForm, id),
	}
}

// bulkPage counts, and asks whether it is meant.
func (x *exchange) bulkPage() error {
	do := x.param("do")
	if do != "replay" && do != "discard" {
		return badRequest("do is replay or discard")
	}
	o, err := x.filter()
	if err != nil {
		return err
	}
	c, err := x.deadCount(do == "replay", o)
	if err != nil {
		return err
	}
	if c, err = x.sealed(deadOf, c, bulkRight{}); err != nil {
		return err
	}
	back := dashboard.Link{Route: "dead", Query: url.Values{}}
	for _, f := range bulkFilters {
		if x.query.Has(f.name) {
			back.Query.Set(f.name, x.param(f.name))
		}
	}
	return x.page(dashboard.Bulk{
		Do: do, Matches: c.Matches, More: c.More, Damaged: c.Damaged, LastError: c.LastError, At: c.At, Token: c.Token, Back: back, Run: dashboard.Link{Route: "bulk", Query: url.Values{"do": {do}, "matches": {strconv.Itoa(c.Matches)}}},
	})
}

// pageRuns are the runs that pages have begun, of all principals. The mutex guards all fields, and those of the runs.
type pageRuns struct {
	mu    sync.Mutex
	all   map[string]*pageRun
	order []string // their ids, the oldest first
}

// pageRun is a verb over many letters.
type pageRun struct {
	dashboard.BulkRun
	who    string // the id of the principal
	cancel context.CancelFunc
}

// maxRuns bounds the runs that are kept, and runsEach those of one principal that are under way.
const (
	maxRuns  = 100
	runsEach = 4
)

// begin keeps a run under an id of its own, or refuses it.
func (r *pageRuns) begin(run *pageRun) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := 0
	for _, other := range r.all {
		if other.who == run.who && !other.Ended {
			mine++
		}
	}
	if len(r.order) >= maxRuns {
		r.dropLocked()
	}
	if mine >= runsEach || len(r.order) >= maxRuns {
		return "", &problem{Type: "too-many-runs", Title: "Too many such verbs run.", Status: http.StatusTooManyRequests, Outcome: none, Retryable: true, retryAfter: 5}
	}
	if r.all == nil {
		r.all = make(map[string]*pageRun)
	}
	id = rand.Text()
	r.all[id], r.order = run, append(r.order, id)
	return id, nil
}

// dropLocked forgets the oldest run that has ended. The caller holds r.mu.
func (r *pageRuns) dropLocked() {
	for i, id := range r.order {
		if r.all[id].Ended {
			delete(r.all, id)
			r.order = append(r.order[:i:i], r.order[i+1:]...)
			return
		}
	}
}

// update changes a run.
func (r *pageRuns) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// find returns a run of a principal as it is now, and what stops it; nil if there is none.
func (r *pageRuns) find(id, who string) (now dashboard.BulkRun, stop context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.all[id]
	if run == nil || run.who != who {
		return now, nil
	}
	return run.BulkRun, run.cancel
}

// bulkForm begins the run of a token, which goes on when the browser has left: it ends with Serve and after maxRun.
func (x *exchange) bulkForm() error {
	form, err := x.form(x.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	token, right, err := x.unsealed(deadOf, form.Get("token"))
	if err != nil {
		return err
	}
	if err := x.mayRun(right); err != nil {
		return err
	}
	if x.serving.ending.Err() != nil {
		return object.ErrShutdown
	}
	ctx, cancel := x.untilEnd(context.WithoutCancel(x.r.Context()), maxRun)
	run := &pageRun{BulkRun: dashboard.BulkRun{Do: x.param("do"), Matches: x.number("matches")}, who: x.who.ID, cancel: cancel}
	id, err := x.runs.begin(run)
	if err != nil {
		cancel()
		return err
	}
	srv := x.Server // the exchange is over when its handler returns
	srv.spawn(func() {
		defer cancel()
		srv.runLetters(ctx, run, token)
	})
	return x.see("bulkrun", "id", id)
}

// runLetters runs the verb of a token, and notes how far it is.
func (s *Server) runLetters(ctx context.Context, run *pageRun, token string) {
	ended := false
	defer func() {
		if !ended { // it has panicked
			s.runs.update(func() { run.Ended, run.Problem = true, "the server has failed" })
		}
	}()
	note := func(p jobadmin.Progress) {
		s.runs.update(func() { run.Done, run.Skipped, run.Refused, run.LastError = p.Done, p.Skipped, p.Refused, p.LastError })
	}
	p, err := s.operations.admin.Run(ctx, token, note)
	note(p)
	ended = true
	s.runs.update(func() {
		run.Ended = true
		switch {
		case err == nil:
		case s.serving.ending.Err() != nil:
			run.Problem = problemOf(object.ErrShutdown).Title
		case context.Cause(ctx) == context.Canceled:
			run.Problem = "Somebody has stopped it."
		default:
			run.Problem = problemOf(err).Title
		}
	})
}

// bulkRunPage tells how far a run is. The browser asks again each second until it has ended, also without script.
func (x *exchange) bulkRunPage() error {
	run, stop := x.runs.find(x.param("id"), x.who.ID)
	if stop == nil {
		return notFound()
	}
	if !run.Ended {
		x.w.Header().Set("Refresh", "1")
	}
	if !x.can(auth.Reader) {
		run.LastError = ""
	}
	run.Stop = dashboard.Link{Route: "bulkstop", Query: url.Values{"id": {x.param("id")}}}
	return x.page(run)
}

func (x *exchange) bulkStopForm() error {
	_, stop := x.runs.find(x.param("id"), x.who.ID)
	if stop == nil {
		return notFound()
	}
	stop()
	return x.see("bulkrun", "id", x.param("id"))
}
