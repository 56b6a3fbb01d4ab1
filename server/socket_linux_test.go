package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/internal/socket"
)

// whoRoute tells the principal.
var whoRoute = route{method: "GET", pattern: "/v1/who", access: admin, handle: func(x *exchange) error {
	return x.json(200, map[string]any{"id": x.who.ID, "calls": x.who.MayCall("any", "name", "method"), "still": x.stillMay()})
}}

// overSocket makes a request over a socket, with a Host that no server answers for over TCP.
func overSocket(t *testing.T, at, path string, header http.Header) (int, string) {
	t.Helper()
	h := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://socket.example"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	a, err := h.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// Proves V16: over the socket a process of our user is an admin of its own name who may call everything, for
// any Host and beside an address with TLS; one with credentials, and one behind a proxy, are asked for them.
// The end of Serve removes the socket.
func TestServeOnASocket(t *testing.T) {
	s := newServed(t, func(c *Config) { c.Auth, c.TLS = crowd, certificate(t) }, whoRoute)
	at := s.serve("unix:"+filepath.Join(t.TempDir(), ".run", "holdfast.sock"), "127.0.0.1:0")
	want := fmt.Sprintf(`{"calls":true,"id":"user:%d","still":true}`+"\n", os.Geteuid())
	if status, body := overSocket(t, at, "/v1/who", nil); status != 200 || body != want {
		t.Errorf("%d %s, want %s", status, body, want)
	}
	for _, header := range []http.Header{
		{"Authorization": {"Bearer nobody"}}, {"Cookie": {"holdfast=x"}}, {"X-Forwarded-For": {"192.0.2.1"}}, {"Via": {"1.1 x"}},
	} {
		if status, body := overSocket(t, at, "/v1/who", header); status != 401 && status != 403 {
			t.Errorf("%v: %d %s", header, status, body)
		}
	}
	s.end()
	if err := <-s.over; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// Proves V16: a process of another user, and one that the system does not know, are refused on each route.
func TestForeignUser(t *testing.T) {
	for _, peer := range []func(net.Conn) (int, error){
		func(net.Conn) (int, error) { return os.Geteuid() + 1, nil },
		func(net.Conn) (int, error) { return os.Geteuid(), errors.New("no credentials") },
	} {
		s := newServed(t, func(c *Config) { c.Auth = auth.Insecure() }, whoRoute)
		s.srv.serving.peer = peer
		at := s.serve("unix:" + filepath.Join(t.TempDir(), "run", "x.sock"))
		for _, path := range []string{"/v1/who", "/livez", "/ui"} {
			if status, body := overSocket(t, at, path, nil); status != 403 || !strings.Contains(body, "foreign-user") {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		s.end()
		if err := <-s.over; err != nil {
			t.Error(err)
		}
	}
}

// Proves V16: a socket that another server listens to is refused, and goes on; the host of the server
// that was refused has ended.
func TestSocketInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "x.sock")
	first := newServed(t, func(c *Config) { c.Auth = auth.Insecure() }, whoRoute)
	at := first.serve("unix:" + path)
	second := newServed(t, nil)
	err := second.srv.Serve(t.Context(), "127.0.0.1:0", "unix:"+path)
	if !errors.Is(err, socket.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) || !errors.Is(second.host.Err(), object.ErrShutdown) {
		t.Errorf("the second server: %v; its host %v", err, second.host.Err())
	}
	if status, body := overSocket(t, at, "/v1/who", nil); status != 200 {
		t.Errorf("the first server: %d %s", status, body)
	}
	first.end()
	if err := <-first.over; err != nil {
		t.Error(err)
	}
}
