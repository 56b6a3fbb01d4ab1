package server

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// memory opens a store in memory.
func memory() object.Options { return object.Options{Storage: storage.Options{Engine: memstore.New()}} }

// Proves V10: a verb over HTTP has the effect and the answer of the typed method, for each type of job.
func TestVerbsOfJobs(t *testing.T) {
	s := openShop(t, memory(), nil)
	ctx := t.Context()

	var started continuous.Started
	s.as("caller", "PUT", "/v1/jobs/report/daily%2Feu%3F", `"x"`, 201, &started)
	s.as("caller", "PUT", "/v1/jobs/report/daily%2Feu%3F", `"y"`, 200, &started)
	if state, err := s.reports.State(ctx, s.host, "daily/eu?"); state != "x" || err != nil || started.Created {
		t.Errorf("started: %q, %v, %+v", state, err, started)
	}
	if a := s.as("operator", "POST", "/v1/jobs/report/daily%2Feu%3F/do/pause", "", 204, nil); a.body != "" {
		t.Errorf("an answer without a value: %q", a.body)
	}
	var status continuous.Status
	s.as("reader", "GET", "/v1/jobs/report/daily%2Feu%3F/view/status", "", 200, &status)
	if status.Meta.Status != jobs.Paused {
		t.Errorf("%+v", status)
	}

	s.as("caller", "POST", "/v1/jobs/hook/h/do/add", `{"event": "x", "id": "1"}`, 200, nil)
	if pending, err := s.hooks.Pending(ctx, s.host, "h"); err != nil || len(pending.Events) != 1 {
		t.Errorf("%+v, %v", pending, err)
	}
	if a := s.as("operator", "POST", "/v1/jobs/hook/h/do/clear", "", 200, nil); a.body != "1" {
		t.Errorf("cleared %q", a.body)
	}

	s.as("caller", "PUT", "/v1/jobs/order/o", `"in"`, 201, nil)
	s.as("caller", "POST", "/v1/jobs/order/o/do/signal", `{"name": "approve", "value": 3, "key": "k"}`, 204, nil)
	if a := s.as("reader", "GET", "/v1/jobs/order/o/view/wait", "", 200, nil); a.body != `"`+secret+`"` {
		t.Errorf("the output is %q", a.body)
	}
	entries, err := s.orders.History(ctx, s.host, "o", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var page []workflow.Entry
	s.as("reader", "GET", "/v1/jobs/order/o/view/history?arg="+url.QueryEscape(`{"after": 0, "limit": 1}`), "", 200, &page)
	if len(entries) < 2 || len(page) != 1 {
		t.Errorf("a page of the history has %d entries of %d", len(page), len(entries))
	}
}

// Proves V10: a mistake changes nothing, says so, and has the problem of its kind.
func TestMistakesOfJobs(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.fill()
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		kind                    string
	}{
		{"viewer", "PUT", "/v1/jobs/nothing/a", `"x"`, 404, "unknown-type"},
		{"viewer", "PUT", "/v1/jobs/cart/a", `"x"`, 404, "unknown-type"},
		{"caller", "PUT", "/v1/jobs/nothing/a", `"x"`, 404, "not-found"},
		{"caller", "PUT", "/v1/jobs/cart/a", `"x"`, 404, "not-found"},
		{"caller", "PUT", "/v1/jobs/report/a", `"\ud800"`, 400, "bad-request"},
		{"caller", "PUT", "/v1/jobs/report/a", "\"\xff\"", 400, "bad-request"},
		{"caller", "PUT", "/v1/jobs/thumb/a", `"x"`, 404, "unknown-type"},
		{"caller", "PUT", "/v1/jobs/hook/h", `"x"`, 404, "unknown-verb"},
		{"caller", "PUT", "/v1/jobs/report/new", `7`, 400, "invalid"},
		{"caller", "PUT", "/v1/jobs/report/new", `"a" "b"`, 400, "invalid"},
		{"caller", "PUT", "/v1/jobs/report/new", ``, 400, "invalid"},
		{"caller", "PUT", "/v1/jobs/report/a%00%ff", `"x"`, 400, "bad-name"},
		{"operator", "POST", "/v1/jobs/report/a/do/explode", "", 404, "unknown-verb"},
		{"operator", "POST", "/v1/jobs/report/absent/do/pause", "", 404, "unknown-job"},
		{"operator", "POST", "/v1/jobs/report/c/do/pause", "", 409, "illegal-move"},
		{"operator", "POST", "/v1/jobs/report/a/do/stop", `{"raeson": "x"}`, 400, "invalid"},
		{"operator", "POST", "/v1/jobs/report/a/do/pause", `{"reason": "x"}`, 400, "invalid"},
		{"operator", "POST", "/v1/jobs/order/o/do/retry", "", 409, "illegal-move"},
		{"caller", "POST", "/v1/jobs/order/o/do/signal", `{"name": "other"}`, 400, "invalid"},
		{"caller", "POST", "/v1/jobs/order/f/do/signal", `{"name": "approve", "value": 1}`, 409, "illegal-move"},
		{"reader", "GET", "/v1/jobs/order/f/view/wait", "", 409, "work-failed"},
		{"reader", "GET", "/v1/jobs/order/o/view/explode", "", 404, "unknown-verb"},
		{"reader", "GET", "/v1/jobs/order/o/view/history?arg=%7B", "", 400, "invalid"},
		{"reader", "GET", "/v1/jobs/order/o/view/status?arg=1", "", 400, "invalid"},
		{"viewer", "GET", "/v1/jobs/report/absent", "", 404, "unknown-job"},
		{"viewer", "GET", "/v1/jobs/cart/a", "", 404, "unknown-job"},
		{"viewer", "GET", "/v1/jobs?label=odd", "", 400, "invalid"},
		{"viewer", "GET", "/v1/jobs?limit=1001", "", 400, "invalid"},
		{"viewer", "GET", "/v1/jobs?after=odd", "", 400, "invalid"},
	} {
		if p := s.refused(c.who, c.method, c.path, c.body, c.status, c.kind); p.Outcome != none {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	if _, err := s.reports.Status(t.Context(), s.host, "new"); err == nil {
		t.Error("a refused start has made a job")
	}
	a := s.ask("operator", "POST", "/v1/jobs/report/a/do/pause", "", "Idempotency-Key", "k")
	if p := a.problem(t); p.Status != 400 {
		t.Errorf("a key that the verb does not take: %+v", p)
	}
	if st, err := s.reports.Status(t.Context(), s.host, "a"); err != nil || st.Meta.Status != jobs.Running {
		t.Errorf("after refused verbs: %+v, %v", st, err)
	}
}

// Proves V10, V6: a verb runs for the role or the grant that its table names, and is refused to others
// before the job is read: without the role with 403, without the grant with 404 whether there is
// such a job or not, and with 404 too if they may not know of the job type.
func TestRolesOfVerbs(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.fill()
	allowed := func(who string, role verbs.Role, class, id, verb string) bool {
		p := staff[who]
		if role == verbs.Call {
			return p.MayCall(class, id, verb)
		}
		return p.Role >= roles[role] && p.Sees(id)
	}
	for _, d := range []verbs.Described{s.reports, s.hooks, s.orders} {
		table := d.Verbs()
		for who := range staff {
			for _, id := range []string{"absent", "acme/absent"} {
				path := "/v1/jobs/" + d.Name() + "/" + url.PathEscape(id)
				for _, v := range table.Verbs() {
					if v.Name == "start" || v.Name == "add" {
						continue // it would make the job; see below
					}
					s.checkRole(who, d.Name(), "POST", path+"/do/"+v.Name, v.Role, allowed(who, v.Role, d.Name(), id, v.Name))
				}
				for _, v := range table.Views() {
					s.checkRole(who, d.Name(), "GET", path+"/view/"+v.Name, v.Role, allowed(who, v.Role, d.Name(), id, v.Name))
				}
			}
		}
	}
	for who := range staff {
		for _, id := range []string{"a", "acme/x", "new", "acme/new"} {
			a := s.ask(who, "PUT", "/v1/jobs/report/"+url.PathEscape(id), "7") // refused by its type
			want := 404
			if staff[who].MayCall("report", id, "start") {
				want = 400
			}
			if a.status != want {
				t.Errorf("%s starts %s: %d, want %d", who, id, a.status, want)
			}
		}
	}
}

// checkRole makes a request of a job that does not exist.
func (s *shop) checkRole(who, class, method, path string, role verbs.Role, allowed bool) {
	s.t.Helper()
	p := s.ask(who, method, path, "").problem(s.t)
	knows := staff[who].Role >= auth.Viewer && staff[who].Prefix == "" || staff[who].HasGrant(class)
	refused := p.Type == "forbidden" || p.Type == "not-found"
	if refused == allowed || refused && (p.Type == "forbidden") != (knows && role != verbs.Call && staff[who].Role < roles[role]) {
		s.t.Errorf("%s %s %s for %s: %+v", who, method, path, role, p)
	}
}

// Jobs with ids that no path can have go by the query, with the same answers. Proves V10, V6.
func TestJobsByTheQuery(t *testing.T) {
	s := openShop(t, memory(), nil)
	for _, id := range []string{".", "..", "acme/.", "a?b"} {
		of := "?job=report&id=" + url.QueryEscape(id)
		s.as("caller", "PUT", "/v1/job"+of, `"x"`, 201, nil)
		s.as("caller", "PUT", "/v1/job"+of, `"y"`, 200, nil)
		if state, err := s.reports.State(t.Context(), s.host, id); state != "x" || err != nil {
			t.Errorf("%q: started: %q, %v", id, state, err)
		}
		s.as("operator", "POST", "/v1/job/do/pause"+of, "", 204, nil)
		var found struct{ Meta jobs.Meta }
		s.as("viewer", "GET", "/v1/job"+of, "", 200, &found)
		if found.Meta.Status != jobs.Paused || found.Meta.ID != id {
			t.Errorf("%q: %+v", id, found)
		}
		if a := s.as("viewer", "GET", "/v1/job/why"+of, "", 200, nil); !strings.Contains(a.body, "paused") {
			t.Errorf("%q: why: %s", id, a.body)
		}
		if a := s.as("reader", "GET", "/v1/job/view/state"+of, "", 200, nil); a.body != `"x"` {
			t.Errorf("%q: the state: %s", id, a.body)
		}
		s.refused("viewer", "GET", "/v1/job/view/state"+of, "", 403, "forbidden")
		s.refused("enqueuer", "PUT", "/v1/job"+of, `"x"`, 404, "not-found")
	}
	s.as("acme", "GET", "/v1/job?job=report&id=acme/.", "", 200, nil)
	s.refused("acme", "GET", "/v1/job?job=report&id=.", "", 404, "not-found")
	s.refused("operator", "GET", "/v1/job?id=.", "", 400, "bad-name")
	s.refused("operator", "POST", "/v1/job/do/pause?job=report", "", 400, "invalid")
}

// Proves V6: a principal that may not know of a job type gets one answer for it and for one that there is not,
// and for each verb and view; one with a role, or with a grant for the class, learns what is wrong.
func TestTypesAreHidden(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.srv.config.Auth = people{
		"nobody": {}, "viewer": {Role: auth.Viewer}, "below": {Role: auth.Viewer, Prefix: "acme/"},
		"other":  {Grants: []auth.Grant{{Class: "cart"}}},
		"caller": {Grants: []auth.Grant{{Class: "report", Names: []string{"start"}}, {Class: "thumb", Prefix: "acme/"}}},
	}
	for _, path := range []string{
		"/v1/jobs/report/acme%2Fx/do/pause", "/v1/jobs/report/acme%2Fx/do/start", "/v1/jobs/report/acme%2Fx/do/fly", "/v1/jobs/absent/acme%2Fx/do/pause",
		"/v1/jobs/thumb/acme%2Fx/do/pause", "/v1/pools/thumb/pause", "/v1/pools/thumb/fly", "/v1/pools/absent/pause", "/v1/pools/report/pause",
		"/v1/pools/thumb/tasks", "/v1/pools/absent/tasks", "/v1/pools/thumb/tasks/0-1/cancel", "/v1/pools/thumb/tasks/0-1/fly", "/v1/pools/absent/tasks/0-1/cancel",
	} {
		for _, who := range []string{"nobody", "other", "below"} {
			if p := s.refused(who, "POST", path, "", 404, "not-found"); p != *notFound() {
				t.Errorf("%s %s: %+v", who, path, p)
			}
		}
	}
	for _, path := range []string{"/v1/jobs/report/x/view/state", "/v1/jobs/report/x/view/fly", "/v1/jobs/absent/x/view/state"} {
		s.refused("nobody", "GET", path, "", 404, "not-found")
	}
	s.refused("viewer", "POST", "/v1/jobs/report/x/do/pause", "", 403, "forbidden")
	s.refused("viewer", "POST", "/v1/jobs/report/x/do/fly", "", 404, "unknown-verb")
	s.refused("viewer", "POST", "/v1/pools/absent/pause", "", 404, "unknown-type")
	s.refused("caller", "POST", "/v1/jobs/report/x/do/pause", "", 403, "forbidden")
	s.refused("caller", "POST", "/v1/pools/thumb/fly", "", 404, "unknown-verb")
	s.refused("caller", "POST", "/v1/jobs/absent/x/do/pause", "", 404, "not-found")
}

// Proves V10: below reader no answer has an error, a reason or a value of a user.
func TestViewerSeesNoText(t *testing.T) {
	s := openShop(t, memory(), nil)
	dead := s.fill()
	letter := s.letters("task")[0]
	paths := []string{
		"/v1/jobs", "/v1/jobs?label=failed", "/v1/jobs/report/a", "/v1/jobs/report/c", "/v1/jobs/report/f", "/v1/jobs/order/f", "/v1/jobs/hook/h",
		"/v1/jobs/report/f/why", "/v1/jobs/report/c/why", "/v1/jobs/order/f/why", "/v1/verbs",
		"/v1/pools", "/v1/pools/thumb/stats", "/v1/pools/thumb/tasks", "/v1/pools/thumb/tasks/" + dead, "/v1/pools/thumb/tasks/" + dead + "/why",
		"/v1/pools/thumb/tasks/" + dead + "/wait", "/v1/pools/thumb/tasks/0-2/wait", "/v1/pools/thumb/tasks/0-2",
		"/v1/dead", fmt.Sprintf("/v1/dead/thumb/0/%d", letter.Seq), "/v1/recoveries",
	}
	told := 0
	for _, path := range paths {
		if a := s.as("viewer", "GET", path, "", 200, nil); strings.Contains(a.body, secret) || strings.Contains(a.body, "torn") {
			t.Errorf("%s: %s", path, a.body)
		}
		if a := s.as("reader", "GET", path, "", 200, nil); strings.Contains(a.body, secret) {
			told++
		}
	}
	if told < 14 {
		t.Errorf("a reader sees the text in %d answers alone", told)
	}
	for _, path := range []string{"/v1/dead?error=" + secret, "/v1/dead?reason=p", "/v1/recoveries?lines=1"} {
		s.refused("viewer", "GET", path, "", 403, "forbidden")
		s.as("reader", "GET", path, "", 200, nil)
	}
	for _, view := range []string{"report/a/view/state", "report/a/view/status", "hook/h/view/pending", "order/o/view/history"} {
		s.refused("viewer", "GET", "/v1/jobs/"+view, "", 403, "forbidden")
	}
}

// Proves V10: a field of blank is left out at any depth, and a number stays as exact as it was.
func TestBlank(t *testing.T) {
	x := &exchange{who: staff["viewer"]}
	w := httptest.NewRecorder()
	x.w = w
	in := `{"a":[{"error":"x","n":18446744073709551615},{"b":{"stack":{"c":1},"result":null,"d":"error"}}],"reason":"x"}`
	if err := x.told(json.RawMessage(in)); err != nil || w.Body.String() != `{"a":[{"n":18446744073709551615},{"b":{"d":"error"}}]}`+"\n" {
		t.Error(w.Body, err)
	}
	w = httptest.NewRecorder()
	x.w, x.who = w, staff["reader"]
	if err := x.told(json.RawMessage(in)); err != nil || w.Body.String() != in+"\n" {
		t.Error(w.Body, err)
	}
}

// Proves V10, G2: the list has each job once, page by page, also those that Config.Jobs does not name.
func TestListOfJobs(t *testing.T) {
	s := openShop(t, memory(), func(c *Config) { c.Jobs = c.Jobs[:1] })
	for i := range 5 {
		s.as("caller", "PUT", fmt.Sprint("/v1/jobs/report/r", i), `"x"`, 201, nil)
	}
	if _, err := s.hooks.Add(t.Context(), s.host, "h", "x"); err != nil {
		t.Fatal(err)
	}
	var all []string
	for path, pages := "/v1/jobs?limit=2", 0; path != ""; pages++ {
		var page jobadmin.JobPage
		s.as("viewer", "GET", path, "", 200, &page)
		for _, j := range page.Jobs {
			all = append(all, j.ID.String())
		}
		if path = ""; page.Next != "" {
			path = "/v1/jobs?limit=2&after=" + page.Next
		}
		if len(page.Jobs) > 2 || pages > 9 {
			t.Fatalf("page %d has %d jobs", pages, len(page.Jobs))
		}
	}
	if got := strings.Join(all, " "); got != "hook/h report/r0 report/r1 report/r2 report/r3 report/r4" {
		t.Error(got)
	}
	if a := s.as("viewer", "GET", "/v1/jobs?class=report&prefix=none&limit=1000", "", 200, nil); a.body != `{"jobs":[]}`+"\n" {
		t.Error(a.body)
	}
	s.refused("admin", "POST", "/v1/jobs/hook/h/do/clear", "", 404, "unknown-type")
	s.as("viewer", "GET", "/v1/jobs/hook/h", "", 200, nil)
}

// Proves V6: a principal with a prefix sees and operates its own jobs alone.
func TestPrefixOfJobs(t *testing.T) {
	s := openShop(t, memory(), nil)
	dead := s.fill()
	s.as("caller", "PUT", "/v1/jobs/order/acme%2Fo", `"x"`, 201, nil)
	s.as("acme", "GET", "/v1/jobs/report/acme%2Fx", "", 200, nil)
	s.as("acme", "GET", "/v1/jobs/report/acme%2Fx/why", "", 200, nil)
	s.as("acme", "POST", "/v1/jobs/report/acme%2Fx/do/pause", "", 204, nil)
	s.as("acme", "GET", "/v1/jobs/report/acme%2Fx/view/state", "", 200, nil)
	for _, path := range []string{
		"/v1/jobs", "/v1/verbs", "/v1/jobs/report/a", "/v1/jobs/report/a/why", "/v1/jobs/report/a/view/state", "/v1/jobs/report/acme", "/v1/pools",
		"/v1/pools/thumb/stats", "/v1/pools/thumb/tasks", "/v1/pools/thumb/tasks/" + dead, "/v1/pools/thumb/tasks/" + dead + "/why",
		"/v1/pools/thumb/tasks/" + dead + "/wait", "/v1/dead", "/v1/dead/thumb/0/1", "/v1/recoveries",
	} {
		s.refused("acme", "GET", path, "", 404, "not-found")
	}
	for _, path := range []string{
		"/v1/jobs/report/a/do/pause", "/v1/jobs/report/acme/do/pause", "/v1/pools/thumb/pause", "/v1/pools/thumb/tasks/" + dead + "/replay",
		"/v1/pools/thumb/tasks", "/v1/pools/thumb/tasks:batch", "/v1/pools/print/claim", "/v1/dead/replay", "/v1/dead/discard",
		"/v1/jobs:count", "/v1/jobs:run", "/v1/dead:count", "/v1/dead:run",
	} {
		s.refused("acme", "POST", path, "", 404, "not-found")
	}
}

// Proves V6: an answer of why names no object that the principal's prefix hides.
func TestWhyHidesOtherNames(t *testing.T) {
	own, other := storage.ID{Class: "order", Name: "acme/1"}, storage.ID{Class: "order", Name: "globex/1"}
	child := why.Answer{ID: other, Code: why.TurnRunning, Name: "globex", Error: "globex"}
	a := why.Answer{
		ID: own, Code: why.WaitsForChild, Name: "order/globex/1", Because: []why.Answer{child},
		Also: []why.Answer{{ID: own, Code: why.DeadlockRefused, Name: "order/globex/2", Error: "globex waits"}, {ID: own, Code: why.TurnWaits, Name: "order/acme/2"},
			{ID: own, Code: why.DeadlockRefused, Name: "order/acme/2", Error: "order/acme/1 -> order/globex/3 -> order/acme/1"}},
	}
	x := &exchange{who: staff["acme"]}
	raw, err := json.Marshal(x.hide(a))
	if text := string(raw); err != nil || strings.Contains(text, "globex") || strings.Count(text, another) != 3 || !strings.Contains(text, "acme/2") {
		t.Errorf("%s, %v", raw, err)
	}
	if a.Because[0].Name != "globex" {
		t.Error("the answer itself has changed")
	}
	x.who = staff["admin"]
	if raw, _ := json.Marshal(x.hide(a)); strings.Contains(string(raw), another) {
		t.Errorf("without a prefix: %s", raw)
	}
}

// Proves V1: the list of verbs has all that Config.Jobs names, as the tables have it.
func TestListOfVerbs(t *testing.T) {
	s := openShop(t, memory(), func(c *Config) { c.Jobs = c.Jobs[:2] })
	var list tableList
	s.as("viewer", "GET", "/v1/verbs", "", 200, &list)
	if len(list.Types) != 2 || list.Types[0].Class != "hook" || list.Types[1].Kind != "continuous" {
		t.Fatalf("%+v", list)
	}
	if got, want := fmt.Sprint(list.Types[1].Verbs, list.Types[1].Views), fmt.Sprint(s.reports.Verbs().Verbs(), s.reports.Verbs().Views()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
