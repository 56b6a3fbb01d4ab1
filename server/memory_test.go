package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inMemory is a listener for connections in memory: there may be any number of them, and virtual time rules them.
type inMemory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInMemory() *inMemory {
	return &inMemory{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *inMemory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *inMemory) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*inMemory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070} }

// dial returns the client's end of a new connection. It does not buffer, so a peer that doesn't read blocks a write.
func (l *inMemory) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// mustDial is dial for a test.
func (l *inMemory) mustDial(t testing.TB) net.Conn {
	t.Helper()
	c, err := l.dial()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dialContext is dial for an http.Transport.
func (l *inMemory) dialContext(context.Context, string, string) (net.Conn, error) { return l.dial() }

// serve serves the connections until the returned func is called.
func (l *inMemory) serve(srv *Server) (end func()) {
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
func serveInMemory(srv *Server) *inMemory {
	l := newInMemory()
	srv.serving.listen = func(*net.TCPAddr) (net.Listener, error) { return l, nil }
	return l
}

// client makes each request on a connection of its own.
func (l *inMemory) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: l.dialContext, DisableKeepAlives: true}}
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
	return startWeb(t, h, (*httptest.Server).Start)
}

// newWebOverHTTP2 is newWeb with TLS and HTTP/2.
func newWebOverHTTP2(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	return startWeb(t, h, func(web *httptest.Server) {
		web.EnableHTTP2 = true
		web.StartTLS()
	})
}

func startWeb(t *testing.T, h http.Handler, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	if !inBubble() {
		web := httptest.NewUnstartedServer(h)
		start(web)
		t.Cleanup(web.Close)
		return web
	}
	memory := newInMemory()
	web := &httptest.Server{Listener: memory, Config: &http.Server{Handler: h}}
	start(web)
	web.Client().Transport.(*http.Transport).DialContext = memory.dialContext
	t.Cleanup(web.Close)
	return web
}

// patient are the limits of servers over real connections. They are longer than any test, because no verdict may depend
// on the speed of the machine.
func patient(l limits) limits {
	const long = 24 * time.Hour
	l.bodyTime, l.bodyTimePerPart, l.answerTime, l.headerTime, l.idleTime = long, long, long, long, long
	l.writeTime, l.pingEvery, l.checkEvery, l.pageTime, l.overviewTime, l.lookTime = long, long, long, long, long, long
	return l
}

// settled wants a condition to hold once all goroutines of the bubble wait.
func settled(t *testing.T, text string, holds func() bool) {
	t.Helper()
	if synctest.Wait(); !holds() {
		t.Fatal(text)
	}
}
