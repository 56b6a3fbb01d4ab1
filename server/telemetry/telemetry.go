// Package telemetry traces a host, and the server of it, with OpenTelemetry.
//
//	traced := telemetry.Options{}
//	host, err := object.Open(object.Options{Dir: dir, Observer: telemetry.Observer(traced)}, classes...)
//	...
//	srv, err := server.New(host, config)
//	...
//	http.Handle("/", telemetry.Handler(srv, traced))
//
// The spans of a request lie in one another: that of HTTP, that of the call of an object, and those of the
// calls that its handler makes with its context. An alarm, a message and an execution of a job have
// no caller, so each begins a trace of its own.
//
// A span of a call has two events, turn began and turn ended. Before the first the call has waited
// for its object, and after the second its reply has waited for the disk. Each span has the
// attributes holdfast.kind, holdfast.class, holdfast.method and holdfast.outcome, which is done,
// failed or panicked. No span has an argument or an answer, and none has the name of an object or
// the text of an error unless Options.Names asks for them, because both may tell of people.
package telemetry

import (
	"cmp"
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Options say where spans go and which attributes they have.
type Options struct {
	// Provider makes the spans. Default: that of the program (otel.SetTracerProvider), which drops
	// them until the program has set one.
	Provider trace.TracerProvider
	// Propagator finds the trace to which a request belongs in its header. Default: that of the
	// program (otel.SetTextMapPropagator), which finds none until the program has set one.
	Propagator propagation.TextMapPropagator
	// Names adds the names of objects, as holdfast.object, and the texts of errors. Default: false.
	Names bool
}

// scope names the code that makes the spans.
const scope = "github.com/holdfast-dev/holdfast/server/telemetry"

func (o Options) tracer() trace.Tracer {
	return cmp.Or[trace.TracerProvider](o.Provider, otel.GetTracerProvider()).Tracer(scope)
}

// Observer returns an Observer for object.Options, which makes a span for each call, alarm, message
// and execution. Any number of hosts may share it.
func Observer(o Options) object.Observer { return &observer{o.tracer(), o.Names} }

type observer struct {
	tracer trace.Tracer
	names  bool
}

// Begin implements object.Observer.
func (o *observer) Begin(ctx context.Context, op object.Operation) (context.Context, object.Observation) {
	name := op.Kind + " " + op.ID.Class
	attributes := []attribute.KeyValue{attribute.String("holdfast.kind", op.Kind), attribute.String("holdfast.class", op.ID.Class)}
	if op.Method != "" {
		name += "." + op.Method
		attributes = append(attributes, attribute.String("holdfast.method", op.Method))
	}
	if o.names {
		attributes = append(attributes, attribute.String("holdfast.object", op.ID.Name))
	}
	options := []trace.SpanStartOption{trace.WithAttributes(attributes...)}
	if op.Kind != "call" {
		options = append(options, trace.WithNewRoot())
	}
	ctx, s := o.tracer.Start(ctx, name, options...)
	return ctx, &span{s, o.names}
}

// span is the Observation of one operation. A span that has ended takes no events.
type span struct {
	trace.Span
	names bool
}

// TurnBegan implements object.Observation.
func (s *span) TurnBegan() { s.AddEvent("turn began") }

// TurnEnded implements object.Observation. The error is told at the end.
func (s *span) TurnEnded(error) { s.AddEvent("turn ended") }

// Ended implements object.Observation.
func (s *span) Ended(err error) {
	var panicked *seam.PanicError
	outcome := "done"
	switch {
	case errors.As(err, &panicked):
		outcome = "panicked"
	case err != nil:
		outcome = "failed"
	}
	s.SetAttributes(attribute.String("holdfast.outcome", outcome))
	if err != nil {
		text := ""
		if s.names {
			text = err.Error()
		}
		s.SetStatus(codes.Error, text)
	}
	s.End()
}
