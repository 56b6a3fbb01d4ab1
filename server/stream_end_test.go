package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
)

// taps is the number of taps of the host to all objects or to a class, and of objects with a tap.
func (f *fixture) taps() int {
	settled(f.t, "V9: streams are left", func() bool { return f.open() == 0 })
	hub := reflect.ValueOf(f.host).Elem().FieldByName("taps")
	for hub.Kind() == reflect.Interface || hub.Kind() == reflect.Pointer {
		hub = hub.Elem()
	}
	return int(hub.FieldByName("wide").Int()) + hub.FieldByName("topics").Len()
}

// deadlines is a ResponseWriter that keeps its deadlines and has no connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// Proves V9: a request for the header alone, and a client that leaves before the first frame, leave no tap.
func TestStreamsWithoutFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		f.ring("a begin")
		for _, path := range []string{"/v1/events", "/v1/events/bell", "/v1/objects/bell/a/events", "/v1/events?after=p1", "/v1/objects/bell/a/events?after=0"} {
			if a := f.ask("viewer", "HEAD", path, ""); a.status != 200 {
				t.Errorf("HEAD %s: %d", path, a.status)
			}
			ctx, leave := context.WithCancel(t.Context())
			leave()
			f.srv.ServeHTTP(&deadlines{ResponseRecorder: httptest.NewRecorder()}, f.request("viewer", "GET", path).WithContext(ctx))
			if n := f.taps(); n != 0 {
				t.Fatalf("V9: %d taps are left of %s", n, path)
			}
		}
	})
}

// A stream over HTTP/2 lives without events for longer than a write may take, because the
// deadline of HTTP/2 is a timer that ends the stream whether something is written or not.
func TestStreamOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		f.web = memnet.NewHTTP2Server(f.srv)
		t.Cleanup(f.web.Close)
		s := f.follow("reader", "/v1/events")
		if s.answer.ProtoMajor != 2 {
			t.Fatalf("it speaks %s", s.answer.Proto)
		}
		s.want("snapshot")
		began := time.Now()
		ping := func(after time.Duration) {
			t.Helper()
			if fr := s.want(""); fr.comment != "ping" || time.Since(began) != after {
				t.Errorf("after %v the frame %+v, want a ping after %v", time.Since(began), fr, after)
			}
		}
		ping(15 * time.Second)
		f.ring("a one")
		s.rings("a one")
		ping(30 * time.Second)
		s.leave()
		settled(t, "V9: a stream is left", func() bool { return f.open() == 0 })
	})
}

// A request whose body was asked for has no deadline of writing while its handler runs.
func TestNoDeadlineAfterTheBody(t *testing.T) {
	f := start(t, nil)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	f.srv.handle(route{method: "POST", pattern: "/v1/body", access: open, handle: func(x *exchange) error {
		if _, err := x.body(); err != nil {
			return err
		}
		if !w.read.IsZero() || !w.write.IsZero() {
			t.Errorf("the deadlines are %v to read and %v to write", w.read, w.write)
		}
		return x.empty()
	}})
	r := httptest.NewRequest("POST", "http://localhost/v1/body", strings.NewReader("body"))
	r.Header.Set("Expect", "100-continue")
	if f.srv.ServeHTTP(w, r); w.Code != 204 || w.write.IsZero() {
		t.Errorf("%d, and the deadline of the answer is %v", w.Code, w.write)
	}
}

// A stream with a body is refused, because the time of the body would end it.
func TestStreamTakesNoBody(t *testing.T) {
	f := start(t, nil, bells)
	for _, path := range []string{"/v1/events", "/v1/objects/bell/a/events"} {
		for _, body := range []io.Reader{strings.NewReader("x"), io.MultiReader(strings.NewReader("x"))} { // of a known length, and in chunks
			r := f.request("viewer", "GET", path)
			b, err := http.NewRequest("GET", r.URL.String(), body)
			if err != nil {
				t.Fatal(err)
			}
			b.Header = r.Header
			if p := f.do(b).problem(t); p.Type != "bad-request" || !strings.Contains(p.Detail, "no body") {
				t.Errorf("%s: %+v", path, p)
			}
		}
	}
	f.follow("viewer", "/v1/events")
}

// An end leaves a part of its time to the host, so that a request that does not end does not cut the
// handlers of others.
func TestServeLeavesTimeToTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, holds := make(chan struct{}), make(chan struct{})
		class, wait, _ := heldClass(holds, hold)
		at := make(chan string, 1)
		f := start(t, func(c *Config) {
			c.ShutdownTimeout = 4 * time.Second
			c.Listening = func(all []net.Addr) { at <- all[0].String() }
		}, class)
		client := serveInMemory(f.srv).Client()
		runs, goOn := make(chan struct{}), make(chan struct{})
		defer close(goOn)
		f.srv.handle(blocked(runs, goOn))
		ctx, end := context.WithCancel(t.Context())
		over, called := make(chan error, 1), make(chan error, 1)
		go func() { over <- f.srv.Serve(ctx, "127.0.0.1:0") }()
		base := "http://" + <-at
		go func() {
			_, err := wait.Call(context.Background(), f.host, "x", 1)
			called <- err
		}()
		<-holds
		var began time.Time
		go func() {
			<-runs
			began = time.Now()
			end()
		}()
		if a, err := client.Get(base + "/v1/blocked"); err == nil {
			a.Body.Close()
			t.Error("the request got an answer")
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the request was cut after %v", took)
		}
		time.Sleep(time.Second - 1)
		close(hold) // the handler ends after the requests were cut, and just before the time of the host is over
		if err := <-called; err != nil {
			t.Errorf("the handler was cut: %v", err)
		}
		if err := <-over; err == nil || !strings.Contains(err.Error(), "requests are still under way") || strings.Contains(err.Error(), "object:") {
			t.Errorf("Serve returned %v", err)
		}
	})
}

// With KeepHost requests have all the time of the end.
func TestRequestTime(t *testing.T) {
	s := newServed(t, func(c *Config) { c.ShutdownTimeout = defaultShutdownTimeout })
	if d := s.srv.requestTime(); d != 15*time.Second {
		t.Errorf("%v", d)
	}
	s.srv.config.KeepHost = true
	if d := s.srv.requestTime(); d != 20*time.Second {
		t.Errorf("%v with KeepHost", d)
	}
}

// The waits for the end of tasks and runs end with the streams. A task is then shown as it is.
func TestWaitsEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, memory(), nil)
		task := s.enqueue("thumb", `{"in": {"name": "cat", "slow": true}}`)
		s.as("caller", "PUT", "/v1/jobs/order/o", `"x"`, 201, nil)
		answers := make(chan reply, 2)
		go func() { answers <- s.ask("reader", "GET", "/v1/jobs/order/o/view/wait", "") }()
		go func() { answers <- s.ask("operator", "POST", "/v1/pools/thumb/drain", "") }()
		settled(t, "the waits are not counted", func() bool { return s.open() == 2 })
		s.srv.EndStreams()
		s.srv.EndStreams()
		for range 2 {
			if a := <-answers; a.status != 504 {
				t.Errorf("%+v", a)
			}
		}
		for _, path := range []string{"/v1/jobs/order/o/view/wait", "/v1/pools/thumb/tasks/" + task + "/wait"} {
			if p := s.ask("reader", "GET", path, "").problem(t); p.Type != "shutting-down" {
				t.Errorf("%s after the end: %+v", path, p)
			}
		}
		s.srv.streams.mu.Lock()
		s.srv.streams.ended = false // as if each had come in just before the end
		s.srv.streams.mu.Unlock()
		for range 100 {
			if a := s.ask("viewer", "GET", "/v1/pools/thumb/tasks/"+task+"/wait", ""); a.status != 200 || !strings.Contains(a.body, `"running"`) {
				t.Fatalf("a wait that was cut: %+v", a)
			}
		}
		close(s.release)
	})
}

// Proves V5: long polls are bounded as streams are, and with them. Others are answered.
func TestLongPollsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, memory(), nil)
		s.srv.limits.streamsEach = 1
		task := "/v1/pools/thumb/tasks/" + s.enqueue("thumb", `{"in": {"name": "cat", "slow": true}}`)
		s.as("caller", "PUT", "/v1/jobs/order/o", `"x"`, 201, nil)
		first := make(chan reply, 1)
		go func() { first <- s.ask("operator", "GET", task+"/wait", "") }()
		settled(t, "the wait is not counted", func() bool { return s.open() == 1 })
		for _, path := range []string{task + "/wait", "/v1/jobs/order/o/view/wait", "/v1/events"} {
			s.refused("operator", "GET", path, "", 429, "too-many-streams")
		}
		s.refused("operator", "POST", "/v1/pools/thumb/drain", "", 429, "too-many-streams")
		s.as("operator", "GET", task, "", 200, nil)
		s.as("viewer", "GET", task+"/wait?timeout=1ms", "", 200, nil)
		close(s.release)
		if a := <-first; a.status != 200 || !strings.Contains(a.body, `"done"`) {
			t.Errorf("%+v", a)
		}
		s.as("operator", "GET", task+"/wait", "", 200, nil)
		settled(t, "V9: a wait is left", func() bool { return s.open() == 0 })
	})
}

// largest is a ResponseWriter that keeps the size of its largest write, and ends its request at a text.
type largest struct {
	deadlines
	bytes int
	last  string
	leave func()
}

func (l *largest) Write(b []byte) (int, error) {
	l.bytes = max(l.bytes, len(b))
	if strings.Contains(string(b), l.last) {
		l.leave()
	}
	return len(b), nil
}

// Proves V5: a stream holds 64 KiB of events at a time, and not much more, however many there are.
func TestStreamBatch(t *testing.T) {
	f := start(t, nil, bells)
	long := strings.Repeat("x", 10<<10)
	for range 50 {
		f.ring("a one " + long)
	}
	f.ring("a last")
	ctx, leave := context.WithCancel(t.Context())
	w := &largest{deadlines: deadlines{ResponseRecorder: httptest.NewRecorder()}, last: `"kind":"last"`, leave: leave}
	f.srv.ServeHTTP(w, f.request("reader", "GET", "/v1/objects/bell/a/events?after=0").WithContext(ctx))
	if w.bytes < 64<<10 || w.bytes > 100<<10 {
		t.Errorf("V5: a write has %d bytes", w.bytes)
	}
}
