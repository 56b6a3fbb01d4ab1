package object

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// Marks of the runtime and of users share one keyspace; the first letter keeps
// them apart.
const (
	answerMark = "a/" // then the method, a zero byte, and the idempotency key
	printMark  = "f/" // then the same: the fingerprint of the argument, if it came as bytes
	userMark   = "u/" // then the key that Mark was given
	// answerTTL is how long an answer is kept if Idempotent was given no time.
	answerTTL = 24 * time.Hour
)

// once runs the handler of a call with an idempotency key, unless an answer is stored
// under the key (O16). The steps are:
//
//  1. If an answer is stored, decode it, and run nothing. It is refused if the argument came as
//     bytes in both calls and differs.
//  2. If the first call under the key has lent its turn out, wait for it, and begin again.
//  3. Run the handler. Its error is no answer: nothing is stored, so a repeat runs it.
//  4. Encode the answer and write it as a mark to the turn's batch, so that the answer
//     and the effects of the handler are stored together.
//
// The caller owns the turn. A request without a method, such as an alarm, just runs.
func (a *activation) once(t *turn, r *Request) error {
	op, ok := r.op.(callable)
	if !ok {
		return r.op.run(t, a)
	}
	h := a.host
	key := answerMark + op.methodName() + "\x00" + r.key
	if len(key) > h.options.MaxKeyBytes {
		return fmt.Errorf("%s: %w: idempotency key of %d bytes", a.object.ID, ErrKeyTooLarge, len(r.key))
	}
	answer, ok, err := t.lookUp(key)
	if err != nil {
		return h.storageError(a.object.ID, err)
	}
	if ok {
		if err := a.sameArgument(t, r, op); err != nil {
			return err
		}
		return op.decodeResult(h.options.Codec, answer)
	}
	if first := a.answers.lent[key]; first != nil {
		return a.waitForFirst(t, r, first, op, key)
	}
	a.answers.key = key
	defer func() {
		if t.holds() { // otherwise the cache belongs to another turn now
			a.answers.key = ""
		}
	}()
	if err := op.run(t, a); err != nil {
		return err
	}
	answer, err = op.encodeResult(h.options.Codec)
	if err != nil {
		return fmt.Errorf("%s: encode the answer of %s: %w", a.object.ID, op.methodName(), err)
	}
	// A smaller answer is stored even if the turn has already written MaxBatchBytes.
	if len(answer) > h.options.MaxValueBytes {
		if err := t.state.storage.check(t, markBytes(a.object.ID, key, answer), "", nil); err != nil {
			return err
		}
	}
	ttl := cmp.Or(r.ttl, answerTTL)
	if err := t.mark(key, answer, ttl); err != nil || r.print == 0 {
		return h.storageError(a.object.ID, err)
	}
	return h.storageError(a.object.ID, t.mark(printKey(op, r.key), binary.BigEndian.AppendUint64(nil, r.print), ttl))
}

// printKey is the key of the mark with the fingerprint of an argument.
func printKey(op callable, key string) string { return printMark + op.methodName() + "\x00" + key }

// sameArgument returns ErrKeyReused if the call of the stored answer had another argument. It
// knows that only if both arguments came as bytes. A program of before stores no fingerprint.
func (a *activation) sameArgument(t *turn, r *Request, op callable) error {
	if r.print == 0 {
		return nil
	}
	stored, ok, err := t.lookUp(printKey(op, r.key))
	if err != nil {
		return a.host.storageError(a.object.ID, err)
	}
	if ok && len(stored) == 8 && binary.BigEndian.Uint64(stored) != r.print {
		return fmt.Errorf("%s: %w: %q of method %s", a.object.ID, ErrKeyReused, r.key, op.methodName())
	}
	return nil
}

// fingerprint returns the beginning of the SHA-256 of an argument, never 0. JSON is first
// written anew, so that the order of keys and the spaces do not count.
func fingerprint(arg []byte) uint64 {
	sum := sha256.Sum256(plainJSON(arg))
	return max(binary.BigEndian.Uint64(sum[:]), 1)
}

// plainJSON writes JSON anew, and returns other bytes as they are. A number, true, false and null need no decoder, which
// would take 2.4 KiB.
func plainJSON(arg []byte) []byte {
	if !json.Valid(arg) {
		return arg
	}
	bare := bytes.TrimSpace(arg)
	if c := bare[0]; c != '{' && c != '[' && c != '"' {
		return bare
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(arg))
	d.UseNumber()
	if d.Decode(&value) == nil {
		if plain, err := json.Marshal(value); err == nil {
			return plain
		}
	}
	return arg
}

// waitForFirst waits until the call that runs under the same key has its turn back, and
// then calls once, which looks for an answer. It lends its own turn out meanwhile, because
// the first call needs the object to end. The wait is in the graph of waits, so that a circle is ErrDeadlock.
func (a *activation) waitForFirst(t *turn, r *Request, first *lentCall, op callable, key string) error {
	h, on := a.host, awaited{turn: first.turn, id: a.object.ID, repeat: true}
	err := t.state.Release(t, func(ctx context.Context) error {
		if err := h.waits.begin(t, a, on); err != nil {
			return err
		}
		defer h.waits.end(t, on)
		return h.seams.Executor.Wait(ctx, first.back)
	})
	if err != nil {
		return err
	}
	if a.answers.lent[key] == first { // its handler has ended its goroutine without resume
		delete(a.answers.lent, key)
	}
	return a.once(t, r)
}

// markBytes is the most that a mark adds to a batch, without recordBytes: the row of the
// mark, the removal of the one before, and the entry in the expiry index, which has
// the object's class and name. It is used to refuse a mark before it is written.
func markBytes(id storage.ID, key string, value []byte) int {
	const more = 2*recordBytes + 3*16
	return 2*len(key) + len(value) + len(id.Class) + 1 + len(id.Name) + more
}

// mark writes an expiring mark, in place of the one under key if there is one.
func (t *turn) mark(key string, value []byte, ttl time.Duration) error {
	old, err := t.bucketOf(key)
	if err != nil {
		return err
	}
	return t.setMark(key, value, ttl, old)
}

// setMark writes an expiring mark to the turn's batch. old is the bucket that holds a
// mark under the key now, 0 if none does; that mark is deleted. The mark goes to the
// bucket for its time of expiry. A bucket that may have no entry in the expiry index gets
// one with the same batch, so that no mark stays for ever.
func (t *turn) setMark(key string, value []byte, ttl time.Duration, old int64) error {
	h, b, k := t.act.host, t.write(), t.answers()
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

// Mark stores a mark of the object that expires after ttl, in the turn's batch. A job
// uses marks to recognise repeats, for example the id of an event that it has handled. A
// mark takes the place of an earlier one under the key. Its row is removed up to a
// quarter of ttl, or two minutes, after it has expired. Mark returns ErrKeyTooLarge,
// ErrValueTooLarge or ErrBatchTooLarge, and changes nothing then.
func (s *State) Mark(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return s.mark(ctx, key, value, ttl, false)
}

// MarkNew is a cheaper Mark for a key under which the object has no mark. It does not
// look for one, so the caller must know that there is none. If there is one after all,
// Marked returns either of them until both have expired.
func (d *Driver) MarkNew(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return d.state.mark(ctx, key, value, ttl, true)
}

// mark checks the turn and the sizes, and writes the mark, for Mark and MarkNew.
func (s *State) mark(ctx context.Context, key string, value []byte, ttl time.Duration, isNew bool) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if err := s.storage.check(t, markBytes(t.act.object.ID, userMark+key, value), userMark+key, value); err != nil {
		return err
	}
	if isNew {
		return s.reading(t.setMark(userMark+key, value, ttl, 0))
	}
	return s.reading(t.mark(userMark+key, value, ttl))
}

// Marked returns the value of the mark under key, as this turn has left it; ok is false
// if there is none or it has expired.
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

// marksRead is how many marks MarksEnd reads at most, so that its turn stays short.
const marksRead = 1024

// MarksEnd returns when the last of the object's marks expires, as the turn leaves
// them; zero if all have expired. Answers under idempotency keys are marks too. If the
// object may have more than 1,024 marks, the time is up to a quarter of their time to
// live, or two minutes, too late, because MarksEnd does not read them all.
func (d *Driver) MarksEnd(ctx context.Context) (time.Time, error) {
	t, err := d.state.turn(ctx)
	if err != nil {
		return time.Time{}, err
	}
	h := d.state.act.host
	end, err := h.store.MarksEnd(t.batch, *t.object, h.seams.Clock.Now().UnixNano(), marksRead)
	if err := d.state.reading(err); err != nil || end == 0 {
		return time.Time{}, err
	}
	return time.Unix(0, end).UTC(), nil
}

// lentCall is a call with an idempotency key that has lent its turn out. Repeats wait for
// its turn.
type lentCall struct {
	turn *turn
	back chan struct{} // closed when the call has its turn back
}

// lend notes that the call which has the turn lends it out, if the call has a key, so
// that repeats wait until it has the turn back. Release calls it while it owns the turn.
// It returns the key, empty if there is none, for resume, and the entry on which repeats
// wait. k may be nil.
func (k *answerCache) lend(t *turn) (key string, first *lentCall) {
	if k == nil || k.key == "" {
		return "", nil
	}
	key, k.key = k.key, ""
	first = &lentCall{t, make(chan struct{})}
	if k.lent == nil {
		k.lent = make(map[string]*lentCall)
	}
	k.lent[key] = first
	return key, first
}

// resume is the reverse of lend. The call has its turn again and owns it.
func (k *answerCache) resume(key string) {
	if key != "" {
		delete(k.lent, key)
		k.key = key
	}
}
