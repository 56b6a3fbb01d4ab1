package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// echo is a route of a test: it answers with the bytes that its handler has read.
var echo = route{
	method: "POST", pattern: "/v1/echo/{name}", access: viewer, single: true,
	params: []param{{name: "say"}, {name: "limit", kind: number}, {name: "size", kind: flag}},
	handle: func(x *exchange) error {
		b, err := x.body()
		if err != nil {
			return err
		}
		return x.json(200, []any{x.path("name"), x.param("say"), x.number("limit"), x.flag("size"), string(b)})
	},
}

// steps serves echo, a route that panics and one that decodes.
func steps(t *testing.T, change func(*Config)) *fixture {
	f := start(t, change)
	f.srv.handle(echo)
	f.srv.handle(route{method: "GET", pattern: "/v1/panic", access: viewer, handle: func(x *exchange) error { panic("secret of the handler") }})
	f.srv.handle(route{method: "GET", pattern: "/v1/half", access: viewer, handle: func(x *exchange) error {
		x.w.WriteHeader(200)
		_, _ = x.w.Write([]byte("half"))
		_ = http.NewResponseController(x.w).Flush()
		panic("in the middle")
	}})
	f.srv.handle(route{method: "POST", pattern: "/v1/decode", access: open, handle: func(x *exchange) error {
		var v struct{ A int }
		if err := x.decode(&v); err != nil {
			return err
		}
		return x.json(200, v)
	}})
	return f
}

// Proves V6, V13: each step refuses before the next one looks at anything.
func TestSteps(t *testing.T) {
	f := steps(t, nil)
	for _, c := range []struct {
		name, who, method, path string
		headers                 []string
		status                  int
		kind                    string
	}{
		{"all is well", "viewer", "POST", "/v1/echo/a?say=x&limit=7&size=1", nil, 200, ""},
		{"another site", "viewer", "POST", "/v1/echo/a", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross-origin"},
		{"another origin", "viewer", "POST", "/v1/echo/a", []string{"Origin", "https://evil.example"}, 403, "cross-origin"},
		{"two tokens", "viewer", "POST", "/v1/echo/a", []string{"Authorization", "Bearer admin"}, 400, "bad-request"},
		{"two keys", "viewer", "POST", "/v1/echo/a", []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 400, "bad-request"},
		{"no path", "viewer", "POST", "/v1/nothing", nil, 404, "unknown-path"},
		{"root", "viewer", "GET", "/", nil, 404, "unknown-path"},
		{"dots", "viewer", "POST", "/v1/echo/..", nil, 400, "bad-path"},
		{"encoded dots", "viewer", "POST", "/v1/echo/%2e%2E", nil, 400, "bad-path"},
		{"a dot", "viewer", "POST", "/v1/echo/.", nil, 400, "bad-path"},
		{"two slashes", "viewer", "POST", "/v1//echo/a", nil, 400, "bad-path"},
		{"another method", "viewer", "DELETE", "/v1/echo/a", nil, 405, "bad-method"},
		{"no credentials", "", "POST", "/v1/echo/a", nil, 401, "no-credentials"},
		{"wrong credentials", "thief", "POST", "/v1/echo/a", nil, 401, "bad-credentials"},
		{"no role", "nobody", "POST", "/v1/echo/a", nil, 403, "forbidden"},
		{"no role, and a bad query", "nobody", "POST", "/v1/echo/a?sya=x", []string{"Content-Encoding", "gzip"}, 403, "forbidden"},
		{"no route of one object", "acme", "GET", "/v1/panic", nil, 404, "not-found"},
		{"unknown parameter", "viewer", "POST", "/v1/echo/a?sya=x", nil, 400, "bad-request"},
		{"repeated parameter", "viewer", "POST", "/v1/echo/a?say=x&say=y", nil, 400, "bad-request"},
		{"no number", "viewer", "POST", "/v1/echo/a?limit=-1", nil, 400, "bad-request"},
		{"no flag", "viewer", "POST", "/v1/echo/a?size=yes", nil, 400, "bad-request"},
		{"bad query", "viewer", "POST", "/v1/echo/a?say=%zz", nil, 400, "bad-request"},
		{"compressed", "viewer", "POST", "/v1/echo/a", []string{"Content-Encoding", "gzip"}, 415, "bad-encoding"},
	} {
		a := f.ask(c.who, c.method, c.path, "", c.headers...)
		if a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, a.status, a.body, c.status)
			continue
		}
		if h := a.header; h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: the headers are %v", c.name, h)
		}
		if c.kind == "" {
			continue
		}
		if p := a.problem(t); p.Type != c.kind || p.Outcome != none {
			t.Errorf("%s: the problem is %+v, want %s", c.name, p, c.kind)
		}
		if got := a.header.Get("WWW-Authenticate"); (got == "Bearer") != (c.status == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", c.name, got)
		}
		if got := a.header.Get("Allow"); (got == "POST") != (c.status == 405) {
			t.Errorf("%s: Allow is %q", c.name, got)
		}
	}
	if a := f.ask("viewer", "POST", "/v1/echo/a%2Fb%3F%23?say=x&limit=7&size=1", "body"); a.body != `["a/b?#","x",7,true,"body"]`+"\n" {
		t.Errorf("the handler has read %s", a.body)
	}
}

// Proves V5: a panic of a handler is an answer 500 without a word of it, and a line of the log.
func TestPanicOfAHandler(t *testing.T) {
	f := steps(t, nil)
	a := f.ask("viewer", "GET", "/v1/panic", "")
	if p := a.problem(t); a.status != 500 || strings.Contains(a.body, "secret") {
		t.Errorf("a panic is %+v", p)
	}
	if log := f.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "secret of the handler") || !strings.Contains(log, "steps_test.go") {
		t.Errorf("the log is %q", log)
	}
	half, err := f.web.Client().Do(f.request("viewer", "GET", "/v1/half"))
	if err != nil {
		t.Fatal(err)
	}
	defer half.Body.Close()
	if b, err := io.ReadAll(half.Body); err == nil || string(b) != "half" {
		t.Errorf("half of an answer looks whole: %q", b)
	}
	if a := f.ask("viewer", "POST", "/v1/echo/a", ""); a.status != 200 {
		t.Errorf("the server has ended: %+v", a)
	}
}

// A goroutine that panics is a line of the log, and the process lives.
func TestSpawn(t *testing.T) {
	f := steps(t, nil)
	done := make(chan struct{})
	f.srv.spawn(func() { defer close(done); panic("on a goroutine") })
	<-done
	if a := f.ask("viewer", "POST", "/v1/echo/a", ""); a.status != 200 {
		t.Errorf("the server has ended: %+v", a)
	}
}

// Proves V5: a body has its bound, also if it does not tell its length.
func TestBodyBound(t *testing.T) {
	const limit = 300_000
	f := steps(t, func(c *Config) { c.MaxBodyBytes = limit })
	for _, n := range []int{0, limit - 1, limit} {
		if a := f.ask("viewer", "POST", "/v1/echo/a", strings.Repeat("x", n)); a.status != 200 || strings.Count(a.body, "x") != n {
			t.Errorf("%d bytes: %d", n, a.status)
		}
	}
	if a := f.ask("viewer", "POST", "/v1/echo/a", strings.Repeat("x", limit+1)); a.problem(t).Type != "body-too-large" || a.status != 413 {
		t.Errorf("one byte over: %d %s", a.status, a.body)
	}
	r := f.request("viewer", "POST", "/v1/echo/a")
	r.Body, r.ContentLength = endless{}, -1
	if a := f.do(r); a.problem(t).Type != "body-too-large" {
		t.Errorf("an endless body: %d %s", a.status, a.body)
	}
}

// Proves V5: of a body that is longer than it tells, as a handler around the server may make it, the server keeps
// little more than its bound.
func TestBoundOfABodyThatTellsTooLittle(t *testing.T) {
	const limit = 300_000
	f := steps(t, func(c *Config) { c.MaxBodyBytes = limit })
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/echo/a", nil)
	r.Header.Set("Authorization", "Bearer viewer")
	body := &io.LimitedReader{R: endless{}, N: 100 * limit}
	r.Body, r.ContentLength = io.NopCloser(body), 10
	w := httptest.NewRecorder()
	f.srv.ServeHTTP(w, r)
	if read := 100*limit - body.N; w.Code != 413 || read > 2*limit {
		t.Errorf("V5: %d after %d bytes", w.Code, read)
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
func (endless) Close() error               { return nil }

// A body in JSON is one value, with known fields, of bounded depth.
func TestDecode(t *testing.T) {
	f := steps(t, nil)
	for body, status := range map[string]int{
		`{"A": 1}`: 200, ` {"A": 1} ` + "\n": 200, `{}`: 200,
		`{"A": 1, "B": 2}`: 400, `{"A": 1} {}`: 400, `{"A": 1}x`: 400, ``: 400, `{"A": "x"}`: 400, `{"A"`: 400,
		`{"a": 1}`: 200, "{\"A\": 1, \"\xff\": 1}": 400, "\"\xc3\"": 400,
		strings.Repeat("[", 100_000):                                       400,
		`{"A":` + strings.Repeat(`{"A":`, 100_000) + "1":                   400,
		strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000) + "\n": 400,
	} {
		if a := f.ask("", "POST", "/v1/decode", body); a.status != status {
			t.Errorf("%.40q: %d %s, want %d", body, a.status, a.body, status)
		}
	}
}

// Text that a decoder would change is refused, and no other: two names must not become one.
func TestTextOfBodies(t *testing.T) {
	for body, ok := range map[string]bool{
		``: true, `"ü\n"`: true, "\"\uFFFD\"": true, `"\ufffd"`: true, `"\ud83d\ude00"`: true, `"\uD83D\uDE00\ud83d\ude00x"`: true,
		`"\\ud800"`: true, `"\\\\ud800"`: true, `"\u00e9\udbff\udfff"`: true, `"\ud7ff\ue000"`: true,
		"\"\xff\"": false, "\"\xed\xa0\x80\"": false, `"\ud800"`: false, `"\uDFFF"`: false, `"\udc00\ud800"`: false, `"\ud800\ud800\udc00"`: false,
		`"\ud800\u0041"`: false, `"\ud800\\udc00"`: false, `"\\\ud800"`: false, `"\ud800`: false, `"x\ud83d\ude00\ude00"`: false,
		`"\`: true, `"\u`: true, `"\ud8`: true, // the decoder refuses these
	} {
		if err := unchanged([]byte(body)); (err == nil) != ok {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Proves V3: principals without an id would share keys, rates and bounds, so they are refused, with a line of
// the log that says what to do.
func TestPrincipalWithoutID(t *testing.T) {
	f := steps(t, func(c *Config) { c.Auth = nameless{} })
	if a := f.ask("admin", "POST", "/v1/echo/a", ""); a.status != 500 || a.problem(t).Detail != "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if log := f.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "set one for each principal") {
		t.Errorf("the log is %s", log)
	}
}

// nameless is an Authenticator that sets no id.
type nameless struct{}

func (nameless) Authenticate(*http.Request) (auth.Principal, error) {
	return auth.Principal{Name: "ann", Role: auth.Admin}, nil
}

// Proves V13: a request with another Host is refused, because a page of another site could reach the loopback by it.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		host  string
		ok    bool
	}{
		{nil, "localhost", true}, {nil, "LOCALHOST:80", true}, {nil, "127.0.0.1:7070", true}, {nil, "[::1]:1", true}, {nil, "[::1]", true},
		{nil, "evil.example", false}, {nil, "localhost.evil.example", false}, {nil, "127.0.0.2", false}, {nil, "", false},
		{[]string{"a.example:7070"}, "A.example:7070", true}, {[]string{"a.example:7070"}, "a.example", false}, {[]string{"a.example:7070"}, "localhost", false},
	} {
		f := steps(t, func(cfg *Config) { cfg.Hosts = c.hosts })
		conn, err := net.Dial("tcp", f.web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/echo/a HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer viewer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", c.host)
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := 421
		if c.ok {
			want = 200
		}
		if a.StatusCode != want {
			t.Errorf("%v, Host %q: %d, want %d", c.hosts, c.host, a.StatusCode, want)
		}
		a.Body.Close()
		conn.Close()
	}
}

// Proves V5: the rate is of each principal, and the answer says when the next request passes.
func TestRate(t *testing.T) {
	f := steps(t, func(c *Config) { c.CallsPerSecond = 0.001 })
	if a := f.ask("viewer", "POST", "/v1/echo/a", ""); a.status != 200 {
		t.Errorf("the first: %d", a.status)
	}
	a := f.ask("viewer", "POST", "/v1/echo/a", "")
	if p := a.problem(t); p.Type != "rate" || !p.Retryable || len(a.header.Get("Retry-After")) < 3 {
		t.Errorf("the second: %+v %v", p, a.header)
	}
	if a := f.ask("reader", "POST", "/v1/echo/a", ""); a.status != 200 {
		t.Errorf("another principal: %d", a.status)
	}
	for i := range maxRates {
		if err := f.srv.rates.take(fmt.Sprint(i)); err != nil || len(f.srv.rates.byID) > maxRates {
			t.Fatalf("principal %d: %v", i, err)
		}
	}
	if err := f.srv.rates.take("viewer"); err != nil || f.srv.rates.seen.Len() != maxRates {
		t.Errorf("the oldest is still there: %v, of %d", err, f.srv.rates.seen.Len())
	}
}

// request makes a request without a body.
func (f *fixture) request(who, method, path string) *http.Request {
	r, err := http.NewRequest(method, f.web.URL+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who)
	return r
}
