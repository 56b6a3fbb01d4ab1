package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// shortLimits are the bounds of connections, much shorter than those of production.
var shortLimits = limits{
	bodyTime: 200 * time.Millisecond, bodyTimePerPart: time.Millisecond, answerTime: 200 * time.Millisecond,
	headerTime: 200 * time.Millisecond, idleTime: 200 * time.Millisecond, headerBytes: 16 << 10,
}

// drip writes one byte after the other, for ever, more slowly than any client that is fine, and
// returns when the server has closed the connection.
func drip(c net.Conn, b byte) error {
	beat := time.NewTicker(10 * time.Millisecond)
	defer beat.Stop()
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, c)
		close(gone)
	}()
	for {
		select {
		case <-gone:
			return nil
		case <-beat.C:
			if _, err := c.Write([]byte{b}); err != nil {
				<-gone
				return nil
			}
		}
	}
}

// drips is a client that sends the beginning of a request at once, and then one byte after the other.
func drips(begin string, b byte) func(c net.Conn) error {
	return func(c net.Conn) error {
		fmt.Fprint(c, begin)
		return drip(c, b)
	}
}

// largeAnswer is more than the buffers of a connection take.
const largeAnswer = 8 << 20

// large is a route with such an answer.
func large() route {
	text := bytes.Repeat([]byte("x"), largeAnswer)
	return route{method: "GET", pattern: "/v1/large", access: open, handle: func(x *exchange) error { return x.answer(200, "text/plain", text) }}
}

// dials with small buffers, so that the server feels soon that nobody reads.
var dials = net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
	return errors.Join(c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
	}), err)
}}

// slow are clients that hold a connection. Each returns when the server has ended it.
var slow = map[string]func(c net.Conn) error{
	"says nothing": func(c net.Conn) error {
		_, err := io.Copy(io.Discard, c)
		return err
	},
	"header":                           drips("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", 'x'),
	"a second header":                  drips("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", 'x'),
	"body":                             drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nContent-Length: 100000\r\n\r\n", 'x'),
	"body in chunks":                   drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nTransfer-Encoding: chunked\r\n\r\nFFFFF\r\n", 'x'),
	"size of a chunk":                  drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nTransfer-Encoding: chunked\r\n\r\n", '0'),
	"body that nobody asked for":       drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", 'x'),
	"body of a path that is not there": drips("POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", 'x'),
	"body after it was asked for":      drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n", 'x'),
	"body that is too long":            drips("POST /signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nFFFFF\r\n"+strings.Repeat("x", signBody+1), 'x'),
	"idle after an answer": func(c net.Conn) error {
		fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		_, err := io.Copy(io.Discard, c)
		return err
	},
}

// signs is an Authenticator with sessions.
type signs struct{ people }

func (signs) SignIn(*http.Request, string, bool) (auth.Principal, *http.Cookie, error) {
	return auth.Principal{}, nil, auth.ErrBadCredentials
}
func (signs) SignOut(bool) *http.Cookie { return &http.Cookie{Name: "holdfast"} }

// readsNothing asks for large answers and takes none. It returns when writing has come to its
// end, because the server has closed the connection.
func readsNothing(c net.Conn) error {
	for {
		if _, err := fmt.Fprint(c, "GET /v1/large HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return nil
		}
	}
}

// Proves V5: clients that send or take too slowly lose their connection within its bounds,
// while others are served, and leave no goroutine behind.
func TestSlowClients(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newServed(t, func(c *Config) { c.Auth = signs{everyone} }, echo, large())
	s.srv.limits = shortLimits
	at := s.serve("127.0.0.1:0")
	slow["reads nothing"] = readsNothing

	var clients sync.WaitGroup
	const each = 8
	for name, client := range slow {
		for range each {
			clients.Go(func() {
				c, err := dials.DialContext(t.Context(), "tcp", at)
				if err == nil {
					err = client(c)
					_ = c.Close() // the server has closed it
				}
				if err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	// Others are served meanwhile. The bounds are so short that a busy machine may break them,
	// so a lost connection is no mistake.
	ctx, stop := context.WithCancel(t.Context())
	served := 0
	var others sync.WaitGroup
	others.Go(func() {
		h := http.Client{Transport: &http.Transport{}}
		defer h.CloseIdleConnections()
		for ctx.Err() == nil {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+at+"/v1/echo/a", strings.NewReader("body"))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer viewer")
			a, err := h.Do(r)
			if err != nil {
				continue
			}
			b, err := io.ReadAll(a.Body)
			if a.Body.Close(); err == nil && (a.StatusCode != 200 || !strings.Contains(string(b), "body")) {
				t.Errorf("another client: %d, %s", a.StatusCode, b)
				return
			}
			served++
		}
	})
	clients.Wait()
	stop()
	others.Wait()
	if served == 0 {
		t.Error("no other client was served")
	}
	s.end()
	if err := <-s.over; err != nil {
		t.Error(err)
	}
	wantGoroutines(t, before)
}

// wantGoroutines waits until there are as few goroutines as before. The end of one is not an
// event that another goroutine can see, so it looks again and again.
func wantGoroutines(t *testing.T, before int) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range 5000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		<-look.C
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines are left of %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}

// A client at a fair pace gets all of a large answer, and brings all of a large body, although
// that takes longer than the time of a short one.
func TestFairClients(t *testing.T) {
	s := newServed(t, func(c *Config) { c.MaxBodyBytes = largeAnswer }, large(), route{
		method: "POST", pattern: "/v1/count", access: open, handle: func(x *exchange) error {
			b, err := x.body()
			if err != nil {
				return err
			}
			return x.json(200, len(b))
		},
	})
	s.srv.limits.bodyTime, s.srv.limits.answerTime = 50*time.Millisecond, 50*time.Millisecond
	s.srv.limits.bodyTimePerPart = time.Second
	at := s.serve("127.0.0.1:0")

	c, err := dials.DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	fmt.Fprint(c, "GET /v1/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
	a, err := http.ReadResponse(bufio.NewReaderSize(c, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, &paced{from: a.Body}); n != largeAnswer || err != nil {
		t.Errorf("%d bytes of the answer, %v", n, err)
	}

	h := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	b, err := h.Post("http://"+at+"/v1/count", "", &paced{from: io.LimitReader(endless{}, largeAnswer)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Body.Close()
	if text, err := io.ReadAll(b.Body); string(text) != fmt.Sprintln(largeAnswer) || err != nil {
		t.Errorf("the body: %d %q, %v", b.StatusCode, text, err)
	}
	if took := time.Since(began); took < 2*s.srv.limits.bodyTime {
		t.Errorf("all took %v: the test shows nothing", took)
	}
	s.end()
	if err := <-s.over; err != nil {
		t.Error(err)
	}
}

// paced rests for some milliseconds before each part of 256 KiB.
type paced struct {
	from io.Reader
	left int
}

func (p *paced) Read(b []byte) (int, error) {
	if p.left == 0 {
		<-time.After(5 * time.Millisecond)
		p.left = 256 << 10
	}
	n, err := p.from.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}
