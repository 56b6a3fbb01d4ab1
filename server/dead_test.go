package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves V10, A11: dead letters are listed by page and filter, shown, replayed and discarded over HTTP.
func TestDeadLetters(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.fill()
	for _, name := range []string{"torn1", "torn2"} {
		s.as("viewer", "GET", "/v1/pools/thumb/tasks/"+s.enqueue("thumb", `{"in": {"name": "`+name+`"}}`)+"/wait", "", 200, nil)
	}
	kinds := ""
	for path, pages := "/v1/dead?limit=1", 0; path != ""; pages++ {
		var page letterPage
		s.as("reader", "GET", path, "", 200, &page)
		for _, l := range page.Letters {
			kinds += l.Kind + " "
		}
		if path = ""; page.Next != "" {
			path = "/v1/dead?limit=1&after=" + page.Next
		}
		if len(page.Letters) > 1 || pages > 9 {
			t.Fatalf("%+v", page)
		}
	}
	if strings.Count(kinds, "task") != 3 || strings.Count(kinds, "workflow") != 1 {
		t.Errorf("the pages have %s", kinds)
	}
	for query, want := range map[string]int{
		"class=thumb&name=0": 3, "class=thumb&name=1": 0, "kind=workflow": 1, "reason=permanent": 3, "error=" + secret: 3, "error=other": 0,
		"since=2000-01-01T00:00:00Z": 4, "before=2000-01-01T00:00:00Z": 0, "limit=1000": 4,
	} {
		var page letterPage
		if s.as("reader", "GET", "/v1/dead?"+query, "", 200, &page); len(page.Letters) != want {
			t.Errorf("%s: %d letters, want %d", query, len(page.Letters), want)
		}
	}
	one := s.letters("task")[0]
	path := fmt.Sprintf("/v1/dead/thumb/0/%d", one.Seq)
	var shown letter
	if s.as("reader", "GET", path, "", 200, &shown); shown.LastError != secret+" is torn" || shown.Seq != one.Seq || shown.ID != one.ID {
		t.Errorf("%+v", shown)
	}
	s.refused("reader", "POST", "/v1/dead/replay", naming(one, ""), 403, "forbidden")
	s.refused("reader", "POST", "/v1/dead/discard", naming(one, ""), 403, "forbidden")
	s.as("operator", "POST", "/v1/dead/discard", naming(one, ""), 204, nil)
	for _, verb := range []string{"replay", "discard"} {
		s.refused("operator", "POST", "/v1/dead/"+verb, naming(one, ""), 404, "unknown-letter")
	}
	s.refused("reader", "GET", path, "", 404, "unknown-letter")
	run := s.letters("workflow")[0]
	s.as("operator", "POST", "/v1/dead/discard", naming(run, ""), 204, nil)
	s.refused("viewer", "GET", "/v1/jobs/order/f", "", 404, "unknown-job")
	two := s.letters("task")[0]
	s.as("operator", "POST", "/v1/dead/replay", naming(two, ""), 204, nil)
	s.as("operator", "POST", "/v1/pools/thumb/drain", "", 204, nil) // it dies anew
	if left := s.letters("task"); len(left) != 2 || left[1].Seq == two.Seq {
		t.Errorf("%+v", left)
	}
}

// Proves V10: mistakes of dead letters change nothing.
func TestMistakesOfDeadLetters(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.fill()
	one := s.letters("task")[0]
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		kind                    string
	}{
		{"viewer", "GET", "/v1/dead?limit=1001", "", 400, "bad-request"},
		{"viewer", "GET", "/v1/dead?name=0", "", 400, "bad-request"},
		{"viewer", "GET", "/v1/dead?since=yesterday", "", 400, "bad-request"},
		{"viewer", "GET", "/v1/dead?before=yesterday", "", 400, "bad-request"},
		{"viewer", "GET", "/v1/dead?since=2001-01-01T00:00:00Z&before=2001-01-01T00:00:00Z", "", 400, "bad-request"},
		{"viewer", "GET", "/v1/dead?after=%21", "", 400, "bad-cursor"},
		{"viewer", "GET", "/v1/dead?after=AAAA", "", 400, "bad-cursor"},
		{"viewer", "GET", "/v1/dead/thumb/0/1", "", 404, "unknown-letter"},
		{"viewer", "GET", "/v1/dead/thumb/0/x", "", 404, "not-found"},
		{"viewer", "GET", "/v1/recoveries?limit=1001", "", 400, "bad-request"},
		{"operator", "POST", "/v1/dead/replay", "", 400, "bad-request"},
		{"operator", "POST", "/v1/dead/replay", `{"sqe": 1}`, 400, "bad-request"},
		{"operator", "POST", "/v1/dead/replay", `{"class": "thumb"}`, 400, "bad-name"},
		{"operator", "POST", "/v1/dead/discard", naming(one, `, "replace": true`), 400, "bad-request"},
		{"operator", "POST", "/v1/dead:count", `{"do": "explode"}`, 400, "bad-request"},
		{"operator", "POST", "/v1/dead:count", `{"do": "replay", "name": "0"}`, 400, "bad-request"},
		{"operator", "POST", "/v1/dead:run", `{"token": "x"}`, 404, "unknown-token"},
		{"operator", "POST", "/v1/dead:run", `{"token": "x.AAAA"}`, 404, "unknown-token"},
		{"operator", "POST", "/v1/jobs:count", `{"verb": "explode", "class": "report", "label": "failed"}`, 404, "unknown-verb"},
		{"operator", "POST", "/v1/jobs:count", `{"verb": "resume", "class": "nothing", "label": "failed"}`, 404, "unknown-type"},
		{"operator", "POST", "/v1/jobs:count", `{"verb": "cancel", "class": "thumb", "label": "failed"}`, 404, "unknown-type"},
		{"operator", "POST", "/v1/jobs:count", `{"verb": "resume", "class": "report"}`, 400, "invalid"},
		{"operator", "POST", "/v1/jobs:count", `{"verb": "start", "class": "report", "label": "failed"}`, 404, "not-found"},
		{"reader", "POST", "/v1/jobs:count", ``, 403, "forbidden"},
		{"reader", "POST", "/v1/jobs:run", ``, 403, "forbidden"},
		{"reader", "POST", "/v1/dead:count", ``, 403, "forbidden"},
		{"reader", "POST", "/v1/dead:run", ``, 403, "forbidden"},
	} {
		if p := s.refused(c.who, c.method, c.path, c.body, c.status, c.kind); p.Outcome != none {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	if left := s.letters("task"); len(left) != 1 || left[0].Seq != one.Seq {
		t.Errorf("%+v", left)
	}
}

// waker is an object with an alarm that fails until it is well.
type waker struct {
	st   *object.State
	well *bool
}

func (w *waker) Alarm(context.Context, object.AlarmInfo) error {
	if *w.well {
		return nil
	}
	return object.Permanent(fmt.Errorf("ill"))
}

// Proves V10, A11: a replay leaves the alarm that the object has set meanwhile, unless it is told to
// replace it.
func TestReplayOfAnAlarm(t *testing.T) {
	well, died := false, make(chan struct{})
	wakers := object.Define("waker", func(_ context.Context, st *object.State) (*waker, error) { return &waker{st, &well}, nil },
		object.ClassOptions{OnDeadLetter: func(context.Context, object.DeadLetter) { close(died) }})
	set := object.Handle(wakers, "set", func(w *waker, ctx context.Context, d time.Duration) (int, error) {
		return 0, w.st.SetAlarm(ctx, w.st.Now().Add(d))
	})
	s := &shop{fixture: start(t, func(c *Config) { c.Auth = staff }, wakers)}
	call := func(d time.Duration) {
		if _, err := set.Call(t.Context(), s.host, "w", d); err != nil {
			t.Fatal(err)
		}
	}
	call(0)
	<-died
	well = true
	call(time.Hour)
	one := s.letters(object.DeadAlarm)[0]
	s.refused("operator", "POST", "/v1/dead/replay", naming(one, ""), 409, "armed")
	s.as("operator", "POST", "/v1/dead/replay", naming(one, `, "replace": true`), 204, nil)
	if left := s.letters(object.DeadAlarm); len(left) != 0 {
		t.Errorf("%+v", left)
	}
}

// count counts and returns the token.
func (s *shop) count(who, path, body string, matches int) string {
	s.t.Helper()
	var c jobadmin.Count
	if s.as(who, "POST", path, body, 200, &c); c.Matches != matches {
		s.t.Errorf("%s %s: %+v, want %d", path, body, c, matches)
	}
	return fmt.Sprintf(`{"token": %q}`, c.Token)
}

// lastLine is the last line of a bulk verb.
func (s *shop) lastLine(body string) (l bulkLine) {
	s.t.Helper()
	lines := strings.Split(strings.TrimSpace(body), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &l); err != nil || !l.Ended {
		s.t.Fatalf("%v: %s", err, body)
	}
	return l
}

// Proves V11, G3: a bulk verb runs with the token of a count, once, for the principal that has counted
// and by the route of the count alone.
func TestBulk(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.fill()
	for _, id := range []string{"g", "h"} {
		s.as("caller", "PUT", "/v1/jobs/report/"+id, `"bad"`, 201, nil)
		s.as("operator", "POST", "/v1/jobs/report/"+id+"/do/trigger", "", 204, nil)
		s.happened(s.reports.ID(id), jobs.EventFailed)
	}
	token := s.count("operator", "/v1/jobs:count", `{"verb": "terminate", "class": "report", "label": "failed", "arg": {"reason": "x"}}`, 3)
	s.refused("other", "POST", "/v1/jobs:run", token, 404, "unknown-token")
	s.refused("admin", "POST", "/v1/jobs:run", token, 404, "unknown-token")
	s.refused("operator", "POST", "/v1/dead:run", token, 404, "unknown-token")
	s.as("viewer", "GET", "/v1/jobs/report/f", "", 200, nil)
	a := s.as("operator", "POST", "/v1/jobs:run", token, 200, nil)
	if l := s.lastLine(a.body); l.Done != 3 || l.Problem != nil || a.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%+v, %v", l, a.header)
	}
	s.refused("viewer", "GET", "/v1/jobs/report/f", "", 404, "unknown-job")
	s.as("viewer", "GET", "/v1/jobs/report/a", "", 200, nil)
	s.refused("operator", "POST", "/v1/jobs:run", token, 404, "unknown-token")

	token = s.count("operator", "/v1/dead:count", `{"do": "discard", "kind": "task", "error": "`+secret+`"}`, 1)
	s.refused("operator", "POST", "/v1/jobs:run", token, 404, "unknown-token")
	if l := s.lastLine(s.as("operator", "POST", "/v1/dead:run", token, 200, nil).body); l.Done != 1 {
		t.Errorf("%+v", l)
	}
	if len(s.letters("task")) != 0 || len(s.letters("workflow")) != 1 {
		t.Error("the filter of the count is not that of the run")
	}
	s.count("operator", "/v1/dead:count", `{"do": "replay"}`, 1)
}

// Proves V11: the right to the verb that was counted is asked for again at the run.
func TestBulkAsksAgain(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.fill()
	grant := []auth.Grant{{Class: "report"}}
	guest := &guests{people: people{"g": {Role: auth.Operator, Grants: grant}, "viewer": {Role: auth.Viewer}, "reader": {Role: auth.Reader}}}
	s.srv.config.Auth = guest
	const start = `{"verb": "start", "class": "report", "label": "failed", "arg": "x"}`
	const resume = `{"verb": "resume", "class": "report", "label": "failed"}`
	for _, c := range []struct {
		path, body string
		then       auth.Principal
		status     int
		kind       string
	}{
		{"/v1/jobs:", start, auth.Principal{Role: auth.Operator}, 404, "not-found"},
		{"/v1/jobs:", start, auth.Principal{Role: auth.Operator, Grants: []auth.Grant{{Class: "report", Prefix: "acme/"}}}, 404, "not-found"},
		{"/v1/jobs:", resume, auth.Principal{Role: auth.Viewer, Grants: grant}, 403, "forbidden"},
		{"/v1/jobs:", resume, auth.Principal{Role: auth.Admin, Prefix: "acme/"}, 404, "not-found"},
		{"/v1/dead:", `{"do": "replay"}`, auth.Principal{Role: auth.Viewer}, 403, "forbidden"},
		{"/v1/dead:", `{"do": "replay"}`, auth.Principal{Role: auth.Admin, Prefix: "acme/"}, 404, "not-found"},
	} {
		before := auth.Principal{Role: auth.Operator, Grants: grant}
		guest.set("g", &before)
		var count jobadmin.Count
		s.as("g", "POST", c.path+"count", c.body, 200, &count)
		token := `{"token": "` + count.Token + `"}`
		guest.set("g", &c.then)
		s.refused("g", "POST", c.path+"run", token, c.status, c.kind)
		guest.set("g", &before)
		s.as("g", "POST", c.path+"run", token, 200, nil) // the refusal has not used it up
	}
	guest.set("g", &auth.Principal{Role: auth.Operator})
	s.refused("g", "POST", "/v1/jobs:count", start, 404, "not-found")
}

// Proves V5, V11: a count keeps at most 64 KiB of its caller's texts.
func TestBulkArgumentIsBounded(t *testing.T) {
	s := openShop(t, memory(), nil)
	for n, status := range map[int]int{64 << 10: 200, 64<<10 + 1: 400} {
		text := strings.Repeat("x", n-len(`""`))
		s.as("operator", "POST", "/v1/jobs:count", `{"verb": "resume", "class": "report", "label": "failed", "arg": "`+text+`"}`, status, nil)
		s.as("operator", "POST", "/v1/dead:count", `{"do": "replay", "error": "`+text+`xx"}`, status, nil)
	}
}

// Proves V11: the token of another server, or of a principal with a like id, is none.
func TestSealOfTokens(t *testing.T) {
	x := func(id string) *exchange {
		return &exchange{Server: &Server{operations: &operations{}}, who: auth.Principal{ID: id}}
	}
	seen := map[string]string{}
	for _, id := range []string{"a", `a"`, `" "a`, "", "a b", "a\x00b"} {
		for _, of := range []string{"jobs", "dead"} {
			for _, token := range []string{"t", `t" "a`, "", "t\x00"} {
				sum, name := string(x(id).seal(of, token)), fmt.Sprintf("%q %q %q", of, token, id)
				if other, ok := seen[sum]; ok {
					t.Errorf("%s and %s have one seal", name, other)
				}
				seen[sum] = name
			}
		}
	}
	one, other := x("a"), x("a")
	other.operations.key[0] = 1
	if string(one.seal("jobs", "t")) == string(other.seal("jobs", "t")) {
		t.Error("another process has the same seal")
	}
}

// Proves V10, R6: recoveries are counted by class and cause, and their lines are for readers.
func TestRecoveries(t *testing.T) {
	engine := memstore.New()
	before := openShop(t, object.Options{Storage: storage.Options{Engine: engine}}, nil)
	for i := range 3 {
		before.enqueue("thumb", fmt.Sprintf(`{"in": {"name": "x%d", "slow": true}}`, i))
	}
	crashed := engine.Crash(0)
	s := openShop(t, object.Options{Storage: storage.Options{Engine: crashed}}, nil)
	close(s.release)
	s.as("viewer", "GET", "/v1/pools/thumb/tasks/0-3/wait", "", 200, nil)
	var r recoveries
	s.as("viewer", "GET", "/v1/recoveries", "", 200, &r)
	if r.Total != 3 || len(r.Lines) != 0 || fmt.Sprint(r.Groups) != "[{thumb crash 3}]" {
		t.Errorf("%+v", r)
	}
	s.as("reader", "GET", "/v1/recoveries?lines=1&limit=2", "", 200, &r)
	if len(r.Lines) != 2 || r.Lines[1].Task == "" {
		t.Errorf("%+v", r)
	}
	close(before.release)
}
