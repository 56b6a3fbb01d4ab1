package server

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

// tear makes dead tasks of the pool thumb, with their names in their inputs.
func (s *shop) tear(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.as("viewer", "GET", "/v1/pools/thumb/tasks/"+s.enqueue("thumb", fmt.Sprintf(`{"in": {"name": %q}}`, name))+"/wait", "", 200, nil)
	}
}

// Dead letters on their page: by filter and page, with errors for a reader alone; one is replayed or discarded.
func TestPageOfDeadLetters(t *testing.T) {
	s := pageShop(t)
	dead := s.fill()
	run, task := s.letters("workflow")[0], s.letters("task")[0]
	s.sees("viewer", "/ui/dead", []string{"workflow order/f", "task thumb/0"}, []string{secret, "Error begins with", "replay"})
	s.sees("reader", "/ui/dead", []string{"no card: " + secret, secret + " is torn", "Error begins with"}, []string{"replay"})
	s.sees("reader", "/ui/dead?class=order", []string{"order/f"}, []string{"thumb/0"})
	s.sees("reader", "/ui/dead?error="+secret, []string{"thumb/0"}, []string{"order/f"})
	s.sees("reader", "/ui/dead?kind=alarm", []string{"There is none here"}, []string{"order/f"})
	for kind, want := range map[string]int{"": 6, "task": 6, "<own": 7} { // all, five of the library, and one of the user
		kinds := choices(s.ask("reader", "GET", "/ui/dead?kind="+url.QueryEscape(kind), "").body, "kind")
		if len(kinds) != want || kind != "" && !slices.Contains(kinds, kind) {
			t.Errorf("with the kind %q the filter has the kinds %q", kind, kinds)
		}
	}
	s.sees("reader", "/ui/dead?limit=1", []string{"thumb/0", "Next page"}, []string{"order/f"})
	if a := s.ask("viewer", "GET", "/ui/dead?error="+secret, ""); a.status != 403 {
		t.Errorf("V13: a viewer finds out a text: %d", a.status)
	}
	at := func(route string, l letter) string { return "/ui/" + letterLink(route, l.ID, l.Seq).String() }
	body := s.sees("viewer", at("letter", task), []string{"Kind task", "Of thumb/0", "Attempts 1"}, []string{secret, "replay"})
	if !strings.Contains(html.UnescapeString(body), `href="task?pool=thumb&task=`+dead+`"`) {
		t.Errorf("no link leads to the task: %s", body)
	}
	s.sees("operator", at("letter", run), []string{"Of order/f", "no card: " + secret, "replay discard…"}, []string{"in place of its alarm"})
	s.posts("operator", at("replay", task), nil, "dead?class=thumb")
	if a := s.ask("operator", "POST", at("replay", task), ""); a.status != 404 || pageProblem(t, a) != "unknown-letter" {
		t.Errorf("a second replay: %d %s", a.status, a.body)
	}
	s.sees("operator", at("discard", run), []string{"cannot be undone", "the run of a workflow is terminated"}, nil)
	s.posts("operator", at("discard", run), nil, "dead?class=order")
	s.refused("viewer", "GET", "/v1/jobs/order/f", "", 404, "unknown-job")
	s.sees("operator", "/ui/dead?class=order", []string{"There is none here"}, []string{"order/f"})
}

// damage makes a dead letter one that cannot be read.
func (f *fixture) damage(id storage.ID, seq uint64) {
	f.t.Helper()
	o, err := f.host.Store().Find(id)
	if err != nil {
		f.t.Fatal(err)
	}
	var b storage.Batch
	b.For(id)
	b.SetDead(o.Shard, id, seq, []byte("no JSON"))
	if _, err := f.host.Store().Commit(&b); err != nil {
		f.t.Fatal(err)
	}
}

// A letter that cannot be read hides no other: the lists go on behind it, and tell of it. Its error, which may have a
// text of a user, is for readers.
func TestPagesGoOnBehindADamagedLetter(t *testing.T) {
	s := pageShop(t)
	s.fill()
	bad := s.letters("task")[0]
	s.damage(bad.ID, bad.Seq)
	name := fmt.Sprintf("dead letter %d of %s", bad.Seq, bad.ID)
	var first letterPage
	s.as("viewer", "GET", "/v1/dead", "", 200, &first)
	if len(first.Letters) != 0 || first.Damaged != 1 || first.LastError != "" || first.Next == "" {
		t.Errorf("the API tells a viewer %+v", first)
	}
	s.as("reader", "GET", "/v1/dead", "", 200, &first)
	if !strings.Contains(first.LastError, name) {
		t.Errorf("the API tells a reader %+v", first)
	}
	const told = "The next letter cannot be read. The list goes on behind it."
	s.sees("viewer", "/ui/dead", []string{told, "Next page"}, []string{name})
	s.sees("reader", "/ui/dead", []string{told, name, "Next page"}, nil)
	s.sees("viewer", "/ui/dead?after="+first.Next, []string{"order/f"}, []string{told})
	rest := []string{"A letter cannot be read", "thumb/0", "Its rows cannot be read.", "rows of the object are damaged", "order/f", "report/f"}
	s.sees("viewer", "/ui/overview", rest, []string{name})
	s.sees("reader", "/ui/overview", append(rest, name), nil)
	var a why.Answer
	s.as("reader", "GET", "/v1/objects/thumb/0/why", "", 200, &a)
	if a.Code != why.Unreadable || !strings.Contains(a.Error, name) {
		t.Errorf("the API tells why of the object with the letter: %+v", a)
	}
	s.sees("operator", "/ui/bulk?do=replay", []string{"1 dead letter matches", "1 letter beside these cannot be read", name}, nil)
}

// A row of an index that cannot be read ends the look at those that need attention, and not the page.
func TestOverviewWithADamagedIndex(t *testing.T) {
	s := pageShop(t)
	s.fill()
	o, err := s.host.Store().Find(s.orders.ID("f"))
	if err != nil {
		t.Fatal(err)
	}
	var b storage.Batch
	b.For(o.ID)
	due := s.host.Seams().Clock.Now().Add(-time.Hour).UnixNano()
	b.MoveAlarm(o, nil, &due, nil, []byte{0xff})
	if _, err := s.host.Store().Commit(&b); err != nil {
		t.Fatal(err)
	}
	s.sees("viewer", "/ui/overview", []string{"The look has ended at a row of an index", "Dead letters"}, []string{"corrupt encoding"})
	s.sees("reader", "/ui/overview", []string{"corrupt encoding"}, nil)
}

// An alarm that its object has set meanwhile stays, unless the button says otherwise.
func TestReplayOfAnAlarmOnItsPage(t *testing.T) {
	f := odd(t)
	letters, err := f.host.DeadLetters(t.Context(), object.DeadLettersOptions{})
	if err != nil || len(letters.Letters) != 1 {
		t.Fatal(letters, err)
	}
	d := letters.Letters[0]
	at := "/ui/" + letterLink("letter", d.ID, d.Seq).String()
	f.sees("operator", at, []string{"Kind alarm", "replay replay in place of its alarm… discard…"}, nil)
	ask := "/ui/" + letterLink("replay", d.ID, d.Seq).String()
	f.sees("operator", ask, []string{"cannot be undone", "an alarm that its object has set meanwhile is lost"}, nil)
	body := f.ask("operator", "GET", ask, "").body
	form := regexp.MustCompile(`class="ask" method="post" action="([^"]*)"`).FindStringSubmatch(body)
	if form == nil || !strings.Contains(form[1], "replace=1") {
		t.Fatalf("the question has no form: %s", body)
	}
	f.posts("operator", resolve(t, ask, html.UnescapeString(form[1])), nil, "dead?class=note")
	if a := f.ask("operator", "GET", ask, ""); a.status != 404 || pageProblem(t, a) != "unknown-letter" {
		t.Errorf("a question about no letter: %d %s", a.status, a.body)
	}
}

// token is that of the form of a page, and the address of the form.
func (f *fixture) token(who, at string) (to, token string) {
	f.t.Helper()
	body := f.ask(who, "GET", at, "").body
	form, value := regexp.MustCompile(`action="(bulk)"`).FindStringSubmatch(body), regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(body)
	if form == nil || value == nil {
		f.t.Fatalf("%s has no form: %s", at, body)
	}
	return resolve(f.t, at, html.UnescapeString(form[1])), html.UnescapeString(value[1])
}

// ended returns the text of the page of a run that has ended, after the end.
func (f *fixture) ended(who, at string) string {
	f.t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		f.t.Fatal(err)
	}
	f.srv.bulk.mu.Lock()
	begun, runs := f.srv.bulk.all[u.Query().Get("id")]
	f.srv.bulk.mu.Unlock()
	if runs {
		<-begun.over
	}
	a := f.ask(who, "GET", at, "")
	if a.status != 200 || a.header.Get("Refresh") != "" {
		f.t.Fatalf("%s: %d %v %s", at, a.status, a.header, a.body)
	}
	return pageText(a.body)
}

// Proves V11, V13: all letters that match are counted, and replayed or discarded with the token of the count, which
// is its principal's alone; the page tells how far it is and how it has ended.
func TestDeadLettersInBulkOnPages(t *testing.T) {
	s := pageShop(t)
	s.fill()
	s.tear("torn1", "torn2")
	body := html.UnescapeString(s.ask("operator", "GET", "/ui/dead?class=thumb&error="+secret, "").body)
	const ask = "bulk?class=thumb&do=discard&error=" + secret
	if !strings.Contains(body, `href="`+ask+`"`) {
		t.Fatalf("no link counts the letters: %s", body)
	}
	s.sees("operator", "/ui/"+ask, []string{"3 dead letters match", "cannot be undone", "discard all of them"}, nil)
	s.sees("operator", "/ui/bulk?do=replay&class=none", []string{"0 dead letters match"}, []string{"replay all of them"})
	to, token := s.token("operator", "/ui/"+ask)
	form := url.Values{"token": {token}}.Encode()
	for who, status := range map[string]int{"viewer": 403, "reader": 403, "other": 404} {
		if a := s.ask(who, "POST", to, form, "Content-Type", asForm); a.status != status {
			t.Errorf("V11: %s runs the token of another: %d %s", who, a.status, a.body)
		}
	}
	a := s.ask("operator", "POST", to, form, "Content-Type", asForm)
	run := "/ui/" + a.header.Get("Location")
	if a.status != 303 || !strings.HasPrefix(run, "/ui/bulkrun?id=") {
		t.Fatalf("the run: %d %v %s", a.status, a.header, a.body)
	}
	if text := s.ended("operator", run); !strings.Contains(text, "It has ended.") || !strings.Contains(text, "3 of 3") || strings.Contains(text, "early") {
		t.Errorf("the run has ended so: %s", text)
	}
	if left := s.letters("task"); len(left) != 0 || len(s.letters("workflow")) != 1 {
		t.Errorf("letters are left: %+v", left)
	}
	for who, status := range map[string]int{"other": 200, "reader": 403} {
		if a := s.ask(who, "GET", run, ""); a.status != status {
			t.Errorf("V13, V21: %s sees the run: %d", who, a.status)
		}
	}
	if a := s.ask("operator", "GET", "/ui/bulkrun?id=x", ""); a.status != 404 {
		t.Errorf("V21: there is no such run: %d", a.status)
	}
	if a := s.ask("operator", "POST", to, form, "Content-Type", asForm); a.status != 404 || pageProblem(t, a) != "unknown-token" {
		t.Errorf("V11: a token is used twice: %d %s", a.status, a.body) // the button once more
	}
	for at, kind := range map[string]string{"/ui/bulk?do=explode": "bad-request", "/ui/bulk?do=replay&name=x": "bad-request"} {
		if a := s.ask("operator", "GET", at, ""); a.status != 400 || pageProblem(t, a) != kind {
			t.Errorf("%s: %d %s", at, a.status, a.body)
		}
	}
}

// losing is an Authenticator that lets a principal make one request of a path, whose run asks for it once more when it
// begins, and no other.
type losing struct {
	auth.Authenticator
	method, path string
	asked        atomic.Int32
}

func (l *losing) Authenticate(r *http.Request) (auth.Principal, error) {
	if r.Method == l.method && r.URL.Path == l.path && l.asked.Add(1) > 2 {
		return auth.Principal{}, auth.ErrBadCredentials
	}
	return l.Authenticator.Authenticate(r)
}

// Proves V11: a run that a page has begun ends when its principal loses the right, and the rest stays as it was.
func TestARunOfAPageEndsWithItsRight(t *testing.T) {
	s := pageShop(t)
	s.fill()
	s.tear("torn1", "torn2")
	s.srv.limits.checkEvery = 0
	s.srv.config.Auth = &losing{Authenticator: s.srv.config.Auth, method: "POST", path: "/ui/bulk"}
	to, token := s.token("operator", "/ui/bulk?class=thumb&do=discard")
	a := s.ask("operator", "POST", to, url.Values{"token": {token}}.Encode(), "Content-Type", asForm)
	if text := s.ended("operator", "/ui/"+a.header.Get("Location")); !strings.Contains(text, "It has ended early: Its principal may not do it any more.") || !strings.Contains(text, "1 of 3") {
		t.Errorf("V11: the run has ended so: %s", text)
	}
	if left := s.letters("task"); len(left) != 2 {
		t.Errorf("V11: letters are left: %+v", left)
	}
}

// A run can be stopped on its page, by any operator, and no run begins while the server ends.
func TestStopARunOnItsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pageShop(t)
		s.fill()
		time.Sleep(time.Second) // a run is of letters that are older
		held, at := make(chan struct{}), today(s.host)
		now := s.host.Seams().Clock.Now()
		run := bulkState{Of: deadOf, Who: "operator", Matches: 9, Day: at, Began: now, Bulk: jobadmin.Bulk{Verb: replayVerb, At: now}}
		s.srv.limits.checkEvery = 0
		s.srv.bulk.put("r", func() *problem { <-held; return nil })
		if _, err := bulkBegin.Call(t.Context(), s.host, "r", run); err != nil {
			t.Fatal(err)
		}
		s.sees("operator", "/ui/bulkrun?id=r", []string{"It runs.", "of 9", "Stop"}, nil)
		if a := s.ask("operator", "GET", "/ui/bulkrun?id=r", ""); a.header.Get("Refresh") != "1" || !strings.Contains(a.body, `action="bulkstop?`) {
			t.Errorf("a run that has not ended: %v %s", a.header, a.body)
		}
		if a := s.ask("reader", "POST", "/ui/bulkstop?id=r", ""); a.status != 403 {
			t.Errorf("V21: a reader stops the run: %d", a.status)
		}
		s.posts("other", "/ui/bulkstop?id=r", nil, "bulkrun?id=r")
		close(held)
		if text := s.ended("operator", "/ui/bulkrun?id=r"); !strings.Contains(text, "It has ended early: Somebody has stopped it.") {
			t.Errorf("V21: %s", text)
		}
		s.tear("torn")
		to, token := s.token("operator", "/ui/bulk?do=replay")
		s.srv.serving.expire()
		if a := s.ask("operator", "POST", to, url.Values{"token": {token}}.Encode(), "Content-Type", asForm); a.status != 503 {
			t.Errorf("a run begins while the server ends: %d %s", a.status, a.body)
		}
	})
}
