package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// taps is the number of taps of the host to all objects or to a class, and of objects with a tap.
func (f *fixture) taps() int {
	until(f.t, "V9: streams are left", func() bool { return f.open() == 0 })
	hub := reflect.ValueOf(f.host).Elem().FieldByName("taps").Elem()
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
}

// A stream over HTTP/2 lives without events for longer than a write may take, because the
// deadline of HTTP/2 is a timer that ends the stream whether something is written or not.
func TestStreamOverHTTP2(t *testing.T) {
	f := start(t, nil, bells)
	f.srv.limits.writeTime, f.srv.limits.answerTime = 500*time.Millisecond, 500*time.Millisecond
	f.srv.limits.pingEvery, f.srv.limits.checkEvery = time.Second, time.Second
	web := httptest.NewUnstartedServer(f.srv)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(web.Close)
	f.web = web
	s := f.follow("reader", "/v1/events")
	if s.answer.ProtoMajor != 2 {
		t.Fatalf("it speaks %s", s.answer.Proto)
	}
	s.want("snapshot")
	if fr := s.want(""); fr.comment != "ping" {
		t.Errorf("the frame %+v", fr)
	}
	f.ring("a one")
	s.rings("a one")
	if fr := s.want(""); fr.comment != "ping" {
		t.Errorf("the frame %+v", fr)
	}
	s.leave()
	until(t, "V9: a stream is left", func() bool { return f.open() == 0 })
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
