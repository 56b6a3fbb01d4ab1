package server

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
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
	if c, err = x.sealed(deadOf, c, ticket{Do: do, Matches: c.Matches}); err != nil {
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

// forget takes out a run that has not begun.
func (r *pageRuns) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, id)
	r.order = slices.DeleteFunc(r.order, func(other string) bool { return other == id })
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

// bulkForm begins the run of a token, which goes on when the browser has left: it ends with Serve, after maxRun, and
// when its principal may not do it any more.
func (x *exchange) bulkForm() error {
	form, err := x.form(x.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	token, t, err := x.unsealed(deadOf, form.Get("token"))
	if err != nil {
		return err
	}
	if err := x.mayRun(t.Right); err != nil {
		return err
	}
	if x.serving.ending.Err() != nil {
		return object.ErrShutdown
	}
	bounded, end := x.untilEnd(context.WithoutCancel(x.r.Context()), maxRun)
	ctx, cancel := context.WithCancelCause(bounded)
	stop := func() { cancel(errStopped); end() }
	run := &pageRun{BulkRun: dashboard.BulkRun{Do: t.Do, Matches: t.Matches}, who: x.who.ID, cancel: stop}
	id, err := x.runs.begin(run)
	if err != nil {
		stop()
		return err
	}
	letters, err := x.operations.admin.Begin(token)
	if err != nil {
		x.runs.forget(id)
		stop()
		return err
	}
	later := &exchange{Server: x.Server, r: x.r.Clone(bounded), route: x.route, who: x.who} // x is over when its handler returns
	x.spawn(func() {
		defer stop()
		later.runLetters(ctx, cancel, run, letters)
	})
	return x.see("bulkrun", "id", id)
}

var errStopped = errors.New("server: the principal has stopped the run")

// runLetters runs a verb over letters, and notes how far it is. It asks for the principal again as streams do.
func (x *exchange) runLetters(ctx context.Context, cancel context.CancelCauseFunc, run *pageRun, letters func(context.Context, func(jobadmin.Progress)) (jobadmin.Progress, error)) {
	ended := false
	defer func() {
		if !ended { // it has panicked
			x.runs.update(func() { run.Ended, run.Problem = true, "the server has failed" })
		}
	}()
	note := func(p jobadmin.Progress) {
		x.runs.update(func() { run.Done, run.Skipped, run.Refused, run.LastError = p.Done, p.Skipped, p.Refused, p.LastError })
	}
	asked := time.Now()
	p, err := letters(ctx, func(p jobadmin.Progress) {
		note(p)
		if now := time.Now(); now.Sub(asked) >= x.limits.checkEvery {
			if asked = now; !x.stillMay() {
				cancel(errRevoked)
			}
		}
	})
	note(p)
	ended = true
	x.runs.update(func() {
		run.Ended = true
		if err != nil {
			run.Problem = x.whyEnded(context.Cause(ctx), err)
		}
	})
}

// whyEnded tells why a run has ended early, of the cause of the end of its context and of its error.
func (s *Server) whyEnded(cause, err error) string {
	switch {
	case s.serving.ending.Err() != nil:
		return problemOf(object.ErrShutdown).Title
	case errors.Is(cause, errStopped):
		return "Somebody has stopped it."
	case errors.Is(cause, errRevoked):
		return "Its principal may not do it any more."
	case errors.Is(cause, context.DeadlineExceeded):
		return "It has run for ten minutes. Count again to go on."
	}
	return problemOf(err).Title
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
