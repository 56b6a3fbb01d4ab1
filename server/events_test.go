package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

type bell struct{ st *object.State }

var (
	bells = object.Define("bell", func(ctx context.Context, st *object.State) (*bell, error) { return &bell{st}, nil })
	ring  = object.Handle(bells, "ring", func(b *bell, ctx context.Context, text string) (struct{}, error) {
		kind, _, _ := strings.Cut(text, " ")
		return struct{}{}, b.st.Emit(ctx, kind, text)
	})
)

// frame is one frame of a stream.
type frame struct{ id, event, data, comment string }

// feed is a stream that a test reads.
type feed struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Reader
	retry  string
}

// follow opens a stream. headers are pairs of a name and a value.
func (f *fixture) follow(who, path string, headers ...string) *feed {
	f.t.Helper()
	r := f.request(who, "GET", path)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := f.web.Client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	s := &feed{t: f.t, answer: a, lines: bufio.NewReader(a.Body)}
	f.t.Cleanup(s.leave)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Accel-Buffering") != "no" {
		b, _ := io.ReadAll(a.Body)
		f.t.Fatalf("%s: %d %v %s", path, a.StatusCode, a.Header, b)
	}
	return s
}

// askStream is ask for a stream, of which it reads only a refusal.
func (f *fixture) askStream(who, method, path, body string, headers ...string) reply {
	f.t.Helper()
	r := f.request(who, method, path)
	if who == "" {
		r.Header.Del("Authorization")
	}
	a, err := f.web.Client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer a.Body.Close()
	var b []byte
	if a.StatusCode >= 400 {
		b, err = io.ReadAll(a.Body)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return reply{a.StatusCode, a.Header, string(b)}
}

func (s *feed) leave() { _ = s.answer.Body.Close() }

// next reads a frame.
func (s *feed) next() (fr frame, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return fr, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			fr.id = value
		case "event":
			fr.event = value
		case "data":
			fr.data = value
		case "retry":
			s.retry = value
		case "":
			if value != "" {
				fr.comment = value
			} else if fr != (frame{}) {
				return fr, nil
			}
		default:
			s.t.Fatalf("the line %q", line)
		}
	}
}

// want reads a frame of an event with a name.
func (s *feed) want(event string) frame {
	s.t.Helper()
	fr, err := s.next()
	if err != nil || fr.event != event {
		s.t.Fatalf("the frame %+v, %v; want %s", fr, err, event)
	}
	return fr
}

// all reads without a pause, until the test ends.
func (s *feed) all() <-chan frame {
	frames := make(chan frame, 100)
	go func() {
		defer close(frames)
		for {
			fr, err := s.next()
			if err != nil {
				return
			}
			frames <- fr
		}
	}()
	return frames
}

// rings reads events with the texts, and returns the id of the last.
func (s *feed) rings(texts ...string) (id string) {
	s.t.Helper()
	for _, text := range texts {
		fr := s.want("event")
		var e streamed
		if err := json.Unmarshal([]byte(fr.data), &e); err != nil || fr.id == "" {
			s.t.Fatalf("%+v: %v", fr, err)
		}
		if want := fmt.Sprintf("%s=%q", e.Name, text[2:]); fmt.Sprintf("%s=%s", e.Name, e.Data) != want || e.Class != "bell" || e.SizeBytes != len(text) {
			s.t.Errorf("V7: got %s, want %s", fr.data, text)
		}
		id = fr.id
	}
	return id
}

// ring rings bells: each text begins with the name of one.
func (f *fixture) ring(texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		if _, err := ring.Call(f.t.Context(), f.host, text[:1], text[2:]); err != nil {
			f.t.Fatal(err)
		}
	}
}

// open is the number of streams.
func (f *fixture) open() int {
	f.srv.streams.mu.Lock()
	defer f.srv.streams.mu.Unlock()
	return len(f.srv.streams.all)
}

// draws is a random source that draws one number again and again.
type draws uint64

func (d draws) Uint64() uint64 { return uint64(d) }

// A browser comes back after 2 to 4 s, as each stream draws for itself.
func TestStreamsComeBackApart(t *testing.T) {
	for drawn, want := range map[draws]string{0: "2000", 700: "2700", 2000: "4000", 2001: "2000"} {
		o := memory()
		o.Seams.Rand = drawn
		s := startOn(t, o, nil, bells).follow("viewer", "/v1/events")
		s.want("snapshot")
		if s.retry != want {
			t.Errorf("drawn %d: retry %s, want %s", drawn, s.retry, want)
		}
	}
}

// A stream of one object begins with its state, goes on with each event once, and a client that
// comes back goes on where it was. Proves V7.
func TestStreamOfAnObject(t *testing.T) {
	f := start(t, nil, bells)
	f.ring("a one", "a two")
	s := f.follow("reader", "/v1/objects/bell/a/events")
	snapshot := s.want("snapshot")
	var in object.Inspection
	if err := json.Unmarshal([]byte(snapshot.data), &in); err != nil || len(in.Events) != 2 || fmt.Sprint(in.Events[0].Seq) != snapshot.id {
		t.Fatalf("the snapshot is %+v, %v", snapshot, err)
	}
	f.ring("a three", "b one", "a four")
	last := s.rings("a three", "a four")
	s.leave()
	f.ring("a five")
	f.follow("reader", "/v1/objects/bell/a/events", "Last-Event-ID", snapshot.id).rings("a three", "a four", "a five")
	f.follow("reader", "/v1/objects/bell/a/events?after="+last).rings("a five")
	f.follow("reader", "/v1/objects/bell/a/events?after="+snapshot.id, "Last-Event-ID", last).rings("a five")
	f.follow("reader", "/v1/object/events?class=bell&name=a&after=0&kind=two,five").rings("a two", "a five")
	missed := f.follow("reader", "/v1/objects/bell/a/events?after=1")
	missed.want("reset")
	f.wantSamples("holdfast_stream_dropped_total", `holdfast_stream_dropped_total{why="missed"} 1`)
	missed.want("snapshot")
	f.ring("a six")
	missed.rings("a six")

	none := f.follow("reader", "/v1/objects/bell/c/events")
	if fr := none.want("snapshot"); fr.id != "" {
		t.Errorf("the snapshot of an object without events has the id %q", fr.id)
	}
	f.ring("c one")
	none.rings("c one")
}

// A stream of a class, or of all, begins with counts and a place, to which the client can come back.
// A place that is not known is told by a reset. Proves V7.
func TestStreamOfAClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		settled(t, "the labels are not counted", func() bool { _, whole := f.host.Labels("bell"); return whole })
		f.ring("a early")
		for _, path := range []string{"/v1/events", "/v1/events/bell"} {
			s := f.follow("viewer", path)
			snapshot := s.want("snapshot")
			if want := `[{"class":"bell","labels":{},"complete":true}]`; snapshot.data != want || snapshot.id == "" {
				t.Errorf("the snapshot is %+v, want %s", snapshot, want)
			}
			s.leave()
			f.ring("a one", "b one", "a two")
			if id := f.follow("reader", path, "Last-Event-ID", snapshot.id).rings("a one", "b one"); id == "" {
				t.Error("no id")
			}
			f.follow("reader", path+"?name=a&kind=two,three&after="+snapshot.id).rings("a two")
			for _, wrong := range []string{"p1", "p18446744073709551615"} {
				s := f.follow("reader", path, "Last-Event-ID", wrong)
				s.want("reset")
				s.want("snapshot")
				f.ring("b later")
				s.rings("b later")
			}
		}
		for _, c := range []struct{ path, kind string }{
			{"/v1/events?after=7", "bad-cursor"}, {"/v1/events?after=p0", "bad-cursor"}, {"/v1/events?after=px", "bad-cursor"},
			{"/v1/objects/bell/a/events?after=p7", "bad-cursor"}, {"/v1/objects/bell/a/events?after=-1", "bad-cursor"},
			{"/v1/events/nothing", "unknown-class"}, {"/v1/objects/nothing/a/events", "unknown-class"}, {"/v1/events/holdfast.audit", "unknown-class"},
		} {
			if p := f.ask("reader", "GET", c.path, "").problem(t); p.Type != c.kind {
				t.Errorf("%s: %+v, want %s", c.path, p, c.kind)
			}
		}
		if a := f.ask("viewer", "HEAD", "/v1/events", ""); a.status != 200 {
			t.Errorf("HEAD: %d", a.status)
		}
	})
}

// With the feed a stream of a class, or of all, goes on where it was over crashes. An
// opening without the feed is told by a reset. Proves V7.
func TestStreamsOverRestarts(t *testing.T) {
	store := memstore.New()
	open := func(feed bool) *fixture {
		return startOn(t, object.Options{Storage: storage.Options{Engine: store}, Feed: feed}, nil, bells)
	}
	crash := func(f *fixture) {
		after := store.Crash(0)
		_ = f.host.Shutdown(t.Context())
		store = after
	}
	paths := []string{"/v1/events", "/v1/events/bell"}
	f, places := open(true), map[string]string{}
	for _, path := range paths {
		places[path] = f.follow("reader", path).want("snapshot").id
	}
	for _, text := range []string{"a one", "b two", "a three"} {
		f.ring(text)
		crash(f)
		f = open(true)
		for _, path := range paths {
			places[path] = f.follow("reader", path, "Last-Event-ID", places[path]).rings(text)
		}
	}
	crash(f)
	f = open(false)
	f.ring("b four")
	crash(f)
	f = open(true)
	for _, path := range paths {
		s := f.follow("reader", path, "Last-Event-ID", places[path])
		s.want("reset")
		s.want("snapshot")
	}
}

// Below reader an event has no data. A principal with a prefix has the streams of its own objects
// and no other. Proves V6.
func TestStreamsByRole(t *testing.T) {
	f := start(t, nil, bells)
	s := f.follow("viewer", "/v1/events")
	s.want("snapshot")
	f.ring("a secret")
	if fr := s.want("event"); strings.Contains(fr.data, `"data`) || !strings.Contains(fr.data, `"sizeBytes":8`) {
		t.Errorf("a viewer sees %s", fr.data)
	}
	if _, err := ring.Call(t.Context(), f.host, "acme/a", "x own"); err != nil {
		t.Fatal(err)
	}
	own := f.follow("acme", "/v1/objects/bell/acme%2Fa/events?after=0")
	own.want("event")
	for _, c := range []struct {
		who, path string
		status    int
	}{
		{"acme", "/v1/objects/bell/a/events", 404}, {"acme", "/v1/events", 404}, {"acme", "/v1/events/bell", 404},
		{"nobody", "/v1/events", 403}, {"caller", "/v1/objects/bell/a/events", 403}, {"", "/v1/events", 401},
	} {
		if a := f.ask(c.who, "GET", c.path, ""); a.status != c.status {
			t.Errorf("%s at %s: %d, want %d", c.who, c.path, a.status, c.status)
		}
	}
}

// guests are principals that can be revoked and changed.
type guests struct {
	mu sync.Mutex
	people
}

func (g *guests) Authenticate(r *http.Request) (auth.Principal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.people.Authenticate(r)
}

func (g *guests) Find(id string) (auth.Principal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.people.Find(id)
}

func (g *guests) set(token string, who *auth.Principal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delete(g.people, token); who != nil {
		g.people[token] = *who
	}
}

// A stream asks for its principal every five seconds: one that was revoked, or that may not see the
// stream any more, gets bye. One with another role sees with that. Proves V6.
func TestStreamsOfRevokedPrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guests{people: people{"a": {Role: auth.Reader}, "b": {Role: auth.Admin}, "c": {Role: auth.Reader}}}
		f := start(t, func(c *Config) { c.Auth = g }, bells)
		first, second, third := f.follow("a", "/v1/events"), f.follow("b", "/v1/objects/bell/a/events"), f.follow("c", "/v1/events")
		for _, s := range []*feed{first, second, third} {
			s.want("snapshot")
		}
		began := time.Now()
		g.set("a", nil)
		g.set("b", &auth.Principal{Role: auth.Admin, Prefix: "x/"})
		g.set("c", &auth.Principal{Role: auth.Viewer})
		f.ring("a one")
		for _, s := range []*feed{first, second, third} {
			s.rings("a one") // it has not asked again
		}
		for _, s := range []*feed{first, second} {
			if fr := s.want("bye"); fr.data != `{"reason":"revoked"}` || time.Since(began) != f.srv.limits.checkEvery {
				t.Errorf("V6: after %v the last frame is %+v", time.Since(began), fr)
			}
			if fr, err := s.next(); err != io.EOF {
				t.Errorf("after bye: %+v, %v", fr, err)
			}
		}
		f.wantSamples("holdfast_stream_dropped_total", `holdfast_stream_dropped_total{why="revoked"} 2`)
		f.ring("a secret")
		if fr := third.want("event"); strings.Contains(fr.data, `"data"`) || time.Since(began) != f.srv.limits.checkEvery {
			t.Errorf("V6: after %v a viewer sees %+v", time.Since(began), fr)
		}
	})
}

// Streams say bye when the server or the host ends, and none begins afterwards. Proves V9.
func TestStreamsEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bye := func(s *feed) {
			t.Helper()
			s.want("snapshot")
			if fr := s.want("bye"); fr.data != `{"reason":"closing"}` {
				t.Errorf("the last frame is %+v", fr)
			}
			if _, err := s.next(); err != io.EOF {
				t.Errorf("after bye: %v", err)
			}
		}
		f := start(t, nil, bells)
		one, all := f.follow("reader", "/v1/objects/bell/a/events"), f.follow("reader", "/v1/events")
		f.srv.streams.end()
		bye(one)
		bye(all)
		f.wantSamples("holdfast_stream_dropped_total", `holdfast_stream_dropped_total{why="closing"} 2`)
		if p := f.ask("reader", "GET", "/v1/events", "").problem(t); p.Type != "shutting-down" {
			t.Errorf("a stream of a server that closes: %+v", p)
		}
		f = start(t, nil, bells)
		one, all = f.follow("reader", "/v1/objects/bell/a/events"), f.follow("reader", "/v1/events")
		if err := f.host.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		bye(one)
		bye(all)
		if p := f.ask("reader", "GET", "/v1/events", "").problem(t); p.Type != "shutting-down" {
			t.Errorf("a stream of a host that has ended: %+v", p)
		}
		settled(t, "V9: streams are left", func() bool { return f.open() == 0 })
	})
}

// Proves V5: a principal has as many streams as it may have and no more, and so have all together.
func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		f.srv.limits.streamsEach, f.srv.limits.streams = 2, 3
		refused := func(who string) {
			t.Helper()
			if a := f.ask(who, "HEAD", "/v1/events", ""); a.status != 429 { // it has an end also if it is not refused
				t.Fatalf("%s: %+v", who, a)
			}
			a := f.ask(who, "GET", "/v1/events", "")
			if p := a.problem(t); p.Type != "too-many-streams" || a.status != 429 || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %+v", who, p)
			}
		}
		first := f.follow("viewer", "/v1/events")
		f.follow("viewer", "/v1/objects/bell/a/events")
		refused("viewer")
		f.follow("reader", "/v1/events")
		refused("operator")
		first.leave()
		settled(t, "V9: a stream is left", func() bool { return f.open() == 2 })
		f.follow("viewer", "/v1/events")
		if defaultLimits.streams != 10_000 || defaultLimits.streamsEach != 100 {
			t.Error("the limits are not those of the documents")
		}
	})
}

// Of 1,000 streams half leave at once, and then the others: each leaves no goroutine, no timer and no
// listener. The others get each event. Proves V9.
func TestManyStreamsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		f.srv.limits.streamsEach = 1000
		f.ring("a begin")
		f.web.Client().CloseIdleConnections()
		const n = 1000
		before := runtime.NumGoroutine()
		feeds := make([]*feed, n)
		for i := range feeds {
			feeds[i] = f.follow("reader", []string{"/v1/events", "/v1/events/bell", "/v1/objects/bell/a/events"}[i%3])
			feeds[i].want("snapshot")
		}
		all := runtime.NumGoroutine()
		for _, s := range feeds[:n/2] {
			s.leave()
		}
		settled(t, "V9: streams are left", func() bool { return f.open() == n/2 })
		settled(t, "V9: goroutines are left", func() bool { return runtime.NumGoroutine() <= (all+before)/2+20 })
		f.ring("a one", "a two")
		var wg sync.WaitGroup
		for _, s := range feeds[n/2:] {
			wg.Go(func() {
				for range 2 {
					if fr, err := s.next(); err != nil || fr.event != "event" {
						t.Errorf("the frame %+v, %v", fr, err)
					}
				}
			})
		}
		wg.Wait()
		for _, s := range feeds[n/2:] {
			s.leave()
		}
		settled(t, "V9: streams are left", func() bool { return f.open() == 0 })
		settled(t, "V9: goroutines are left", func() bool { return runtime.NumGoroutine() <= before+5 })
		if s := &f.srv.streams; len(s.all) != 0 || len(s.of) != 0 {
			t.Errorf("V9: %d streams of %d principals are left", len(s.all), len(s.of))
		}
	})
}

// A client that doesn't read is cut after the time of a write and not before it, and doesn't hold up the others. Proves V5, V9.
func TestStreamOfASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		slow := f.follow("reader", "/v1/events")
		slow.want("snapshot")
		other := f.follow("viewer", "/v1/events").all()
		<-other // the snapshot
		began := time.Now()
		for range 3 {
			f.ring("a " + strings.Repeat("x", 1<<20))
			if fr := <-other; fr.event != "event" {
				t.Errorf("V5: the client that reads gets %+v", fr)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("V5: the client that reads has waited for %v", took)
		}
		time.Sleep(f.srv.limits.writeTime - 1)
		settled(t, "V5: the slow client has not had its time", func() bool { return f.open() == 2 })
		f.wantSamples("holdfast_stream_dropped_total")
		time.Sleep(time.Nanosecond)
		settled(t, "V5: the slow client is left", func() bool { return f.open() == 1 })
		f.wantSamples("holdfast_stream_dropped_total", `holdfast_stream_dropped_total{why="slow"} 1`)
		f.ring("a last")
		if fr := <-other; fr.event != "event" {
			t.Errorf("V5: the client that reads gets %+v", fr)
		}
	})
}

// plainWriter hides all but the methods of a ResponseWriter.
type plainWriter struct{ http.ResponseWriter }

// A stream under a writer without deadlines is refused, because nothing would end it.
func TestStreamNeedsDeadlines(t *testing.T) {
	f := start(t, nil, bells)
	r := f.request("viewer", "GET", "/v1/events")
	w := httptest.NewRecorder()
	f.srv.ServeHTTP(plainWriter{w}, r)
	if w.Code != 500 || !strings.Contains(w.Body.String(), "Unwrap") || f.open() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
