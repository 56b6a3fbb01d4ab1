package server

import (
	"context"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

// pageShop is a shop with principals that see pages and have grants too.
func pageShop(t *testing.T) *shop {
	t.Helper()
	return openShop(t, memory(), func(c *Config) {
		all := maps.Clone(staff)
		all["boss"] = auth.Principal{Role: auth.Operator, Grants: staff["caller"].Grants}
		c.Auth = all
	})
}

// pageText is the text of a page without markup.
func pageText(body string) string {
	return html.UnescapeString(strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " ")), " "))
}

// sees gets a page and wants texts on it, and none of others.
func (f *fixture) sees(who, at string, want, not []string) string {
	f.t.Helper()
	a := f.visit(who, at)
	if a.status != 200 {
		f.t.Fatalf("%s gets %s: %d %s", who, at, a.status, a.body)
	}
	seen := pageText(a.body)
	for _, w := range want {
		if !strings.Contains(seen, w) {
			f.t.Errorf("%s does not see %q on %s: %s", who, w, at, seen)
		}
	}
	for _, w := range not {
		if strings.Contains(seen, w) {
			f.t.Errorf("%s sees %q on %s: %s", who, w, at, seen)
		}
	}
	return a.body
}

// posts sends a form and wants to be sent to a page.
func (f *fixture) posts(who, at string, form url.Values, to string) {
	f.t.Helper()
	a := f.ask(who, "POST", at, form.Encode(), "Content-Type", asForm)
	if a.status != 303 || a.header.Get("Location") != to {
		f.t.Fatalf("%s posts %s: %d %q %s, want 303 to %s", who, at, a.status, a.header.Get("Location"), a.body, to)
	}
}

// Proves V13: all pages of jobs, pools, tasks and dead letters that the links lead to are there for each role, and
// none shows below reader an error, a reason or a value.
func TestPagesOfAllWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pageShop(t)
		s.fill()
		letter := fmt.Sprintf("/ui/letter?class=order&name=f&seq=%d", s.letters("workflow")[0].Seq)
		for _, who := range []string{"viewer", "reader", "operator", "admin"} {
			seen := s.crawl(who, "/ui/jobs")
			for _, at := range []string{
				"/ui/job?class=report&name=f", "/ui/job?class=order&name=o", "/ui/job?class=hook&name=h", "/ui/job?class=report&name=acme%2Fx",
				"/ui/pools", "/ui/pool?pool=thumb", "/ui/pool?pool=thumb&queue=", "/ui/task?pool=thumb&task=0-1", "/ui/dead", letter,
			} {
				if seen[at] == "" && seen[strings.TrimSuffix(at, "&queue=")] == "" {
					t.Errorf("%s finds no way to %s", who, at)
				}
			}
			for at, body := range seen {
				if who == "viewer" && strings.Contains(body, secret) {
					t.Errorf("V13: a viewer reads a text on %s: %s", at, pageText(body))
				}
				for _, m := range formActions.FindAllStringSubmatch(body, -1) {
					if (who == "viewer" || who == "reader") && m[1] != "signout" {
						t.Errorf("V13: a %s has the form %s on %s", who, m[1], at)
					}
				}
			}
		}
	})
}

// choices are the texts of the options of a field on a page.
func choices(page, field string) (all []string) {
	_, rest, _ := strings.Cut(page, `<select name="`+field+`">`)
	list, _, _ := strings.Cut(rest, "</select>")
	for _, o := range regexp.MustCompile(`<option[^>]*>([^<]*)</option>`).FindAllStringSubmatch(list, -1) {
		all = append(all, html.UnescapeString(o[1]))
	}
	return all
}

// Each of the pages of jobs shows statuses, errors and reasons, and a list keeps to its filter.
func TestPageOfJobs(t *testing.T) {
	s := pageShop(t)
	s.fill()
	s.happened(s.orders.ID("o"), workflow.EventSuspended)
	s.sees("viewer", "/ui/jobs", []string{"report/a", "report/f", "hook/h", "order/o", "failed", "waiting", "1 stopped"}, []string{"running", "thumb/0"})
	body := s.sees("viewer", "/ui/jobs?label=failed", []string{"report/f", "order/f"}, []string{"report/a", "order/o", "There is none here"})
	if labels := choices(body, "label"); !slices.Equal(labels, []string{"all", "failed", "stopped"}) {
		t.Errorf("the filter has the labels %q", labels)
	}
	body = s.sees("viewer", "/ui/jobs?label=stuck", []string{"There is none here"}, []string{"report/f"})
	if labels := choices(body, "label"); !slices.Equal(labels, []string{"all", "failed", "stopped", "stuck"}) {
		t.Errorf("with its own label the filter has the labels %q", labels)
	}
	s.sees("viewer", "/ui/jobs?class=order&prefix=o", []string{"order/o"}, []string{"order/f", "report/a"})
	s.sees("reader", "/ui/jobs?label=failed", []string{"no paper: " + secret}, nil)
	page := s.sees("viewer", "/ui/jobs?class=report&limit=2", []string{"report/a"}, []string{"report/f"})
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page)
	if next == nil {
		t.Fatal("the list does not go on")
	}
	s.sees("viewer", resolve(t, "/ui/jobs", html.UnescapeString(next[1])), []string{"report/b"}, []string{"report/a"})
	s.sees("viewer", "/ui/job?class=report&name=f", []string{"It has ended as failed", "Executions of this run", "Newest events", "Now failed"}, nil)
	s.sees("reader", "/ui/job?class=report&name=c", []string{"Now stopped", "Reason " + secret}, nil)
	s.sees("reader", "/ui/view?class=report&name=a&view=state", []string{secret}, nil)
	for at, kind := range map[string]string{
		"/ui/job?class=report&name=none": "unknown-job", "/ui/job?class=cart&name=x": "unknown-job", "/ui/jobs?label=wat": "invalid",
		"/ui/view?class=order&name=o&view=wait": "bad-request", "/ui/view?class=order&name=o&view=wat": "unknown-verb",
		"/ui/ask?class=report&name=a&verb=start": "not-found",
	} {
		if a := s.ask("reader", "GET", at, ""); a.status < 400 || a.status >= 500 || pageProblem(t, a) != kind {
			t.Errorf("%s: %d %s, want %s", at, a.status, a.body, kind)
		}
	}
	s.sees("viewer", "/ui/go?q=order/o", []string{"order/o", "Kind workflow"}, nil)
	s.sees("viewer", "/ui/go?q=thumb/0-1", []string{"Task 0-1 of thumb"}, nil)
	s.sees("viewer", "/ui/go?q=thumb/0", []string{"thumb/0", "Stored yes"}, nil)
}

// A job of a type that Config.Jobs does not name is shown, and no role can operate it.
func TestPageOfAJobThatIsNotNamed(t *testing.T) {
	reports := continuous.New(continuous.Config[string]{Name: "report", StartLater: true, Run: func(context.Context, *continuous.Run[string]) error { return nil }})
	f := start(t, nil, reports)
	if _, err := reports.Start(t.Context(), f.host, "a", ""); err != nil {
		t.Fatal(err)
	}
	f.sees("admin", "/ui/jobs", []string{"report/a"}, nil)
	if body := f.sees("admin", "/ui/job?class=report&name=a", []string{"Now waiting"}, nil); strings.Contains(body, "verb=") || strings.Contains(body, "view=") {
		t.Errorf("it has buttons or views: %s", body)
	}
	for _, at := range []string{"/ui/do?class=report&name=a&verb=pause", "/ui/dopool?pool=report&verb=pause"} {
		if a := f.ask("admin", "POST", at, ""); a.status != 404 || pageProblem(t, a) != "unknown-type" {
			t.Errorf("%s: %d %s", at, a.status, a.body)
		}
	}
}

// Proves V13: the buttons of a job are those of its role and its grants; a form runs the verb, leads back, and is
// refused as the request of the API is.
func TestVerbsOnPages(t *testing.T) {
	s := pageShop(t)
	s.fill()
	const job = "/ui/job?class=report&name=a"
	do := func(verb string) string { return "/ui/do?class=report&name=a&verb=" + verb }
	body := html.UnescapeString(s.ask("operator", "GET", job, "").body)
	for _, has := range []string{`action="do?class=report&name=a&verb=pause"`, `action="do?class=report&name=a&verb=trigger"`, `href="ask?class=report&name=a&verb=terminate"`, `href="ask?class=report&name=a&verb=stop"`} {
		if !strings.Contains(body, has) {
			t.Errorf("an operator has no %s", has)
		}
	}
	for _, not := range []string{"verb=start", `action="do?class=report&name=a&verb=terminate"`} {
		if strings.Contains(body, not) {
			t.Errorf("an operator has %s", not)
		}
	}
	for _, who := range []string{"viewer", "reader"} {
		if body := s.ask(who, "GET", job, "").body; strings.Contains(body, "verb=") {
			t.Errorf("V13: a %s has a button: %s", who, body)
		}
		for _, at := range []string{do("pause"), do("terminate"), "/ui/dopool?pool=thumb&verb=pause", "/ui/dopool?pool=thumb&task=0-1&verb=replay", "/ui/replay?class=order&name=f&seq=1", "/ui/discard?class=order&name=f&seq=1", "/ui/bulk?do=discard"} {
			if a := s.ask(who, "POST", at, "", "Content-Type", asForm); a.status != 403 || pageProblem(t, a) != forbidden {
				t.Errorf("V13: a %s posts %s: %d %s", who, at, a.status, a.body)
			}
		}
	}
	if a := s.ask("operator", "POST", do("pause"), "", "Content-Type", asForm, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("V13: a form of another site: %d", a.status)
	}
	s.posts("operator", do("pause"), nil, "job?class=report&name=a")
	s.sees("viewer", job, []string{"Now paused"}, nil)
	s.posts("operator", do("resume"), nil, "job?class=report&name=a")
	s.sees("viewer", job, []string{"Now waiting"}, []string{"Now paused"})
	s.sees("operator", "/ui/ask?class=report&name=a&verb=stop", []string{"It will end the job", "cannot be undone", "reason"}, nil)
	s.posts("operator", do("stop"), url.Values{"arg.reason": {"<b>enough"}}, "job?class=report&name=a")
	s.sees("reader", job, []string{"Now stopped", "Reason <b>enough"}, nil)
	if a := s.ask("operator", "POST", do("pause"), "", "Content-Type", asForm); a.status != 409 || pageProblem(t, a) != "illegal-move" {
		t.Errorf("a pause of a stopped job: %d %s", a.status, a.body)
	}
	s.posts("operator", do("terminate"), nil, "jobs?class=report")
	s.refused("viewer", "GET", "/v1/jobs/report/a", "", 404, "unknown-job")
}

// The page of a run shows the signal that it waits for, its steps and its variables, and sends it a signal once.
func TestPageOfWorkflow(t *testing.T) {
	s := pageShop(t)
	s.as("caller", "PUT", "/v1/jobs/order/o", `"x"`, 201, nil)
	s.happened(s.orders.ID("o"), workflow.EventSuspended)
	const job = "/ui/job?class=order&name=o"
	s.sees("viewer", job, []string{"approve"}, []string{secret, "Waits for signal", "pay"})
	if body := s.ask("operator", "GET", job, "").body; strings.Contains(body, "verb=signal") {
		t.Error("an operator without the grant may send a signal")
	}
	body := s.sees("boss", job, []string{"Waits for", "signal approve Send…", "with no end", "History", "step pay", secret, "cancel…", "terminate…"}, nil)
	link := regexp.MustCompile(`href="(ask\?[^"]*given=approve[^"]*)"`).FindStringSubmatch(body)
	if link == nil {
		t.Fatalf("there is no link to the signal: %s", body)
	}
	form := s.sees("boss", resolve(t, job, html.UnescapeString(link[1])), []string{"It will give a signal to the run", "value in JSON"}, nil)
	key := regexp.MustCompile(`name="arg.key" value="(\w+)"`).FindStringSubmatch(form)
	if key == nil || !strings.Contains(form, `name="arg.name" value="approve"`) {
		t.Fatalf("the form of the signal: %s", form)
	}
	const send = "/ui/do?class=order&name=o&verb=signal"
	for value, kind := range map[string]string{"{": "bad-request", `"\ud800"`: "bad-request", `"x"`: "invalid"} {
		if a := s.ask("boss", "POST", send, url.Values{"arg.name": {"approve"}, "arg.value": {value}}.Encode(), "Content-Type", asForm); a.status != 400 || pageProblem(t, a) != kind {
			t.Errorf("the value %s: %d %s", value, a.status, a.body)
		}
	}
	values := url.Values{"arg.name": {"approve"}, "arg.value": {"1"}, "arg.key": {key[1]}}
	for range 2 { // the second press of the button does nothing
		s.posts("boss", send, values, "job?class=order&name=o")
	}
	s.happened(s.orders.ID("o"), jobs.EventCompleted)
	s.sees("viewer", job, []string{"Now completed"}, nil)
}

// Proves V14: names and errors of jobs are text on each page, and whole behind each link and each form.
func TestOddNamesOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := continuous.New(continuous.Config[string]{
			Name: "report", Exhausted: jobs.Fail, StartLater: true,
			Run: func(context.Context, *continuous.Run[string]) error {
				return errors.New(`<script>alert(1)</script>"><b>{{.}}`)
			},
		})
		f := start(t, func(c *Config) { c.Jobs = []verbs.Described{reports} }, reports)
		for _, name := range oddNames {
			if _, err := reports.Start(t.Context(), f.host, name, `<b>`); err != nil {
				t.Fatal(err)
			}
		}
		if err := reports.Trigger(t.Context(), f.host, oddNames[2]); err != nil {
			t.Fatal(err)
		}
		for e, err := range f.host.Watch(t.Context(), storage.ID{Class: "report", Name: oddNames[2]}, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == jobs.EventFailed {
				break
			}
		}
		seen := f.crawl("admin", "/ui/jobs")
		for at, body := range seen {
			if strings.Contains(body, "<script>") || strings.Contains(body, "<b>") {
				t.Errorf("V14: %s has markup of a user", at)
			}
		}
		for _, name := range oddNames {
			at := "/ui/job?class=report&name=" + url.QueryEscape(name)
			if seen[at] == "" {
				t.Errorf("V14: no link leads to %s", at)
			}
			forms := 0
			for _, m := range formActions.FindAllStringSubmatch(seen[at], -1) {
				to, err := url.Parse(resolve(t, at, html.UnescapeString(m[1])))
				if err != nil || to.Path != "/ui/do" || to.Query().Get("name") != name || to.Query().Get("class") != "report" {
					t.Errorf("V14: a form of %s leads to %v, %v", at, to, err)
				}
				forms++
			}
			if forms != 3 {
				t.Errorf("%s has %d forms", at, forms)
			}
			if name == oddNames[2] {
				continue // it has failed
			}
			f.posts("operator", "/ui/do?class=report&verb=pause&name="+url.QueryEscape(name), nil, "job?class=report&name="+url.QueryEscape(name))
			if m, err := reports.Status(t.Context(), f.host, name); err != nil || m.Meta.Status != jobs.Paused {
				t.Errorf("%q is %v, %v", name, m.Meta.Status, err)
			}
		}
	})
}

// A run that is stuck, because its code is another than that of its history, shows the difference.
func TestPageOfStuckRun(t *testing.T) {
	o := object.Options{Dir: t.TempDir()}
	define := func(step string) *workflow.Workflow[string, string] {
		orders := workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approve}})
		orders.Func(func(ctx *workflow.Context, _ string) (string, error) {
			if _, err := workflow.Step(ctx, step, func(context.Context) (int, error) { return 0, nil }); err != nil {
				return "", err
			}
			_, err := approve.Wait(ctx, 0)
			return "", err
		})
		return orders
	}
	old := define("pay")
	host, err := object.Open(o, Definitions(old)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Start(t.Context(), host, "o", ""); err != nil {
		t.Fatal(err)
	}
	told(t, host, old.ID("o"), 1, workflow.EventSuspended)
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	orders := define("<b>charge")
	if host, err = object.Open(o, Definitions(orders)...); err != nil {
		t.Fatal(err)
	}
	if err := approve.Send(t.Context(), host, orders, "o", 1); err != nil {
		t.Fatal(err)
	}
	told(t, host, orders.ID("o"), 2, jobs.EventStuck)
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	orders = define("<b>charge")
	s := &shop{fixture: startOn(t, o, func(c *Config) { c.Auth, c.Jobs = staff, []verbs.Described{orders} }, orders)}
	told(t, s.host, orders.ID("o"), 3, jobs.EventRetry) // the try of each open is over then (F10)
	s.sees("viewer", "/ui/job?class=order&name=o", []string{"Now stuck"}, []string{"charge", "pay"})
	s.sees("reader", "/ui/job?class=order&name=o", []string{"Now stuck", "It cannot go on", "<b>charge", `step "pay"`}, nil)
	s.sees("viewer", "/ui/jobs?label=stuck", []string{"order/o"}, []string{"charge"})
}

// told waits for an event of a kind from an opening of the store.
func told(t *testing.T, host *object.Host, id storage.ID, opening uint64, kind string) {
	t.Helper()
	for e, err := range host.Watch(t.Context(), id, opening<<32) { // a sequence number begins with its opening
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == kind {
			return
		}
	}
}

// A long history goes on where a page of it ends.
func TestHistoryGoesOn(t *testing.T) {
	orders := workflow.New[int, string]("order", workflow.Config{})
	orders.Func(func(ctx *workflow.Context, n int) (string, error) {
		for i := range n {
			if _, err := workflow.Atomic(ctx, fmt.Sprintf("step-%d.", i), func(context.Context, *workflow.Tx) (int, error) { return i, nil }); err != nil {
				return "", err
			}
		}
		return "", nil
	})
	f := start(t, func(c *Config) { c.Jobs = []verbs.Described{orders} }, orders)
	for id, n := range map[string]int{"short": historyPage - 1, "long": historyPage + 1} {
		if _, err := orders.Start(t.Context(), f.host, id, n); err != nil {
			t.Fatal(err)
		}
		if _, err := orders.Wait(t.Context(), f.host, id); err != nil {
			t.Fatal(err)
		}
	}
	f.sees("reader", "/ui/job?class=order&name=short", []string{"step-0.", "step-98."}, []string{"Next page"})
	body := f.sees("reader", "/ui/job?class=order&name=long", []string{"step-0.", "step-99.", "Next page"}, []string{"step-100."})
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(body)
	f.sees("reader", resolve(t, "/ui/job", html.UnescapeString(next[1])), []string{"step-100.", "First page"}, []string{"step-99.", "Next page"})
}

// A run, a pool and a task that do not tell of themselves in time do not keep their pages from telling why.
func TestPagesOfSilentWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held, leave := make(chan struct{}), make(chan struct{})
		orders := workflow.New[string, string]("order", workflow.Config{})
		orders.Func(func(ctx *workflow.Context, _ string) (string, error) {
			return workflow.Atomic(ctx, "hold", func(context.Context, *workflow.Tx) (string, error) { // it runs in the turn of the run
				close(held)
				<-leave
				return "", nil
			})
		})
		f := start(t, func(c *Config) { c.Jobs = []verbs.Described{orders} }, orders)
		defer close(leave)
		if _, err := orders.Start(t.Context(), f.host, "o", ""); err != nil {
			t.Fatal(err)
		}
		<-held
		f.sees("reader", "/ui/job?class=order&name=o", []string{"Why", "It has not told how far it is", "deadline exceeded", "Newest events"}, []string{"History"})
	})
}

// The form of a verb has a field for each field of its argument.
func TestFieldsOfVerbs(t *testing.T) {
	for shape, want := range map[string]string{
		"": "", `{"reason": "text"}`: "arg.reason ", `{"name": "text", "value": …, "key": "text"}`: "arg.name arg.value{} arg.key ",
		`{"until": "2006-01-02T15:04:05Z", "n": 0}`: "arg.until arg.n{} ", `"text"`: "arg{} ", `[0]`: "arg{} ", `…`: "arg{} ", `{"a": `: "arg{} ",
	} {
		got := ""
		for _, f := range fieldsOf(verbs.Description{Argument: shape}) {
			got += f.Name
			if f.JSON {
				got += "{}"
			}
			got += " "
		}
		if got != want {
			t.Errorf("%s has the fields %q, want %q", shape, got, want)
		}
	}
}

// The fields of a form make the argument that the API takes.
func TestArgumentsOfForms(t *testing.T) {
	reason := verbs.Description{Argument: `{"reason": "text"}`, Optional: true}
	signal := verbs.Description{Argument: `{"name": "text", "value": …}`}
	whole := verbs.Description{Argument: `"text"`}
	for _, c := range []struct {
		d          verbs.Description
		form, want string
		ok         bool
	}{
		{reason, "", "", true}, {reason, "arg.reason=", "", true}, {reason, "arg.reason=%22%3C", `{"reason":"\"\u003c"}`, true}, {reason, "arg.other=x", "", true},
		{reason, "arg.reason=%ff", "", false},
		{signal, "", "{}", true}, {signal, "arg.name=a&arg.value=+%7B%7D", `{"name":"a","value":{}}`, true}, {signal, "arg.value=%7B", "", false},
		{whole, "arg=%22x%22", `"x"`, true}, {whole, "arg=x", "", false}, {whole, `arg="\ud800"`, "", false},
	} {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := argument(c.d, form); (err == nil) != c.ok || string(got) != c.want && c.ok {
			t.Errorf("%s of %s is %s, %v", c.form, c.d.Argument, got, err)
		}
	}
}

// The entries of a history have the time since the entry before of their scope.
func TestTimesOfEntries(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(scope string, s int) workflow.Entry {
		return workflow.Entry{Scope: scope, At: begin.Add(time.Duration(s) * time.Second)}
	}
	all := []workflow.Entry{entry("", 1), entry("a/", 2), entry("", 4), entry("a/", 9), entry("a/", 8)}
	for first, want := range map[uint64][]time.Duration{0: {1e9, -1, 3e9, 7e9, 0}, 7: {-1, -1, 3e9, 7e9, 0}} {
		var got []time.Duration
		for _, e := range timed(all, begin, first) {
			got = append(got, e.Took)
		}
		if !slices.Equal(got, want) {
			t.Errorf("from entry %d on: %v, want %v", first, got, want)
		}
	}
}
