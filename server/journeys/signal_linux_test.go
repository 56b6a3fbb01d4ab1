package journeys

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Journey 11: a workflow waits for a signal. The command names the signal, and a person sends it by the form of the
// page; then the run goes on to its end.
func TestSignal(t *testing.T) {
	s := start(t, t.TempDir())
	s.holdfast(0, "jobs", "do", "start", "order/4711", `{"customer": "anna", "cents": 9000}`)
	reason := ""
	for !strings.Contains(reason, "waits-for-signal") { // until the run has come to its wait
		reason = s.holdfast(0, "why", "order/4711")
	}
	has(t, reason, "approved", "signal")

	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &person{t, &http.Client{Jar: jar}}
	browser.posts(s.url+"/ui/signin", url.Values{"token": {s.token}})
	page := browser.sees(s.url + "/ui/job?class=order&name=4711")
	form := browser.sees(s.url + "/ui/" + part(t, page, `href="(ask\?[^"]*given=approved[^"]*)"`))
	browser.posts(s.url+"/ui/"+part(t, form, `action="([^"]*verb=signal[^"]*)"`), url.Values{
		"arg.name": {"approved"}, "arg.value": {"true"}, "arg.key": {part(t, form, `name="arg.key" value="(\w+)"`)},
	})

	has(t, s.holdfast(0, "jobs", "view", "wait", "order/4711"), `"shipped to anna"`)
	s.stop()
}

// person is a person with a browser.
type person struct {
	t       *testing.T
	browser *http.Client
}

func (p *person) sees(address string) string { return p.body(p.browser.Get(address)) }

func (p *person) posts(address string, form url.Values) {
	p.t.Helper()
	p.body(p.browser.PostForm(address, form))
}

// body returns the page of an answer.
func (p *person) body(a *http.Response, err error) string {
	p.t.Helper()
	must(p.t, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s, %v: %s", a.Request.URL, a.Status, err, b)
	}
	return string(b)
}

// part is the part of a page that a pattern finds.
func part(t *testing.T, page, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no %s in %s", pattern, page)
	}
	return html.UnescapeString(found[1])
}
