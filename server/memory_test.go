package server

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

func TestMain(m *testing.M) {
	patience.Have()
	os.Exit(m.Run())
}

// mustDial is l.Dial for a test.
func mustDial(t testing.TB, l *memnet.Listener) net.Conn {
	t.Helper()
	c, err := l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serveOn serves the connections of a listener until the returned func is called.
func serveOn(l net.Listener, srv *Server) (end func()) {
	h, ended := srv.httpServer(), make(chan struct{})
	go func() {
		_ = h.Serve(l) // its error is that of the closed listener
		close(ended)
	}()
	return func() {
		_ = h.Close()
		<-ended
	}
}

// serveInMemory has Serve listen in memory, for a test in a bubble.
func serveInMemory(srv *Server) *memnet.Listener {
	l := memnet.Listen()
	srv.serving.listen = func(*net.TCPAddr) (net.Listener, error) { return l, nil }
	return l
}

// inBubble reports whether the test runs in a bubble of synctest.
func inBubble() (is bool) {
	defer func() { is = recover() == nil }()
	synctest.Wait() // panics outside
	return
}

// newWeb serves a handler until the end of the test: in a bubble over connections in memory, because virtual time
// stands still while a goroutine waits for a real one, and else over the loopback.
func newWeb(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	start := httptest.NewServer
	if inBubble() {
		start = memnet.NewServer
	}
	web := start(h)
	t.Cleanup(web.Close)
	return web
}

// limit gives a server the limits of production in a bubble, and elsewhere limits that are longer than any test, because
// no verdict may depend on the speed of the machine.
func limit(s *Server) {
	if inBubble() {
		s.limits = defaultLimits
		return
	}
	s.limits = defaultLimits.patient()
	s.limits.pingEvery, s.limits.checkEvery = patience.Times(s.limits.pingEvery), patience.Times(s.limits.checkEvery)
}

// settled wants a condition to hold once all goroutines of the bubble wait.
func settled(t *testing.T, text string, holds func() bool) {
	t.Helper()
	if synctest.Wait(); !holds() {
		t.Fatal(text)
	}
}
