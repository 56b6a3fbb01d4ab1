package object

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
)

// Marks of the runtime and of users share one keyspace; the first letter keeps
// them apart.
const (
	answerMark = "a/"
	userMark   = "u/"
	answerTTL  = 24 * time.Hour
)

// once runs the handler of a call with an idempotency key, unless an answer is
// stored under the key; a first answer is stored in the turn's batch (O16).
func (a *activation) once(t *turn, r *Request) error {
	op, ok := r.op.(callable)
	if !ok {
		return r.op.run(t, a)
	}
	h := a.hosted.host
	key := answerMark + op.methodName() + "\x00" + r.key
	if len(key) > h.options.MaxKeyBytes {
		return fmt.Errorf("%s: %w: idempotency key of %d bytes", a.id, ErrKeyTooLarge, len(r.key))
	}
	answer, expires, ok, err := t.lookUp(key)
	if err != nil {
		return h.storageError(a.id, err)
	}
	if ok && h.seams.Clock.Now().UnixNano() < expires {
		return op.decodeResult(h.options.Codec, answer)
	}
	if first := a.recall.lent[key]; first != nil {
		return a.waitForFirst(t, r, first, op, key)
	}
	a.recall.key = key
	defer func() {
		if t.owns { // else the activation has left memory, or another turn is under way
			a.recall.key = ""
		}
	}()
	if err := op.run(t, a); err != nil {
		return err
	}
	answer, err = op.encodeResult(h.options.Codec)
	if err != nil {
		return fmt.Errorf("%s: encode the answer of %s: %w", a.id, op.methodName(), err)
	}
	t.mark(key, answer, defaultTo(r.ttl, answerTTL))
	return nil
}

// waitForFirst lends the turn out until the call that runs under the same key has
// its turn back, and then looks again.
func (a *activation) waitForFirst(t *turn, r *Request, first chan struct{}, op callable, key string) error {
	err := t.life.Release(t, func(ctx context.Context) error {
		return a.hosted.host.seams.Executor.Wait(ctx, first)
	})
	if err != nil {
		return err
	}
	if a.recall.lent[key] == first { // its handler has ended its goroutine
		delete(a.recall.lent, key)
	}
	return a.once(t, r)
}

// mark writes an expiring mark.
func (t *turn) mark(key string, value []byte, ttl time.Duration) {
	h := t.act.hosted.host
	expires := alarm.Nanos(h.seams.Clock.Now().Add(ttl))
	t.remember(key)
	t.write().SetMark(*t.object, key, expires, value)
	t.writes.adds = true
}

// Mark stores a mark of the object that expires after ttl, in the turn's batch:
// what a job remembers to recognise repeats. It returns ErrKeyTooLarge.
func (s *State) Mark(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if err := s.storage.check(t, len(key)+len(value), userMark+key, value); err != nil {
		return err
	}
	t.mark(userMark+key, value, ttl)
	return nil
}

// Marked returns the mark under key if it has not expired.
func (s *State) Marked(ctx context.Context, key string) (value []byte, ok bool, err error) {
	t, err := s.turn(ctx)
	if err != nil {
		return nil, false, err
	}
	h := s.act.hosted.host
	value, expires, ok, err := t.lookUp(userMark + key)
	if err := s.reading(err); err != nil {
		return nil, false, err
	}
	if !ok || h.seams.Clock.Now().UnixNano() >= expires {
		return nil, false, nil
	}
	return value, true, nil
}

// Unmark removes the mark under key, if there is one.
func (s *State) Unmark(ctx context.Context, key string) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if t.object.Number != 0 {
		t.write().DeleteMark(*t.object, userMark+key)
		t.writes.removes = true
	}
	return nil
}
