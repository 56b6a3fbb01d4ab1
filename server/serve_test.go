package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// served is a server that runs by Serve.
type served struct {
	t    *testing.T
	host *object.Host
	srv  *Server
	log  *lines
	at   chan []net.Addr
	end  context.CancelFunc
	over chan error

	memory *memnet.Listener // nil outside a bubble
}

// newServed makes a server for the routes and does not run it yet.
func newServed(t *testing.T, change func(*Config), routes ...route) *served {
	t.Helper()
	s := &served{t: t, log: &lines{}, at: make(chan []net.Addr, 1), over: make(chan error, 1)}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Logger: logger}, Definitions()...)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Auth: everyone, Logger: logger, Listening: func(at []net.Addr) { s.at <- at }}
	if !inBubble() {
		c.ShutdownTimeout = 24 * time.Hour
	}
	if change != nil {
		change(&c)
	}
	srv, err := New(host, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		srv.handle(r)
	}
	s.host, s.srv = host, srv
	if inBubble() {
		s.memory = serveInMemory(srv)
	}
	limit(srv)
	t.Cleanup(func() { _ = host.Shutdown(context.Background()) }) // Serve's tests look at its error
	return s
}

// serve runs the server until s.end, and returns its first address.
func (s *served) serve(addrs ...string) string {
	s.t.Helper()
	ctx, end := context.WithCancel(s.t.Context())
	s.end = end
	go func() { s.over <- s.srv.Serve(ctx, addrs...) }()
	select {
	case at := <-s.at:
		return at[0].String()
	case err := <-s.over:
		s.t.Fatal(err)
		return ""
	}
}

// status makes a request on a connection of its own.
func (s *served) status(at, path string) (int, error) {
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if s.memory != nil {
		h = s.memory.Client()
	}
	a, err := h.Get("http://" + at + path)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	_, err = io.Copy(io.Discard, a.Body)
	return a.StatusCode, err
}

// wantStatus fails the test if a request gets another status.
func (s *served) wantStatus(at, path string, want int) {
	s.t.Helper()
	if got, err := s.status(at, path); got != want || err != nil {
		s.t.Errorf("%s: %d, %v, want %d", path, got, err, want)
	}
}

// blocked is a route that says on the first channel that it runs, and answers when the second
// is closed.
func blocked(runs chan<- struct{}, goOn <-chan struct{}) route {
	return route{method: "GET", pattern: "/v1/blocked", access: open, handle: func(x *exchange) error {
		runs <- struct{}{}
		<-goOn
		return x.json(200, "done")
	}}
}

// refused waits until an address has no listener.
func refused(t *testing.T, at string) {
	t.Helper()
	for {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return
		}
		if err := errors.Join(c.Close(), t.Context().Err()); err != nil {
			t.Fatal(err)
		}
	}
}

// The end has an order: /readyz says 503 while all else is answered; the listeners close while
// a request that is under way goes on, and the host lives; then the host ends.
func TestServeEndsInOrder(t *testing.T) {
	for _, keep := range []bool{false, true} {
		runs, goOn := make(chan struct{}), make(chan struct{})
		s := newServed(t, func(c *Config) { c.Linger, c.KeepHost = time.Hour, keep }, blocked(runs, goOn))
		lingers, listens := make(chan time.Duration), make(chan struct{})
		s.srv.serving.sleep = func(d time.Duration) { lingers <- d; <-listens }
		at := s.serve("127.0.0.1:0")
		s.wantStatus(at, "/readyz", 200)
		s.wantStatus(at, "/livez", 200)
		answered := make(chan error, 1)
		go func() {
			status, err := s.status(at, "/v1/blocked")
			if err == nil && status != 200 {
				err = fmt.Errorf("status %d", status)
			}
			answered <- err
		}()
		<-runs

		s.end()
		if d := <-lingers; d != time.Hour {
			t.Errorf("it lingers for %v", d)
		}
		s.wantStatus(at, "/readyz", 503)
		s.wantStatus(at, "/livez", 200)
		s.wantStatus(at, "/v1/nothing", 404)
		select {
		case <-s.srv.serving.ending.Done():
			t.Error("streams end while it lingers")
		default:
		}

		close(listens)
		<-s.srv.serving.ending.Done()
		refused(t, at)
		if err := s.host.Wake(t.Context(), storage.ID{Class: "cart", Name: "x"}); errors.Is(err, object.ErrShutdown) {
			t.Error("the host has ended before the requests")
		}
		select {
		case err := <-answered:
			t.Errorf("the request under way was cut: %v", err)
		case err := <-s.over:
			t.Errorf("Serve has left a request behind: %v", err)
		default:
		}

		close(goOn)
		if err := <-answered; err != nil {
			t.Errorf("the request under way: %v", err)
		}
		if err := <-s.over; err != nil {
			t.Errorf("Serve returned %v", err)
		}
		if ended := errors.Is(s.host.Err(), object.ErrShutdown); ended == keep {
			t.Errorf("KeepHost is %v, and the host's end is %v", keep, s.host.Err())
		}
		if log := s.log.String(); strings.Contains(log, "ERROR") || strings.Contains(log, "WARN") {
			t.Errorf("the log is %s", log)
		}
	}
}

// Requests and handlers that do not end are cut at ShutdownTimeout, and Serve says so.
func TestServeTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, goOn := make(chan struct{}), make(chan struct{})
		defer close(goOn)
		s := newServed(t, nil, blocked(runs, goOn))
		at := s.serve("127.0.0.1:0")
		answered := make(chan error, 1)
		go func() {
			_, err := s.status(at, "/v1/blocked")
			answered <- err
		}()
		<-runs
		began := time.Now()
		s.end()
		err := <-s.over
		if took := time.Since(began); took != defaultShutdownTimeout-defaultShutdownTimeout/4 {
			t.Errorf("the end took %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "requests are still under way") || strings.Contains(err.Error(), "\n") {
			t.Errorf("Serve returned %v", err)
		}
		if err := <-answered; err == nil {
			t.Error("the request got an answer")
		}
		if _, err := s.memory.Dial(); err == nil {
			t.Error("the listener is open")
		}
		if !errors.Is(s.host.Err(), object.ErrShutdown) {
			t.Errorf("the host lives: %v", s.host.Err())
		}
	})
}

// Serve refuses an address with one line, listens on none of the others, and ends the host all
// the same.
func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cert := certificate(t)
	none := func(*Config) {}
	for _, c := range []struct {
		name   string
		change func(*Config)
		addrs  []string
		want   string // in the error; empty: it serves
	}{
		{"loopback", none, []string{"127.0.0.1:0"}, ""},
		{"loopback, version 6 or by name", none, []string{"localhost:0"}, ""},
		{"two", none, []string{"127.0.0.1:0", "127.0.0.2:0"}, ""},
		{"none", none, nil, "needs an address"},
		{"all interfaces", none, []string{":0"}, "set Config.TLS"},
		{"all interfaces, version 4", none, []string{"0.0.0.0:0"}, "set Config.TLS"},
		{"all interfaces, version 6", none, []string{"[::]:0"}, "set Config.TLS"},
		{"another", none, []string{"192.0.2.1:0"}, "set Config.TLS"},
		{"the second is another", none, []string{"127.0.0.1:0", "192.0.2.1:0"}, "set Config.TLS"},
		{"Hosts alone", func(c *Config) { c.Hosts = []string{"a.example"} }, []string{":0"}, "set Config.TLS"},
		{"BehindTLS alone", func(c *Config) { c.BehindTLS = true }, []string{":0"}, "set Config.Hosts"},
		{"TLS alone", func(c *Config) { c.TLS = cert }, []string{":0"}, "set Config.Hosts"},
		{"BehindTLS and Hosts", func(c *Config) { c.BehindTLS, c.Hosts = true, []string{"a.example"} }, []string{":0"}, ""},
		{"TLS and Hosts", func(c *Config) { c.TLS, c.Hosts = cert, []string{"a.example"} }, []string{":0"}, ""},
		{"in use", none, []string{taken.Addr().String()}, "address already in use"},
		{"no port", none, []string{"127.0.0.1"}, "missing port"},
	} {
		s := newServed(t, c.change)
		if c.want == "" {
			s.serve(c.addrs...)
			s.end()
			if err := <-s.over; err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		err := s.srv.Serve(t.Context(), c.addrs...)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "server: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.want)
		}
		if !errors.Is(s.host.Err(), object.ErrShutdown) {
			t.Errorf("%s: the host lives", c.name)
		}
	}
}

// A Server runs once, because its end is one.
func TestServeOnce(t *testing.T) {
	s := newServed(t, nil)
	at := s.serve("127.0.0.1:0")
	if err := s.srv.Serve(t.Context(), "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "called before") {
		t.Errorf("the second Serve: %v", err)
	}
	s.wantStatus(at, "/readyz", 200)
	s.end()
	if err := <-s.over; err != nil {
		t.Error(err)
	}
}

// New refuses settings that Serve could not keep.
func TestServeConfig(t *testing.T) {
	s := newServed(t, nil)
	for want, change := range map[string]func(*Config){
		"Config.Linger":          func(c *Config) { c.Linger = -1 },
		"Config.ShutdownTimeout": func(c *Config) { c.ShutdownTimeout = -1 },
		"Config.TLS":             func(c *Config) { c.TLS = &tls.Config{} },
	} {
		c := Config{Auth: everyone}
		change(&c)
		if _, err := New(s.host, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if srv, err := New(s.host, Config{Auth: everyone}); err != nil || srv.config.ShutdownTimeout != 20*time.Second {
		t.Errorf("ShutdownTimeout is %v, %v", srv.config.ShutdownTimeout, err)
	}
}

// certificate is one for 127.0.0.1 and example.com.
func certificate(t *testing.T) *tls.Config {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	return &tls.Config{Certificates: web.TLS.Certificates}
}

// With a certificate Serve speaks TLS, and no plain HTTP.
func TestServeTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // its client trusts the certificate
	defer web.Close()
	s := newServed(t, func(c *Config) { c.TLS = &tls.Config{Certificates: web.TLS.Certificates} })
	at := s.serve("127.0.0.1:0")
	a, err := web.Client().Get("https://" + at + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != 200 || a.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	s.wantStatus(at, "/readyz", 400)
	web.Client().CloseIdleConnections()
	s.end()
	if err := <-s.over; err != nil {
		t.Error(err)
	}
}

// Proves V5: the header of a request has its bound.
func TestHeaderBound(t *testing.T) {
	s := newServed(t, nil)
	s.srv.limits = defaultLimits
	h := s.srv.httpServer()
	limit(s.srv)
	if h.ReadHeaderTimeout != 5*time.Second || h.IdleTimeout != 2*time.Minute || h.MaxHeaderBytes != 16<<10 {
		t.Errorf("the bounds are %v, %v, %d", h.ReadHeaderTimeout, h.IdleTimeout, h.MaxHeaderBytes)
	}
	at := s.serve("127.0.0.1:0")
	for size, want := range map[int]int{15 << 10: 200, 21 << 10: 431} { // net/http allows 4 KiB more than it is told
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /livez HTTP/1.1\r\nHost: %s\r\nX: %s\r\n\r\n", at, strings.Repeat("x", size))
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.StatusCode != want {
			t.Errorf("a header of %d bytes: %d, want %d", size, a.StatusCode, want)
		}
		_ = errors.Join(a.Body.Close(), c.Close()) // the server may have closed it
	}
	s.end()
	if err := <-s.over; err != nil {
		t.Error(err)
	}
}

// lookAt asks both probes as several principals. Neither tells more than a status.
func lookAt(f *fixture, live, ready int) {
	f.t.Helper()
	for path, want := range map[string]int{"/livez": live, "/readyz": ready} {
		for _, who := range []string{"", "viewer", "thief"} {
			if a := f.ask(who, "GET", path, ""); a.status != want || a.body != "" {
				f.t.Errorf("%s as %q: %d %q, want %d", path, who, a.status, a.body, want)
			}
		}
	}
}

// held is a class with a method that waits for hold to be closed, and one that writes.
type held struct {
	st         *object.State
	runs, hold chan struct{}
}

func heldClass(runs, hold chan struct{}) (class *object.Class[held], wait, write *object.Method[int, int]) {
	class = object.Define("held", func(_ context.Context, st *object.State) (*held, error) { return &held{st, runs, hold}, nil })
	wait = object.Handle(class, "wait", func(h *held, _ context.Context, n int) (int, error) {
		close(h.runs)
		<-h.hold
		return n, nil
	})
	return class, wait, object.Handle(class, "write", func(h *held, ctx context.Context, n int) (int, error) {
		return n, h.st.Storage().Put(ctx, "n", n)
	})
}

// From the beginning of a shutdown on, whoever shuts the host down, it is not ready. It is live
// to the end and after.
func TestProbesOfAShutdown(t *testing.T) {
	runs, hold := make(chan struct{}), make(chan struct{})
	class, wait, _ := heldClass(runs, hold)
	f := start(t, nil, class)
	lookAt(f, 200, 200)
	called, shut := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := wait.Call(t.Context(), f.host, "x", 1)
		called <- err
	}()
	<-runs
	go func() { shut <- f.host.Shutdown(context.Background()) }()
	for f.ask("", "GET", "/readyz", "").status != 503 {
	}
	if err := f.host.Err(); err != nil {
		t.Errorf("the host has ended: %v", err)
	}
	lookAt(f, 200, 503)
	close(hold)
	if err := errors.Join(<-called, <-shut); err != nil {
		t.Error(err)
	}
	lookAt(f, 200, 503)
}

// broken is an engine that fails each write after fail is set.
type broken struct {
	engine.Engine
	fail atomic.Bool
}

func (b *broken) Apply(repr []byte) error {
	if b.fail.Load() {
		return errors.New("the disk fails on purpose")
	}
	return b.Engine.Apply(repr)
}

// A host with a failed store is not ready. It is live, because a restart mends no disk.
func TestProbesOfAFailedStore(t *testing.T) {
	disk := &broken{Engine: memstore.New()}
	class, _, write := heldClass(nil, nil)
	f := startOn(t, object.Options{Storage: storage.Options{Engine: disk}}, nil, class)
	lookAt(f, 200, 200)
	disk.fail.Store(true)
	if _, err := write.Call(t.Context(), f.host, "x", 1); !errors.Is(err, object.ErrStorage) {
		t.Fatal(err)
	}
	lookAt(f, 200, 503)
}

// arrivals is an Authenticator that tells of the long polls that have arrived.
type arrivals struct {
	auth.Authenticator
	polls chan struct{}
}

func (a arrivals) Authenticate(r *http.Request) (auth.Principal, error) {
	if strings.HasSuffix(r.URL.Path, "/wait") {
		a.polls <- struct{}{}
	}
	return a.Authenticator.Authenticate(r)
}

// Streams say bye and long polls answer when Serve begins to end, so it does not wait for them.
func TestServeEndsStreamsAndLongPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := make(chan string, 1)
		polls := make(chan struct{}, 1)
		s := openShop(t, memory(), func(c *Config) {
			c.Listening = func(all []net.Addr) { at <- all[0].String() }
			c.Auth = arrivals{c.Auth, polls}
		})
		task := s.enqueue("thumb", `{"in": {"name": "cat", "slow": true}}`)
		ctx, end := context.WithCancel(t.Context())
		over := make(chan error, 1)
		client := serveInMemory(s.srv).Client()
		go func() { over <- s.srv.Serve(ctx, "127.0.0.1:0") }()
		base := "http://" + <-at

		ask := func(path string) *http.Response {
			t.Helper()
			r, err := http.NewRequest("GET", base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer viewer")
			a, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		stream := ask("/v1/events")
		defer stream.Body.Close()
		if _, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		waits := make(chan int, 1)
		go func() {
			a := ask("/v1/pools/thumb/tasks/" + task + "/wait?timeout=60s")
			defer a.Body.Close()
			waits <- a.StatusCode
		}()
		<-polls
		settled(t, "the long poll is not counted", func() bool { return s.open() == 2 })
		end()
		if rest, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(rest), "event: bye") {
			t.Errorf("the stream ends with %q, %v", rest, err)
		}
		if status := <-waits; status != 200 {
			t.Errorf("the long poll: %d", status)
		}
		close(s.release)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
