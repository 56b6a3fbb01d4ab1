package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
)

// approve is a signal that a run waits for.
var approve = workflow.NewSignal[bool]("approve")

// furnish serves a host that has something to show on each page, to an admin.
func furnish(p *profile) *site {
	t := p.t
	t.Helper()
	died := make(chan object.DeadLetter, 1)
	reports := continuous.New(continuous.Config[string]{
		Name: "report", Exhausted: jobs.Fail, Retry: jobs.Retry{MaxAttempts: 1},
		Run: func(context.Context, *continuous.Run[string]) error { return errors.New("the printer has no paper") },
	})
	orders := workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approve}})
	orders.Func(func(ctx *workflow.Context, _ string) (string, error) {
		for _, step := range []string{"reserve", "pay"} {
			if _, err := workflow.Step(ctx, step, func(context.Context) (string, error) { return step + " 42", nil }); err != nil {
				return "", err
			}
		}
		_, err := approve.Wait(ctx, 72*time.Hour)
		return "", err
	})
	pool := thumbs(nil)
	s := serveStored(p, auth.Admin, []verbs.Described{reports, orders, pool}, bells(died))
	var err error
	if s.token, s.text, err = s.tokens.Add(auth.Token{Name: "ann", Role: auth.Admin, Grants: []auth.Grant{{Class: "order"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := orders.Start(t.Context(), s.host, "4711", ""); err != nil {
		t.Fatal(err)
	}
	s.until("order", "4711", workflow.EventSuspended)
	for i := range 3 {
		ref, err := pool.Enqueue(t.Context(), s.host, i)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Wait(t.Context(), s.host, ref.ID); !errors.Is(err, workerpool.ErrFailed) {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"church", "door", "tower"} {
		for i := range 4 {
			s.call(name, "ring", fmt.Sprintf("%d o'clock", i+1))
		}
	}
	s.call("tower", "die", "the rope is torn")
	<-died
	for _, name := range []string{"daily", "weekly"} {
		if _, err := reports.Start(t.Context(), s.host, name, ""); err != nil {
			t.Fatal(err)
		}
		s.until("report", name, jobs.EventFailed)
	}
	for _, verify := range []bool{true, false, true} {
		s.backUp(verify)
	}
	s.subscribe()
	return s
}

// subscribe has a failed delivery of one subscription, and none of a second one.
func (s *site) subscribe() {
	s.t.Helper()
	for _, kinds := range [][]string{nil, {"never"}} {
		status, _, err := s.hooks.Add(s.t.Context(), s.host, webhook.Subscription{URL: "http://127.0.0.1:1/hook", Class: "bell", Prefix: "to", Kinds: kinds})
		if err != nil {
			s.t.Fatal(err)
		}
		if kinds == nil {
			s.subscribed = status.ID
		}
	}
	s.call("tower", "ring", "5 o'clock")
	for { // an attempt that fails has no event
		if list, err := s.hooks.Attempts(s.t.Context(), s.host, s.subscribed); err != nil || len(list) > 0 {
			if err != nil {
				s.t.Fatal(err)
			}
			return
		}
	}
}

// backUp makes a snapshot, and a backup of it if it is to be verified.
func (s *site) backUp(verify bool) {
	s.t.Helper()
	made, err := s.repo.Create(s.t.Context(), s.host.Store())
	if err == nil && verify {
		_, err = s.repo.Verify(s.t.Context(), made.Name, nil)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// until waits for an event of an object.
func (s *site) until(class, name, kind string) {
	s.t.Helper()
	for e, err := range s.host.Watch(s.t.Context(), storage.ID{Class: class, Name: name}, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Kind == kind {
			return
		}
	}
}

// stop is a page of the tour: the name of its template, and the address.
type stop struct{ page, at string }

// tour are all pages of a site that is furnished, but for those of bulk runs and the one for signing in.
func (s *site) tour() []stop {
	s.t.Helper()
	dead, err := s.host.DeadLetters(s.t.Context(), object.DeadLettersOptions{Class: "bell", Limit: 1})
	if err != nil || len(dead.Letters) != 1 {
		s.t.Fatal(dead.Letters, err)
	}
	letter := fmt.Sprint("?class=bell&name=tower&seq=", dead.Letters[0].Seq)
	return append([]stop{{"letter", "letter" + letter}, {"ask", "replay" + letter}, {"ask", "discard" + letter}, {"webhook", "webhook?id=" + s.subscribed}}, fixed...)
}

// fixed are the pages of a tour whose addresses are known before.
var fixed = []stop{
	{"overview", "overview"}, {"classes", "classes"}, {"objects", "objects?class=bell&limit=2"}, {"object", "object?class=bell&name=tower"},
	{"object", "object?class=thumb&name=0"}, {"value", "value?class=bell&name=tower&key=text"}, {"delete", "delete?class=bell&name=tower"},
	{"jobs", "jobs"}, {"job", "job?class=order&name=4711"}, {"job", "job?class=report&name=daily"}, {"view", "view?class=order&name=4711&view=vars"},
	{"ask", "ask?class=order&name=4711&verb=signal"}, {"ask", "ask?class=order&name=4711&verb=terminate"}, {"ask", "askpool?pool=thumb&task=0-1&verb=discardDead"},
	{"pools", "pools"}, {"pool", "pool?pool=thumb&limit=2"}, {"task", "task?pool=thumb&task=0-1"},
	{"dead", "dead"}, {"bulk", "bulk?do=discard"}, {"bulk", "bulk?do=replay&class=bell"},
	{"recoveries", "recoveries"}, {"backups", "backups"}, {"webhooks", "webhooks"}, {"audit", "audit"}, {"problem", "nothing"},
}

// tourOf goes to each page, and to those of finishTour at last.
func (s *site) tourOf(b *tab, look func(at string)) {
	s.t.Helper()
	for _, stop := range s.tour() {
		b.visit(s.url(stop.at))
		if refused := is[bool](b, `!!document.querySelector("[data-problem]")`); refused != (stop.page == "problem") {
			s.t.Errorf("%s: %s", stop.at, b.seen())
		}
		look(stop.at)
	}
	s.finishTour(b, look)
}

// finishTour goes to the pages that a form leads to: those of bulk runs, and of a new secret.
func (s *site) finishTour(b *tab, look func(at string)) {
	s.t.Helper()
	b.visit(s.url("bulk?do=replay&class=bell"))
	b.leave("main form button")
	b.until(has("It has ended."))
	look("bulkrun")
	b.leave(`main a[href=bulkruns]`)
	b.until(has("replay dead letters"))
	look("bulkruns")
	b.visit(s.url("webhook?id=" + s.subscribed))
	b.leave(`form[action^=webhookrotate] button`)
	look("webhooksecret")
}

// The tour has each page that there is a template for.
func TestTourIsWhole(t *testing.T) {
	seen := map[string]bool{"bulkrun": true, "bulkruns": true, "webhook": true, "webhooksecret": true, "signin": true, "letter": true}
	for _, stop := range fixed {
		seen[stop.page] = true
	}
	for _, name := range templates(t) {
		if !seen[name] {
			t.Errorf("the tour has no page %s", name)
		}
	}
}

// templates are the names of all pages.
func templates(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("../page")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".html"); name != "frame" && name != "shared" {
			names = append(names, name)
		}
	}
	return names
}
