package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/storage"
)

// After a crash nothing tells which of the stored messages were being handled, so one of
// them may have killed the process. The messages of earlier openings are therefore announced
// before they are handed over: a row of the flight log names them, durably, as it names
// alarms. If the process dies again, the next one finds the row, and those that it names are
// suspects in the lane of alarms and executions (A8). New messages are handed over
// meanwhile without any of this.
//
// From the second crash in a row on, the messages of earlier openings go alone: a receiver's
// next one is read and announced when the one before it has landed or has lent its turn
// out. So only the head of a queue can be a suspect, and the rest of the queue waits
// behind it while it is held back and tried, in order (M3).

// left reports whether the message is one that an earlier process had when the one before
// this has crashed, so that it may be the cause.
func (m *message) left() bool {
	s := m.host.store
	return m.Seq < s.FirstSeq() && !s.Previous().Clean
}

// announced hands over messages that were read from the store. Those of earlier openings are
// announced first, if the process before has crashed, and suspects are held back. It waits
// for the disk, and keeps the order of those that it hands over.
func (x *mail) announced(portion []*message) {
	var next, fly []*message
	for _, m := range portion {
		old := m.left()
		if old && x.hold(m) {
			continue
		}
		if old {
			fly = append(fly, m)
		}
		next = append(next, m)
	}
	if len(fly) > 0 {
		x.fly(fly, next, false)
		return
	}
	for _, m := range next {
		x.push(m)
	}
}

// fly announces the messages of a flight, and then hands over next, which has them all.
// Loose ones were held back as suspects.
func (x *mail) fly(messages, next []*message, loose bool) {
	h := x.host
	for part := messages; len(part) > 0; {
		n := min(len(part), flightSize)
		f := &flight{host: h, loose: loose}
		f.left.Store(int64(n))
		entries := make([]alarm.Entry, 0, n)
		for _, m := range part[:n] {
			entries = append(entries, m.flightEntry())
		}
		var err error
		if f.number, err = h.flightLog.announce(entries); err != nil {
			h.options.Logger.Error("messages wait: the list of running messages was not stored", "error", err)
			for _, m := range next {
				h.lifecycle.begin()
				m.landed(err)
			}
			return
		}
		for _, m := range part[:n] {
			if loose {
				m.trial = messages[0]
			}
			m.flight, m.charges = f, h.flightLog.suspects.charged(m.subject())
		}
		part = part[n:]
	}
	for _, m := range next {
		x.push(m)
	}
}

// hold holds a message back if it is a suspect, and reports whether it did. It stays under
// way for its receiver meanwhile, and those behind it wait, unless it waited for its next
// attempt. One that is charged with too many crashes is not held back, because stopped
// makes it a dead letter without running it. If a withdrawn copy of it is on trial now, this
// one takes its place.
func (x *mail) hold(m *message) bool {
	s := &x.host.flightLog.suspects
	if !s.some.Load() {
		return false
	}
	set, suspected := s.setOf(m.subject(), 0, 0)
	if !suspected || s.found.charges[m.subject()] >= x.host.hosted[m.To.Class].options.MaxAlarmCrashes {
		return false
	}
	held := &suspect{subject: m.subject(), set: set, message: m}
	if !s.hold(held) {
		m.trial = m
		return false
	}
	if m.due == 0 && m.Withdrawn() && s.remove(held) { // a Delete or a pause came after the read
		x.land(m)
	}
	return true
}

// land counts out a message that was held back as a suspect, so that a reader brings it again,
// if it is still stored.
func (x *mail) land(m *message) {
	if x.boxes.Land(&m.Message, false) {
		x.read(m.Receiver())
	}
}

// try hands over messages that were held back as suspects. It returns at once.
func (x *mail) try(held []*message) {
	h := x.host
	if len(held) == 0 || h.lifecycle.enter(false) != nil {
		return
	}
	h.seams.Executor.Go("messages", func() {
		defer h.lifecycle.leave()
		x.fly(held, held, true)
	})
}

// unannounce releases the message's place in its flight when all commits so far are
// durable, and tells the suspects that it has ended, if it was on trial. One that was
// withdrawn has not ended, also if its handler has, because a reader brings it again. Neither
// has one that waits for the end of a suspension.
func (x *mail) unannounce(m *message) {
	h, f := x.host, m.flight
	ended := m.trial != nil && (m.outcome != kept || !m.Withdrawn() && !m.waits)
	h.lifecycle.begin()
	h.afterDurable.Do(h.store.Applied(), func(err error) {
		defer h.lifecycle.leave()
		if err != nil {
			_ = h.storageError(m.To, err) // it ends the host
			return
		}
		if f.left.Add(-1) == 0 {
			h.flightLog.over(f.number)
		}
		if ended {
			h.flightLog.suspects.ended(m.subject())
		}
	})
}

// onTrial reports whether the message was held back as a suspect and is tried now.
func (m *message) onTrial() bool { return m.trial != nil }

// subject names the message as one that a crash can cut off. Its number is no generation of
// an alarm, because both are drawn from one counter.
func (m *message) subject() subject { return subject{id: m.To, gen: m.Seq} }

// flightEntry returns the message as a flight row has it: with its queue in place of an
// object's number, which is never that small.
func (m *message) flightEntry() alarm.Entry {
	return alarm.Entry{Shard: m.Shard, Object: uint64(m.Queue), Gen: m.Seq, Class: m.To.Class, Name: m.To.Name}
}

// messageIn returns the message that an entry of a flight row names; ok is false for an alarm.
func (l *flightLog) messageIn(e alarm.Entry) (id storage.MessageID, ok bool) {
	if e.Object >= storage.Queues {
		return id, false
	}
	to := storage.ID{Class: e.Class, Name: e.Name}
	return storage.MessageID{To: to, Shard: l.host.store.ShardOf(to), Queue: byte(e.Object), Seq: e.Gen}, true
}

// countCrashOf adds one to the crashes of a message with b, if it is still stored, as
// countCrash does for an alarm.
func (l *flightLog) countCrashOf(b *storage.Batch, id storage.MessageID, epoch uint64) error {
	h := l.host
	stored, ok, err := h.store.Message(id)
	if err != nil || !ok {
		return err
	}
	m, err := h.messageOf(stored)
	if err != nil {
		return err
	}
	if h.store.OwnerLost() {
		h.metrics.recovered(id.To.Class, "message_owner_lost", "re-run")
		m.tries.ownersLost++
		b.SetMessageState(id, m.due, m.due, m.tries.append(nil))
		return nil
	}
	if l.suspects.found.suspected(l.suspects.cuts(m.tries.cutEpoch), epoch) {
		l.suspects.suspectAlarm(m.subject())
	}
	h.metrics.recovered(id.To.Class, "message_cut_off", "re-run")
	m.tries.crashes, m.tries.cutEpoch = m.tries.crashes+1, epoch
	b.SetMessageState(id, m.due, m.due, m.tries.append(nil))
	return nil
}

// Delete with messages removes the messages to an object and then the object. It takes these
// steps:
//
//  1. Hold: the receiver's messages are held back. Those that are under way are withdrawn, and
//     delayed ones that come due are put back.
//  2. End: the activation ends, so no turn that began before can commit.
//  3. Wait until the messages of all commits that have ended are handed over (sentBy).
//  4. One turn of the object removes the messages, a portion with each commit, and then the
//     object. No other turn of the object runs meanwhile, and only its turns change the rows
//     of its messages. So no row is removed twice, and none is written for a removed message.
//
// No turn of a class that is not registered can run, and nothing is delivered to it, so its
// messages are removed directly, by one Delete at a time.

// deleteWithMessages is Delete with the option WithMessages.
func (h *Host) deleteWithMessages(ctx context.Context, id storage.ID) error {
	if err := h.look(ctx, id); err != nil {
		return err
	}
	defer h.lifecycle.leave()
	c := h.hosted[id.Class]
	if c == nil {
		return h.deleteParkedWithMessages(ctx, id)
	}
	defer h.mail.holdBack(id)()
	if a := h.activationOf(id); a != nil { // it withdraws the messages in its mailbox
		a.end(errDeleted, c.again)
	}
	c.backlogs.forget(id.Name)
	below := h.mail.sentByNow()
	return h.bare(ctx, c, id, func(t *turn) error {
		defer h.mail.holdBack(id)() // the caller may have left, and its hold has ended then
		if err := h.mail.drop(t, below); err != nil {
			return err
		}
		return h.purge(t)
	})
}

// holdBack holds the messages to an object back, because they are to be deleted, until resume
// is called. Those that are held as suspects are under way no more; one that waits for
// its next attempt stays held.
func (x *mail) holdBack(id storage.ID) (resume func()) {
	to := inbox.Receiver{ID: id, Shard: x.host.store.ShardOf(id)}
	x.boxes.Hold(to)
	for _, m := range x.host.flightLog.suspects.removeMessages(id) {
		x.land(m)
	}
	return func() {
		if x.boxes.Release(to) {
			x.read(to)
		}
	}
}

// sentByNow returns a number that is greater than those of all messages of commits that have
// ended. It waits until all messages with a lesser number are handed over, because a
// handover after the deletion would bring a message that is gone. A handover waits for
// nothing, so this takes microseconds.
func (x *mail) sentByNow() uint64 {
	below := x.host.store.NextSeq()
	for x.host.store.MessagesBelow() < below {
		x.waitBriefly()
	}
	return below
}

// waitBriefly waits for readWait.
func (x *mail) waitBriefly() {
	rang := make(chan struct{})
	x.host.seams.Clock.AfterFunc(readWait, func() { close(rang) })
	_ = x.host.seams.Executor.Wait(context.Background(), rang)
}

// dropped is how many messages one commit of drop removes.
const dropped = 1000

// drop removes messages of the turn's object that have a lesser number than below, and commits
// each portion. The caller holds them back meanwhile.
func (x *mail) drop(t *turn, below uint64) error {
	for {
		gone, more, err := x.dropPortion(t.begun(), t.act.object.ID, below)
		if err != nil {
			return x.host.storageError(t.act.object.ID, err)
		}
		if gone.n > 0 {
			t.then(func(at storage.Ticket) {
				x.forget(gone, at)
				x.boxes.Removed(inbox.Receiver{ID: t.act.object.ID, Shard: t.act.object.Shard}, gone.n-len(gone.later))
			})
		}
		if err := t.commit(false); err != nil || !more {
			return err
		}
	}
}

// portion is messages that a commit removes: how many, and which of them have a time.
type portion struct {
	n     int
	later []storage.MessageID
}

// dropPortion adds the removal of up to dropped messages of a receiver to a batch, and reports
// whether there are more.
func (x *mail) dropPortion(b *storage.Batch, to storage.ID, below uint64) (gone portion, more bool, err error) {
	for queue := byte(0); queue < storage.Queues && err == nil && !more; queue++ {
		err = x.host.store.Messages(to, queue, 0, below, func(s storage.StoredMessage) bool {
			if more = gone.n == dropped; more {
				return false
			}
			b.DeleteMessage(s.MessageID, s.Stated, s.Due)
			if s.Due != 0 {
				gone.later = append(gone.later, s.MessageID)
			}
			gone.n++
			return true
		})
	}
	return gone, more, err
}

// forget counts out messages that a commit has removed.
func (x *mail) forget(gone portion, at storage.Ticket) {
	for _, id := range gone.later {
		x.clear(id, at)
	}
	x.stored.Add(int64(-gone.n))
}

// deleteParkedWithMessages is deleteWithMessages for an object of a class that is not
// registered.
func (h *Host) deleteParkedWithMessages(ctx context.Context, id storage.ID) error {
	defer h.mail.parked.enter(h)()
	below := h.mail.sentByNow()
	for more := true; more; {
		var b storage.Batch
		b.For(id)
		var gone portion
		var err error
		if gone, more, err = h.mail.dropPortion(&b, id, below); err != nil {
			return h.storageError(id, err)
		}
		if gone.n == 0 {
			break
		}
		at, err := h.store.Commit(&b)
		if err != nil {
			return h.storageError(id, err)
		}
		h.mail.forget(gone, at)
		h.mail.timed.Remove(id, gone.n-len(gone.later), at)
		if err := h.store.WaitDurable(at); err != nil {
			return h.storageError(id, err)
		}
	}
	return h.deleteParked(ctx, id)
}

// BuryMessage steps in the same order, but for the end of the activation: it holds the messages back,
// waits for the handovers, and buries the message in a turn of the receiver. A handler of the message that
// has lent its turn out finds it gone at its next commit (stands).

// ErrNoMessage is returned for a message that was handled, is a dead letter, or was deleted.
var ErrNoMessage = errors.New("object: no such message")

// errBuried is the cause of a dead letter that an operator has made.
var errBuried = errors.New("buried by an operator")

// BuryMessage makes a message that waits for an object a dead letter of the object, with the reason
// "buried", in one commit. seq is MessageState.Seq, as Inspect lists it. So an operator gets a message out of
// the way that holds up those behind it, for example because its argument cannot be decoded.
//
// The letter has the number of the message, and keeps its attempts and its last error. ReplayDeadLetter
// sends it again: at the end of the object's messages, at once also if it had a time, and with all its
// attempts. DiscardDeadLetter drops it.
//
// BuryMessage waits for the turn of the object that runs, and for the disk. A handler of the message that
// has lent its turn out commits nothing more. It returns ErrNoMessage if the message is gone. The class
// must be registered, the method of the message need not be.
func (h *Host) BuryMessage(ctx context.Context, id storage.ID, seq uint64) error {
	c, err := h.runnable(ctx, id)
	if err != nil {
		return err
	}
	if err := h.lifecycle.enter(false); err != nil {
		return named(id, err)
	}
	defer h.lifecycle.leave()
	defer h.mail.holdBack(id)()
	sent := h.mail.sentByNow()
	return h.bare(ctx, c, id, func(t *turn) error {
		defer h.mail.holdBack(id)() // as in deleteWithMessages
		m, err := h.mail.waiting(id, seq, sent)
		if err != nil {
			return err
		}
		s := m.tries
		s.lastError = cmp.Or(s.lastError, errBuried.Error())
		m.bury(t, s, errBuried, "buried")
		t.then(func(storage.Ticket) { h.mail.buried(m) })
		return nil
	})
}

// waiting reads a message of a receiver with a lesser number than below.
func (x *mail) waiting(to storage.ID, seq, below uint64) (*message, error) {
	h := x.host
	for queue := byte(0); queue < storage.Queues && seq < below; queue++ {
		s, ok, err := h.store.Message(storage.MessageID{To: to, Shard: h.store.ShardOf(to), Queue: queue, Seq: seq})
		if err != nil {
			return nil, h.storageError(to, err)
		}
		if ok {
			m, err := h.messageOf(s)
			return m, h.storageError(to, err)
		}
	}
	return nil, named(to, fmt.Errorf("message %d: %w", seq, ErrNoMessage))
}

// buried counts a message out that BuryMessage has made a dead letter. Its messages are held back.
func (x *mail) buried(m *message) {
	x.host.hosted[m.To.Class].counts.buried.Add(1)
	x.stored.Add(-1)
	if m.due == 0 {
		x.boxes.Removed(m.Receiver(), 1)
	}
}

// lendOut notes that the handler of the message lends its turn out.
func (m *message) lendOut() {
	m.lent = true
	if m.Alone && m.host.mail.boxes.Lend(&m.Message) {
		m.host.mail.read(m.Receiver())
	}
}

// stands returns an error if the message of a turn was buried while the turn was lent out. The caller
// owns the turn.
func (m *message) stands() error {
	if !m.lent {
		return nil
	}
	gone, err := m.repeats()
	if gone {
		err = fmt.Errorf("message %d: %w: it was buried while its handler had lent its turn out", m.Seq, ErrNoMessage)
	}
	return m.host.storageError(m.To, err)
}

// line lets one caller in at a time, in the order of their calls, so that two of them do not
// count the same messages out. The zero value is free.
type line struct {
	mu   sync.Mutex
	last chan struct{} // closed when the newest caller leaves; nil: there was none. Guarded by mu
}

// enter waits until the callers before have left. The caller calls leave, once.
func (l *line) enter(h *Host) (leave func()) {
	mine := make(chan struct{})
	l.mu.Lock()
	before := l.last
	l.last = mine
	l.mu.Unlock()
	if before != nil {
		_ = h.seams.Executor.Wait(context.Background(), before)
	}
	return func() { close(mine) }
}
