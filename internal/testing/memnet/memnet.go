// Package memnet has connections in memory. In a bubble of testing/synctest virtual time rules their deadlines, because
// a goroutine that waits for one doesn't wait for the world outside.
package memnet

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
)

// Listener accepts connections in memory. It has an address of its own on the loopback, which DialContext finds.
type Listener struct {
	at     net.TCPAddr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// open are the listeners by address.
var open = struct {
	sync.Mutex
	all  map[string]*Listener
	last int // port
}{all: map[string]*Listener{}}

// Listen opens a listener.
func Listen() *Listener {
	open.Lock()
	defer open.Unlock()
	open.last = open.last%65535 + 1
	l := &Listener{at: net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: open.last}, conns: make(chan net.Conn), closed: make(chan struct{})}
	open.all[l.at.String()] = l
	return l
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. Open connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() {
		open.Lock()
		defer open.Unlock()
		delete(open.all, l.at.String())
		close(l.closed)
	})
	return nil
}

// Addr is the address.
func (l *Listener) Addr() net.Addr { return &l.at }

// Dial returns the client's end of a new connection. It buffers nothing: a peer that doesn't read blocks a write.
func (l *Listener) Dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	}
}

// Client makes each request on a connection of its own to the listener, whatever its address is.
func (l *Listener) Client() *http.Client {
	dial := func(context.Context, string, string) (net.Conn, error) { return l.Dial() }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// DialContext connects to the listener with an address, for an http.Transport.
func DialContext(_ context.Context, _, addr string) (net.Conn, error) {
	open.Lock()
	l := open.all[addr]
	open.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	return l.Dial()
}

// NewServer is httptest.NewServer in memory.
func NewServer(h http.Handler) *httptest.Server { return start(h, (*httptest.Server).Start) }

// NewHTTP2Server is NewServer with TLS and HTTP/2.
func NewHTTP2Server(h http.Handler) *httptest.Server {
	return start(h, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.StartTLS()
	})
}

func start(h http.Handler, begin func(*httptest.Server)) *httptest.Server {
	s := &httptest.Server{Listener: Listen(), Config: &http.Server{Handler: h}}
	begin(s)
	s.Client().Transport.(*http.Transport).DialContext = DialContext
	return s
}
