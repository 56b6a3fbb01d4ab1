package telemetry_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/telemetry"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

type Lamp struct{ st *object.State }

var (
	Lamps  = object.Define("lamp", func(_ context.Context, st *object.State) (*Lamp, error) { return &Lamp{st}, nil })
	Switch = object.Handle(Lamps, "switch", func(l *Lamp, ctx context.Context, on bool) (bool, error) {
		return on, l.st.Storage().Put(ctx, "on", on)
	})
)

// trusting takes each request for one of the same principal.
type trusting struct{}

func (trusting) Authenticate(*http.Request) (auth.Principal, error) {
	return auth.Principal{ID: "you", Grants: []auth.Grant{{Class: "lamp"}}}, nil
}

// inMemory keeps spans in memory. A program exports them, for example by otlptracehttp.
func inMemory() (*tracetest.InMemoryExporter, telemetry.Options) {
	spans := tracetest.NewInMemoryExporter()
	return spans, telemetry.Options{Provider: trace.NewTracerProvider(trace.WithSyncer(spans))}
}

// An Observer makes a span of each call.
func ExampleObserver() {
	ctx := context.Background()
	spans, traced := inMemory()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Observer: telemetry.Observer(traced)}, Lamps)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Switch.Call(ctx, host, "kitchen", true); err != nil {
		log.Fatal(err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.Events[0].Name, s.Events[1].Name)
	}
	// Output:
	// call lamp.switch turn began turn ended
}

// Handler makes a span of each request, with that of the call in it.
func ExampleHandler() {
	spans, traced := inMemory()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Observer: telemetry.Observer(traced)}, server.Definitions(Lamps)...)
	if err != nil {
		log.Fatal(err)
	}
	srv, err := server.New(host, server.Config{Auth: trusting{}, Objects: []server.Exposed{server.Class(Lamps, "switch")}})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("POST", "http://localhost/v1/objects/lamp/kitchen/call/switch", strings.NewReader("true"))
	telemetry.Handler(srv, traced).ServeHTTP(httptest.NewRecorder(), r)
	if err := host.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// call lamp.switch
	// POST /v1/objects/{class}/{name}/call/{method}
}
