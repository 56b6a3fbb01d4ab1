package object

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/storage"
)

// delivery is the operation of a turn that handles a message: the call that the sender has
// made, with the argument in bytes.
type delivery struct {
	callable
	message *message
}

// run decodes the argument and calls the handler. The caller owns the turn.
func (d *delivery) run(ctx context.Context, a *activation) error {
	m := d.message
	if err := d.decodeArg(a.host.options.Codec, m.letter.arg); err != nil {
		return badArgument(a.object.ID, m.letter.method, err)
	}
	return d.callable.run(ctx, a)
}

// message returns the message that the request delivers, or nil.
func (r *Request) message() *message {
	if d, ok := r.op.(*delivery); ok {
		return d.message
	}
	return nil
}

// skips reports whether a message must not be handled now: one before it waits, the host
// shuts down, or the messages of its receiver are to be deleted. It stays stored.
func (m *message) skips() bool {
	if m.Withdrawn() || m.host.lifecycle.closing.Load() || m.due != 0 && m.host.mail.boxes.Held(m.Receiver()) {
		m.outcome = kept
	}
	return m.outcome == kept
}

// performMessage runs a turn that handles a message. The object depends on the commit of
// the sender before its constructor or its handler runs, so nothing that comes of them
// leaves the host before the sender's commit is durable (O7). If the handler fails, a commit
// of its own stores the attempt, because everything that the handler wrote is dropped.
func (a *activation) performMessage(t *turn, r *Request, m *message) error {
	if a.host.seams.Probe != nil {
		a.host.seams.At("message/deliver", a.object.ID.String())
	}
	a.depend(m.ticket)
	if m.due != 0 {
		if again, err := m.repeats(); again || err != nil {
			return a.host.storageError(a.object.ID, err)
		}
		if m.host.early(m.due) { // the clock was put back after the scheduler had fired it
			m.outcome = kept
			return nil
		}
	}
	if stopped, err := m.stopped(t); stopped || err != nil {
		return a.host.storageError(a.object.ID, err)
	}
	t.message, m.Begun = m, true
	err := a.performCall(t, r)
	if err != nil {
		return m.failed(t, err)
	}
	m.outcome = delivered
	return nil
}

// repeats reports whether a message of the index by time was delivered before, or removed by
// Delete: then it is not stored any more, or has another time. The caller owns the turn.
func (m *message) repeats() (bool, error) {
	s, ok, err := m.host.store.Message(m.MessageID)
	if err != nil || ok && s.Due == m.due {
		return false, err
	}
	m.outcome = repeated
	return true, nil
}

// stopped turns a message that is charged with MaxAlarmCrashes crashes, or was cut off by too many take-overs, into a dead letter,
// as firing.stopped does for alarms, and reports whether the turn is done. The caller owns
// the turn.
func (m *message) stopped(t *turn) (bool, error) {
	a := t.act
	reason, cause := a.hosted.killer(m.charges, m.tries.ownersLost, "message")
	if cause == nil {
		return false, nil
	}
	if err := a.locate(); err != nil {
		return false, err
	}
	t.state = nil
	s := m.tries
	s.lastError = cause.Error()
	m.bury(t, s, cause, reason)
	err := t.commit(false)
	if err == nil {
		m.outcome = buried
	}
	return true, err
}

// remove adds the removal of the message to the batch of the turn that has handled it.
func (m *message) remove(t *turn) {
	t.begun().DeleteMessage(m.MessageID, m.stated, m.due)
	if m.due != 0 {
		t.then(func(at storage.Ticket) { m.host.mail.clear(m.MessageID, at) })
	}
}

// failed stores what follows a failed attempt, in a commit of its own, because the writes
// of the handler were dropped. In this order:
//
//  1. A failure that is not the handler's costs no attempt: the receiver is paused, and the
//     message stays as it is.
//  2. A permanent error, or the last retry: a dead letter.
//  3. Otherwise the message goes to the index by time, for its next attempt, and those
//     behind it pass.
//
// It returns cause, joined with the error of the commit if that fails too. The caller owns
// the turn of t. If t does not hold its object any more, nothing is done, and landed decides.
func (m *message) failed(t *turn, cause error) error {
	a, h := t.act, m.host
	switch {
	case !t.holds():
		return cause
	case h.lifecycle.ctx.Err() != nil, m.Detached():
		m.outcome = kept
		return cause
	case notTheReceivers(cause):
		m.pause(cause)
		return cause
	}
	if m.due != 0 || m.lent || m.Withdrawn() { // it may have been deleted or buried meanwhile
		if again, err := m.repeats(); again || err != nil {
			return errors.Join(cause, err)
		}
	}
	t.message, t.state, t.object = nil, nil, &a.object
	now := h.seams.Clock.Now()
	next := m.tries
	next.attempts++
	next.crashes, next.cutEpoch, next.ownersLost = 0, 0, 0
	next.lastError = alarm.Cut(cause.Error(), alarm.MaxErrorBytes)
	if next.firstAt.IsZero() {
		next.firstAt = now
	}
	due, dead := next.again(a, cause, now)
	if dead != "" {
		m.bury(t, next, cause, dead)
	} else {
		m.later(t, alarm.Nanos(due), next)
	}
	if err := t.commit(false); err != nil {
		return errors.Join(cause, err)
	}
	m.outcome = buried
	if dead == "" {
		m.outcome = attempted
		a.hosted.counts.resent.Add(1)
		a.log().Warn("message failed", telling(cause, "method", m.letter.method, "from", m.letter.from.String(),
			"attempt", next.attempts, "next", due)...)
	}
	return cause
}

// again returns the time of the next attempt; if there is none, dead is the reason. s has
// counted the attempt that failed.
func (s *tries) again(a *activation, cause error, now time.Time) (due time.Time, dead string) {
	var final interface{ Permanent() bool }
	if IsPermanent(cause) || errors.As(cause, &final) && final.Permanent() {
		return due, "permanent error"
	}
	retry := &a.hosted.options.MessageRetry
	if s.attempts >= retry.MaxAttempts {
		return due, "retries used up"
	}
	delay, wished := RetryDelay(cause)
	if !wished {
		delay = retry.Backoff.Delay(s.attempts, a.host.seams.Rand)
	}
	due = now.Add(delay).Round(0)
	if retry.MaxElapsed > 0 && due.Sub(s.firstAt) > retry.MaxElapsed {
		return due, "retries used up"
	}
	return due, ""
}

// bury removes the message and writes a dead letter of the receiver, both with the turn's
// commit.
func (m *message) bury(t *turn, s tries, cause error, reason string) {
	m.remove(t)
	a, h := t.act, m.host
	now := h.seams.Clock.Now()
	if s.firstAt.IsZero() {
		s.firstAt = now
	}
	d := DeadLetter{
		ID: a.object.ID, Seq: m.Seq, Kind: DeadMessage, Method: m.letter.method, Arg: m.letter.arg, From: m.letter.from,
		Scheduled: s.firstAt, Died: now, Attempts: s.attempts, Crashes: s.crashes, LastError: s.lastError, Reason: reason,
		Stack: alarm.Cut(stackOf(cause), MaxStackBytes), Data: m.posted(),
	}
	t.begun().SetDead(a.object.Shard, a.object.ID, d.Seq, encodeDead(d))
	t.then(func(at storage.Ticket) { h.died(a.hosted, d, cause, at) })
}

// posted is the rest of a message in its dead letter, which Method, Arg and From do not tell.
type posted struct {
	Key   string        `json:"key,omitempty"` // idempotency key
	TTL   time.Duration `json:"ttl,omitempty"` // in nanoseconds
	Queue byte          `json:"queue"`
}

// posted returns the rest of the message as JSON.
func (m *message) posted() []byte {
	b, err := json.Marshal(posted{m.letter.key, m.letter.ttl, m.Queue})
	if err != nil {
		panic("object: encode a message: " + err.Error()) // a text and two numbers always encode
	}
	return b
}

// repost sends the message of a dead letter again, with all its attempts, at the end of its
// queue, with the commit of the turn that removes the letter.
func (h *Host) repost(t *turn, d DeadLetter) error {
	rest := posted{Queue: usualQueue}
	if err := json.Unmarshal(d.Data, &rest); err != nil || rest.Queue >= storage.Queues {
		return fmt.Errorf("%w: dead letter %d of %s: %q, %w", storage.ErrCorrupt, d.Seq, d.ID, d.Data, cmp.Or(err, errQueue))
	}
	m := &message{host: h, letter: letter{from: d.From, method: d.Method, key: rest.Key, ttl: rest.TTL, arg: d.Arg}}
	m.To, m.Shard, m.Queue = d.ID, h.store.ShardOf(d.ID), rest.Queue
	if err := h.mail.admit(m); err != nil {
		return named(d.ID, err)
	}
	t.post(m, m.letter.append(nil))
	return nil
}

// errQueue is the error of a queue that no receiver has.
var errQueue = errors.New("no such queue")

// notTheReceivers reports whether a failure costs a message no attempt, because the handler
// has not caused it. An error with a method Retryable tells by itself, unless the handler has
// made it permanent. That of a constructor may be permanent and is not the handler's all the same.
func notTheReceivers(err error) bool {
	var told interface{ Retryable() bool }
	switch {
	case errors.Is(err, ErrConstructor):
		return true
	case IsPermanent(err):
		return false
	case errors.As(err, &told):
		return told.Retryable()
	}
	for _, e := range []error{
		ErrStorage, ErrShutdown, ErrNoSpace, ErrReset, ErrOverloaded, ErrUnknownMethod, ErrOutboxFull, ErrBadArgument,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// The first pause of a receiver, which doubles with each one in a row, and the longest.
const (
	pauseMin = time.Second
	pauseMax = 30 * time.Second
)

// pause keeps the messages of the receiver back for a while, in their order, because this
// one could not be handled for a reason that is not its own. A message that waited for its
// next attempt stays in the index by time, and holds up no other.
func (m *message) pause(cause error) {
	m.outcome = kept
	if m.due != 0 || m.Detached() || m.host.lifecycle.closing.Load() {
		return
	}
	h, to := m.host, m.Receiver()
	pauses := h.mail.boxes.Pause(&m.Message, cause)
	if pauses == 0 {
		return
	}
	wait := pauseMax
	if pauses < 6 {
		wait = min(pauseMin<<(pauses-1), pauseMax)
	}
	h.options.Logger.Warn("messages wait", telling(cause, "class", m.To.Class, "object", m.To.Name, "method", m.letter.method, "wait", wait)...)
	h.seams.Clock.AfterFunc(wait, func() { h.mail.resume(to) })
}

// resume ends a pause of a receiver.
func (x *mail) resume(to inbox.Receiver) {
	if x.boxes.Resume(to) {
		x.read(to)
	}
}

// landed is called when the turn of the message has ended with err, or has not begun for
// err. If the turn could not store its failure, for example because the handler has ended
// its goroutine, another turn does.
func (m *message) landed(err error) {
	switch {
	case m.outcome != noOutcome:
	case err == nil:
		m.outcome = delivered
	case notTheReceivers(err) || m.Detached() || m.host.lifecycle.closing.Load():
		m.pause(err)
	default:
		m.host.crew.Add(crew.Func(func() {
			after := &Request{id: m.To, exempt: true, op: bare(func(t *turn) error { return m.failed(t, err) })}
			_ = m.host.hosted[m.To.Class].deliver(context.Background(), after) // the outcome tells the result
			if m.outcome == noOutcome {
				m.pause(err)
			}
			m.over()
		}))
		return
	}
	m.over()
}

// over counts a message out that is not under way any more.
func (m *message) over() {
	h := m.host
	defer h.lifecycle.leave()
	if m.flight != nil {
		h.mail.unannounce(m)
	}
	switch counts := &h.hosted[m.To.Class].counts; m.outcome {
	case delivered:
		counts.delivered.Add(1)
		h.mail.stored.Add(-1)
	case buried:
		counts.buried.Add(1)
		h.mail.stored.Add(-1)
	}
	switch {
	case m.due != 0:
		h.mail.back(m)
	case h.mail.boxes.Land(&m.Message, m.outcome != kept && m.outcome != repeated): // Removed has counted that one
		h.mail.read(m.Receiver())
	}
}

// back returns a message to the scheduler after its attempt. One that could not be handled is
// due again after retryWait, or when a suspended host goes on. Until then it has one of inbox.Places. So if others wait for a
// place, of the host or of the receiver, it gets another time and gives its place to them.
func (x *mail) back(m *message) {
	e := m.entry(m.due)
	switch {
	case m.outcome != kept:
		x.done(e)
	case x.host.suspension.after(func() { x.retry(e) }):
	case (x.later.Stats().Queued > 0 || x.share.Behind(m.To)) && !x.host.lifecycle.closing.Load() && !x.host.early(m.due):
		x.postpone(m, e)
	default:
		x.again(e, retryWait)
	}
}

// done gives back the place of a message that fire has taken, with which the host has finished.
func (x *mail) done(e alarm.Entry) {
	x.later.Done(e)
	x.leave(receiverOf(e), e.Object)
}

// again gives back the place of a message after a while, and has it fired again.
func (x *mail) again(e alarm.Entry, wait time.Duration) {
	x.host.seams.Clock.AfterFunc(wait, func() { x.retry(e) })
}

// retry gives back the place of a message, and has it fired again.
func (x *mail) retry(e alarm.Entry) {
	x.leave(receiverOf(e), e.Object)
	x.later.Return(e)
}

// leave gives back the place of a message beside the others of its receiver, if it has one.
func (x *mail) leave(to inbox.Receiver, seq uint64) {
	if x.share.Leave(to.ID, seq) {
		x.catchUp(to)
	}
}

// receiverOf returns the receiver of the message that the scheduler holds as e.
func receiverOf(e alarm.Entry) inbox.Receiver {
	return inbox.Receiver{ID: storage.ID{Class: e.Class, Name: e.Name}, Shard: e.Shard}
}

// catchUp has the scheduler fire messages of a receiver that it has let go, because the receiver
// had no place for them.
func (x *mail) catchUp(to inbox.Receiver) {
	h := x.host
	if h.lifecycle.enter(false) != nil {
		return
	}
	h.crew.Add(crew.Func(func() {
		defer h.lifecycle.leave()
		c := x.share.Begin(to.ID)
		due, more, err := x.behind(to, &c)
		if err != nil {
			_ = h.storageError(to.ID, err) // it ends the host
		}
		if x.share.End(to.ID, c, due, more, x.tell) {
			h.seams.Clock.AfterFunc(retryWait, func() {
				if x.share.Resume(to.ID) {
					x.catchUp(to)
				}
			})
		}
	}))
}

// tell has the scheduler fire a stored message at its time.
func (x *mail) tell(m storage.LaterMessage) { x.later.Set(laterEntry(m.MessageID, m.Due)) }

// behindAtOnce is how many entries of the index by time one read of behind takes.
const behindAtOnce = 256

// behind reads messages of a receiver from the index by time that are due and have no place, as many as
// a reading may find. It moves c.Next behind those that it has read, and reports whether there may be
// more. The scheduler gets those that are not due, because the clock was put back, without a place.
func (x *mail) behind(to inbox.Receiver, c *inbox.CatchUp) (due []storage.LaterMessage, more bool, err error) {
	for !x.host.lifecycle.closing.Load() {
		found, err := x.host.store.ScanLater(to.Shard, c.Next.Due, c.Next.Seq-1, behindAtOnce)
		if err != nil {
			return nil, true, err
		}
		for _, l := range found {
			at := inbox.Moment{Due: l.Due, Seq: l.Seq}
			if over := at.Compare(c.Last) > 0; over || len(due) == c.Room {
				return due, !over, nil
			}
			c.Next = inbox.Moment{Due: l.Due, Seq: l.Seq + 1}
			switch {
			case l.To != to.ID || c.Under(l.Seq):
			case x.host.early(l.Due):
				x.tell(l)
			default:
				due = append(due, l)
			}
		}
		if len(found) < behindAtOnce {
			return due, false, nil
		}
	}
	return due, true, nil
}

// postpone gives a message that could not be handled the time pauseMax from now, in a turn of
// its receiver, so that nothing else changes the message meanwhile.
func (x *mail) postpone(m *message, e alarm.Entry) {
	h := x.host
	h.lifecycle.begin()
	h.crew.Add(crew.Func(func() {
		defer h.lifecycle.leave()
		r := &Request{id: m.To, exempt: true, op: bare(m.postpone)}
		if h.hosted[m.To.Class].deliver(context.Background(), r) == nil {
			x.done(e)
			return
		}
		x.again(e, retryWait)
	}))
}

// postpone is the turn of mail.postpone.
func (m *message) postpone(t *turn) error {
	if again, err := m.repeats(); again || err != nil {
		return m.host.storageError(m.To, err)
	}
	m.later(t, alarm.Nanos(m.host.seams.Clock.Now().Add(pauseMax)), m.tries)
	return nil
}

// early reports whether a message with a time is not due yet, or not any more, because the clock was put back.
func (h *Host) early(due int64) bool { return alarm.Nanos(h.seams.Clock.Now()) < due }
