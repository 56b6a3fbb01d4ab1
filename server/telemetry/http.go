package telemetry

import (
	"cmp"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Handler returns a handler that makes a span for each request to next, mostly a *server.Server.
// The span has the name of the route and not the path, which has names of objects. A request to a
// handler below next that gets a copy, as with http.StripPrefix, has the method alone; put Handler
// below http.StripPrefix then. A status from 500 on is an error of the span. The span of a stream
// ends with it.
func Handler(next http.Handler, o Options) http.Handler {
	tracer := o.tracer()
	propagator := cmp.Or[propagation.TextMapPropagator](o.Propagator, otel.GetTextMapPropagator())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := known(r.Method)
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, s := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
		r = r.WithContext(ctx)
		answer := &answer{ResponseWriter: w}
		defer func() {
			answer.describe(s, method, r.Pattern)
			s.End()
		}()
		next.ServeHTTP(answer, r)
	})
}

// known returns the method of a request, or _OTHER, as OpenTelemetry has it for methods that a
// client makes up.
func known(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// answer is the ResponseWriter of a request that remembers the status.
type answer struct {
	http.ResponseWriter
	status int
}

// describe adds the route and the status to a span. A handler that has written nothing, because it
// panicked or because its client has gone, has the status that net/http sends.
func (a *answer) describe(s trace.Span, method, pattern string) {
	if _, route, ok := strings.Cut(pattern, " "); ok {
		s.SetName(method + " " + route)
		s.SetAttributes(attribute.String("http.route", route))
	}
	status := cmp.Or(a.status, http.StatusOK)
	s.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		s.SetStatus(codes.Error, "")
	}
}

// WriteHeader begins the answer.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
