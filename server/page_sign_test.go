package server

import (
	"html"
	"net/url"
	"strings"
	"testing"
)

// Proves V13: a browser without a session gets the form, and after it the page that it wanted, and no page of
// another site.
func TestSignInLeadsBack(t *testing.T) {
	f, tokens, token, text := signing(t, nil)
	const wanted = "object?class=note&name=a%2F..%0D"
	a := f.ask("", "GET", "/ui/"+wanted, "")
	to := a.header.Get("Location")
	if a.status != 303 || to != "signin?back="+url.QueryEscape(wanted) {
		t.Fatalf("without a session: %d %v", a.status, a.header)
	}
	if a = f.ask("", "GET", "/ui/"+to, ""); a.status != 200 || !strings.Contains(html.UnescapeString(a.body), `name="back" value="`+wanted+`"`) {
		t.Fatalf("the form: %d %s", a.status, a.body)
	}
	post := func(token, back string) reply {
		return f.ask("", "POST", "/ui/signin", url.Values{"token": {token}, "back": {back}}.Encode(), "Content-Type", asForm)
	}
	if a = post("wrong", wanted); a.status != 401 || !strings.Contains(a.body, "The credentials are wrong") || strings.Contains(a.body, "Set-Cookie") || !strings.Contains(html.UnescapeString(a.body), wanted) {
		t.Errorf("a wrong token: %d %s", a.status, a.body)
	}
	for _, back := range []string{"", "https://example.com/", "//example.com", "/ui/classes", "../metrics", "signin", "wake?class=a&name=b", "javascript:alert(1)", "asset/page.css", "classes#x", "classes/../../x", "\\\\example.com", "classes?%zz"} {
		if a = post(text, back); a.status != 303 || a.header.Get("Location") != firstPage {
			t.Errorf("V13: back to %q leads to %d %q", back, a.status, a.header.Get("Location"))
		}
	}
	if a = post(text, wanted); a.status != 303 || a.header.Get("Location") != wanted {
		t.Fatalf("a right token: %d %v", a.status, a.header)
	}
	cookie := a.cookie(t)
	session := cookie.Name + "=" + cookie.Value
	if a = f.ask("", "GET", "/ui/classes", "", "Cookie", session); a.status != 200 || !strings.Contains(a.body, "ann, viewer") || !strings.Contains(a.body, `action="signout"`) {
		t.Errorf("with a session: %d %s", a.status, a.body)
	}
	if a = f.ask("", "POST", "/ui/signout", "", "Cookie", session); a.status != 303 || a.header.Get("Location") != "signin" || a.cookie(t).MaxAge >= 0 {
		t.Errorf("sign-out: %d %v", a.status, a.header)
	}
	if err := tokens.Revoke(token.ID); err != nil {
		t.Fatal(err)
	}
	// The script of a page asks for a part: it must not put the form into its place.
	if a = f.ask("", "GET", "/ui/classes?part=classes", "", "Cookie", session, "HX-Request", "true"); a.status != 401 || pageProblem(t, a) != "bad-credentials" {
		t.Errorf("a part after the end of the session: %d %s", a.status, a.body)
	}
	if a = f.ask("", "GET", "/ui/classes?part=classes", "", "Cookie", session); a.header.Get("Location") != "signin?back=classes" {
		t.Errorf("after the end of the session: %d %v", a.status, a.header)
	}
}

// A form must be one, because a page of another site can send text without asking first.
func TestSignInTakesAFormAlone(t *testing.T) {
	f, _, _, text := signing(t, nil)
	for _, kind := range []string{asJSON, "text/plain", ""} {
		if a := f.ask("", "POST", "/ui/signin", "token="+text, "Content-Type", kind); a.status != 415 || pageProblem(t, a) != "bad-content-type" {
			t.Errorf("%q: %d %s", kind, a.status, a.body)
		}
	}
	if a := f.ask("", "POST", "/ui/signin", "token="+strings.Repeat("x", signBody), "Content-Type", asForm); a.status != 413 {
		t.Errorf("a form that is too large: %d", a.status)
	}
}

// A file of the pages is kept by its version, and asked for again without one.
func TestAssets(t *testing.T) {
	f, _, _, _ := signing(t, nil)
	seen := map[string]bool{}
	for at := range f.crawl("", "/ui/signin") {
		if !strings.HasPrefix(at, "/ui/asset/") {
			continue
		}
		seen[at] = true
		a := f.ask("", "GET", at, "")
		path, _, _ := strings.Cut(at, "?")
		b := f.ask("", "GET", path, "")
		if a.header.Get("Cache-Control") != "max-age=31536000, immutable" || b.header.Get("Cache-Control") != "no-cache" || a.body != b.body || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v, without the version %v", at, a.header, b.header)
		}
	}
	if len(seen) != 5 {
		t.Errorf("the page refers to %v", seen)
	}
	if a := f.ask("", "GET", "/ui/asset/none.css", ""); a.status != 404 || pageProblem(t, a) != "not-found" {
		t.Errorf("a file that is not there: %+v", a)
	}
}
