package object

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// mail brings messages from the commits of their senders, and from the disk, to their
// receivers.
type mail struct {
	host  *Host
	boxes inbox.Inboxes
	later *alarm.Scheduler  // over the index by time: messages that wait for their time
	timed inbox.LaterCounts // messages that no box counts: those of the index by time, and of classes that are not registered
	share inbox.Shares      // of the places for those of them that are under way
	// known is true when all messages of earlier openings have been counted, so that a
	// receiver without a box has none.
	known   atomic.Bool
	stored  atomic.Int64 // messages in the store; too few until known
	feeding atomic.Bool  // a timer is set for receivers that wait for room in the host
	parked  line         // of Deletes with messages of classes that are not registered
}

// init makes the scheduler. Open calls it before any turn runs.
func (x *mail) init(h *Host) (err error) {
	x.host = h
	x.later, err = alarm.NewScheduler(alarm.Config{
		Seams:    h.seams,
		Shards:   h.store.Shards(),
		Source:   laterIndex{h},
		InFlight: inbox.Places,
		Fire:     x.fire,
		OnError:  func(err error) { _ = h.storageError(storage.ID{}, err) },
	})
	return err
}

// start counts the messages of a snapshot that no turn has changed yet, and has those of
// earlier openings delivered. It returns at once; the count runs on a goroutine of its own.
func (x *mail) start(snapshot *storage.MessageCount) error {
	h := x.host
	if !h.store.Dormant() {
		x.later.Start()
	}
	if h.lifecycle.enter(false) != nil {
		return snapshot.Close()
	}
	h.seams.Executor.Go("messages", func() {
		defer h.lifecycle.leave()
		// A simulation may kill the task while it waits, so the snapshot is closed by a defer.
		var err error
		defer func() { _ = h.storageError(storage.ID{}, errors.Join(err, snapshot.Close())) }()
		err = x.count(snapshot)
	})
	return nil
}

// found is a receiver with stored messages, and how many it has.
type found struct {
	to inbox.Receiver
	n  int
}

// count counts the messages of a snapshot, and has those of registered classes read, shard
// after shard. A class that is not registered is only counted.
func (x *mail) count(snapshot *storage.MessageCount) error {
	h := x.host
	for more := true; more; {
		var all []found
		var err error
		more, err = snapshot.Next(func(to storage.ID, n int) bool {
			x.stored.Add(int64(n))
			later := snapshot.Later()
			if !x.delivers(to) {
				x.timed.Add(to, n, 0)
				return !h.lifecycle.closing.Load()
			}
			x.timed.Add(to, later, 0)
			if n > later {
				all = append(all, found{inbox.Receiver{ID: to, Shard: h.store.ShardOf(to)}, n - later})
			}
			return !h.lifecycle.closing.Load()
		})
		if err != nil {
			return err
		}
		x.readAll(all)
		if h.lifecycle.closing.Load() {
			return nil
		}
	}
	x.known.Store(true)
	return nil
}

// readersAtOpen is how many receivers are read at a time at Open. Each waits for a sync
// before it hands messages over, if the process before has crashed.
const readersAtOpen = 64

// readAll has a reader hand over the first messages of each receiver, and returns when all
// have. While the host has no room it waits, so that it takes little memory however many
// receivers there are.
func (x *mail) readAll(all []found) {
	if len(all) == 0 {
		return
	}
	h := x.host
	var next, left atomic.Int64
	done := make(chan struct{})
	readers := min(len(all), readersAtOpen)
	left.Store(int64(readers))
	for range readers {
		h.seams.Executor.Go("messages", func() {
			for i := next.Add(1); i <= int64(len(all)) && x.awaitRoom(); i = next.Add(1) {
				if f := all[i-1]; x.boxes.Found(f.to, f.n) {
					for x.readOnce(f.to) {
					}
				}
			}
			if left.Add(-1) == 0 {
				close(done)
			}
		})
	}
	_ = h.seams.Executor.Wait(context.Background(), done)
}

// awaitRoom waits while receivers wait for room in the host. It reports false if the host
// shuts down.
func (x *mail) awaitRoom() bool {
	h := x.host
	for x.boxes.Hungry() && !h.lifecycle.closing.Load() {
		x.waitBriefly()
	}
	return !h.lifecycle.closing.Load()
}

// admit refuses a message if too many wait (M7). It counts those of commits that have ended,
// from memory: it reads the receiver's messages only once.
func (x *mail) admit(m *message) error {
	limit := maxWaiting
	if c := x.host.hosted[m.To.Class]; c != nil {
		limit = c.options.MaxWaiting
	}
	n, reason := x.boxes.Waiting(m.Receiver())
	if n < limit && n+x.timed.Most(m.To) >= limit {
		read := func() (int, error) { return x.countTimed(m.To) }
		later, err := x.timed.Count(m.To, x.host.store, read)
		if err != nil {
			return x.host.storageError(m.To, err)
		}
		n += later
	}
	if n >= limit {
		if reason != nil {
			return fmt.Errorf("%w: %d for the receiver, which is paused: %w", ErrOutboxFull, n, reason)
		}
		return fmt.Errorf("%w: %d for the receiver", ErrOutboxFull, n)
	}
	if n := x.stored.Load(); n >= int64(x.host.options.MaxMessages) {
		return fmt.Errorf("%w: %d in the store", ErrOutboxFull, n)
	}
	return nil
}

// maxWaiting is the default of ClassOptions.MaxWaiting.
const maxWaiting = 100_000

// numbered gives the messages of a turn, of which last is the newest, the numbers that the
// commit has drawn, and returns the oldest, with the others behind it by earlier.
func numbered(last *message, b *storage.Batch, at storage.Ticket) (first *message) {
	n := 0
	for m := last; m != nil; m = m.earlier {
		n++
	}
	for m := last; m != nil; {
		n--
		m.Seq, m.ticket, m.Bytes = b.MessageSeq(n), at, len(m.letter.arg)
		earlier := m.earlier
		m.earlier, first = first, m // now: the later one
		m = earlier
	}
	return first
}

// handOver gives the messages of a commit to their receivers, in order. The sender's task
// calls it before it passes its turn on, so that the order of its commits is kept. It waits
// for nothing. first has the others behind it.
func (x *mail) handOver(first *message) {
	h := x.host
	defer h.store.HandedOver(first.Seq)
	for m := first; m != nil; {
		next := m.earlier
		m.earlier = nil
		x.stored.Add(1)
		x.handOverOne(m)
		m = next
	}
	x.feedLater()
}

// handOverOne gives one message to its receiver, or leaves it on disk: if the receiver has
// others there, if it is not delivered now, or if the host shuts down. The scheduler of
// the index by time gets one with a delay.
func (x *mail) handOverOne(m *message) {
	h := x.host
	if m.due != 0 || !x.delivers(m.To) {
		x.timed.Add(m.To, 1, m.Seq)
	}
	if m.due != 0 {
		x.later.Set(m.entry(m.due))
		return
	}
	if !x.delivers(m.To) || h.lifecycle.closing.Load() {
		return
	}
	if !x.known.Load() && !x.boxes.Known(m.Receiver()) {
		found, err := h.store.HasMessages(m.To, h.store.FirstSeq())
		if err != nil {
			_ = h.storageError(m.To, err)
			return
		}
		if found && x.boxes.Found(m.Receiver(), 1) {
			x.read(m.Receiver())
		}
	}
	if h.seams.Probe != nil && h.seams.Fault(seam.FaultMessageLate, m.To.String()) {
		x.boxes.Wait(&m.Message)
		return
	}
	if x.boxes.Arrive(&m.Message) {
		x.push(m)
	}
}

// push puts a message into the mailbox of its receiver. It is exempt from the limits of the
// mailbox, and waits for nothing. When its turn has ended, landed is called.
func (x *mail) push(m *message) {
	h := x.host
	h.lifecycle.begin()
	c := h.hosted[m.To.Class]
	method := c.methods[m.letter.method]
	if method == nil {
		m.landed(fmt.Errorf("%s: %w: %q", m.To, ErrUnknownMethod, m.letter.method))
		return
	}
	m.delivery = delivery{method.take(), m}
	r := m.delivery.request()
	r.id, r.op, r.key, r.ttl, r.exempt = m.To, &m.delivery, m.letter.key, m.letter.ttl, true
	r.ctx = context.Background()
	for {
		a, err := c.find(m.To.Name)
		if err == nil {
			_, err = a.accept(r.ctx, r, false)
		}
		if err == errGone {
			c.unload(a)
			continue
		}
		if err != nil {
			m.landed(err)
		}
		return
	}
}

// read has the stored messages of a receiver read, on a goroutine of the crew.
func (x *mail) read(to inbox.Receiver) {
	h := x.host
	if h.lifecycle.enter(false) != nil {
		return
	}
	h.crew.Add(crew.Func(func() {
		defer h.lifecycle.leave()
		for x.readOnce(to) {
		}
	}))
}

// readOnce hands over stored messages of a receiver, in order, as many as may be under way.
// It passes over those that are under way, and those that wait for their next attempt. It
// reports whether it is to be called again at once.
func (x *mail) readOnce(to inbox.Receiver) (again bool) {
	h := x.host
	from, ok := x.boxes.Begin(to)
	if !ok {
		return false
	}
	below := h.store.MessagesBelow()
	applied := h.store.Applied() // after below, so that it covers the commits of all messages that are read
	whole := true
	var portion []*message
	for queue := byte(0); queue < storage.Queues && whole; queue++ {
		var bad error
		err := h.store.Messages(to.ID, queue, from.From[queue], below, func(s storage.StoredMessage) bool {
			if s.Due != 0 || from.Under(s.Seq) {
				return true
			}
			var m *message
			if m, bad = h.messageOf(s); bad != nil {
				return false
			}
			m.Alone = m.left() && h.flightLog.suspects.some.Load()
			if h.lifecycle.closing.Load() || !x.boxes.Take(&m.Message) {
				whole = false
				return false
			}
			m.dependOn(applied)
			portion = append(portion, m)
			return true
		})
		if err = errors.Join(err, bad); err != nil {
			_ = h.storageError(to.ID, err) // it ends the host
			return false
		}
	}
	x.announced(portion)
	switch x.boxes.End(to, below, whole) {
	case inbox.Again:
		return !h.lifecycle.closing.Load()
	case inbox.Later:
		if h.store.MessagesBelow() > below { // the commits that it would wait for have ended meanwhile
			return !h.lifecycle.closing.Load()
		}
		h.seams.Clock.AfterFunc(readWait, func() { x.read(to) })
	}
	x.feedLater()
	return false
}

const (
	// readWait is how long a reader waits for a commit that sends and is under way, and how
	// long receivers wait that the host has no room for.
	readWait = time.Millisecond
	// fed is how many of those begin at a time.
	fed = 1024
)

// feedLater sets a timer if receivers wait for room in the host, unless one is set.
func (x *mail) feedLater() {
	if !x.boxes.Hungry() || !x.feeding.CompareAndSwap(false, true) {
		return
	}
	x.host.seams.Clock.AfterFunc(readWait, func() {
		x.feeding.Store(false)
		for _, to := range x.boxes.Feed(fed) {
			x.read(to)
		}
		x.feedLater()
	})
}

// A message waits for its time in the index by time: after a failed attempt, or from the
// beginning, if it was sent with After. It lies beside its queue: readers pass over it, and
// it holds up no other. A scheduler of package alarm says which is due.

// later gives a message the time due in the turn of its receiver, with its tries. The scheduler is
// told of it by the commit.
func (m *message) later(t *turn, due int64, s tries) {
	x, seq := &m.host.mail, m.host.store.NextSeq()
	t.begun().SetMessageState(m.MessageID, m.due, due, s.append(nil))
	t.then(func(storage.Ticket) {
		if m.due == 0 {
			x.timed.Add(m.To, 1, seq)
		}
		x.later.Set(m.entry(due))
	})
}

// clear tells the scheduler that the commit at has removed a message of the index by time. The
// message gives its place back, because it may have one and not be fired any more.
func (x *mail) clear(id storage.MessageID, at storage.Ticket) {
	x.timed.Remove(id.To, 1, at)
	x.later.Clear(id.Shard, id.Seq)
	x.leave(inbox.Receiver{ID: id.To, Shard: id.Shard}, id.Seq)
}

// laterIndex is the store's index of messages by time as the scheduler reads it.
type laterIndex struct{ host *Host }

// Scan returns up to limit entries of a shard after a position, in the order of their due
// times. An entry's Object is the number of the message, and its Gen the queue.
func (x laterIndex) Scan(shard int, after alarm.Position, limit int) ([]alarm.Entry, error) {
	var due int64
	if !after.Due.IsZero() {
		due = alarm.Nanos(after.Due)
	}
	found, err := x.host.store.ScanLater(shard, due, after.Object, limit)
	entries := make([]alarm.Entry, 0, len(found))
	for _, l := range found {
		entries = append(entries, laterEntry(l.MessageID, l.Due))
	}
	return entries, err
}

// laterEntry returns a message as the scheduler holds it.
func laterEntry(id storage.MessageID, due int64) alarm.Entry {
	return alarm.Entry{
		Due: time.Unix(0, due), Shard: id.Shard, Object: id.Seq, Gen: uint64(id.Queue), Class: id.To.Class, Name: id.To.Name,
	}
}

// entry returns the message as the scheduler holds it with another due time.
func (m *message) entry(due int64) alarm.Entry { return laterEntry(m.MessageID, due) }

// fire takes messages from the scheduler that are due for another attempt. The scheduler
// counts each as in flight until done or again is called. It lets go of one that gets no place
// beside the others of its receiver, until catchUp brings it again.
func (x *mail) fire(due []alarm.Entry) {
	h := x.host
	var again []alarm.Entry
	for _, e := range due {
		if h.hosted[e.Class] == nil || h.lifecycle.closing.Load() {
			x.later.Done(e) // it stays stored, and is due again at the next Open
			continue
		}
		if !x.share.Enter(receiverOf(e).ID, inbox.Moment{Due: alarm.Nanos(e.Due), Seq: e.Object}) {
			x.later.Done(e)
			continue
		}
		again = append(again, e)
	}
	if len(again) == 0 {
		return
	}
	again = h.delivered(again, seam.FaultMessageTwice)
	h.lifecycle.begin()
	h.crew.Add(crew.Func(func() {
		defer h.lifecycle.leave()
		x.resend(again...)
	}))
}

// resend hands messages over for another attempt, in their order, but for those that are gone.
//
// The scheduler may find a delayed message on disk before its sender's task has handed it over. Such
// a message comes again a little later: the sender's commit may have no ticket yet, so its receiver
// could not depend on it (O7), and the report of the sender's task must not follow that of an attempt.
func (x *mail) resend(due ...alarm.Entry) {
	h := x.host
	handed := h.store.MessagesBelow()
	var portion []*message
	for _, e := range due {
		if e.Object >= handed {
			x.again(e, readWait)
			continue
		}
		m, err := x.laterMessage(e)
		if err != nil {
			_ = h.storageError(receiverOf(e).ID, err) // it ends the host
		}
		if m == nil || x.rests(m) {
			x.done(e)
			continue
		}
		portion = append(portion, m)
	}
	x.announced(portion)
}

// rests reports whether a message waits for a host with its method. It stays stored, and is due
// again at the next Open, because a host gets no further methods. The scheduler lets go of
// it, so any number of such messages delays no other.
func (x *mail) rests(m *message) bool {
	if x.host.hosted[m.To.Class].methods[m.letter.method] != nil {
		return false
	}
	x.host.options.Logger.Warn("message waits for a method", "class", m.To.Class, "object", m.To.Name,
		"method", m.letter.method, "from", m.letter.from.String())
	return true
}

// laterMessage reads a message of the index by time that was handed over; nil if it is gone or has
// another time, of which the scheduler was told.
func (x *mail) laterMessage(e alarm.Entry) (*message, error) {
	h := x.host
	id := storage.MessageID{To: receiverOf(e).ID, Shard: e.Shard, Queue: byte(e.Gen), Seq: e.Object}
	s, ok, err := h.store.Message(id)
	applied := h.store.Applied()
	if err != nil || !ok || s.Due != alarm.Nanos(e.Due) {
		return nil, err
	}
	m, err := h.messageOf(s)
	if err == nil {
		m.dependOn(applied)
	}
	return m, err
}
