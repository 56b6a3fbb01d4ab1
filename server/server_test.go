package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/internal/patience"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// people is an Authenticator that knows principals by their token.
type people map[string]auth.Principal

func (p people) Authenticate(r *http.Request) (auth.Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return auth.Principal{}, auth.ErrNoCredentials
	}
	return p.Find(token)
}

func (p people) Find(id string) (auth.Principal, error) {
	who, ok := p[id]
	if !ok {
		return auth.Principal{}, auth.ErrBadCredentials
	}
	who.ID = id
	return who, nil
}

// everyone has a principal of each kind.
var everyone = people{
	"nobody":   {},
	"viewer":   {Role: auth.Viewer},
	"reader":   {Role: auth.Reader},
	"operator": {Role: auth.Operator},
	"admin":    {Role: auth.Admin},
	"caller":   {Grants: []auth.Grant{{Class: "cart"}}},
	"acme":     {Role: auth.Admin, Prefix: "acme/", Grants: []auth.Grant{{Class: "cart", Prefix: "acme/"}}},
}

// text is the text that a log has written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fixture is a server of a host in memory.
type fixture struct {
	t    *testing.T
	host *object.Host
	srv  *Server
	web  *httptest.Server
	log  *lines
}

// start serves a host with the classes, in a bubble over connections in memory. change, if it is given, changes the Config.
func start(t *testing.T, change func(*Config), classes ...object.Definition) *fixture {
	t.Helper()
	return startOn(t, object.Options{Storage: storage.Options{Engine: memstore.New()}}, change, classes...)
}

func startOn(t *testing.T, o object.Options, change func(*Config), classes ...object.Definition) *fixture {
	t.Helper()
	log := &lines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	o.Logger = logger
	host, err := object.Open(o, Definitions(classes...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Shutdown(context.Background()) }) // some tests have ended it
	c := Config{Auth: everyone, Logger: logger}
	if !inBubble() {
		c.Timeout, c.HandlerTimeout = patience.Times(time.Minute), patience.Times(time.Minute)
	}
	if change != nil {
		change(&c)
	}
	srv, err := New(host, c)
	if err != nil {
		t.Fatal(err)
	}
	limit(srv)
	return &fixture{t, host, srv, newWeb(t, srv), log}
}

// reply is an answer that has been read.
type reply struct {
	status int
	header http.Header
	body   string
}

// problem decodes the problem of an answer.
func (r reply) problem(t *testing.T) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.header.Get("Content-Type") != "application/problem+json" || p.Status != r.status {
		t.Fatalf("the answer is no problem: %d %v %q", r.status, r.header, r.body)
	}
	return p
}

// ask makes a request. headers are pairs of a name and a value.
func (f *fixture) ask(who, method, path, body string, headers ...string) reply {
	f.t.Helper()
	r, err := http.NewRequest(method, f.web.URL+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return f.do(r)
}

func (f *fixture) do(r *http.Request) reply {
	f.t.Helper()
	client := *f.web.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a, err := client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return reply{a.StatusCode, a.Header, string(b)}
}

// principal is an admin who may call all methods of a class.
func principal(class string) auth.Principal {
	return auth.Principal{Role: auth.Admin, Grants: []auth.Grant{{Class: class}}}
}
