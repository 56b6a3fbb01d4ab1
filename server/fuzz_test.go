package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// pipe is a connection whose client has sent all of its bytes at once. It needs no goroutine
// and no time, unless a request waits for something that does not come.
type pipe struct {
	mu     sync.Mutex
	in     []byte        // not yet read
	out    bytes.Buffer  // written
	past   chan struct{} // closed while the deadline of reads lies in the past
	gone   chan struct{} // closed once the client has left
	leave  sync.Once
	closed chan struct{} // closed when the server has done with the connection
}

func newPipe(raw []byte) *pipe {
	return &pipe{in: bytes.Clone(raw), past: make(chan struct{}), gone: make(chan struct{}), closed: make(chan struct{})}
}

// leaveAfter is how long the client waits for an answer to begin, for example of a stream or a
// long poll.
const leaveAfter = 300 * time.Millisecond

// Read returns the bytes of the client, and then the end. net/http reads a single byte to see
// whether the client leaves while a handler runs: it does once an answer has begun.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	if len(p.in) > 0 {
		n := copy(b, p.in)
		p.in = p.in[n:]
		p.mu.Unlock()
		return n, nil
	}
	past := p.past
	p.mu.Unlock()
	if len(b) != 1 {
		return 0, io.EOF
	}
	impatient := time.NewTimer(leaveAfter)
	defer impatient.Stop()
	select {
	case <-past:
		return 0, os.ErrDeadlineExceeded
	case <-impatient.C:
		p.leave.Do(func() { close(p.gone) })
	case <-p.gone:
	}
	return 0, io.EOF
}

func (p *pipe) Write(b []byte) (int, error) {
	p.leave.Do(func() { close(p.gone) })
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *pipe) SetReadDeadline(at time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := isClosed(p.past)
	if is := at.Unix() == 1; is && !was { // so net/http interrupts a read; other deadlines are later than the test
		close(p.past)
	} else if !is && was {
		p.past = make(chan struct{})
	}
	return nil
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *pipe) Close() error                        { p.leave.Do(func() { close(p.gone) }); return nil }
func (p *pipe) SetDeadline(at time.Time) error      { return p.SetReadDeadline(at) }
func (p *pipe) SetWriteDeadline(at time.Time) error { return nil }
func (p *pipe) LocalAddr() net.Addr                 { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070} }
func (p *pipe) RemoteAddr() net.Addr                { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000} }

// pipes is a listener for them.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	p, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return p, nil
}

func (l pipes) Close() error { close(l); return nil } // net/http calls it once
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// status is a ResponseWriter that remembers the status.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int)        { s.code = code; s.ResponseWriter.WriteHeader(code) }
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// ruler is a principal that may do all.
type ruler struct{}

func (ruler) Authenticate(*http.Request) (auth.Principal, error) {
	return auth.Principal{ID: "ruler", Role: auth.Admin, Grants: []auth.Grant{{Class: "cart"}, {Class: "refresh"}}}, nil
}

// fuzzed is a server of pipes over a host in memory.
type fuzzed struct {
	host  *object.Host
	srv   *Server
	conns pipes
	// served says of each request how it went.
	served func(r *http.Request, code int)
}

func newFuzzed(tb testing.TB) *fuzzed {
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Logger: slog.New(slog.DiscardHandler)}, Definitions(carts())...)
	if err != nil {
		tb.Fatal(err)
	}
	srv, err := New(host, Config{Auth: ruler{}, Objects: []Exposed{{class: "cart"}}, Logger: slog.New(slog.DiscardHandler), MaxBodyBytes: 1 << 16})
	if err != nil {
		tb.Fatal(err)
	}
	f := &fuzzed{host: host, srv: srv, conns: make(pipes)}
	web := srv.httpServer()
	web.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &status{ResponseWriter: w}
		srv.ServeHTTP(s, r)
		f.served(r, s.code)
	})
	web.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(c.(*pipe).closed)
		}
	}
	go web.Serve(f.conns)
	tb.Cleanup(func() {
		if err := errors.Join(web.Close(), host.Shutdown(context.Background())); err != nil {
			tb.Error(err)
		}
	})
	return f
}

// carts has methods that answer, fail, and panic.
func carts() *object.Class[struct{}] {
	class := object.Define("cart", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
	object.Handle(class, "add", func(_ *struct{}, _ context.Context, items []string) (int, error) { return len(items), nil })
	object.Handle(class, "fail", func(_ *struct{}, _ context.Context, why string) (int, error) { return 0, errors.New(why) })
	return class
}

// send sends the bytes on a connection of their own and returns all that came back.
func (f *fuzzed) send(raw []byte) []byte {
	p := newPipe(raw)
	f.conns <- p
	<-p.closed
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Bytes()
}

// request is a plain request of a route.
func plainRequest(rt route) string {
	path := braces.ReplaceAllStringFunc(rt.pattern, func(name string) string {
		values := map[string]string{"{class}": "cart", "{method}": "add"}
		if v := values[name]; v != "" {
			return v
		}
		return "x"
	})
	var query []string
	for _, p := range rt.params {
		query = append(query, p.name+"="+[...]string{text: "x", number: "7", flag: "1"}[p.kind])
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	body := ""
	if rt.method != "GET" {
		body = `["a"]`
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", rt.method, path, len(body), body)
}

// Proves V5: no bytes that a client sends make the server panic, answer with an error of its
// own, answer without bound or wait without end, and the host serves on after them.
func FuzzHTTP(f *testing.F) {
	fuzz := newFuzzed(f)
	for _, rt := range fuzz.srv.routes() {
		f.Add([]byte(plainRequest(rt)))
	}
	const head = " HTTP/1.1\r\nHost: localhost\r\n"
	add := "POST /v1/objects/cart/x/call/add" + head
	for _, raw := range []string{
		"", "\r\n", "GET", "GET / HTTP/1.1\r\n\r\n", "GET /livez HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /livez HTTP/1.0\r\n\r\n", "GET http://evil.example/livez" + head + "\r\n", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/objects/cart/%2e%2E/why" + head + "\r\n", "GET /v1/objects/cart/%00%c0%ae" + head + "\r\n", "GET //v1/../livez" + head + "\r\n", "GET /v1/objects/cart/a%2Fb%3F%23;x=1" + head + "\r\n",
		"GET /v1/objects/cart?limit=99999999999" + head + "\r\n", "GET /v1/objects/cart?after=%ff&after=x" + head + "\r\n", "GET /v1/object?class=&name=" + head + "\r\n",
		add + "Content-Length: 5\r\n\r\n[\"a", add + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", add + "Content-Length: -1\r\n\r\n", add + "Content-Length: 99999999999999999999\r\n\r\n",
		add + "Transfer-Encoding: chunked\r\n\r\n5\r\n[\"a\"]\r\n0\r\n\r\n", add + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nffffffffffffffff\r\n", add + "Transfer-Encoding: gzip\r\n\r\n",
		add + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n[\"a\"]", add + "Idempotency-Key: \x00\xff\r\nContent-Length: 2\r\n\r\n[]", add + "Holdfast-Timeout: 1ns\r\nContent-Length: 2\r\n\r\n[]",
		add + "Idempotency-Key: k\r\nContent-Length: 2\r\n\r\n[]" + add + "Idempotency-Key: k\r\nContent-Length: 5\r\n\r\n[\"a\"]",
		add + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\nContent-Length: 0\r\n\r\n",
		"POST /v1/objects/cart/x/call/fail" + head + "Content-Length: 8\r\n\r\n\"secret\"",
		"POST /v1/call" + head + "Content-Length: 66\r\n\r\n" + `{"class":"cart","name":"../../\u0000","method":"add","argument":[]}`,
		"POST /v1/call" + head + "Content-Length: 4000\r\n\r\n" + strings.Repeat("[", 4000),
		"GET /livez" + head + "X: " + strings.Repeat("x", 30<<10) + "\r\n\r\n", "GET /livez" + head + strings.Repeat("X: y\r\n", 5000) + "\r\n",
		strings.Repeat("GET /readyz"+head+"\r\n", 20),
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		requests := 0
		fuzz.served = func(r *http.Request, code int) {
			requests++
			if code >= 500 && !(code == http.StatusGatewayTimeout && (r.Header.Get("Holdfast-Timeout") != "" || r.Context().Err() != nil)) {
				t.Errorf("%s %s: %d", r.Method, r.URL, code)
			}
		}
		answer := fuzz.send(raw)
		if len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.")) {
			t.Errorf("the answer is %q", answer)
		}
		if most := (requests + 1) * maxAnswer; len(answer) > most {
			t.Errorf("%d requests were answered with %d bytes", requests, len(answer))
		}
		fuzz.served = func(*http.Request, int) {}
		if fine := fuzz.send([]byte("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")); !bytes.HasPrefix(fine, []byte("HTTP/1.1 200 ")) {
			t.Errorf("afterwards the server answers %q", fine)
		}
	})
}

// maxAnswer bounds the answer to a request that no fuzzer has filled the store for: the
// longest are those about the server itself.
const maxAnswer = 256 << 10
