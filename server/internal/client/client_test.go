package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// serve serves a handler on the loopback and returns a client of it with a token.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	c, err := New(web.URL+"/below/", "secret")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Proves V17: names reach the server as they are, below the path of the address, with the token and the key; a
// problem is decoded, and its text cannot move a cursor.
func TestRequests(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // compared below
		switch r.URL.EscapedPath() {
		case "/below/v1/a%2Fb/%1B":
			fmt.Fprintf(w, `[%q, %q, %q, %q]`, r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), r.URL.Query().Get("q"), body)
		default:
			w.WriteHeader(409)
			fmt.Fprint(w, `{"type":"illegal-move","title":"No.","detail":"a \u001b[2J \"b\"","outcome":"unknown","retryable":true}`)
		}
	})
	raw, err := c.Do(t.Context(), Request{Method: "POST", Path: Path("v1", "a/b", "\x1b"), Query: Query("q", "x&y", "none", ""), Body: []byte("1"), Key: "k"})
	if want := `["Bearer secret", "k", "x&y", "1"]`; err != nil || string(raw) != want {
		t.Errorf("%s, %v, want %s", raw, err, want)
	}
	var p *Problem
	err = c.Get(t.Context(), "/other", nil, nil)
	if !errors.As(err, &p) || p.Type != "illegal-move" || p.Status != 409 || !p.Retryable || p.Error() != `"No: a \x1b[2J \"b\"" (it may have taken effect)` {
		t.Errorf("%v", err)
	}
}

// Proves V17: an answer that is not of a server of Holdfast, a redirect and an answer that is cut are told apart
// from a refusal, and the token follows no redirect.
func TestStrangers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"an error page": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502); fmt.Fprint(w, "<html>") },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "stolen") {
				t.Error("the client follows a redirect")
			}
			http.Redirect(w, r, "/stolen", http.StatusFound)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"a cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			fmt.Fprint(w, "{")
		},
	} {
		var v any
		var p *Problem
		if err := serve(t, h).Get(t.Context(), "/", nil, &v); !errors.Is(err, ErrUnreachable) || errors.As(err, &p) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := serve(t, nil).Do(ctx, Request{Method: "GET", Path: "/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// Proves V17: a stream gives its frames, without comments and retries, until enough, and says if it was cut.
func TestStreams(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "retry: 2000\n\nid: 1\nevent: event\ndata: a\n\nid: 2\n: ping\n\nevent: bye\ndata: b:c\n\n")
		if r.URL.Query().Has("cut") {
			fmt.Fprint(w, "event: ev")
		}
	})
	var got []string
	each := func(f Frame) error { got = append(got, f.ID+" "+f.Event+" "+f.Data); return nil }
	if err := c.Events(t.Context(), "/", nil, each); err != nil || !slices.Equal(got, []string{"1 event a", "2 bye b:c"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := c.Events(t.Context(), "/", Query("cut", "1"), each); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a stream that is cut: %v", err)
	}
	n := 0
	if err := c.Events(t.Context(), "/", nil, func(Frame) error { n++; return ErrEnough }); err != nil || n != 1 {
		t.Errorf("%d frames, %v", n, err)
	}
}

// Proves V17: a token goes over plain HTTP to this machine alone.
func TestAddresses(t *testing.T) {
	for addr, ok := range map[string]bool{
		"http://127.0.0.1:1": true, "http://[::1]:1/x": true, "http://localhost": true, "https://a.example": true,
		"http://a.example": false, "http://192.0.2.1": false, "a.example": false, "ftp://localhost": false, "http://u:p@localhost": false, "https://a.example?x=1": false, "": false,
	} {
		if _, err := New(addr, "secret"); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
	if _, err := New("http://a.example", ""); err != nil {
		t.Errorf("without a token: %v", err)
	}
	if _, err := New("https://a.example", "a\nb"); err == nil {
		t.Error("a token of two lines is taken")
	}
}
