package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/telemetry"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// till is money of a shop, and book the book that has each payment.
type (
	till struct{ st *object.State }
	book struct{ st *object.State }
)

var (
	books = object.Define("book", func(_ context.Context, st *object.State) (*book, error) { return &book{st}, nil })
	enter = object.Handle(books, "enter", func(b *book, ctx context.Context, cents int) (int, error) {
		return cents, b.st.Storage().Put(ctx, "last", cents)
	})
	tills = object.Define("till", func(_ context.Context, st *object.State) (*till, error) { return &till{st}, nil })
	pay   = object.Handle(tills, "pay", func(l *till, ctx context.Context, cents int) (int, error) {
		switch {
		case cents < 0:
			return 0, fmt.Errorf("secret-error of %s", l.st.Name())
		case cents == 0:
			panic("secret-panic")
		}
		return enter.Call(ctx, l.st, "secret-book", cents)
	})
	remind = object.Handle(tills, "remind", func(l *till, ctx context.Context, _ struct{}) (bool, error) {
		return true, l.st.SetAlarm(ctx, l.st.Now().Add(time.Second))
	})
)

// Alarm enters a payment.
func (l *till) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	_, err := enter.Call(ctx, l.st, "secret-book", 1)
	return err
}

// count is a job that enters a payment with each run.
var count = continuous.New(continuous.Config[int]{
	Name: "count", Schedule: jobs.Every(time.Hour),
	Run: func(ctx context.Context, run *continuous.Run[int]) error {
		if run.State++; run.State > 1 {
			return errors.New("secret-run")
		}
		return nil
	},
})

// anyone may do all.
type anyone struct{}

func (anyone) Authenticate(*http.Request) (auth.Principal, error) {
	return auth.Principal{ID: "you", Role: auth.Admin, Grants: []auth.Grant{{Class: "till"}}}, nil
}

// traced is a host with a tracer in memory.
type traced struct {
	t        *testing.T
	host     *object.Host
	options  telemetry.Options
	exporter *tracetest.InMemoryExporter
}

// start opens a host that is traced.
func start(t *testing.T, names bool) *traced {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	f := &traced{t: t, options: telemetry.Options{Provider: provider, Propagator: propagation.TraceContext{}, Names: names}, exporter: exporter}
	var err error
	f.host, err = object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New()}, Observer: telemetry.Observer(f.options), Logger: slog.New(slog.DiscardHandler),
	}, server.Definitions(tills, books, count)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// take returns the spans that have ended since it was last called, by their names. No two may have
// the same name.
func (f *traced) take() map[string]tracetest.SpanStub {
	f.t.Helper()
	spans := map[string]tracetest.SpanStub{}
	for _, s := range f.exporter.GetSpans() {
		if _, twice := spans[s.Name]; twice {
			f.t.Errorf("two spans have the name %s", s.Name)
		}
		spans[s.Name] = s
	}
	f.exporter.Reset()
	return spans
}

// want checks one span: its parent, which has another name or is empty for a root, its outcome, and
// its events.
func (f *traced) want(spans map[string]tracetest.SpanStub, name, parent, outcome string, events ...string) tracetest.SpanStub {
	f.t.Helper()
	s, ok := spans[name]
	if !ok {
		f.t.Fatalf("no span has the name %q: %v", name, spans)
	}
	if s.Parent.IsValid() != (parent != "") || parent != "" && s.Parent.SpanID() != spans[parent].SpanContext.SpanID() {
		f.t.Errorf("%s lies in %s, want %q", name, s.Parent.SpanID(), parent)
	}
	if got := attributeOf(s, "holdfast.outcome"); got != outcome || (s.Status.Code == codes.Error) != (outcome != "" && outcome != "done") {
		f.t.Errorf("%s has the outcome %q and the status %+v, want %s", name, got, s.Status, outcome)
	}
	var told []string
	for _, e := range s.Events {
		told = append(told, e.Name)
	}
	if !slices.Equal(told, events) {
		f.t.Errorf("%s has the events %q", name, told)
	}
	return s
}

func attributeOf(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// A request, the call of an object and the call that its handler makes lie in one another, in the
// trace that the client began.
func TestSpansOfARequest(t *testing.T) {
	f := start(t, false)
	srv, err := server.New(f.host, server.Config{Auth: anyone{}, Objects: []server.Exposed{server.Class(tills, "pay")}})
	if err != nil {
		t.Fatal(err)
	}
	handler := telemetry.Handler(srv, f.options)
	ask := func(method, path, body string) map[string]tracetest.SpanStub {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		handler.ServeHTTP(httptest.NewRecorder(), r)
		return f.take()
	}
	const route = "POST /v1/objects/{class}/{name}/call/{method}"
	spans := ask("POST", "/v1/objects/till/secret-till/call/pay", "250")
	root := spans[route]
	if root.SpanKind != api.SpanKindServer || root.Parent.SpanID().String() != "b7ad6b7169203331" || root.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the span of the request is %+v", root)
	}
	for key, want := range map[attribute.Key]string{"http.request.method": "POST", "http.route": strings.TrimPrefix(route, "POST "), "http.response.status_code": "200"} {
		if got := attributeOf(root, key); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	f.want(spans, "call till.pay", route, "done", "turn began", "turn ended")
	s := f.want(spans, "call book.enter", "call till.pay", "done", "turn began", "turn ended")
	if attributeOf(s, "holdfast.class") != "book" || attributeOf(s, "holdfast.method") != "enter" || attributeOf(s, "holdfast.kind") != "call" || len(spans) != 3 {
		t.Errorf("the attributes are %v, of %d spans", s.Attributes, len(spans))
	}
	for body, outcome := range map[string]string{"-1": "failed", "0": "panicked"} {
		spans = ask("POST", "/v1/objects/till/secret-till/call/pay", body)
		f.want(spans, "call till.pay", route, outcome, "turn began", "turn ended")
	}
	for path, want := range map[string]string{"/made/up": "GET 404", "/livez": "GET /livez 200"} {
		for name, s := range ask("GET", path, "") {
			if got := name + " " + attributeOf(s, "http.response.status_code"); got != want {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
	for method, want := range map[string]string{"SECRET": "HTTP _OTHER", "TRACE": "TRACE TRACE", "CONNECT": "CONNECT CONNECT"} {
		for name, s := range ask(method, "/livez", "") {
			if got := name + " " + attributeOf(s, "http.request.method"); got != want {
				t.Errorf("%s: %s", method, got)
			}
		}
	}
}

// A handler that panics makes an error of its span, with the status that it has sent, if any. One
// that returns without an answer has the status of net/http.
func TestSpanOfAPanic(t *testing.T) {
	f := start(t, false)
	for _, c := range []struct {
		sends  int
		panics bool
		status string
		code   codes.Code
	}{
		{0, false, "200", codes.Unset}, {0, true, "", codes.Error}, {200, true, "200", codes.Error},
		{499, false, "499", codes.Unset}, {500, false, "500", codes.Error},
	} {
		h := telemetry.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.sends != 0 {
				w.WriteHeader(c.sends)
			}
			if c.panics {
				panic(http.ErrAbortHandler)
			}
		}), f.options)
		func() {
			defer func() {
				if got := recover(); (got != nil) != c.panics {
					t.Errorf("%+v: the caller gets the panic %v", c, got)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}()
		if s := f.take()["GET"]; attributeOf(s, "http.response.status_code") != c.status || s.Status.Code != c.code || s.EndTime.IsZero() {
			t.Errorf("%+v: status %q, %v", c, attributeOf(s, "http.response.status_code"), s.Status)
		}
	}
}

// A body over its bound is refused through the handler, with or without its length, and the span has the status. The
// connection of a client that may send without end is closed.
func TestSpanOfABodyThatIsTooLarge(t *testing.T) {
	const limit = 100
	f := start(t, false)
	srv, err := server.New(f.host, server.Config{Auth: anyone{}, MaxBodyBytes: limit, Objects: []server.Exposed{server.Class(tills, "pay")}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 1)
	traced := telemetry.Handler(srv, f.options)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		traced.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer web.Close()
	for _, c := range []struct {
		bytes  int
		length bool // the request tells its length
		status int
		closed bool
	}{
		{limit, true, 200, false}, {limit, false, 200, false}, {limit + 1, true, 413, false}, {limit + 1, false, 413, true},
	} {
		var body io.Reader = strings.NewReader(strings.Repeat(" ", c.bytes-3) + "250")
		if !c.length {
			body = io.MultiReader(body)
		}
		a, err := http.Post(web.URL+"/v1/objects/till/a/call/pay", "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		<-ended
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil || a.StatusCode != c.status || a.Close != c.closed || strings.Contains(string(text), "body-too-large") != (c.status == 413) {
			t.Errorf("%+v: %d, closed %v: %s, %v", c, a.StatusCode, a.Close, text, err)
		}
		s := f.take()["POST /v1/objects/{class}/{name}/call/{method}"]
		if got := attributeOf(s, "http.response.status_code"); got != fmt.Sprint(c.status) || s.Status.Code != codes.Unset {
			t.Errorf("%+v: the span has the status %s, %v", c, got, s.Status)
		}
	}
}

// Spans tell neither names of objects nor errors, unless they are asked to.
func TestNamesInSpans(t *testing.T) {
	for _, names := range []bool{false, true} {
		f := start(t, names)
		for _, cents := range []int{1, -1, 0} {
			_, _ = pay.Call(t.Context(), f.host, "secret-till", cents) // told by the spans
		}
		told := ""
		for _, s := range f.exporter.GetSpans() {
			told += fmt.Sprintf("%s %v %v %v\n", s.Name, s.Attributes, s.Events, s.Status)
		}
		for _, secret := range []string{"secret-till", "secret-book", "secret-error", "secret-panic"} {
			if strings.Contains(told, secret) != names {
				t.Errorf("names %v: the spans have %q: %v\n%s", names, secret, !names, told)
			}
		}
	}
}

// An alarm and an execution begin traces of their own, which have their calls.
func TestRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, false)
		if _, err := remind.Call(t.Context(), f.host, "secret-till", struct{}{}); err != nil {
			t.Fatal(err)
		}
		f.take()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		spans := f.take()
		f.want(spans, "alarm till", "", "done", "turn began", "turn ended")
		f.want(spans, "call book.enter", "alarm till", "done", "turn began", "turn ended")

		ctx, outer := f.options.Provider.Tracer("test").Start(t.Context(), "outer")
		if _, err := count.Start(ctx, f.host, "secret-count", 0); err != nil {
			t.Fatal(err)
		}
		outer.End()
		synctest.Wait()
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		var outcomes []string
		for _, s := range f.exporter.GetSpans() {
			if s.Name == "execution count" {
				outcomes = append(outcomes, attributeOf(s, "holdfast.outcome"))
				f.want(map[string]tracetest.SpanStub{s.Name: s}, s.Name, "", attributeOf(s, "holdfast.outcome"))
			}
		}
		if !slices.Equal(outcomes, []string{"done", "failed"}) {
			t.Errorf("the executions ended with %q", outcomes)
		}
	})
}

// A stream goes through the handler, and its span ends with it.
func TestSpanOfAStream(t *testing.T) {
	f := start(t, false)
	srv, err := server.New(f.host, server.Config{Auth: anyone{}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	traced := telemetry.Handler(srv, f.options)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		traced.ServeHTTP(w, r)
	}))
	defer web.Close()
	a, err := http.Get(web.URL + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 6)
	if _, err := io.ReadFull(a.Body, first); err != nil || string(first) != "retry:" {
		t.Fatalf("the stream begins with %q, %v", first, err)
	}
	if spans := f.take(); len(spans) != 0 {
		t.Errorf("before the end of the stream: %v", spans)
	}
	if err := a.Body.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if s := f.take()["GET /v1/events"]; attributeOf(s, "http.response.status_code") != "200" {
		t.Errorf("the span of the stream is %+v", s)
	}
}
