package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// kettle is an object that takes its time.
type kettle struct{ boiled int }

// stove is a server of kettles behind net/http, in a bubble.
type stove struct {
	t       *testing.T
	srv     *Server
	http    *http.Server
	at      *memnet.Listener
	log     lines
	running atomic.Int32 // handlers of net/http that have not returned
	why     chan error   // the error of the context of each handler that has taken time
}

// boiling runs f with a stove whose requests are wrapped by around. The kettle a is in memory.
func boiling(t *testing.T, around func(http.Handler) http.Handler, f func(s *stove)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stove{t: t, at: memnet.Listen(), why: make(chan error, 10)}
		class := object.Define("kettle", func(context.Context, *object.State) (*kettle, error) { return &kettle{}, nil })
		object.Handle(class, "boil", func(k *kettle, ctx context.Context, d time.Duration) (int, error) {
			if d < 0 {
				runtime.Goexit()
			}
			if time.Sleep(d); d > 0 {
				s.why <- ctx.Err()
			}
			k.boiled++
			return k.boiled, nil
		})
		logger := slog.New(slog.NewTextHandler(&s.log, nil))
		host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Logger: logger}, Definitions(class)...)
		if err != nil {
			t.Fatal(err)
		}
		s.srv, err = New(host, Config{Auth: people{"caller": principal("kettle")}, Objects: []Exposed{Class(class)}, Timeout: time.Second, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		limit(s.srv)
		counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.running.Add(1)
			defer s.running.Add(-1)
			s.srv.ServeHTTP(w, r)
		})
		s.http = &http.Server{Handler: around(counted), ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
		served := make(chan error, 1)
		go func() { served <- s.http.Serve(s.at) }()
		defer func() {
			if err := errors.Join(s.http.Shutdown(context.Background()), host.Shutdown(context.Background())); err != nil {
				t.Error(err)
			}
			<-served
		}()
		if a, _ := s.boil(0); a.status != 200 {
			t.Fatalf("the kettle does not boil: %+v", a)
		}
		f(s)
	})
}

// direct puts nothing around a handler.
func direct(h http.Handler) http.Handler { return h }

// client is the other end of a connection.
type client struct {
	net.Conn
	in   *bufio.Reader
	t    *testing.T
	sent time.Time
}

func (s *stove) dial() *client {
	c := mustDial(s.t, s.at)
	return &client{Conn: c, in: bufio.NewReader(c), t: s.t}
}

// send calls boil of a for d.
func (c *client) send(d time.Duration, headers ...string) {
	c.t.Helper()
	r, err := http.NewRequest("POST", "http://localhost/v1/objects/kettle/a/call/boil", strings.NewReader(strconv.FormatInt(int64(d), 10)))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer caller")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	c.sent = time.Now()
	if err := r.Write(c); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads an answer, and tells how long it took to come and whether it ends the connection.
func (c *client) answer() (a reply, took time.Duration, last bool) {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	took = time.Since(c.sent)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply{r.StatusCode, r.Header, string(body)}, took, r.Close
}

// closed reports whether the server closes the connection now.
func (c *client) closed() bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Nanosecond))
	_, err := c.in.ReadByte()
	return err == io.EOF
}

// boil calls boil on a connection of its own.
func (s *stove) boil(d time.Duration, headers ...string) (a reply, took time.Duration) {
	s.t.Helper()
	c := s.dial()
	defer c.Close()
	c.send(d, headers...)
	a, took, _ = c.answer()
	return a, took
}

// seconds is the time of all calls by the metrics.
func (s *stove) seconds() float64 {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.srv.metrics.page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	_, text, _ := strings.Cut(w.Body.String(), `holdfast_http_seconds_sum{route="/v1/objects/{class}/{name}/call/{method}"} `)
	text, _, _ = strings.Cut(text, "\n")
	sum, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return sum
}

// Proves V4: at the end of its time, and not before it, a call has its answer, also while its handler keeps the goroutine of the request. Then
// the connection is closed, so that it holds up neither the client nor the end of the server, and the handler goes on.
func TestAnswerBeforeTheHandler(t *testing.T) {
	for _, c := range []struct {
		name     string
		handler  time.Duration
		headers  []string
		answered time.Duration
		status   int
	}{
		{"just in time", time.Second - 1, nil, time.Second - 1, 200},
		{"just late", time.Second + 1, nil, time.Second, 504},
		{"late", 30 * time.Second, nil, time.Second, 504},
		{"late by the header", 30 * time.Second, []string{"Holdfast-Timeout", "10ms"}, 10 * time.Millisecond, 504},
		{"with a key", 30 * time.Second, []string{"Idempotency-Key", "k"}, time.Second, 504},
	} {
		boiling(t, direct, func(s *stove) {
			client := s.dial()
			client.send(c.handler, c.headers...)
			a, took, last := client.answer()
			if a.status != c.status || took != c.answered || last != (c.status != 200) {
				t.Errorf("V4: %s: the answer is %d after %v, and the last one: %v", c.name, a.status, took, last)
			}
			if c.status == 200 {
				client.send(0)
				if a, _, _ := client.answer(); a.status != 200 || a.body != "3" {
					t.Errorf("V4: %s: the next answer of the connection is %+v", c.name, a)
				}
				_ = client.Close()
				return
			}
			if p := a.problem(t); p.Type != "outcome-unknown" || p.Outcome != unknown || p.Retryable != (c.name == "with a key") || p.Detail == "" {
				t.Errorf("V4: %s: the problem is %+v", c.name, p)
			}
			if !client.closed() || s.running.Load() != 1 {
				t.Errorf("V4: %s: the connection is open, or the handler has not kept its goroutine: %d", c.name, s.running.Load())
			}
			began := time.Now()
			if err := s.http.Shutdown(context.Background()); err != nil || time.Since(began) > time.Second {
				t.Errorf("V4: %s: the end of the server took %v, %v", c.name, time.Since(began), err)
			}
			if err := <-s.why; err != nil || time.Since(client.sent) != c.handler {
				t.Errorf("V4: %s: the handler ended after %v, its context with %v", c.name, time.Since(client.sent), err)
			}
			if synctest.Wait(); s.running.Load() != 0 {
				t.Errorf("V4: %s: the handler of net/http has not returned", c.name)
			}
			if got := s.seconds(); got != c.answered.Seconds() {
				t.Errorf("V4: %s: the time of the call counts as %v s, want %v", c.name, got, c.answered)
			}
			if log := s.log.String(); log != "" {
				t.Errorf("V4: %s: the log is %q", c.name, log)
			}
			if b, err := s.srv.host.CallBytes(context.Background(), "kettle", "a", "boil", []byte("0")); err != nil || string(b) != "3" {
				t.Errorf("V4: %s: the next call: %s, %v", c.name, b, err)
			}
		})
	}
}

// wrapped is a writer that a handler around the server has put before that of net/http.
type wrapped struct{ http.ResponseWriter }

// transparent is one that lets http.ResponseController through.
type transparent struct{ wrapped }

func (w transparent) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Proves V4: if a handler around the server has wrapped the writer, or the request is one of HTTP/2, the handler of net/http returns at the end of
// the wait, and the connection stays.
func TestHandlerReturnsAtTheEndOfTheWait(t *testing.T) {
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"opaque":      func(w http.ResponseWriter) http.ResponseWriter { return wrapped{w} },
		"transparent": func(w http.ResponseWriter) http.ResponseWriter { return transparent{wrapped{w}} },
	} {
		around := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
		}
		boiling(t, around, func(s *stove) {
			client := s.dial()
			client.send(30 * time.Second)
			a, took, last := client.answer()
			if synctest.Wait(); a.status != 504 || took != time.Second || last || s.running.Load() != 0 {
				t.Errorf("V4: %s: %d after %v, the last one: %v, %d handlers of net/http", name, a.status, took, last, s.running.Load())
			}
			_ = client.Close()
			if err := <-s.why; err != nil || time.Since(client.sent) != 30*time.Second {
				t.Errorf("V4: %s: the handler ended after %v, its context with %v", name, time.Since(client.sent), err)
			}
		})
	}
	boiling(t, direct, func(s *stove) {
		s.http.Protocols = new(http.Protocols)
		s.http.Protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: s.http.Protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return s.dial(), nil }}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequest("POST", "http://localhost/v1/objects/kettle/a/call/boil", strings.NewReader(strconv.FormatInt(int64(30*time.Second), 10)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer caller")
		began := time.Now()
		a, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, a.Body)
		if synctest.Wait(); err != nil || a.ProtoMajor != 2 || a.StatusCode != 504 || time.Since(began) != time.Second || s.running.Load() != 0 {
			t.Errorf("V4: HTTP/%d: %d after %v, %v, %d handlers of net/http", a.ProtoMajor, a.StatusCode, time.Since(began), err, s.running.Load())
		}
		if err := <-s.why; err != nil {
			t.Errorf("V4: HTTP/2: the handler's context ended with %v", err)
		}
	})
}

// Proves V4, V5: a client that does not take the answer of a call whose time is over holds up neither the object nor, for longer than the time of an
// answer, its own connection.
func TestAnswerIsNotTaken(t *testing.T) {
	boiling(t, direct, func(s *stove) {
		client := s.dial()
		client.send(3 * time.Second)
		time.Sleep(4 * time.Second)
		if a, took := s.boil(0); a.status != 200 || a.body != "3" || took != 0 {
			t.Errorf("V4: the next call gets %+v after %v", a, took)
		}
		if synctest.Wait(); s.running.Load() != 1 {
			t.Error("V4: the handler of net/http has returned before its answer")
		}
		time.Sleep(time.Second + s.srv.limits.answerTime - 4*time.Second - 1)
		if synctest.Wait(); s.running.Load() != 1 {
			t.Error("V5: the connection has not had its time")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); s.running.Load() != 0 {
			t.Error("V5: the connection is held for longer than the time of an answer")
		}
		<-s.why
	})
}

// Proves V4, V5: a handler of a call that ends its goroutine is an answer 500 and a line of the log, and the object lives.
func TestGoexitOfACall(t *testing.T) {
	around := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrapped{w}, r) })
	}
	for name, around := range map[string]func(http.Handler) http.Handler{"direct": direct, "wrapped": around} {
		boiling(t, around, func(s *stove) {
			a, _ := s.boil(-1)
			if p := a.problem(t); p.Status != 500 || p.Type != "panic" || p.Outcome != none || p.Retryable {
				t.Errorf("V5: %s: the problem is %+v", name, p)
			}
			if synctest.Wait(); s.running.Load() != 0 || strings.Count(s.log.String(), "level=ERROR") != 1 {
				t.Errorf("V5: %s: %d handlers of net/http; the log is %q", name, s.running.Load(), s.log.String())
			}
			if a, _ := s.boil(0); a.status != 200 || a.body != "1" { // a new instance
				t.Errorf("V5: %s: the next call gets %+v", name, a)
			}
		})
	}
}
