package auth

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// signIn signs in from the address of httptest.
func (f *fixture) signIn(text string, secure bool) (Principal, *http.Cookie) {
	f.t.Helper()
	p, c, err := f.SignIn(httptest.NewRequest("POST", "/signin", nil), text, secure)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cookies = append(f.cookies, c.Value)
	return p, c
}

// with is a request that has cookies.
func with(cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest("GET", "/v1/jobs", nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

// Proves V12: a session is accepted for 8 hours and not for a moment more.
func TestSessionEnds(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ann", Role: Operator})
		p, c := f.signIn(" "+text+"\n", false)
		if p.ID != token.ID || p.Role != Operator {
			t.Errorf("signed in as %+v", p)
		}
		is(t, f, with(c), token)
		time.Sleep(8*time.Hour - 1)
		is(t, f, with(c), token)
		time.Sleep(time.Nanosecond)
		refused(t, f, with(c), ErrBadCredentials)
		is(t, f, request(text), token)
	})
}

// Proves V12: a session ends with its token: when the token is revoked, expires, or its ID gets another hash.
func TestSessionEndsWithItsToken(t *testing.T) {
	inBubble(t, func(f *fixture) {
		for name, end := range map[string]func(Token){
			"revoked": func(t Token) {
				if err := f.Revoke(t.ID); err != nil {
					f.t.Fatal(err)
				}
			},
			"expired": func(Token) { time.Sleep(time.Hour) },
			"another hash": func(t Token) {
				f.edit(strings.ReplaceAll(f.content(), hexOf(f, t.ID), strings.Repeat("ab", 32)))
				time.Sleep(lookEvery)
			},
		} {
			token, text := f.add(Token{Name: name, Role: Viewer, Expires: time.Now().Add(time.Hour)})
			kept, keptText := f.add(Token{Name: "kept", Role: Viewer})
			_, c := f.signIn(text, false)
			_, keptCookie := f.signIn(keptText, false)
			is(t, f, with(c), token)
			end(token)
			refused(t, f, with(c), ErrBadCredentials)
			is(t, f, with(keptCookie), kept)
		}
	})
}

func hexOf(f *fixture, id string) string {
	hex, err := f.view.Load().known[id].SHA256.MarshalText()
	if err != nil {
		f.t.Fatal(err)
	}
	return string(hex)
}

// Proves V12: the cookie is out of reach for scripts and other sites. Over TLS it has the name and the
// attributes that bind it to this host; one of plain HTTP is none there.
func TestCookie(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ann", Role: Viewer})
		_, plain := f.signIn(text, false)
		_, secure := f.signIn(text, true)
		if got, want := plain.String(), "holdfast="+plain.Value+"; Path=/; Max-Age=28800; HttpOnly; SameSite=Lax"; got != want {
			t.Errorf("the cookie is %s, want %s", got, want)
		}
		if got, want := secure.String(), "__Host-holdfast="+secure.Value+"; Path=/; Max-Age=28800; HttpOnly; Secure; SameSite=Lax"; got != want {
			t.Errorf("the cookie is %s, want %s", got, want)
		}
		is(t, f, with(plain), token)
		is(t, f, with(secure), token)
		overTLS := func(c *http.Cookie) *http.Request {
			r := with(c)
			r.TLS = &tls.ConnectionState{}
			return r
		}
		is(t, f, overTLS(secure), token)
		refused(t, f, overTLS(plain), ErrNoCredentials)
		renamed := *plain
		renamed.Name = secureCookie
		refused(t, f, with(&renamed), ErrBadCredentials)
		for _, c := range []*http.Cookie{plain, secure} {
			out := f.SignOut(c.Secure)
			if out.Name != c.Name || out.Value != "" || out.MaxAge >= 0 || out.Secure != c.Secure || out.Path != "/" {
				t.Errorf("the cookie of a sign-out is %v", out)
			}
			if strings.Contains(c.Value, token.ID) || strings.Contains(c.Value, text) {
				t.Errorf("the cookie shows the token: %s", c.Value)
			}
		}
	})
}

// A cookie of another process, a changed one and one of another program are refused; a good one
// beside them is found. A bearer token goes before a cookie, also a wrong one.
func TestCookiesThatAreNone(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ann", Role: Viewer})
		_, c := f.signIn(text, false)
		other := f.open(Options{})
		refused(t, other, with(c), ErrBadCredentials)
		of := func(value string) *http.Cookie { return &http.Cookie{Name: plainCookie, Value: value} }
		for i := range c.Value {
			changed := []byte(c.Value)
			if changed[i]++; f.sessionOf(plainCookie, string(changed)) != nil {
				t.Errorf("the cookie is accepted with its byte %d changed", i)
			}
		}
		for _, value := range []string{"", "x", "!", c.Value[1:], c.Value + "A", c.Value + "=", strings.Repeat("A", 16), strings.Repeat("A", 300), text} {
			refused(t, f, with(of(value)), ErrBadCredentials)
		}
		is(t, f, with(of("x"), of("y"), of("z"), c), token)
		refused(t, f, with(of("x"), of("y"), of("z"), of("a"), c), ErrBadCredentials)
		both := with(c)
		both.Header.Set("Authorization", "Bearer x")
		refused(t, f, both, ErrBadCredentials)
		both.Header.Set("Authorization", "Basic x") // of a proxy
		is(t, f, both, token)
	})
}

// A wrong token gets no cookie, and the error does not repeat it.
func TestSignInWithAWrongToken(t *testing.T) {
	inBubble(t, func(f *fixture) {
		_, text := f.add(Token{Name: "ann", Role: Viewer})
		p, c, err := f.SignIn(httptest.NewRequest("POST", "/", nil), text+"0", false)
		if !errors.Is(err, ErrBadCredentials) || c != nil || p.ID != "" {
			t.Fatalf("signed in as %+v: %v", p, err)
		}
		f.clean(err.Error())
	})
}
