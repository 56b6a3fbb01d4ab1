package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// signing serves with a file of tokens, and two routes: one for viewers, one for admins. The
// token is that of a viewer.
func signing(t *testing.T, change func(*Config)) (f *fixture, tokens *auth.TokenFile, token auth.Token, text string) {
	t.Helper()
	tokens, err := auth.Tokens(filepath.Join(t.TempDir(), "tokens.json"), auth.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tokens.Close(); err != nil {
			t.Error(err)
		}
	})
	token, text, err = tokens.Add(auth.Token{Name: "ann", Role: auth.Viewer, Grants: []auth.Grant{{Class: "cart", Prefix: "acme/"}}})
	if err != nil {
		t.Fatal(err)
	}
	f = start(t, func(c *Config) {
		c.Auth = tokens
		if change != nil {
			change(c)
		}
	})
	whoami := func(x *exchange) error { return x.json(200, x.who.ID) }
	f.srv.handle(route{method: "GET", pattern: "/v1/viewed", access: viewer, handle: whoami})
	f.srv.handle(route{method: "GET", pattern: "/v1/administered", access: admin, handle: whoami})
	return f, tokens, token, text
}

const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded"
)

// cookie is the cookie that an answer sets.
func (r reply) cookie(t *testing.T) *http.Cookie {
	t.Helper()
	c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	if err != nil || len(r.header.Values("Set-Cookie")) != 1 {
		t.Fatalf("the answer sets no cookie: %d %q %v", r.status, r.body, err)
	}
	return c
}

// A browser signs in with a token in JSON or in a form, uses the session with the role of the
// token, and signs out; a revoked token ends it.
func TestSignIn(t *testing.T) {
	f, tokens, token, text := signing(t, nil)
	for kind, body := range map[string]string{
		asJSON:                 `{"token": "` + text + `"}`,
		asForm:                 url.Values{"token": {text}}.Encode(),
		asForm + "; charset=x": "token=" + text,
	} {
		a := f.ask("", "POST", "/signin", body, "Content-Type", kind)
		var who signedIn
		if err := json.Unmarshal([]byte(a.body), &who); err != nil || a.status != 200 || who.ID != token.ID || who.Name != "ann" || who.Role != auth.Viewer || len(who.Grants) != 1 {
			t.Fatalf("%s: %d %s", kind, a.status, a.body)
		}
		c := a.cookie(t)
		if c.Name != "holdfast" || c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != int(8*time.Hour/time.Second) {
			t.Errorf("the cookie is %v", c)
		}
		session := []string{"Cookie", c.Name + "=" + c.Value}
		if a := f.ask("", "GET", "/v1/viewed", "", session...); a.status != 200 || !strings.Contains(a.body, token.ID) {
			t.Errorf("with the session: %d %s", a.status, a.body)
		}
		if a := f.ask("", "GET", "/v1/administered", "", session...); a.problem(t).Type != "forbidden" {
			t.Errorf("a route for admins: %s", a.body)
		}
		if a := f.ask("", "POST", "/v1/viewed", "", append(session, "Origin", "https://evil.example")...); a.problem(t).Type != "cross-origin" {
			t.Errorf("a page of another site with the session: %s", a.body)
		}
		out := f.ask("", "POST", "/signout", "", session...)
		if c := out.cookie(t); out.status != 204 || c.Name != "holdfast" || c.Value != "" || c.MaxAge >= 0 {
			t.Errorf("the sign-out: %d %v", out.status, c)
		}
	}
	c := f.ask("", "POST", "/signin", "token="+text, "Content-Type", asForm).cookie(t)
	if err := tokens.Revoke(token.ID); err != nil {
		t.Fatal(err)
	}
	if a := f.ask("", "GET", "/v1/viewed", "", "Cookie", c.Name+"="+c.Value); a.status != 401 || a.problem(t).Type != "bad-credentials" {
		t.Errorf("the session of a revoked token: %s", a.body)
	}
	if log := f.log.String(); strings.Contains(log, text) || strings.Contains(log, c.Value) {
		t.Errorf("a token or a session stands in the log:\n%s", log)
	}
}

// Behind a proxy that ends TLS the cookie is bound to the host and to TLS.
func TestSignInBehindTLS(t *testing.T) {
	f, _, _, text := signing(t, func(c *Config) { c.BehindTLS = true })
	c := f.ask("", "POST", "/signin", "token="+text, "Content-Type", asForm).cookie(t)
	if c.Name != "__Host-holdfast" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %v", c)
	}
	if a := f.ask("", "GET", "/v1/viewed", "", "Cookie", c.Name+"="+c.Value); a.status != 200 {
		t.Errorf("with the session: %d %s", a.status, a.body)
	}
	if c := f.ask("", "POST", "/signout", "").cookie(t); c.Name != "__Host-holdfast" || c.MaxAge >= 0 || !c.Secure {
		t.Errorf("the cookie of the sign-out is %v", c)
	}
}

// Sign-ins that are refused set no cookie, and no answer repeats a token. One in the URL is none.
func TestSignInsThatAreRefused(t *testing.T) {
	f, _, _, text := signing(t, nil)
	for _, c := range []struct {
		name, path, kind, body string
		status                 int
	}{
		{"wrong token", "/signin", asForm, "token=" + text + "0", 401},
		{"in the URL", "/signin?token=" + text, asForm, "", 400},
		{"also in the URL", "/signin?token=" + text, asForm, "token=" + text, 400},
		{"no token", "/signin", asForm, "", 400},
		{"empty token", "/signin", asForm, "token=", 400},
		{"two tokens", "/signin", asForm, "token=" + text + "&token=" + text, 400},
		{"another field", "/signin", asForm, "token=" + text + "&role=admin", 400},
		{"bad form", "/signin", asForm, "token=" + text + "%", 400},
		{"bad JSON", "/signin", asJSON, `{"token":"` + text, 400},
		{"another JSON field", "/signin", asJSON, `{"token":"` + text + `","` + text + `":1}`, 400},
		{"two JSON values", "/signin", asJSON, `{"token":"` + text + `"}{}`, 400},
		{"no kind", "/signin", "", "token=" + text, 415},
		{"another kind", "/signin", "text/plain", "token=" + text, 415},
		{"large", "/signin", asForm, "token=" + strings.Repeat("x", signBody-5), 413},
		{"nearly large", "/signin", asForm, "token=" + strings.Repeat("x", signBody-6), 401},
	} {
		a := f.ask("", "POST", c.path, c.body, "Content-Type", c.kind)
		if p := a.problem(t); p.Status != c.status || p.Outcome != none || a.header.Get("Set-Cookie") != "" || strings.Contains(a.body, text) {
			t.Errorf("%s: %d, want %d: %s", c.name, a.status, c.status, a.body)
		}
	}
	if a := f.ask("", "GET", "/signin", ""); a.status != 405 {
		t.Errorf("GET /signin: %d", a.status)
	}
	if log := f.log.String(); strings.Contains(log, text) {
		t.Errorf("the token stands in the log:\n%s", log)
	}
}

// The sixth wrong token of a minute gets 429 with the time to wait, in the form and in the header.
func TestTries(t *testing.T) {
	f, _, _, text := signing(t, nil)
	for i := range 6 {
		status, kind := 401, "bad-credentials"
		if i == 5 {
			status, kind = 429, "too-many-tries"
		}
		for _, a := range []reply{
			f.ask("", "POST", "/signin", "token=wrong", "Content-Type", asForm),
			f.ask("wrong", "GET", "/v1/viewed", ""),
		} {
			if p := a.problem(t); p.Status != status || p.Type != kind || (a.header.Get("Retry-After") != "") != (i == 5) {
				t.Errorf("try %d: %d %s, Retry-After %q", i+1, a.status, a.body, a.header.Get("Retry-After"))
			}
		}
	}
	if a := f.ask(text, "GET", "/v1/viewed", ""); a.status != 200 {
		t.Errorf("a right bearer token after the tries: %d %s", a.status, a.body)
	}
	if a := f.ask("", "POST", "/signin", "token="+text, "Content-Type", asForm); a.status != 200 {
		t.Errorf("a right token in the form after the tries: %d %s", a.status, a.body)
	}
}

// Without tokens the loopback has all rights, and there is no sign-in.
func TestInsecure(t *testing.T) {
	f := start(t, func(c *Config) { c.Auth = auth.Insecure() })
	f.srv.handle(route{method: "GET", pattern: "/v1/administered", access: admin, handle: func(x *exchange) error { return x.json(200, x.who.Name) }})
	if a := f.ask("", "GET", "/v1/administered", ""); a.status != 200 {
		t.Errorf("an admin's route: %d %s", a.status, a.body)
	}
	if a := f.ask("", "GET", "/v1/administered", "", "X-Forwarded-For", "192.0.2.1"); a.status != 401 {
		t.Errorf("a request of a proxy: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/signin", "/signout"} {
		if a := f.ask("", "POST", path, "token=x", "Content-Type", asForm); a.problem(t).Type != "no-sign-in" {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// A separator that is not that of the tokens is refused.
func TestSeparatorOfTokens(t *testing.T) {
	_, tokens, _, _ := signing(t, nil)
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, Definitions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Shutdown(t.Context())
	if _, err := New(host, Config{Auth: tokens, Separator: "."}); err == nil || !strings.Contains(err.Error(), `Config.Separator is "."`) {
		t.Errorf("New: %v", err)
	}
	if _, err := New(host, Config{Auth: tokens, Separator: "/"}); err != nil {
		t.Errorf("New: %v", err)
	}
}
