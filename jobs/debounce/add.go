package debounce

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

// add stores one event in a turn. One batch has the row of the event, or the
// new state, with the event's place in its generation; the id of the event; and
// the alarm (D1). add reads no earlier event. It rewrites the buffer row only
// for a new generation or a new Version, because the newest event row tells the
// count and the times as well.
func (in *instance) add(ctx context.Context, ev any) (ack Ack, err error) {
	err = in.job.Turn(ctx, func(ctx context.Context) error {
		b, err := in.collecting(ctx)
		if err != nil {
			return err
		}
		known := b == in.buffer
		if err := in.keep(ctx, &b.open, ev); err != nil {
			return err
		}
		ack = Ack{Generation: b.open.number, Events: b.open.count}
		if known && b.open.versions == in.buffer.open.versions {
			in.buffer = b // the event row tells the count and the times
			return nil
		}
		return in.store(ctx, b)
	})
	return ack, err
}

// collecting returns the buffer that an event of now belongs to. It makes the
// job with its first event. A generation that is due gets no more events, even
// if its flush has not begun: a process that was down flushes the events that
// were due then, for the reason of then (D4).
func (in *instance) collecting(ctx context.Context) (buffer, error) {
	b := in.buffer
	if !in.job.Exists() {
		if err := in.job.Create(ctx); err != nil {
			return b, err
		}
		return buffer{open: generation{number: 1, versions: in.fresh}}, nil
	}
	at, why := in.limits.due(b.open)
	if !b.isClosed() && in.flushes() && !at.IsZero() && !at.After(in.job.Now()) {
		b.close(at, why, in.fresh)
		in.known = false
	}
	return b, in.fits(b.open)
}

// flushes reports whether the job's status lets a flush begin.
func (in *instance) flushes() bool {
	return in.job.Meta().Status == jobs.Running
}

// fits returns a jobs.ErrInvalid if g holds events and this definition has a
// Reduce, or the other way round.
func (in *instance) fits(g generation) error {
	if g.count > 0 && g.folded != in.d.folds {
		before, now := "without", "has"
		if g.folded {
			before, now = "with", "has no"
		}
		return engine.Invalidf("debounce", "%s: the events of generation %d were collected %s Reduce and the definition %s Reduce: flush them with the old definition, or give the new one another Name",
			in.st.ID(), g.number, before, now)
	}
	return nil
}

// keep stores one more event of generation g: as a row of its own, or folded
// into the state.
func (in *instance) keep(ctx context.Context, g *generation, ev any) error {
	if in.d.folds {
		return in.fold(ctx, g, ev)
	}
	if g.count >= in.d.MaxPending {
		return fmt.Errorf("%s: %w: %d", in.st.ID(), ErrFull, g.count)
	}
	key := eventKey(g.number, g.count)
	g.versions = g.versions.From(uint64(g.count), in.d.Version)
	*g = in.limits.with(*g, in.job.Now())
	return in.put(ctx, key, *g, ev)
}

// put stores an encoded event or state, preceded by the fields of its
// generation.
func (in *instance) put(ctx context.Context, key string, g generation, v any) error {
	encoded, err := in.st.Driver().Codec().Encode(v)
	if err != nil {
		return fmt.Errorf("%s: encode key %q: %w", in.st.ID(), key, err)
	}
	var room [512]byte // most rows fit, so that most calls allocate nothing
	return in.st.Storage().PutBytes(ctx, key, appendRow(room[:0], g, encoded))
}

// fold passes the event to Reduce and stores the new state. It marks the state
// in memory as unknown first, because a Reduce that fails may have changed it
// in place.
func (in *instance) fold(ctx context.Context, g *generation, ev any) error {
	var encoded []byte
	if g.count > 0 && !in.known {
		var err error
		if encoded, err = readState(ctx, in.st.Storage(), *g); err != nil {
			return err
		}
		if encoded == nil {
			encoded = []byte{} // a codec may need no bytes
		}
	}
	state, err := in.d.reduce(in, *g, encoded, ev)
	if err != nil {
		return err
	}
	*g = in.limits.with(*g, in.job.Now())
	g.folded, g.versions = true, in.fresh
	if err := in.put(ctx, stateKey(g.number), *g, state); err != nil {
		return err
	}
	in.state, in.known = state, true
	return nil
}

// reduce is definition.reduce.
func (j *Job[E, S]) reduce(in *instance, g generation, encoded []byte, event any) (any, error) {
	var state S
	if encoded != nil {
		var stored S
		if err := in.damagedState(g, j.states.Read(in.st.Driver().Codec(), g.versions.At(0), encoded, &stored)); err != nil {
			return nil, err
		}
		state = stored
	} else if g.count > 0 {
		state, _ = in.state.(S)
	}
	in.known = false
	ev, _ := event.(E)
	return j.config.Reduce(state, g.count > 0, ev)
}

// wanted returns b with its open generation due now, for FlushNow. It changes
// nothing if there are no events, or if FlushNow came before.
func (b buffer) wanted(now time.Time) buffer {
	if b.open.count > 0 && b.open.manual.IsZero() {
		b.open.manual = now
	}
	return b
}

// validator is implemented by events that can check themselves.
type validator interface{ Validate() error }

// valid calls the Validate method of an event, on its value or its address, and
// returns the event as Validate leaves it (J4).
func valid[E any](ev E) (E, error) {
	switch _, ok := any((*E)(nil)).(validator); {
	case ok: // *E has the methods of E too, unless E is a pointer or an interface
		asked := new(E)
		*asked = ev
		err := any(asked).(validator).Validate()
		return *asked, invalid(err)
	case reflect.TypeFor[E]().Kind() == reflect.Pointer, reflect.TypeFor[E]().Kind() == reflect.Interface:
		if v, ok := any(ev).(validator); ok {
			return ev, invalid(v.Validate())
		}
	}
	return ev, nil
}

// invalid wraps an error of Validate.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: event: %w", jobs.ErrInvalid, err)
}
