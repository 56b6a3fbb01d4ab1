package object

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
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
	answer, ok, err := t.lookUp(key)
	if err != nil {
		return h.storageError(a.id, err)
	}
	if ok {
		return op.decodeResult(h.options.Codec, answer)
	}
	if first := a.recall.lent[key]; first != nil {
		return a.waitForFirst(t, r, first, op, key)
	}
	a.recall.key = key
	defer func() {
		if t.holds() { // else the activation has left memory, or another turn is under way
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
	if len(answer) > h.options.MaxValueBytes { // a smaller one is kept beside all that the turn wrote
		if err := t.life.storage.check(t, markBytes(a.id, key, answer), "", nil); err != nil {
			return err
		}
	}
	return h.storageError(a.id, t.mark(key, answer, defaultTo(r.ttl, answerTTL)))
}

// markBytes is the most that a mark adds to a batch, without recordBytes: the mark
// itself, the removal of the one before, and the entry in the expiry index, which has
// the object's class and name.
func markBytes(id storage.ID, key string, value []byte) int {
	const more = 2*recordBytes + 3*16
	return 2*len(key) + len(value) + len(id.Class) + 1 + len(id.Name) + more
}

// waitForFirst lends the turn out until the call that runs under the same key has
// its turn back, and then looks again.
func (a *activation) waitForFirst(t *turn, r *Request, first *lentCall, op callable, key string) error {
	h, on := a.hosted.host, awaited{turn: first.turn, id: a.id, repeat: true}
	err := t.life.Release(t, func(ctx context.Context) error {
		if err := h.waits.begin(t, a, on); err != nil {
			return err
		}
		defer h.waits.end(t, on)
		return h.seams.Executor.Wait(ctx, first.back)
	})
	if err != nil {
		return err
	}
	if a.recall.lent[key] == first { // its handler has ended its goroutine
		delete(a.recall.lent, key)
	}
	return a.once(t, r)
}

// mark writes an expiring mark, in place of the one under key if there is one.
func (t *turn) mark(key string, value []byte, ttl time.Duration) error {
	old, err := t.bucketOf(key)
	if err != nil {
		return err
	}
	return t.setMark(key, value, ttl, old)
}

// setMark writes an expiring mark. The object has one under the key in the bucket
// old, or none if that is 0.
func (t *turn) setMark(key string, value []byte, ttl time.Duration, old int64) error {
	h, b, k := t.act.hosted.host, t.write(), t.recalls()
	known, err := t.buckets()
	if err != nil {
		return err
	}
	now := h.seams.Clock.Now()
	expires := alarm.Nanos(now.Add(ttl))
	removal := storage.Removal(t.object.Number, now.UnixNano(), expires)
	t.remember(key)
	if old != 0 && old != removal {
		b.DeleteMark(*t.object, old, key)
	}
	b.SetMark(*t.object, removal, key, expires, value)
	if !known.add(removal, now.UnixNano()) && k.indexing != removal {
		b.IndexMarks(*t.object, removal)
		k.indexing = removal
	}
	k.marked = marked{t, key, removal}
	t.writes.adds = true
	return nil
}

// Mark stores a mark of the object that expires after ttl, in the turn's batch:
// what a job remembers to recognise repeats. It takes the place of an earlier mark
// under the key. It is removed some time after it has expired: a quarter of ttl or
// two minutes. It returns ErrKeyTooLarge.
func (s *State) Mark(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return s.mark(ctx, key, value, ttl, false)
}

// MarkNew does what Mark does for a key under which the object has no mark, as the
// caller must know: it looks for none. If there is one, either is found until both
// have expired.
func (s *State) MarkNew(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return s.mark(ctx, key, value, ttl, true)
}

func (s *State) mark(ctx context.Context, key string, value []byte, ttl time.Duration, isNew bool) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if err := s.storage.check(t, markBytes(t.act.id, userMark+key, value), userMark+key, value); err != nil {
		return err
	}
	if isNew {
		return s.reading(t.setMark(userMark+key, value, ttl, 0))
	}
	return s.reading(t.mark(userMark+key, value, ttl))
}

// Marked returns the mark under key if it has not expired.
func (s *State) Marked(ctx context.Context, key string) (value []byte, ok bool, err error) {
	t, err := s.turn(ctx)
	if err != nil {
		return nil, false, err
	}
	value, ok, err = t.lookUp(userMark + key)
	if err := s.reading(err); err != nil || !ok {
		return nil, false, err
	}
	return value, true, nil
}

// marksRead is how many marks MarksEnd reads at most, so that a turn stays short.
const marksRead = 1024

// MarksEnd returns when the last of the object's marks expires, as the turn leaves
// them, answers under idempotency keys among them; zero if all have expired. Where
// more than 1,024 may live it returns a time up to a quarter of their time to live, or
// two minutes, later.
func (s *State) MarksEnd(ctx context.Context) (time.Time, error) {
	t, err := s.turn(ctx)
	if err != nil {
		return time.Time{}, err
	}
	h := s.act.hosted.host
	end, err := h.store.MarksEnd(t.batch, *t.object, h.seams.Clock.Now().UnixNano(), marksRead)
	if err := s.reading(err); err != nil || end == 0 {
		return time.Time{}, err
	}
	return time.Unix(0, end).UTC(), nil
}

// Unmark removes the mark under key, if there is one.
func (s *State) Unmark(ctx context.Context, key string) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	removal, err := t.bucketOf(userMark + key)
	if err := s.reading(err); err != nil {
		return err
	}
	if removal != 0 {
		if err := s.storage.check(t, len(userMark)+len(key)+8, "", nil); err != nil {
			return err
		}
		t.write().DeleteMark(*t.object, removal, userMark+key)
		t.recalls().marked.removal = 0
		t.writes.removes = true
	}
	return nil
}
