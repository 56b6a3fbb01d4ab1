package inbox

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds"
	"github.com/holdfast-dev/holdfast/storage"
)

// A model of a host beside the inboxes: rows on a disk, the commits of senders in three
// steps (number, apply, hand over), mailboxes, handlers that end in each way, readers that
// take one message a step, timers and ends of activations, in any order.
type model struct {
	t         *rapid.T
	boxes     Inboxes
	seq       uint64
	commits   []*commit // numbered and not handed over, by number
	rows      map[uint64]*row
	receivers []*receiver
	sent      map[string]int // by sender and receiver
	handled   int            // rows that are gone
}

// row is a message on the disk.
type row struct {
	to        *receiver
	queue     byte
	from      string
	n         int // of those from this sender to this receiver
	bytes     int
	alone     bool // it goes alone, because a crash has left it
	visible   bool
	later     bool // an attempt has failed: it is in the index by time
	ended     bool // it was handled, or an attempt was stored
	lent      bool // its handler has lent its turn out
	underHand bool // a handler that can commit runs
}

type commit struct {
	sender  string
	first   uint64
	seqs    []uint64
	applied bool
}

// delivered is a message on its way to a handler, or in one.
type delivered struct {
	*Message
	row *row
	old bool // its activation has ended, so it commits nothing
}

type receiver struct {
	Receiver
	mailbox  []*delivered
	running  *delivered
	lent     []*delivered
	readers  int // to begin
	delayed  int // readers that wait for their timer
	pauses   int // timers of pauses
	reading  *Reading
	upper    uint64
	portion  []uint64
	finished []*delivered // of ended activations, to land
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, seq: 100, rows: map[uint64]*row{}, sent: map[string]int{}}
	for i, shard := range []int{0, 64} {
		m.receivers = append(m.receivers, &receiver{Receiver: Receiver{storage.ID{Class: "c", Name: fmt.Sprint(i)}, shard}})
	}
	left, alone := rapid.IntRange(0, 6).Draw(t, "left by an earlier opening"), rapid.Bool().Draw(t, "alone")
	for i := range left {
		r := m.receivers[0]
		m.rows[uint64(i+1)] = &row{to: r, queue: 1, from: "earlier", n: i, bytes: 1, visible: true, alone: alone}
		m.sent["earlier"+r.Name]++
		if i == 0 && m.boxes.Found(r.Receiver, left) {
			r.readers++
		}
	}
	return m
}

// below is storage.Store.MessagesBelow.
func (m *model) below() uint64 {
	if len(m.commits) > 0 {
		return m.commits[0].first
	}
	return m.seq + 1
}

func (m *model) number(t *rapid.T) {
	sender := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "sender")
	if slices.ContainsFunc(m.commits, func(c *commit) bool { return c.sender == sender }) {
		return // its commit is under way
	}
	c := &commit{sender: sender, first: m.seq + 1}
	size := rapid.SampledFrom([]int{1, 1, 100 << 10, 300 << 10, 20 << 20, 40 << 20}).Draw(t, "size")
	for range rapid.SampledFrom([]int{1, 2, 3, 50}).Draw(t, "messages") {
		m.seq++
		to := rapid.SampledFrom(m.receivers).Draw(t, "receiver")
		pair := sender + to.Name
		m.rows[m.seq] = &row{to: to, queue: 1, from: sender, n: m.sent[pair], bytes: size}
		m.sent[pair]++
		c.seqs = append(c.seqs, m.seq)
	}
	m.commits = append(m.commits, c)
}

// pick returns one of a list; ok is false if it is empty.
func pick[T any](t *rapid.T, from []T) (one T, ok bool) {
	if len(from) == 0 {
		return one, false
	}
	return rapid.SampledFrom(from).Draw(t, "which"), true
}

func (m *model) apply(t *rapid.T) {
	c, ok := pick(t, filter(m.commits, func(c *commit) bool { return !c.applied }))
	if !ok {
		return
	}
	c.applied = true
	for _, seq := range c.seqs {
		m.rows[seq].visible = true
	}
}

func filter[T any](all []T, ok func(T) bool) (some []T) {
	for _, v := range all {
		if ok(v) {
			some = append(some, v)
		}
	}
	return some
}

func (m *model) handOver(t *rapid.T) {
	c, ok := pick(t, filter(m.commits, func(c *commit) bool { return c.applied }))
	if !ok {
		return
	}
	for _, seq := range c.seqs {
		if d := m.delivery(seq); m.boxes.Arrive(d.Message) {
			d.row.to.mailbox = append(d.row.to.mailbox, d)
		}
	}
	m.commits = slices.DeleteFunc(m.commits, func(o *commit) bool { return o == c })
}

func (m *model) delivery(seq uint64) *delivered {
	r := m.rows[seq]
	id := storage.MessageID{To: r.to.ID, Shard: r.to.Shard, Queue: r.queue, Seq: seq}
	return &delivered{Message: &Message{MessageID: id, Bytes: r.bytes, Alone: r.alone}, row: r}
}

// begin takes a message out of a mailbox.
func (m *model) begin(t *rapid.T) {
	r, ok := pick(t, filter(m.receivers, func(r *receiver) bool { return r.running == nil && len(r.mailbox) > 0 }))
	if !ok {
		return
	}
	d := r.mailbox[0]
	r.mailbox = r.mailbox[1:]
	if d.Withdrawn() {
		m.land(d, false)
		return
	}
	if m.rows[d.Seq] != d.row || d.row.later || d.row.underHand {
		t.Fatalf("message %d is handled twice", d.Seq)
	}
	for _, other := range m.rows {
		if other.to == r && other.from == d.row.from && other.n < d.row.n && !other.ended && !other.lent {
			t.Fatalf("message %d from %s is handled before number %d", d.row.n, d.row.from, other.n)
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "suspended") == 0 {
		if m.boxes.Suspend(d.Message, errX) {
			r.pauses++
		}
		m.land(d, false)
		return
	}
	r.running, d.Begun, d.row.underHand = d, true, true
}

// land counts a message out.
func (m *model) land(d *delivered, handled bool) {
	if m.boxes.Land(d.Message, handled) {
		d.row.to.readers++
	}
}

// finish ends a handler in one way or another.
func (m *model) finish(t *rapid.T, d *delivered) {
	r := d.row.to
	if d.old {
		m.land(d, rapid.Bool().Draw(t, "handled"))
		return
	}
	d.row.underHand = false
	switch rapid.SampledFrom([]string{"well", "well", "attempt", "pause"}).Draw(t, "end") {
	case "well":
		delete(m.rows, d.Seq)
		m.handled++
		m.land(d, true)
	case "attempt":
		d.row.later, d.row.ended = true, true
		m.land(d, true)
	case "pause":
		if m.boxes.Pause(d.Message, errX) > 0 {
			r.pauses++
		}
		m.land(d, false)
	}
}

func (m *model) end(t *rapid.T) {
	r, ok := pick(t, filter(m.receivers, func(r *receiver) bool { return r.running != nil }))
	if !ok {
		return
	}
	d := r.running
	r.running = nil
	if !d.row.lent && rapid.IntRange(0, 3).Draw(t, "lends") == 0 {
		d.row.lent = true
		r.lent = append(r.lent, d)
		if m.boxes.Lend(d.Message) {
			r.readers++
		}
		return
	}
	m.finish(t, d)
}

func (m *model) endLent(t *rapid.T) {
	r, ok := pick(t, filter(m.receivers, func(r *receiver) bool { return len(r.lent) > 0 }))
	if !ok {
		return
	}
	d := r.lent[0]
	r.lent = r.lent[1:]
	m.finish(t, d)
}

// detach ends an activation. Its handlers end later, without a commit.
func (m *model) detach(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		return
	}
	r := rapid.SampledFrom(m.receivers).Draw(t, "receiver")
	if m.boxes.Detach(r.Receiver) {
		r.readers++
	}
	if r.running != nil {
		r.finished = append(r.finished, r.running)
		r.running = nil
	}
	r.finished, r.lent = append(r.finished, r.lent...), nil
	for _, d := range r.finished {
		if !d.old {
			d.old, d.row.underHand = true, false
		}
	}
}

func (m *model) endOld(t *rapid.T) {
	r, ok := pick(t, filter(m.receivers, func(r *receiver) bool { return len(r.finished) > 0 }))
	if !ok {
		return
	}
	d := r.finished[0]
	r.finished = r.finished[1:]
	m.finish(t, d)
}

func (m *model) retry(t *rapid.T) {
	var due []uint64
	for seq, r := range m.rows {
		if r.later && rapid.Bool().Draw(t, "due") {
			due = append(due, seq)
		}
	}
	for _, seq := range due {
		delete(m.rows, seq)
		m.handled++
	}
}

func (m *model) timers(t *rapid.T) {
	r, ok := pick(t, filter(m.receivers, func(r *receiver) bool { return r.pauses+r.delayed > 0 }))
	if !ok {
		return
	}
	if r.delayed > 0 {
		r.delayed--
		r.readers++
		return
	}
	r.pauses--
	if m.boxes.Resume(r.Receiver) {
		r.readers++
	}
}

func (m *model) feed(*rapid.T) {
	for _, to := range m.boxes.Feed(1) {
		for _, r := range m.receivers {
			if r.Receiver == to {
				r.readers++
			}
		}
	}
}

func (m *model) beginReading(t *rapid.T) {
	r, ok := pick(t, filter(m.receivers, func(r *receiver) bool { return r.readers > 0 }))
	if !ok {
		return
	}
	if r.reading != nil || r.readers > 1 {
		t.Fatal("two readers at a time")
	}
	r.readers--
	reading, ok := m.boxes.Begin(r.Receiver)
	if !ok {
		return
	}
	r.reading, r.upper = &reading, m.below()
	r.portion = r.portion[:0]
	for seq, row := range m.rows {
		if row.to == r && row.visible && !row.later && seq >= reading.From[row.queue] && seq < r.upper {
			r.portion = append(r.portion, seq)
		}
	}
	slices.Sort(r.portion)
}

func (m *model) readOne(t *rapid.T) {
	r, ok := pick(t, filter(m.receivers, func(r *receiver) bool { return r.reading != nil }))
	if !ok {
		return
	}
	whole := len(r.portion) == 0
	if !whole {
		seq := r.portion[0]
		r.portion = r.portion[1:]
		if r.reading.Under(seq) {
			return
		}
		if m.rows[seq] == nil { // the snapshot has it; it is gone, so it must not be taken
			if d := (&Message{MessageID: storage.MessageID{To: r.ID, Shard: r.Shard, Queue: 1, Seq: seq}}); m.boxes.Take(d) {
				t.Fatalf("message %d is taken twice", seq)
			}
		} else if d := m.delivery(seq); m.boxes.Take(d.Message) {
			r.mailbox = append(r.mailbox, d)
			return
		}
	}
	r.reading = nil
	switch m.boxes.End(r.Receiver, r.upper, whole) {
	case Again:
		r.readers++
	case Later:
		r.delayed++
	}
}

// check looks for what no state may hold: a backlog that nothing will have read, a box
// without a message, or a wrong sum of bytes.
func (m *model) check(t *rapid.T) {
	var bytes int64
	for _, r := range m.receivers {
		b := m.boxes.stripe(r.Receiver).boxes[r.ID]
		if b == nil {
			continue
		}
		alone, beside := 0, 0
		for _, u := range b.under {
			bytes += int64(u.Bytes)
			switch {
			case u.lent:
			case u.Alone:
				alone++
			default:
				beside++
			}
		}
		if alone > 1 || alone == 1 && beside > 0 {
			t.Fatalf("%d messages that go alone are under way to %s, and %d others", alone, r.ID, beside)
		}
		woken := b.reading || b.paused || len(b.under) > 0 || slices.Contains(m.boxes.hungry, r.Receiver)
		if !woken {
			t.Fatalf("nothing has the messages of %s read: %+v", r.ID, b)
		}
		if b.reading != (r.readers+r.delayed > 0 || r.reading != nil) || b.paused != (r.pauses > 0) {
			t.Fatalf("%s: %+v beside %+v", r.ID, b, r)
		}
		if len(b.under) > MaxMessages || b.bytes > MaxBytes && len(b.under) > 1 {
			t.Fatalf("%s: %d messages of %d bytes are under way", r.ID, len(b.under), b.bytes)
		}
	}
	if got := m.boxes.bytes.Load(); got != bytes || bytes > MaxHostBytes {
		t.Fatalf("%d bytes, and the messages under way have %d", got, bytes)
	}
}

// Each message is handled once, those of one sender in order, and no backlog is forgotten.
func TestInboxesAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		steps := map[string]func(*rapid.T){
			"number": m.number, "apply": m.apply, "hand over": m.handOver, "begin": m.begin, "end": m.end, "end lent": m.endLent,
			"end old": m.endOld, "detach": m.detach, "retry": m.retry, "timers": m.timers, "feed": m.feed, "reading": m.beginReading, "read": m.readOne,
			"read more": m.readOne, "begin more": m.begin, "": m.check,
		}
		for range 30 { // as long a way as Repeat goes by itself is too short for a backlog
			t.Repeat(steps)
		}
		m.settle(t)
	})
}
