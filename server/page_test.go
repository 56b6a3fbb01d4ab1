package server

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

var (
	problemKind = regexp.MustCompile(`data-problem="([^"]*)"`)
	hrefs       = regexp.MustCompile(`\s(?:href|src|hx-get|data-live)="([^"]*)"`)
	formActions = regexp.MustCompile(`<form[^>]*method="post"[^>]*action="([^"]*)"`)
)

// pageProblem is the type of the problem that a page shows.
func pageProblem(t *testing.T, a reply) string {
	t.Helper()
	kind := problemKind.FindStringSubmatch(a.body)
	if kind == nil || a.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("the answer is no page of a problem: %d %v %q", a.status, a.header, a.body)
	}
	return html.UnescapeString(kind[1])
}

// resolve is an address as a browser makes it of a link on a page.
func resolve(t *testing.T, page, link string) string {
	t.Helper()
	base, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	to, err := base.Parse(link)
	if err != nil {
		t.Fatalf("%s links to %q: %v", page, link, err)
	}
	return to.RequestURI()
}

// crawl follows all links of the pages from one on, and returns the bodies by address. Each page must answer
// with 200, in the folder of the pages, and without a byte that a browser takes for a control.
func (f *fixture) crawl(who, from string) map[string]string {
	f.t.Helper()
	seen := map[string]string{}
	for todo := []string{from}; len(todo) > 0; {
		at := todo[0]
		if todo = todo[1:]; seen[at] != "" {
			continue
		}
		if !strings.HasPrefix(at, "/ui/") {
			f.t.Fatalf("V14: a link leads to %q", at)
		}
		a := f.visit(who, at)
		if a.status != http.StatusOK {
			f.t.Fatalf("%s: %d %s", at, a.status, a.body)
		}
		seen[at] = a.body
		if path.Base(path.Dir(at)) == "asset" {
			continue
		}
		if got := a.header.Get("Content-Security-Policy"); got != dashboard.CSP {
			f.t.Errorf("V14: %s has the policy %q", at, got)
		}
		if i := strings.IndexFunc(a.body, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }); i >= 0 {
			f.t.Errorf("V14: %s has the control %q", at, a.body[i])
		}
		for _, m := range hrefs.FindAllStringSubmatch(a.body, -1) {
			if link := html.UnescapeString(m[1]); !strings.HasPrefix(link, "#") && link != "live" {
				todo = append(todo, resolve(f.t, at, link))
			}
		}
	}
	return seen
}

// visit gets a page, and goes where it sends a browser.
func (f *fixture) visit(who, at string) reply {
	f.t.Helper()
	for range 4 {
		a := f.ask(who, "GET", at, "")
		if a.status != http.StatusSeeOther {
			return a
		}
		at = resolve(f.t, at, a.header.Get("Location"))
	}
	f.t.Fatalf("%s never ends", at)
	return reply{}
}

// oddNames are names of objects that markup, a path or a terminal would take for more.
var oddNames = append([]string{".", "..", "../../jobs/pay/4711/do/terminate?", `"><script>alert(1)</script>`, "{{.}}", "\u202Eabc", "a&b=c"}, hostile...)

// odd is a class with objects of odd names, keys and errors.
func odd(t *testing.T) *fixture {
	t.Helper()
	buried := make(chan object.DeadLetter, 1)
	class := notes(buried)
	f := start(t, func(c *Config) { c.Objects = []Exposed{Class(class)} }, class)
	for _, name := range oddNames {
		rows := []pair{{[]byte(name), marshal(t, name)}, {[]byte("\xff"), []byte("\xff<b>")}, {[]byte("empty"), nil}}
		if _, err := f.host.CallBytes(t.Context(), "note", name, "put", marshal(t, rows)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.host.CallBytes(t.Context(), "note", "a", "alarm", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	<-buried
	return f
}

// Proves V14: each name is whole behind each link, and is text everywhere.
func TestOddNamesAreTextOnPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := odd(t)
		seen := f.crawl("admin", "/ui/"+firstPage)
		for _, name := range oddNames {
			at := "/ui/object?class=note&name=" + url.QueryEscape(name)
			if body := seen["/ui/go?class=note&name="+url.QueryEscape(name)]; !strings.Contains(html.UnescapeString(body), `data-topic="`+dashboard.Topic("note", name)+`"`) {
				t.Errorf("V14: no link leads to %s", at)
			}
			value := "/ui/value?class=note&key=" + url.QueryEscape(name) + "&name=" + url.QueryEscape(name)
			if _, ok := seen[value]; !ok {
				t.Errorf("V14: no link leads to %s", value)
			}
			for _, m := range formActions.FindAllStringSubmatch(seen[at], -1) {
				to, err := url.Parse(resolve(t, at, html.UnescapeString(m[1])))
				if err != nil || to.Path != "/ui/signout" && (to.Path != "/ui/wake" || to.Query().Get("name") != name) {
					t.Errorf("V14: a form of %s leads to %v, %v", at, to, err)
				}
			}
		}
		for at, body := range seen {
			if strings.Contains(body, "<script>") || strings.Contains(body, "<b>") {
				t.Errorf("V14: %s has markup of a name", at)
			}
		}
	})
}

// Proves V13: a page shows below reader no value and no error, offers no verb that the role lacks, and refuses it
// when a form is forged.
func TestPagesShowWhatTheRoleMaySee(t *testing.T) {
	f := odd(t)
	const at = "/ui/object?class=note&name=a"
	for _, c := range []struct {
		who                         string
		values, errors, wake, erase bool
	}{{who: "viewer"}, {who: "reader", values: true, errors: true}, {who: "operator", values: true, errors: true, wake: true}, {who: "admin", values: true, errors: true, wake: true, erase: true}} {
		a := f.ask(c.who, "GET", at, "")
		for what, want := range map[string]bool{`href="value?`: c.values, "secret of an alarm": c.errors, `action="wake?`: c.wake, `href="delete?`: c.erase} {
			if got := strings.Contains(a.body, what); got != want || a.status != 200 {
				t.Errorf("V13: %s sees %s: %v, want %v", c.who, what, got, want)
			}
		}
		for path, may := range map[string]bool{"/ui/wake": c.wake, "/ui/delete": c.erase} {
			b := f.ask(c.who, "POST", path+"?class=note&name=b", "")
			if may && (b.status != 303 || b.header.Get("Location") != "object?class=note&name=b") || !may && (b.status != 403 || pageProblem(t, b) != forbidden) {
				t.Errorf("V13: %s posts %s: %d %s", c.who, path, b.status, b.body)
			}
		}
		b := f.ask(c.who, "POST", "/ui/wake?class=note&name=b", "", "Sec-Fetch-Site", "cross-site")
		if b.status != 403 {
			t.Errorf("V13: a form of another site: %d %s", b.status, b.body)
		}
	}
}

// Proves V13: below reader a page lists the keys of the inspection alone, as the API does.
func TestPagesListTheKeysThatTheRoleMaySee(t *testing.T) {
	f := odd(t)
	var rows []pair
	for i := range object.MaxPage + 1 {
		rows = append(rows, pair{fmt.Appendf(nil, "k%04d", i), nil})
	}
	if _, err := f.host.CallBytes(t.Context(), "note", "many", "put", marshal(t, rows)); err != nil {
		t.Fatal(err)
	}
	const at = "/ui/object?class=note&name=many"
	f.sees("viewer", at, []string{"k0000", fmt.Sprintf("k%04d", object.MaxPage-1), "There are more. The role reader can list them."}, []string{fmt.Sprintf("k%04d", object.MaxPage), "Keys that begin with"})
	f.sees("reader", at, []string{"k0000", "Next page", "Keys that begin with"}, []string{"There are more"})
	f.sees("reader", at+"&prefix=k1", []string{fmt.Sprintf("k%04d", object.MaxPage)}, []string{"k0000"})
	f.sees("viewer", "/ui/object?class=note&name=a%26b%3Dc", []string{"empty"}, []string{"There are more"})
	for _, more := range []string{"&prefix=k1", "&after=azEwMDA", "&part=keys&prefix=k1"} {
		if a := f.ask("viewer", "GET", at+more, ""); a.status != 403 || pageProblem(t, a) != forbidden {
			t.Errorf("V13: a viewer lists %s: %d", more, a.status)
		}
	}
}

// Addresses to go back to are those of pages alone, and the folder of the pages leads to the first.
func TestLocalAddresses(t *testing.T) {
	f := odd(t)
	for address, want := range map[string]string{
		"object?class=note&name=a": "object?class=note&name=a", "overview": "overview", "": firstPage, "{page}": firstPage, "asset/{file}": firstPage,
		"live": firstPage, "signin": firstPage, "bulkstop?id=x": firstPage, "//example.com": firstPage, "asset/page.js": firstPage,
	} {
		if got := f.srv.local(address); got != want {
			t.Errorf("%q leads to %q, want %q", address, got, want)
		}
	}
	if a := f.ask("viewer", "GET", "/ui/", ""); a.status != 303 || a.header.Get("Location") != firstPage {
		t.Errorf("the folder of the pages: %d %v", a.status, a.header)
	}
}

// Proves V13: a principal with a prefix gets the pages of its objects, without lists and without a stream, which
// would name others.
func TestPagesOfAPrefix(t *testing.T) {
	f := odd(t)
	if _, err := f.host.CallBytes(t.Context(), "note", "acme/1", "put", marshal(t, []pair{{[]byte("k"), []byte("1")}})); err != nil {
		t.Fatal(err)
	}
	a := f.ask("acme", "GET", "/ui/object?class=note&name=acme%2F1", "")
	if a.status != 200 || strings.Contains(a.body, "data-live") || strings.Contains(a.body, `href="classes"`) || !strings.Contains(a.body, `action="wake?`) {
		t.Errorf("V13: its own object: %d %s", a.status, a.body)
	}
	for _, at := range []string{"/ui/object?class=note&name=a", "/ui/go?q=note%2Fa", "/ui/value?class=note&name=a&key=a", "/ui/live", "/ui/overview", "/ui/wat"} {
		if a := f.ask("acme", "GET", at, ""); a.status != 404 || pageProblem(t, a) != hidden {
			t.Errorf("V13: %s: %d %s", at, a.status, a.body)
		}
	}
}

// A part is equal to its place in the whole page, and a part that is not there is a mistake.
func TestPartsOfPages(t *testing.T) {
	f := odd(t)
	for at, parts := range map[string][]string{"/ui/classes?": {"classes"}, "/ui/objects?class=note": {"list"}, "/ui/object?class=note&name=b": {"state", "keys"}} {
		whole := f.ask("admin", "GET", at, "").body
		for _, part := range parts {
			a := f.ask("admin", "GET", at+"&part="+part, "")
			if first, _, _ := strings.Cut(strings.TrimSpace(a.body), "\n"); a.status != 200 || !strings.Contains(first, `id="`+part+`"`) || !strings.Contains(whole, first) || strings.Contains(a.body, "<html") {
				t.Errorf("%s of %s: %d %s", part, at, a.status, a.body)
			}
		}
	}
	if a := f.ask("admin", "GET", "/ui/classes?part=keys", ""); a.status != 400 || pageProblem(t, a) != "bad-request" {
		t.Errorf("a part of another page: %+v", a)
	}
}

// Lists on pages go on where a page ends, and keep their filter.
func TestListsOnPagesGoOn(t *testing.T) {
	f := odd(t)
	var names []string
	for at := "/ui/objects?class=note&limit=4"; at != ""; {
		a := f.ask("viewer", "GET", at, "")
		for _, m := range regexp.MustCompile(`href="(go\?class=note[^"]*)"`).FindAllStringSubmatch(a.body, -1) {
			to, err := url.Parse(html.UnescapeString(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, to.Query().Get("name"))
		}
		next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(a.body)
		if next == nil {
			break
		}
		if at = resolve(t, at, html.UnescapeString(next[1])); !strings.Contains(at, "limit=4") {
			t.Fatalf("the next page is %s", at)
		}
	}
	want := slices.Clone(oddNames)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the pages list %q, want %q", names, want)
	}
}

// The box at the top goes to the page of class/name, and takes any name.
func TestJump(t *testing.T) {
	f := odd(t)
	for _, name := range oddNames {
		a := f.ask("viewer", "GET", "/ui/go?q="+url.QueryEscape("note/"+name), "")
		if want := "object?class=note&name=" + url.QueryEscape(strings.TrimSpace(name)); a.status != 303 || a.header.Get("Location") != want {
			t.Errorf("%q: %d %v, want %s", name, a.status, a.header, want)
		}
	}
	for _, name := range oddNames {
		of := dashboard.Link{Route: "object", Query: url.Values{"class": {"note"}, "name": {name}}}
		a := f.ask("viewer", "GET", "/ui/filter?prefix=k&of="+url.QueryEscape(of.String()), "")
		if want := of.String() + "&prefix=k"; a.status != 303 || a.header.Get("Location") != want {
			t.Errorf("%q: %d %v, want %s", name, a.status, a.header, want)
		}
	}
	if a := f.ask("viewer", "GET", "/ui/go?q=note", ""); a.status != 400 || pageProblem(t, a) != "bad-request" {
		t.Errorf("a class alone: %+v", a)
	}
}

// The pages work below any path at which the server is mounted, because each address is seen from the page itself.
func TestPagesBelowAPath(t *testing.T) {
	f := odd(t)
	mux := http.NewServeMux()
	mux.Handle("/a/holdfast/", http.StripPrefix("/a/holdfast", f.srv))
	f.web.Config.Handler = mux
	for at, want := range map[string]string{
		"/a/holdfast/ui": "<h1>Overview</h1>", "/a/holdfast/ui/go?q=note/a%2Fb": "<h1>note/a/b</h1>", "/a/holdfast/ui/objects?class=note": "<h1>note</h1>",
	} {
		a := f.visit("admin", at)
		if a.status != 200 || !strings.Contains(a.body, want) {
			t.Fatalf("%s: %d %s", at, a.status, a.body)
		}
		for _, m := range hrefs.FindAllStringSubmatch(a.body, -1) {
			if link := html.UnescapeString(m[1]); !strings.HasPrefix(link, "#") && !strings.HasPrefix(resolve(t, "/a/holdfast/ui/x", link), "/a/holdfast/ui/") {
				t.Errorf("%s links to %s", at, link)
			}
		}
	}
	if a := f.ask("admin", "POST", "/a/holdfast/ui/wake?class=note&name=a%2Fb", ""); a.status != 303 || resolve(t, "/a/holdfast/ui/wake", a.header.Get("Location")) != "/a/holdfast/ui/object?class=note&name=a%2Fb" {
		t.Errorf("a form leads to %d %v", a.status, a.header)
	}
}
