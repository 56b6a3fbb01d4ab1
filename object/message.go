package object

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// ErrNeedsAnswer: a method was called with the Outbox of a State, and its answer means
// something that a message cannot know. It is defined without Sent.
var ErrNeedsAnswer = errors.New("object: method needs an answer: call it with the State, not with its Outbox")

// ErrBadDelay: a delay of After is longer than 100 years, or the clock and the delay together lie
// outside of the times that a store can hold, 1970 to 2262. Nothing was written.
var ErrBadDelay = errors.New("object: a message can be delayed by at most 100 years, to a time between 1970 and 2262")

// ErrDelayedCall: a call has the option After. It has not run. Use Method.Send, or pass
// State.Outbox as the caller.
var ErrDelayedCall = errors.New("object: a call cannot have the option After: use Method.Send, or an Outbox as the caller")

// ErrOutboxFull: too many messages wait for the receiver (ClassOptions.MaxWaiting) or in the
// store (Options.MaxMessages). Nothing was written. Try again later.
var ErrOutboxFull = errors.New("object: too many messages wait")

// Send has the method run on the object called name if, and only if, the present turn of st
// commits (M1). ctx is that of the turn. The message is stored with the turn's commit, and
// the commit that ends the receiver's turn removes it. So all that the handler writes after
// its last Sync or Release takes effect exactly once (M2), however often a process dies. The
// answer of the method is dropped.
//
// Messages from one object to another arrive in the order of the sender's commits (M3). A
// handler that fails is called again as ClassOptions.MessageRetry says, and those behind the
// message pass it. A message that was given up is a dead letter of the receiver.
//
// The option Idempotent has its meaning against other messages and calls with the same key,
// and its time counts from the delivery. The option After delays the message. Send returns
// ErrBadName, ErrBadDelay, ErrValueTooLarge, ErrBatchTooLarge, ErrOutboxFull or an error of the
// codec, and has changed nothing then.
func (m *Method[A, R]) Send(ctx context.Context, st *State, name string, arg A, opts ...CallOption) error {
	in := m.m.take()
	*in.arg.(*A) = arg
	return in.send(ctx, st, name, opts)
}

// send sends the call as a message.
func (in *invocation) send(ctx context.Context, st *State, name string, opts []CallOption) error {
	t, err := st.turn(ctx)
	if err != nil {
		return err
	}
	in.call.init(in.method.class.id(name), in, opts)
	if err := st.send(t, in); err != nil {
		return err
	}
	in.recycle()
	return nil
}

// MethodOption changes a method. Sent returns one.
type MethodOption[A, R any] struct{ sent func(arg A) R }

// Sent lets the method be called with the Outbox of a State, where the caller gets the
// answer of this function, because the method has yet to run. It must be an answer that is
// true of a call that is only sent, for example one with a field Sent.
func Sent[A, R any](answer func(arg A) R) MethodOption[A, R] { return MethodOption[A, R]{answer} }

// answerSent sets the answer of a call that was sent.
func (in *invocation) answerSent() bool {
	if in.method.hasSent {
		in.method.part(in, sentAnswer)
	}
	return in.method.hasSent
}

// Outbox returns a Caller that writes calls to the turn's batch and does not run them: each is
// sent as Method.Send does. So a verb of a job can be part of the turn's commit:
//
//	_, err := mails.Enqueue(ctx, st.Outbox(), mail)
//
// The verb returns the answer that its method gives to a call that was sent, see Sent. A
// verb that needs the real answer returns ErrNeedsAnswer, and nothing is written. The ctx of
// the calls is that of the turn. The options hold for each call that does not have its own:
//
//	_, err := Orders.Start(ctx, st.Outbox(object.After(time.Hour)), "4711", order)
func (s *State) Outbox(opts ...CallOption) Caller {
	if len(opts) == 0 {
		return outbox{s}
	}
	o := &outboxWith{outbox: outbox{s}}
	o.options.init(storage.ID{}, nil, opts)
	return o
}

// outbox is the Caller that Outbox returns.
type outbox struct{ state *State }

// outboxWith is an outbox with options.
type outboxWith struct {
	outbox
	options Request // only the fields that options set are used
}

// Invoke adds the options that the call does not have, and stores it as a message.
func (o *outboxWith) Invoke(ctx context.Context, r *Request) error {
	if r.key == "" {
		r.key, r.ttl = o.options.key, o.options.ttl
	}
	if !r.after {
		r.after, r.delay = o.options.after, o.options.delay
	}
	return o.outbox.Invoke(ctx, r)
}

// Seams returns the seams of the host, because a verb may draw a random number.
func (o outbox) Seams() *seam.Seams { return &o.state.act.host.seams }

// Invoke stores the call as a message with the turn's commit.
func (o outbox) Invoke(ctx context.Context, r *Request) error {
	t, err := o.state.turn(ctx)
	if err != nil {
		return err
	}
	op, ok := r.op.(callable)
	switch {
	case r.sent:
		return fmt.Errorf("%s: object: a Caller passed on a request twice; make another call", r.id)
	case !ok || !op.answerSent():
		return fmt.Errorf("%s: %s: %w", r.id, methodOf(r.op), ErrNeedsAnswer)
	}
	r.sent = true
	return o.state.send(t, op)
}

// send adds a message to the turn's batch. op has the argument, and its request the receiver
// and the options.
func (s *State) send(t *turn, op callable) error {
	h, r := s.act.host, op.request()
	if err := r.id.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadName, err)
	}
	arg, err := op.encodeArg(h.options.Codec)
	if err != nil {
		return fmt.Errorf("%s: encode the argument of %s: %w", r.id, op.methodName(), err)
	}
	if len(arg) > h.options.MaxValueBytes {
		return fmt.Errorf("%s: argument of %s: %w: %d bytes", r.id, op.methodName(), ErrValueTooLarge, len(arg))
	}
	m := &message{letter: letter{from: s.act.object.ID, method: op.methodName(), key: r.key, ttl: r.ttl, arg: arg}}
	if r.delay > 0 {
		if m.due, err = dueAfter(h.seams.Clock.Now(), r.delay); err != nil {
			return named(r.id, err)
		}
	}
	return s.write(t, r.id, usualQueue, m)
}

// write adds a message to the turn's batch. The caller has set its letter and due.
func (s *State) write(t *turn, to storage.ID, queue byte, m *message) error {
	h := s.act.host
	m.host = h
	m.To, m.Shard, m.Queue = to, h.store.ShardOf(to), queue
	var room [4 * 64]byte
	value := m.letter.append(room[:0])
	size := 2*(len(to.Class)+len(to.Name)) + len(value) + recordBytes
	if m.due != 0 {
		size += 2 * (len(to.Class) + len(to.Name) + recordBytes) // of the state and of the entry by time
	}
	if err := s.storage.check(t, size, "", nil); err != nil {
		return err
	}
	if err := h.mail.admit(m); err != nil {
		if errors.Is(err, ErrOutboxFull) {
			s.act.hosted.outboxFullAt.Store(h.seams.Clock.Now().UnixNano())
		}
		return fmt.Errorf("%s: send %s to %s: %w", s.act.object.ID, m.letter.method, to, err)
	}
	t.post(m, value)
	return nil
}

// countTimed counts the stored messages of a receiver that no box counts.
func (x *mail) countTimed(to storage.ID) (n int, err error) {
	if x.host.hosted[to.Class] != nil {
		return x.host.store.CountLater(to, math.MaxInt)
	}
	for queue := byte(0); queue < storage.Queues && err == nil; queue++ {
		err = x.host.store.Messages(to, queue, 0, math.MaxUint64, func(storage.StoredMessage) bool { n++; return true })
	}
	return n, err
}

// Answer sends a message to an object that waits for it, by the name of its method, so that
// a job type can answer an object of a class that it does not know. It is Method.Send but
// for this: it is handled before the messages that were sent by Method.Send or an Outbox, and
// a class or method that the host does not have is no error here: the message waits for it.
func (d *Driver) Answer(ctx context.Context, to storage.ID, method string, arg any) error {
	s := d.state
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if err := to.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadName, err)
	}
	raw, err := s.act.host.options.Codec.Encode(arg)
	if err != nil {
		return fmt.Errorf("%s: encode the argument of %s: %w", to, method, err)
	}
	if len(raw) > s.act.host.options.MaxValueBytes {
		return fmt.Errorf("%s: argument of %s: %w: %d bytes", to, method, ErrValueTooLarge, len(raw))
	}
	return s.write(t, to, firstQueue, &message{letter: letter{from: s.act.object.ID, method: method, arg: raw}})
}

// post adds a message with its value to the turn's batch, and to those that are handed over
// after the commit.
func (t *turn) post(m *message, value []byte) {
	if m.due == 0 {
		t.begun().AddMessage(m.Shard, m.To, m.Queue, value)
	} else {
		t.begun().AddDelayedMessage(m.Shard, m.To, m.Queue, value, m.due, m.tries.append(nil))
	}
	m.earlier, t.writes.sent = t.writes.sent, m
}

// The queues of a receiver. The first is read before the other.
const (
	firstQueue byte = iota // for answers that a receiver waits for, of children and parents
	usualQueue
)

// message is a message on its way from the commit of its sender to that of its receiver.
//
//  1. send makes it and adds its row to the sender's batch.
//  2. The sender's turn has committed: handOver gives it to the receiver's mailbox, or leaves it on
//     disk. One with a delay stays on disk, with an entry in the index by time.
//  3. A reader brings those on disk (readOnce), and the scheduler over the index by time
//     those that wait for their time or for another attempt (fire).
//  4. performMessage runs the handler, and the commit of that turn deletes the row. If it
//     failed, failed stores the attempt, or a dead letter, or pauses the receiver.
//  5. landed counts it out.
//
// One goroutine at a time uses it: the owner of the turn that it is in.
type message struct {
	inbox.Message
	host    *Host
	letter  letter
	tries   tries
	stated  bool  // tries is stored
	due     int64 // in the index by time; 0: it is in its queue
	earlier *message
	// ticket is a commit on which the message depends: that of its sender, or a later one.
	ticket   storage.Ticket
	delivery delivery // of push
	outcome  outcome
	lent     bool     // its handler has lent its turn out, so that it may have been buried meanwhile
	waits    bool     // a suspension has kept it from its turn
	flight   *flight  // that announced it; nil: none
	charges  int      // crashes that the message is charged with
	trial    *message // the first of the messages on trial with it; nil: it is on no trial
}

// outcome is what has become of a message in its turn.
type outcome uint8

const (
	noOutcome outcome = iota // its turn has not begun, or has failed without a trace
	delivered                // its handler's commit has removed it
	attempted                // an attempt has failed, and the time of the next is stored
	buried                   // it is a dead letter
	kept                     // it stays stored as it was
	repeated                 // another delivery of it has ended before
)

// letter is a message as its sender has written it.
type letter struct {
	from   storage.ID
	method string
	key    string // idempotency key; empty: none
	ttl    time.Duration
	arg    []byte // as the codec has encoded it
}

// The value of a message:
//
//	version 1 | class, name of the sender | method | uvarint flags | key, uvarint time | argument to the end
//
// where the key and its time are there if the flag 1 is set.
const (
	letterVersion   = 1
	letterFlagOnce  = 1
	letterKnownFlag = letterFlagOnce
)

// append appends the value of the message.
func (l *letter) append(dst []byte) []byte {
	w := row.Writer(dst).Byte(letterVersion).Text(l.from.Class).Text(l.from.Name).Text(l.method)
	if l.key == "" {
		w = w.Uint(0)
	} else {
		w = w.Uint(letterFlagOnce).Text(l.key).Uint(uint64(max(l.ttl, 0)))
	}
	return append(w, l.arg...)
}

// decodeLetter reads what letter.append has appended.
func decodeLetter(b []byte) (l letter, err error) {
	r := row.Read(b)
	version := r.Byte()
	l.from = storage.ID{Class: r.Text(), Name: r.Text()}
	l.method = r.Text()
	flags := r.Uint()
	r.Required()
	if flags&letterFlagOnce != 0 {
		l.key, l.ttl = r.Text(), time.Duration(r.Uint())
		r.Required()
	}
	l.arg = r.Rest()
	if version != letterVersion || flags&^letterKnownFlag != 0 || l.ttl < 0 || !r.OK() {
		return letter{}, fmt.Errorf("%w: message %x", storage.ErrCorrupt, b)
	}
	return l, nil
}

// tries is the state of a message of which an attempt has failed or was cut off.
type tries struct {
	attempts  int       // that have failed
	crashes   int       // attempts in a row that the end of a process has cut off
	cutEpoch  uint64    // of the last of those
	firstAt   time.Time // when the first attempt failed
	lastError string
	// ownersLost counts the attempts in a row that a take-over of the store by another node has cut off.
	ownersLost int
}

const triesVersion = 1

// append appends the state of the message.
func (s *tries) append(dst []byte) []byte {
	w := row.Writer(dst).Byte(triesVersion).Uint(uint64(s.attempts)).Uint(uint64(s.crashes)).Uint(s.cutEpoch)
	w = w.Uint(uint64(alarm.Nanos(s.firstAt))).Text(s.lastError)
	if s.ownersLost > 0 {
		w = w.Uint(uint64(s.ownersLost))
	}
	return w
}

// decodeTries reads what tries.append has appended.
func decodeTries(b []byte) (s tries, err error) {
	r := row.Read(b)
	version := r.Byte()
	s = tries{attempts: countIn(&r), crashes: countIn(&r), cutEpoch: r.Uint(), firstAt: timeOf(int64(r.Uint())), lastError: r.Text()}
	r.Required()
	s.ownersLost = int(min(r.Uint(), 1<<31)) // absent if it is zero
	if version != triesVersion || !r.OK() {
		return tries{}, fmt.Errorf("%w: state of a message %x", storage.ErrCorrupt, b)
	}
	return s, nil
}

// timeOf is the reverse of alarm.Nanos.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// messageOf returns a stored message as one on its way.
func (h *Host) messageOf(s storage.StoredMessage) (*message, error) {
	l, err := decodeLetter(s.Value)
	if err != nil {
		return nil, fmt.Errorf("message %d of %s: %w", s.Seq, s.To, err)
	}
	m := &message{host: h, letter: l, stated: s.Stated, due: s.Due}
	m.MessageID, m.Bytes = s.MessageID, len(s.Value)
	if s.Stated {
		if m.tries, err = decodeTries(s.State); err != nil {
			return nil, fmt.Errorf("message %d of %s: %w", s.Seq, s.To, err)
		}
	}
	return m, nil
}

// dependOn sets the ticket of a message that was read from the store, where applied is not
// before the commit that sent it. One of an earlier opening is durable and depends on none.
func (m *message) dependOn(applied storage.Ticket) {
	if m.stated || m.Seq >= m.host.store.FirstSeq() {
		m.ticket = applied
	}
}

// delivers reports whether messages to an object leave the disk: its class is registered, and
// the store is not dormant.
func (x *mail) delivers(to storage.ID) bool {
	return x.host.hosted[to.Class] != nil && !x.host.store.Dormant()
}
