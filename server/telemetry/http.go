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
// below http.StripPrefix then. A status from 500 on is an error of the span, and so is a panic of next,
// for which net/http cuts the connection; it has no status unless next had begun an answer. The span
// of a stream ends with it.
func Handler(next http.Handler, o Options) http.Handler {
	tracer := o.tracer()
	propagator := cmp.Or[propagation.TextMapPropagator](o.Propagator, otel.GetTextMapPropagator())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := known(r.Method)
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, s := tracer.Start(ctx, spanName(method), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
		r = r.WithContext(ctx)
		answer := &answer{ResponseWriter: w}
		defer func() {
			answer.describe(s, method, r.Pattern)
			s.End()
		}()
		next.ServeHTTP(answer, r)
		answer.returned = true
	})
}

// known returns the method of a request, or other for one that a client makes up.
func known(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions,
		http.MethodConnect, http.MethodTrace:
		return method
	}
	return other
}

// other stands for the methods that OpenTelemetry does not know.
const other = "_OTHER"

// spanName is the begin of the name of a span: the method, or HTTP, as OpenTelemetry has it for
// methods that it does not know.
func spanName(method string) string {
	if method == other {
		return "HTTP"
	}
	return method
}

// answer is the ResponseWriter of a request that remembers the status.
type answer struct {
	http.ResponseWriter
	status   int
	returned bool // the handler has returned; false: it panicked
}

// describe adds the route and the status to a span. A handler that returns and has written nothing has
// the status that net/http sends.
func (a *answer) describe(s trace.Span, method, pattern string) {
	if _, route, ok := strings.Cut(pattern, " "); ok {
		s.SetName(spanName(method) + " " + route)
		s.SetAttributes(attribute.String("http.route", route))
	}
	status := a.status
	if a.returned {
		status = cmp.Or(status, http.StatusOK)
	}
	if status != 0 {
		s.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if !a.returned || status >= http.StatusInternalServerError {
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
