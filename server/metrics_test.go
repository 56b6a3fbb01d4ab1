package server

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/internal/metric"
)

// samples are the lines of the page of metrics that begin with the name of a metric.
func (f *fixture) samples(name string) (lines []string) {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.srv.metrics.page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// wantSamples compares the lines of a metric.
func (f *fixture) wantSamples(name string, want ...string) {
	f.t.Helper()
	if got := f.samples(name); !slices.Equal(got, want) {
		f.t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// serveOnce serves a request without a connection. It is counted when this returns.
func (f *fixture) serveOnce(who, method, path, host string) int {
	r := f.request(who, method, path)
	if r.Host = host; who == "" {
		r.Header.Del("Authorization")
	}
	w := httptest.NewRecorder()
	f.srv.ServeHTTP(w, r)
	return w.Code
}

// Each request counts once, by the pattern of its route and not by its path, so that no
// client makes up a label.
func TestMetricsOfRequests(t *testing.T) {
	f := start(t, nil, cartClass(newGates()))
	f.srv.handle(route{method: "GET", pattern: "/v1/panics", access: open, handle: func(*exchange) error { panic("no") }})
	f.srv.handle(route{method: "GET", pattern: "/v1/silent", access: open, handle: func(*exchange) error { return nil }})
	for _, c := range []struct {
		who, method, path, host string
		want                    int
	}{
		{"", "GET", "/livez", "localhost", 200}, {"", "HEAD", "/livez", "localhost", 200},
		{"", "GET", "/livez", "evil.example", 421}, {"", "BREW", "/livez", "localhost", 405}, {"", "GET", "/made/up", "localhost", 404},
		{"", "GET", "/v1/objects/cart/secret", "localhost", 401}, {"viewer", "GET", "/v1/objects/cart/secret", "localhost", 200},
		{"", "GET", "/v1/panics", "localhost", 500}, {"", "GET", "/v1/silent", "localhost", 200},
	} {
		if got := f.serveOnce(c.who, c.method, c.path, c.host); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	f.wantSamples("holdfast_http_requests_total",
		`holdfast_http_requests_total{code="200",method="GET",route="/livez"} 2`,
		`holdfast_http_requests_total{code="200",method="GET",route="/v1/objects/{class}/{name}"} 1`,
		`holdfast_http_requests_total{code="200",method="GET",route="/v1/silent"} 1`,
		`holdfast_http_requests_total{code="401",method="GET",route="/v1/objects/{class}/{name}"} 1`,

		`holdfast_http_requests_total{code="404",method="none",route="none"} 1`,
		`holdfast_http_requests_total{code="405",method="none",route="none"} 1`,
		`holdfast_http_requests_total{code="421",method="none",route="none"} 1`,
		`holdfast_http_requests_total{code="500",method="GET",route="/v1/panics"} 1`,
	)
	f.wantSamples("holdfast_http_seconds_count",
		`holdfast_http_seconds_count{route="/livez"} 2`,
		`holdfast_http_seconds_count{route="/v1/objects/{class}/{name}"} 2`,
		`holdfast_http_seconds_count{route="/v1/panics"} 1`,
		`holdfast_http_seconds_count{route="/v1/silent"} 1`,
		`holdfast_http_seconds_count{route="none"} 3`,
	)
}

// A stream counts as a request when it ends, and its time does not count as that of one.
func TestMetricsOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		f.wantSamples("holdfast_streams", "holdfast_streams 0")
		s := f.follow("viewer", "/v1/events")
		s.want("snapshot")
		f.wantSamples("holdfast_streams", "holdfast_streams 1")
		s.leave()
		settled(t, "the stream is not counted", func() bool { return len(f.samples("holdfast_http_requests_total")) == 1 })
		f.wantSamples("holdfast_streams", "holdfast_streams 0")
		f.wantSamples("holdfast_http_requests_total", `holdfast_http_requests_total{code="200",method="GET",route="/v1/events"} 1`)
		f.wantSamples("holdfast_http_seconds")
		f.wantSamples("holdfast_stream_dropped_total") // the client has left by itself
	})
}

// A long poll counts as a request, and its time does not count as that of one, unless it is refused.
func TestMetricsOfLongPolls(t *testing.T) {
	s := openShop(t, memory(), nil)
	path := "/v1/pools/thumb/tasks/" + s.enqueue("thumb", `{"in": {"name": "cat"}}`) + "/wait?timeout="
	for timeout, want := range map[string]int{"60s": 200, "soon": 400} {
		if got := s.serveOnce("viewer", "GET", path+timeout, "localhost"); got != want {
			t.Errorf("a wait of %s: %d", timeout, got)
		}
	}
	const of = `{route="/v1/pools/{pool}/tasks/{id}/wait"}`
	s.wantSamples("holdfast_http_seconds_count"+of, "holdfast_http_seconds_count"+of+" 1")
	s.wantSamples(`holdfast_http_requests_total{code="200",method="GET",route="/v1/pools/{pool}/tasks/{id}/wait"}`,
		`holdfast_http_requests_total{code="200",method="GET",route="/v1/pools/{pool}/tasks/{id}/wait"} 1`)
}

// The page has each metric of the server as the table has it, and those of the host.
func TestMetricsOfTheTable(t *testing.T) {
	f := openVault(t, filesInMemory(), "data", nil)
	if err := f.srv.backups.begin(backupRun{State: copying}); err != nil {
		t.Fatal(err)
	}
	f.srv.backups.run(begunAudit{f.srv, t.Context(), "a", today(f.host)})
	f.serveOnce("viewer", "GET", "/metrics", "localhost")
	(&exchange{Server: f.srv}).dropped("slow")
	for _, m := range metric.All() {
		if !m.OfServer() {
			continue
		}
		f.wantSamples("# HELP "+m.Name, "# HELP "+m.Name+" "+m.Help)
		f.wantSamples("# TYPE "+m.Name, "# TYPE "+m.Name+" "+string(m.Kind))
		samples := f.samples(m.Names()[len(m.Names())-1])
		for _, label := range slices.Sorted(slices.Values(m.Labels)) {
			if len(samples) != 1 || !strings.Contains(samples[0], label+`="`) {
				t.Errorf("the samples of %s are %q", m.Name, samples)
			}
		}
	}
	f.wantSamples("holdfast_up", "holdfast_up 1")
}
