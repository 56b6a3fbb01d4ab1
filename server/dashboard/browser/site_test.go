package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// day is longer than any test: a delivery is tried once, and waits for its answer.
const day = 24 * time.Hour

// site is a server of a host in memory.
type site struct {
	*profile
	probe      seam.Probe
	host       *object.Host
	repo       *backup.Repository // of a site that is stored; else nil
	hooks      *webhook.Webhooks
	subscribed string // a subscription of a site that is furnished
	srv        *server.Server
	web        *httptest.Server
	tokens     *auth.TokenFile
	token      auth.Token
	text       string // of the token

	broken atomic.Bool // all requests are answered with 502, as a proxy does without a server behind it

	mu    sync.Mutex
	posts []string // addresses of all requests that are no GET
	parts int      // requests for a part of a page
}

// serve serves a host, and signs in nobody. The token has a role.
func serve(p *profile, role auth.Role, jobs []verbs.Described, classes ...object.Definition) *site {
	p.t.Helper()
	return serveOn(p, nil, role, jobs, classes...)
}

// serveOn is serve with a probe of the host's turns.
func serveOn(p *profile, probe seam.Probe, role auth.Role, jobs []verbs.Described, classes ...object.Definition) *site {
	p.t.Helper()
	return (&site{profile: p, probe: probe}).serve(storage.Options{Engine: memstore.New()}, role, jobs, classes...)
}

// serveStored is serve with a store in files, which are in memory, and a repository for its backups.
func serveStored(p *profile, role auth.Role, jobs []verbs.Described, classes ...object.Definition) *site {
	p.t.Helper()
	o := storage.Options{MinFreeBytes: -1, Pebble: pebblestore.Options{FS: fulldisk.New()}}
	repo, err := backup.Open("repository", o)
	if err != nil {
		p.t.Fatal(err)
	}
	o.Dir = "store"
	return (&site{profile: p, repo: repo}).serve(o, role, jobs, classes...)
}

func (s *site) serve(o storage.Options, role auth.Role, jobs []verbs.Described, classes ...object.Definition) *site {
	t := s.t
	t.Helper()
	var err error
	if s.tokens, err = auth.Tokens(filepath.Join(t.TempDir(), "tokens.json"), auth.Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.tokens.Close() })
	if s.token, s.text, err = s.tokens.Add(auth.Token{Name: "ann", Role: role}); err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		classes = append(classes, job)
	}
	if s.hooks, err = webhook.New(webhook.Config{Key: make([]byte, 32), AllowPrivate: true, Timeout: day, Waits: []time.Duration{day}}); err != nil {
		t.Fatal(err)
	}
	classes = append(classes, s.hooks.Definitions()...)
	if s.host, err = object.Open(object.Options{Storage: o, Feed: true, Seams: seam.Seams{Probe: s.probe}, Logger: slog.New(slog.DiscardHandler)}, server.Definitions(classes...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.host.Shutdown(context.Background()) })
	if s.srv, err = server.New(s.host, server.Config{Auth: s.tokens, Jobs: jobs, Backups: s.repo, Webhooks: s.hooks}); err != nil {
		t.Fatal(err)
	}
	s.listen("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

// listen begins to answer at an address.
func (s *site) listen(at string) {
	s.t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.web = httptest.NewUnstartedServer(s)
	s.web.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that stop has cut
	_ = s.web.Listener.Close()
	s.web.Listener = l
	s.web.Start()
}

// stop ends all connections, streams too, and listens no more.
func (s *site) stop() {
	s.web.CloseClientConnections()
	s.web.Close()
}

// ServeHTTP counts the requests, and has the server answer.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	switch {
	case r.Method != http.MethodGet:
		s.posts = append(s.posts, r.URL.RequestURI())
	case r.URL.Query().Has("part"):
		s.parts++
	}
	s.mu.Unlock()
	if s.broken.Load() {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	s.srv.ServeHTTP(w, r)
}

// asked is how many requests for a part of a page there were.
func (s *site) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts
}

// call calls a method of a bell.
func (s *site) call(name, method, text string) {
	s.t.Helper()
	if _, err := s.host.CallBytes(s.t.Context(), "bell", name, method, s.raw(text)); err != nil {
		s.t.Fatal(err)
	}
}

// url is the address of a page.
func (s *site) url(page string) string { return s.web.URL + "/ui/" + page }

// signIn opens a tab with a session, at a page.
func (s *site) signIn(page string) *tab {
	s.t.Helper()
	b := s.open()
	s.signInOn(b, page)
	return b
}

func (s *site) signInOn(b *tab, page string) {
	s.t.Helper()
	b.visit(s.url(page))
	b.until(`document.querySelector("[name=token]")`)
	b.do(chromedp.SendKeys("[name=token]", s.text))
	b.leave("main button")
	b.until(`document.querySelector("form[action=signout]")`)
}

// feed is a stream for pages as a program reads it.
type feed struct {
	t     *testing.T
	lines *bufio.Scanner
}

// follow opens the stream. It tells of all events that come after its return.
func (s *site) follow() *feed {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url("live"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.text)
	a, err := s.web.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = a.Body.Close() })
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("the stream answers %d", a.StatusCode)
	}
	return &feed{s.t, bufio.NewScanner(a.Body)}
}

// stale waits for the next frame that names changed objects.
func (f *feed) stale() {
	f.t.Helper()
	for f.lines.Scan() {
		if f.lines.Text() == "event: stale" {
			return
		}
	}
	f.t.Fatalf("the stream has ended: %v", f.lines.Err())
}

// raw are the bytes of a value in JSON.
func (s *site) raw(v any) []byte {
	s.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// posted are the requests that changed something.
func (s *site) posted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.posts...)
}
