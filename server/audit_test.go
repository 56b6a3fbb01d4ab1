package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// brief is an entry without its times and addresses.
func (l auditLine) brief() string {
	text := fmt.Sprintf("%s %s %s/%s", l.Who, l.Verb, l.Class, l.Object)
	if l.Part != "" {
		text += " " + l.Part
	}
	if l.DryRun {
		text += " dry"
	}
	if text += " " + l.Outcome; l.Problem != "" {
		text += ": " + l.Problem
	}
	if l.Count != 0 {
		text += fmt.Sprint(" ", l.Count)
	}
	return text
}

func briefs(lines []auditLine) (all []string) {
	for _, l := range lines {
		all = append(all, l.brief())
	}
	return all
}

// audit are the entries of a query.
func (s *shop) audit(query string) (page auditPage) {
	s.t.Helper()
	s.as("admin", "GET", "/v1/audit"+query, "", 200, &page)
	return page
}

// noted waits until the audit of a host has n events of a kind.
func noted(t *testing.T, h *object.Host, kind string, n int) {
	t.Helper()
	for e, err := range h.Watch(t.Context(), storage.ID{Class: auditClass, Name: today(h)}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == kind {
			n--
		}
		if n == 0 {
			return
		}
	}
}

// Proves V20: each verb of an operator or an admin has one entry, with principal, address, target and outcome, also one
// that is refused by its job; verbs of programs and calls have none.
func TestAudit(t *testing.T) {
	s := openShop(t, memory(), nil)
	dead := s.fill()
	before := len(s.audit("").Entries)
	s.as("operator", "POST", "/v1/jobs/report/a/do/pause", "", 204, nil)
	s.refused("operator", "POST", "/v1/jobs/report/nothing/do/pause", "", 404, "unknown-job")
	s.as("operator", "POST", "/v1/pools/print/pause", "", 204, nil)
	s.as("operator", "POST", "/v1/pools/thumb/tasks/"+dead+"/replay", "", 200, nil)
	s.as("operator", "POST", "/v1/objects/cart/x/wake", "", 204, nil)
	s.as("admin", "DELETE", "/v1/objects/cart/x", "", 204, nil)
	letter := s.letters("workflow")[0]
	s.as("operator", "POST", "/v1/dead/discard", naming(letter, ""), 204, nil)
	s.as("caller", "PUT", "/v1/jobs/report/new", `"x"`, 201, nil)
	s.as("caller", "POST", "/v1/jobs/hook/h/do/add", `{"event": "x"}`, 200, nil)
	s.enqueue("print", `{"in": "x"}`)
	token := s.count("operator", "/v1/jobs:count", `{"verb": "resume", "class": "report", "label": "paused"}`, 1)
	s.as("operator", "POST", "/v1/jobs:run", token, 200, nil)
	s.refused("operator", "POST", "/v1/jobs:run", token, 404, "unknown-token")
	s.count("operator", "/v1/dead:count", `{"do": "replay", "class": "none"}`, 0)

	want := []string{
		"operator pause report/a done", "operator pause report/nothing none: unknown-job", "operator pause print/ done",
		"operator replay thumb/ " + dead + " done", "operator wake cart/x done", "admin delete cart/x done",
		fmt.Sprintf("operator discard order/f %d done", letter.Seq),
		"operator resume report/ dry done 1", "operator resume report/ done 1", "operator resume report/ none: unknown-token", "operator replay / dry done",
	}
	all := s.audit("")
	if got := briefs(all.Entries[before:]); !slices.Equal(got, want) {
		t.Errorf("V20: the audit has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, l := range all.Entries {
		if !strings.HasPrefix(l.From, "127.0.0.1:") || l.At.IsZero() || strings.Contains(string(l.Filter), secret) {
			t.Errorf("V20: %+v", l)
		}
	}
	if f := string(all.Entries[len(all.Entries)-1].Filter); f != `{"class":"none"}` {
		t.Errorf("V20: the filter is %s", f)
	}

	if got := briefs(s.audit("?who=admin&verb=delete").Entries); !slices.Equal(got, want[5:6]) {
		t.Errorf("V20: of one principal and verb: %q", got)
	}
	var paged []string
	for page := s.audit("?limit=1"); ; page = s.audit("?limit=1&after=" + page.Next) {
		if paged = append(paged, briefs(page.Entries)...); page.Next == "" {
			break
		}
	}
	if !slices.Equal(paged, briefs(all.Entries)) {
		t.Errorf("V20: in pages: %q", paged)
	}
	if got := s.audit("?day=2001-01-01"); len(got.Entries) != 0 || got.Day != "2001-01-01" {
		t.Errorf("V20: of another day: %+v", got)
	}
	for _, query := range []string{"?day=2001-1-1", "?day=x", "?after=x", "?limit=1001"} {
		if a := s.ask("admin", "GET", "/v1/audit"+query, ""); a.status != 400 {
			t.Errorf("V20: %s: %d %s", query, a.status, a.body)
		}
	}
	s.refused("operator", "GET", "/v1/audit", "", 403, "forbidden")
}

// Proves V20: the page of the audit shows what the route shows, and only to a principal that may see it.
func TestPageOfTheAudit(t *testing.T) {
	s := pageShop(t)
	s.as("admin", "DELETE", "/v1/objects/cart/x", "", 204, nil)
	s.sees("admin", "/ui/audit", []string{"delete", "cart/x", "done", "Audit"}, nil)
	s.sees("admin", "/ui/audit?verb=wake", []string{"There is none here"}, []string{"cart/x"})
	s.sees("admin", "/ui/audit?day=2001-01-01", []string{"Audit of 2001-01-01", "There is none here"}, []string{"cart/x"})
	s.sees("operator", "/ui/overview", []string{"Recoveries"}, []string{"Audit"})
	if a := s.ask("operator", "GET", "/ui/audit", ""); a.status != 403 {
		t.Errorf("V20: an operator sees %d", a.status)
	}
}

// Proves V20: the generic routes show an admin nothing of the audit, and change nothing of it.
func TestAuditIsOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, memory(), nil)
		s.as("admin", "POST", "/v1/objects/cart/x/wake", "", 204, nil)
		day := today(s.host)
		for _, route := range []string{"DELETE /v1/objects/%s", "POST /v1/objects/%s/wake", "GET /v1/objects/%s/keys", "GET /v1/objects/%s/events"} {
			method, path, _ := strings.Cut(fmt.Sprintf(route, auditClass+"/"+day), " ")
			if a := s.ask("admin", method, path, ""); a.status != 404 {
				t.Errorf("V20: %s %s: %d %s", method, path, a.status, a.body)
			}
		}
		for _, path := range []string{"/v1/classes", "/v1/objects/" + auditClass + "/" + day, "/v1/events/" + auditClass} {
			if a := s.ask("admin", "GET", path, ""); strings.Contains(a.body, "insecure") || strings.Contains(a.body, "127.0.0.1") || path == "/v1/classes" && strings.Contains(a.body, auditClass) {
				t.Errorf("V20: %s: %d %s", path, a.status, a.body)
			}
		}
		if got := briefs(s.audit("").Entries); !slices.Equal(got, []string{"admin wake cart/x done"}) {
			t.Errorf("V20: %q", got)
		}
	})
}

// Proves V20: a verb without an outcome in the audit is unknown, also on the last page, and its outcome is found on
// the pages before.
func TestAuditOfAVerbThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, memory(), nil)
		day := today(s.host)
		for _, e := range []auditEvent{
			{auditBegun, auditEntry{ID: "1", Verb: "drain"}}, {auditBegun, auditEntry{ID: "2", Verb: "delete"}}, {auditNoted, auditEntry{Verb: "sign in", Outcome: done}},
			{auditEnded, auditEntry{ID: "1", Outcome: "none", Problem: "no-space"}}, {auditEnded, auditEntry{ID: "of another page", Outcome: done}},
		} {
			if err := s.srv.writeAudit(t.Context(), day, e); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{" drain / none: no-space", " delete / unknown", " sign in / done"}
		if got := briefs(s.audit("").Entries); !slices.Equal(got, want) {
			t.Errorf("V20: %q", got)
		}
		if got := briefs(s.audit("?limit=1").Entries); !slices.Equal(got, want[:1]) {
			t.Errorf("V20: on a page alone: %q", got)
		}
	})
}

// Proves V20: sign-ins and sign-outs have an entry with the principal of the token.
func TestAuditOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, tokens, token, text := signing(t, nil)
		a := f.ask("", "POST", "/signin", "token="+text, "Content-Type", asForm)
		f.ask("", "POST", "/ui/signin", "token="+text, "Content-Type", asForm)
		cookie := a.cookie(t)
		f.ask("", "POST", "/signout", "", "Cookie", cookie.Name+"="+cookie.Value)
		f.ask("", "POST", "/signout", "") // of no session
		_, boss, err := tokens.Add(auth.Token{Name: "boss", Role: auth.Admin})
		if err != nil {
			t.Fatal(err)
		}
		s := &shop{fixture: f}
		noted(t, f.host, auditNoted, 4)
		var page auditPage
		s.as(boss, "GET", "/v1/audit", "", 200, &page)
		who := token.ID + " "
		if got := briefs(page.Entries); !slices.Equal(got, []string{who + "sign in / done", who + "sign in / done", who + "sign out / done", " tokens / done 1"}) || page.Entries[0].Name != "ann" {
			t.Errorf("V20: %q", got)
		}
	})
}

// Proves V20: tokens that are added, revoked or edited have an entry with their ids when the server sees it, and no
// secret. A use of a token, and a file that was only written anew, have none.
func TestAuditOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, tokens, ann, text := signing(t, nil)
		if _, err := New(f.host, Config{Auth: tokens}); err != nil { // a second Server of the host hears of each change too
			t.Fatal(err)
		}
		f.ask("", "GET", "/v1/viewed", "", "Authorization", "Bearer "+text)
		if err := tokens.Close(); err != nil { // stores the use
			t.Fatal(err)
		}
		boss, bossText, err := tokens.Add(auth.Token{Name: "boss", Role: auth.Admin})
		if err != nil {
			t.Fatal(err)
		}
		noted(t, f.host, auditNoted, 1)
		if err := tokens.Revoke(ann.ID); err != nil {
			t.Fatal(err)
		}
		noted(t, f.host, auditNoted, 2)
		s := &shop{fixture: f}
		a := s.as(bossText, "GET", "/v1/audit?verb=tokens", "", 200, nil)
		var page auditPage
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Entries) != 2 {
			t.Fatalf("V20: %v: %s", err, a.body)
		}
		one, two := page.Entries[0], page.Entries[1]
		if !slices.Equal(one.Added, []string{boss.ID}) || len(one.Revoked)+len(one.Edited) > 0 || !slices.Equal(two.Revoked, []string{ann.ID}) || len(two.Added)+len(two.Edited) > 0 {
			t.Errorf("V20: %s", a.body)
		}
		if strings.Contains(a.body, text) || strings.Contains(a.body, bossText) || strings.Contains(a.body, "sha256") {
			t.Errorf("V20: a secret: %s", a.body)
		}
		if b := s.as(bossText, "GET", "/ui/audit", "", 200, nil).body; !strings.Contains(b, "added "+boss.ID) || !strings.Contains(b, "revoked "+ann.ID) {
			t.Errorf("V20: the page has %s", b)
		}
	})
}

// Proves V20: refusals have entries, with the route and the target; a request without credentials, and one for something
// that does not exist, are none.
func TestAuditOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, memory(), nil)
		s.ask("", "GET", "/v1/jobs", "")
		s.ask("viewer", "GET", "/v1/objects/none/x/keys?wat=1", "")
		s.refused("admin", "GET", "/v1/jobs/report/none", "", 404, "unknown-job")
		s.refused("wrong", "GET", "/v1/jobs", "", 401, "bad-credentials")
		s.refused("viewer", "POST", "/v1/jobs/report/a/do/pause", "", 403, "forbidden")
		s.refused("acme", "GET", "/v1/jobs", "", 404, "not-found")
		s.refused("acme", "GET", "/v1/objects/cart/b", "", 404, "not-found")
		s.refused("enqueuer", "PUT", "/v1/jobs/report/a", `"x"`, 404, "not-found")
		noted(t, s.host, auditNoted, 6)
		var got []string
		for _, l := range s.audit("").Entries {
			got = append(got, l.Route+" "+l.brief())
		}
		want := []string{
			"GET /v1/objects/{class}/{name}/keys viewer refused none/x none: forbidden",
			"GET /v1/jobs  refused / none: bad-credentials",
			"POST /v1/jobs/{job}/{id}/do/{verb} viewer refused report/a pause none: forbidden",
			"GET /v1/jobs acme refused / none: not-found",
			"GET /v1/objects/{class}/{name} acme refused cart/b none: not-found",
			"PUT /v1/jobs/{job}/{id} enqueuer refused report/a none: not-found",
		}
		if !slices.Equal(got, want) {
			t.Errorf("V20: the audit has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// Proves V20: at most ten refusals in a second have an entry each, and the others are one entry, written a second
// later, or at once when the server ends.
func TestRefusalsAreBounded(t *testing.T) {
	var r refusals
	at := time.Unix(1000, 0)
	for i := range 13 {
		if begin := r.add(auditEntry{}, at); begin != (i == 0) {
			t.Errorf("V20: the writing begins at refusal %d: %v", i, begin)
		}
	}
	if queue, counted, wait := r.take(at, false); len(queue) != 10 || counted != 0 || wait != 0 {
		t.Errorf("V20: %d entries, %d counted, wait %v", len(queue), counted, wait)
	}
	if queue, counted, wait := r.take(at.Add(time.Millisecond), false); len(queue) != 0 || counted != 0 || wait != 999*time.Millisecond {
		t.Errorf("V20: then %d entries, %d counted, wait %v", len(queue), counted, wait)
	}
	ending := refusals{began: at, counted: 3, writing: true}
	if _, counted, _ := ending.take(at, true); counted != 3 {
		t.Errorf("V20: at the end of the server %d are counted", counted)
	}
	if _, counted, wait := r.take(at.Add(time.Second), false); counted != 3 || wait != 0 {
		t.Errorf("V20: a second later %d are counted, wait %v", counted, wait)
	}
	if queue, counted, wait := r.take(at.Add(time.Second), false); len(queue) != 0 || counted != 0 || wait != 0 || r.writing {
		t.Errorf("V20: the writing does not end: %d, %d, %v", len(queue), counted, wait)
	}
	if !r.add(auditEntry{}, at.Add(time.Second)) {
		t.Error("V20: the writing does not begin again")
	}
	for i := range 200 { // a disk that stands still
		r.add(auditEntry{}, at.Add(time.Duration(i+2)*time.Second))
	}
	if queue, _, _ := r.take(at.Add(time.Hour), false); len(queue) != 10*refusalsEach {
		t.Errorf("V5: %d entries wait", len(queue))
	}
}

// Proves V20: on a full disk, and with a store that has failed, a verb is refused before it runs, because its entry cannot
// be written.
func TestAuditWithoutSpace(t *testing.T) {
	disk := fulldisk.New()
	class := cartClass(newGates())
	f := startOn(t, object.Options{Dir: "data", Storage: storage.Options{MinFreeBytes: 50 << 20, Pebble: pebblestore.Options{FS: disk}}}, exposeCarts(class), class)
	f.call("a", "add", "1")
	disk.SetFull(true)
	for range 5 {
		f.call("filler", "fill", "1048576")
	}
	a := f.ask("admin", "DELETE", "/v1/objects/cart/a", "")
	if p := a.problem(t); a.status != 507 || p.Outcome != none || !p.Retryable || !strings.Contains(p.Detail, "audit") {
		t.Errorf("V20: without space: %+v", p)
	}
	if a := f.call("a", "get", ""); a.body != "1" {
		t.Errorf("V20: the verb has run: %+v", a)
	}
	disk.SetFull(false)
	if a := f.ask("admin", "DELETE", "/v1/objects/cart/a", ""); a.status != 204 {
		t.Errorf("V20: with space again: %d %s", a.status, a.body)
	}
	for err, status := range map[error]int{object.ErrStorage: 503, object.ErrShutdown: 503, object.ErrNoSpace: 507, object.ErrUnknown: 504} {
		if p := problemOf(&auditError{fmt.Errorf("holdfast.audit/x: %w", err)}); p.Status != status || p.Outcome != none || !strings.Contains(p.Detail, "has not run") {
			t.Errorf("V20: %v: %+v", err, p)
		}
	}
}

// Proves V20: an opening that recovers executions has one entry with counts and names, and one that recovers none has none.
func TestAuditOfRecoveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memstore.New()
		s := openShop(t, object.Options{Storage: storage.Options{Engine: engine}}, nil)
		s.as("caller", "POST", "/v1/pools/thumb/tasks", `{"in": {"name": "cat", "slow": true}}`, 201, nil)
		for !slices.Contains(briefTasks(s), "running") {
		}
		again := s.crash(engine)()
		close(s.release)
		close(again.release)
		noted(t, again.host, auditNoted, 1)
		page := again.audit("?verb=recovery")
		if len(page.Entries) != 1 || page.Entries[0].Count != 1 || !slices.Equal(page.Entries[0].Recovered, []string{"thumb/0"}) {
			t.Fatalf("V20: %+v", page)
		}
		if r := page.Entries[0].Recoveries; len(r) != 1 || r[0].Class != "thumb" || r[0].Cause != "crash" || r[0].Count != 1 || r[0].Attempts != 1 || r[0].Action == "" {
			t.Errorf("V20: %+v", r)
		}
		var many []object.Recovery
		for i := range 150 {
			many = append(many, object.Recovery{ID: storage.ID{Class: "b", Name: fmt.Sprint(i)}, Cause: []string{"crash", "stale"}[i%2], Action: "re-run", Attempt: 2})
		}
		if e := recoveryEntry(many, 12_000); e.Count != 12_000 || len(e.Recovered) != 100 || len(e.Recoveries) != 2 || e.Recoveries[0] != (auditRecoveries{"b", "crash", "re-run", 75, 150}) {
			t.Errorf("V20: %+v", e)
		}
		if got := s.audit("?verb=recovery").Entries; len(got) != 0 {
			t.Errorf("V20: the first opening, of two seconds, has an entry of recoveries: %+v", got)
		}
	})
}

// briefTasks are the states of the tasks of the pool thumb.
func briefTasks(s *shop) (all []string) {
	var page listedTasks
	s.as("viewer", "GET", "/v1/pools/thumb/tasks", "", 200, &page)
	for _, task := range page.Tasks {
		all = append(all, string(task.State.String()))
	}
	return all
}

// Proves V20 through crashes: a verb has not run without an entry of it, and one that was answered has its outcome. An
// entry without an outcome says unknown.
func TestCrashAudit(t *testing.T) {
	class := object.Define("cart", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	fill := object.Handle(class, "fill", func(st *object.State, ctx context.Context, _ struct{}) (bool, error) {
		return true, st.Storage().PutBytes(ctx, "k", []byte("v"))
	})
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(Definitions(class)...)
		id := storage.ID{Class: "cart", Name: "a"}
		s.OK(s.Retry(func() error {
			_, err := fill.Call(s.Context(), s, id.Name, struct{}{})
			return err
		}))
		answered, days := 0, map[string]bool{}
		look := func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, id)
			if err != nil {
				return err
			}
			begun, ended := 0, 0
			days[today(h)] = true
			for day := range days {
				events, err := h.Events(ctx, storage.ID{Class: auditClass, Name: day}, 0, 1000)
				if err != nil {
					return err
				}
				for _, e := range events {
					switch {
					case e.Kind == auditBegun:
						begun++
					case e.Kind == auditEnded:
						ended++
					}
				}
			}
			s.Always("V20: a verb that has run has an entry", in.Exists || begun > 0, in.Exists, begun)
			s.Always("V20: each outcome is of an entry", ended <= begun, begun, ended)
			s.Always("V20: a verb that was answered has its outcome", ended >= answered, answered, ended)
			return nil
		}
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				if err := look(ctx, h); err != nil {
					return err
				}
				srv, err := New(h, Config{Auth: everyone})
				if err != nil {
					return err
				}
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "DELETE", "http://localhost/v1/objects/cart/a", nil)
				r.Header.Set("Authorization", "Bearer admin")
				if srv.ServeHTTP(w, r); w.Code != 204 {
					return errors.New(w.Body.String())
				}
				answered++
				return nil
			})
		}))
		s.OK(s.Retry(func() error { return s.WithHost(look) }))
	}, harness.NoLostAck)
}
