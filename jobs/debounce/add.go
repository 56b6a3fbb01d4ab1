package debounce

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// add is a turn that stores one event: its row or the new state, which tells the
// new count too, the mark of its id and the alarm are one batch (D1). It reads none
// of the events that are there, and stores the buffer only for a new generation or a
// new version.
func (in *instance[E, S]) add(ctx context.Context, ev E) (ack Ack, err error) {
	if ev, err = valid(ev); err != nil {
		return Ack{}, err
	}
	err = in.life.Turn(ctx, func(ctx context.Context) error {
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
			in.buffer = b // the event's row tells the rest
			return nil
		}
		return in.store(ctx, b)
	})
	return ack, err
}

// collecting returns the buffer that an event of now goes to. A generation that
// is due already gets no more events: a process that was down, or was late,
// flushes what was due then, with the cause of then (D4).
func (in *instance[E, S]) collecting(ctx context.Context) (buffer, error) {
	b := in.buffer
	if !in.life.Exists() {
		if err := in.life.Create(ctx); err != nil {
			return b, err
		}
		return buffer{open: generation{number: 1, versions: in.fresh}}, nil
	}
	at, why := in.limits.due(b.open)
	if !b.isClosed() && in.flushes() && !at.IsZero() && !at.After(in.life.Now()) {
		b.close(at, why, in.fresh)
		in.known = false
	}
	return b, in.fits(b.open)
}

// flushes reports whether flushes may begin.
func (in *instance[E, S]) flushes() bool {
	return in.life.Meta().Status == jobs.Running
}

// fits tells whether the definition can go on with a generation, which may have
// been begun by another version of it.
func (in *instance[E, S]) fits(g generation) error {
	if g.count > 0 && g.folded != (in.config.Reduce != nil) {
		return jobs.Invalidf("debounce", "%s: generation %d was collected with another definition: folded by Reduce is %t",
			in.st.ID(), g.number, g.folded)
	}
	return nil
}

// keep stores one more event of the generation g.
func (in *instance[E, S]) keep(ctx context.Context, g *generation, ev E) error {
	if in.config.Reduce != nil {
		return in.fold(ctx, g, ev)
	}
	if g.count >= in.config.MaxPending {
		return fmt.Errorf("%s: %w: %d", in.st.ID(), ErrFull, g.count)
	}
	key := eventKey(g.number, g.count)
	g.versions = g.versions.From(uint64(g.count), in.config.Version)
	*g = in.limits.with(*g, in.life.Now())
	return in.put(ctx, key, *g, ev)
}

// put stores the row of an event or a state with its generation.
func (in *instance[E, S]) put(ctx context.Context, key string, g generation, v any) error {
	encoded, err := in.st.Codec().Encode(v)
	if err != nil {
		return fmt.Errorf("%s: encode key %q: %w", in.st.ID(), key, err)
	}
	var room [512]byte // most rows fit, and need no memory of their own
	return in.st.Storage().PutBytes(ctx, key, appendRow(room[:0], g, encoded))
}

// fold gives the event to Reduce. The state in memory is forgotten until the new
// one is stored, since a Reduce that fails may have changed it in place.
func (in *instance[E, S]) fold(ctx context.Context, g *generation, ev E) error {
	state, exists, err := in.current(ctx, *g)
	if err != nil {
		return err
	}
	in.known = false
	if state, err = in.config.Reduce(state, exists, ev); err != nil {
		return err
	}
	*g = in.limits.with(*g, in.life.Now())
	g.folded, g.versions = true, in.fresh
	if err := in.put(ctx, stateKey(g.number), *g, state); err != nil {
		return err
	}
	in.state, in.known = state, true
	return nil
}

// current returns the state of the open generation g.
func (in *instance[E, S]) current(ctx context.Context, g generation) (state S, exists bool, err error) {
	switch {
	case g.count == 0:
		return state, false, nil
	case in.known:
		return in.state, true, nil
	}
	encoded, err := readState(ctx, in.st.Storage(), g)
	if err == nil {
		err = in.readState(g, encoded, &state)
	}
	return state, err == nil, err
}

// wanted returns b with the flush of its open generation asked for at now.
func (b buffer) wanted(now time.Time) buffer {
	if b.open.count > 0 && b.open.manual.IsZero() {
		b.open.manual = now
	}
	return b
}

type validator interface{ Validate() error }

// valid asks an event, by value or by reference, whether it is in order (J4). It
// returns the event as its Validate leaves it.
func valid[E any](ev E) (E, error) {
	switch _, ok := any((*E)(nil)).(validator); {
	case ok: // *E has the methods of E too, unless E is a reference itself
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

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: event: %w", jobs.ErrInvalid, err)
}
