package browser

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// site is a server of a host in memory.
type site struct {
	t      *testing.T
	host   *object.Host
	web    *httptest.Server
	tokens *auth.TokenFile
	token  auth.Token
	text   string // of the token

	mu    sync.Mutex
	posts []string // addresses of all requests that are no GET
}

// serve serves a host, and signs in nobody. The token has a role.
func serve(t *testing.T, role auth.Role, jobs []verbs.Described, classes ...object.Definition) *site {
	t.Helper()
	s := &site{t: t}
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
	if s.host, err = object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Logger: slog.New(slog.DiscardHandler)}, classes...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.host.Shutdown(context.Background()) })
	srv, err := server.New(s.host, server.Config{Auth: s.tokens, Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.mu.Lock()
			s.posts = append(s.posts, r.URL.RequestURI())
			s.mu.Unlock()
		}
		srv.ServeHTTP(w, r)
	}))
	t.Cleanup(s.web.Close)
	t.Cleanup(srv.EndStreams) // the server would wait for them
	return s
}

// url is the address of a page.
func (s *site) url(page string) string { return s.web.URL + "/ui/" + page }

// signIn opens a tab with a session, at a page.
func (s *site) signIn(page string) *tab {
	s.t.Helper()
	b := open(s.t)
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
