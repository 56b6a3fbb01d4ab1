package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// drip writes one byte each second for ever, and returns when the server has closed the connection.
func drip(c net.Conn, b byte) error {
	beat := time.NewTicker(time.Second)
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

// drips is a client that sends the beginning of a request at once, and then one byte each second.
func drips(begin string, b byte) func(c net.Conn) error {
	return func(c net.Conn) error {
		fmt.Fprint(c, begin)
		return drip(c, b)
	}
}

// largeAnswer takes 128 s more than a short answer at most.
const largeAnswer = 8 << 20

// large is a route with such an answer.
func large() route {
	text := bytes.Repeat([]byte("x"), largeAnswer)
	return route{method: "GET", pattern: "/v1/large", access: open, handle: func(x *exchange) error { return x.answer(200, "text/plain", text) }}
}

// slow are clients that hold a connection. Each returns when the server has ended it, which is after a time that is known.
var slow = map[string]struct {
	client func(c net.Conn) error
	cut    time.Duration
}{
	"says nothing": {func(c net.Conn) error {
		_, err := io.Copy(io.Discard, c)
		return err
	}, 5 * time.Second},
	"header":                           {drips("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", 'x'), 5 * time.Second},
	"a second header":                  {drips("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", 'x'), 5 * time.Second},
	"body":                             {drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nContent-Length: 100000\r\n\r\n", 'x'), 10 * time.Second},
	"body in chunks":                   {drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nTransfer-Encoding: chunked\r\n\r\nFFFFF\r\n", 'x'), 10 * time.Second},
	"size of a chunk":                  {drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nTransfer-Encoding: chunked\r\n\r\n", '0'), 10 * time.Second},
	"body that nobody asked for":       {drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", 'x'), 10 * time.Second},
	"body of a path that is not there": {drips("POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", 'x'), 10 * time.Second},
	"body after it was asked for":      {drips("POST /v1/echo/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n", 'x'), 10 * time.Second},
	"body that is too long":            {drips("POST /signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nFFFFF\r\n"+strings.Repeat("x", signBody+1), 'x'), 10500 * time.Millisecond}, // net/http waits for half a second after its answer
	"idle after an answer": {func(c net.Conn) error {
		fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		_, err := io.Copy(io.Discard, c)
		return err
	}, 2 * time.Minute},
	"reads nothing": {readsNothing, 138 * time.Second},
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

// Proves V5: clients that send or take too slowly lose their connection at its bound and not before it,
// while others are served at once, and leave no goroutine behind.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it waits for all goroutines
		s := newServed(t, func(c *Config) { c.Auth = signs{everyone} }, echo, large())
		at := s.serve("127.0.0.1:0")
		var clients sync.WaitGroup
		const each = 8
		for name, k := range slow {
			for range each {
				c := mustDial(t, s.memory)
				clients.Go(func() {
					defer c.Close() // the server has closed it
					began := time.Now()
					if err := k.client(c); err != nil {
						t.Errorf("V5: %s: %v", name, err)
					}
					if took := time.Since(began); took != k.cut {
						t.Errorf("V5: %s: cut after %v, want %v", name, took, k.cut)
					}
				})
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		served := 0
		var others sync.WaitGroup
		others.Go(func() {
			h := s.memory.Client()
			for ctx.Err() == nil {
				began := time.Now()
				r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+at+"/v1/echo/a", strings.NewReader("body"))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer viewer")
				a, err := h.Do(r)
				if err != nil {
					t.Errorf("V5: another client: %v", err)
					return
				}
				b, err := io.ReadAll(a.Body)
				if a.Body.Close(); err != nil || a.StatusCode != 200 || !strings.Contains(string(b), "body") || time.Since(began) != 0 {
					t.Errorf("V5: another client after %v: %d, %s, %v", time.Since(began), a.StatusCode, b, err)
					return
				}
				served++
				time.Sleep(time.Second)
			}
		})
		clients.Wait()
		stop()
		others.Wait()
		if served < 138 {
			t.Errorf("another client was served %d times", served)
		}
		s.end()
		if err := <-s.over; err != nil {
			t.Error(err)
		}
	})
}

// A client at a fair pace gets all of a large answer, and brings all of a large body, although
// that takes longer than the time of a short one.
func TestFairClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServed(t, func(c *Config) { c.MaxBodyBytes = largeAnswer }, large(), route{
			method: "POST", pattern: "/v1/count", access: open, handle: func(x *exchange) error {
				b, err := x.body()
				if err != nil {
					return err
				}
				return x.json(200, len(b))
			},
		})
		at := s.serve("127.0.0.1:0")

		c := mustDial(t, s.memory)
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

		b, err := s.memory.Client().Post("http://"+at+"/v1/count", "", &paced{from: io.LimitReader(endless{}, largeAnswer)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Body.Close()
		if text, err := io.ReadAll(b.Body); string(text) != fmt.Sprintln(largeAnswer) || err != nil {
			t.Errorf("the body: %d %q, %v", b.StatusCode, text, err)
		}
		if took := time.Since(began); took != 65*3*time.Second {
			t.Errorf("all took %v", took)
		}
		s.end()
		if err := <-s.over; err != nil {
			t.Error(err)
		}
	})
}

// paced rests for 3 s before each part of 256 KiB, in which a client has 4 s more.
type paced struct {
	from io.Reader
	left int
}

func (p *paced) Read(b []byte) (int, error) {
	if p.left == 0 {
		time.Sleep(3 * time.Second)
		p.left = 256 << 10
	}
	n, err := p.from.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}
