package inbox

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/storage"
)

// at is a moment of the index.
func at(due int) Moment { return Moment{Due: int64(due), Seq: uint64(due)} }

// numbered is a receiver with a number.
func numbered(i int) storage.ID { return storage.ID{Class: "c", Name: fmt.Sprint(i)} }

// Proves M7: a receiver gets an eighth of the free places, and at least one.
func TestSharesOfSlowReceivers(t *testing.T) {
	var x Shares
	var got []int
	for x.taken < Places {
		n := 0
		for x.Enter(numbered(len(got)), at(1000*len(got)+n+1)) {
			n++
		}
		got = append(got, n)
	}
	if got[0] != 28 || got[1] != 25 || slices.Min(got) != 1 {
		t.Errorf("slow receivers get %v places", got)
	}
	if len(got) != 40 {
		t.Errorf("%d slow receivers take all places", len(got))
	}
}

// Proves M4, M7: a receiver with messages behind gets no place for a later one, and is read for when half of its
// messages have left. An earlier one, such as one that was read, gets a place.
func TestShareOfAReceiverThatIsBehind(t *testing.T) {
	var x Shares
	to := numbered(0)
	for i := 101; i <= 130; i++ {
		if got := x.Enter(to, at(i)); got != (i <= 128) {
			t.Errorf("message %d gets a place: %v", i, got)
		}
	}
	if !x.Enter(to, at(110)) {
		t.Error("a message that has a place gets none")
	}
	for i := 101; i <= 113; i++ { // 15 are left then, half of the 30 places that it may have
		if x.Leave(to, uint64(i)) != (i == 113) || x.Leave(to, uint64(i)) {
			t.Errorf("after message %d", i)
		}
	}
	if x.Enter(to, at(100)) || x.Leave(to, 115) {
		t.Error("a message gets a place during a reading")
	}
	c := x.Begin(to)
	if c.Next != at(100) || c.Last != at(130) || c.Room != 30-14 || !c.Under(120) || c.Under(113) || c.Under(129) {
		t.Errorf("the reading is %+v", c)
	}
	if x.Leave(to, 120) || !c.Under(120) {
		t.Error("the reader finds a message that had a place when it began")
	}
	if x.Enter(to, at(131)) || x.Enter(to, at(99)) {
		t.Error("a message gets a place during a reading")
	}
	c.Next = at(130)
	if got, wait := x.end(to, c, true, 100); wait || !slices.Equal(got, []uint64{100}) || !x.Enter(to, at(100)) {
		t.Errorf("%v get places, and the caller waits: %v", got, wait)
	}
	if x.Resume(to) || x.Enter(to, at(131)) || !x.Enter(to, at(98)) {
		t.Error("after the reading")
	}
}

// end ends a reading that has found messages, and returns those that get places.
func (x *Shares) end(to storage.ID, c CatchUp, more bool, found ...uint64) (placed []uint64, wait bool) {
	var all []storage.LaterMessage
	for _, seq := range found {
		all = append(all, storage.LaterMessage{MessageID: storage.MessageID{Seq: seq}, Due: int64(seq)})
	}
	wait = x.End(to, c, all, more, func(m storage.LaterMessage) { placed = append(placed, m.Seq) })
	return placed, wait
}

// Proves M7: a reading that found more messages than its receiver may have under way, because
// others have taken places meanwhile, leaves the rest behind.
func TestReadingThatFindsMoreThanItsShare(t *testing.T) {
	var x Shares
	to := numbered(0)
	for i := 1; i <= 40; i++ {
		x.Enter(to, at(i))
	}
	for i := 1; i <= 28; i++ {
		x.Leave(to, uint64(i))
	}
	c := x.Begin(to)
	for i := 1; x.taken < Places; i++ {
		x.Enter(numbered(i), at(1000+i))
	}
	c.Next = at(32)
	if got, wait := x.end(to, c, true, 29, 30, 31); wait || !slices.Equal(got, []uint64{29}) {
		t.Errorf("%v get places, and the caller waits: %v", got, wait)
	}
	if !x.Leave(to, 29) {
		t.Fatal("the caller does not read again")
	}
	if c := x.Begin(to); c.Next != at(30) || c.Last != at(40) {
		t.Errorf("the next reading goes from %v to %v", c.Next, c.Last)
	}
}

// shareModel is a host in small: an index by time, a scheduler over it, and messages with places.
type shareModel struct {
	x       Shares
	t       *rapid.T
	orderly bool           // messages come due in order, and stay stored when they have been fired
	stored  map[Moment]int // the receiver of each message
	known   []Moment       // to the scheduler, which fires them
	found   []Moment       // that have a place and are to be fired
	under   []Moment       // that are under way
	fired   map[Moment]int // how often each was
	readers []*shareReader
	timers  []int // receivers to resume
}

// shareReader is a reading: begun, and then ended.
type shareReader struct {
	to    int
	begun bool
	c     CatchUp
	more  bool
	found []storage.LaterMessage
}

// take removes one of a list.
func take[T any](t *rapid.T, from *[]T) T {
	return takeAt(from, rapid.IntRange(0, len(*from)-1).Draw(t, "which"))
}

func takeAt[T any](from *[]T, i int) T {
	v := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return v
}

// drop removes a moment from a list, and reports whether it was there.
func drop(from *[]Moment, at Moment) bool {
	i := slices.Index(*from, at)
	if i >= 0 {
		takeAt(from, i)
	}
	return i >= 0
}

// step makes one random step of those that need no new message. It reports false if there is none.
func (m *shareModel) step() bool {
	var can []func()
	if len(m.known) > 0 {
		can = append(can, m.fire)
	}
	if len(m.under) > 0 {
		can = append(can, m.finish)
	}
	if len(m.readers) > 0 {
		can = append(can, m.read)
	}
	if len(m.timers) > 0 {
		can = append(can, m.ring)
	}
	if len(can) == 0 {
		return false
	}
	can[rapid.IntRange(0, len(can)-1).Draw(m.t, "step")]()
	if m.x.taken > Places || m.x.taken != len(m.under)+len(m.found) {
		m.t.Fatalf("%d places are taken, %d messages are under way, and %d are to be fired", m.x.taken, len(m.under), len(m.found))
	}
	return true
}

func (m *shareModel) fire() {
	var at Moment
	if m.orderly {
		at = takeAt(&m.known, 0)
	} else {
		at = take(m.t, &m.known)
	}
	to, stored := m.stored[at]
	switch {
	case slices.Contains(m.under, at) || !m.x.Enter(numbered(int(at.Due)%3), at):
		return
	case !stored:
		drop(&m.found, at)
		m.leave(int(at.Due)%3, at)
		return
	}
	drop(&m.found, at)
	m.under = append(m.under, at)
	m.fired[at]++
	if m.orderly && m.fired[at] > 1 {
		m.t.Fatalf("the message %v of receiver %d is fired again", at, to)
	}
}

// leave gives back the place of a message.
func (m *shareModel) leave(to int, at Moment) {
	if m.x.Leave(numbered(to), at.Seq) {
		m.readers = append(m.readers, &shareReader{to: to})
	}
}

func (m *shareModel) finish() {
	at := take(m.t, &m.under)
	if !m.orderly {
		delete(m.stored, at)
	}
	m.leave(int(at.Due)%3, at)
}

// remove deletes the messages that are not under way.
func (m *shareModel) remove() {
	for at, to := range m.stored {
		if slices.Contains(m.under, at) {
			continue
		}
		delete(m.stored, at)
		drop(&m.known, at)
		drop(&m.found, at)
		m.leave(to, at)
	}
}

func (m *shareModel) read() {
	r := take(m.t, &m.readers)
	if r.begun {
		if m.x.End(numbered(r.to), r.c, r.found, r.more, func(l storage.LaterMessage) {
			at := Moment{l.Due, l.Seq}
			m.known, m.found = append(m.known, at), append(m.found, at)
		}) {
			m.timers = append(m.timers, r.to)
		}
		return
	}
	r.c = m.x.Begin(numbered(r.to))
	r.begun, r.more = true, false
	all := make([]Moment, 0, len(m.stored))
	for at := range m.stored {
		all = append(all, at)
	}
	slices.SortFunc(all, Moment.Compare)
	for _, at := range all {
		if at.Compare(r.c.Next) < 0 || at.Compare(r.c.Last) > 0 || m.stored[at] != r.to || r.c.Under(at.Seq) {
			continue
		}
		if len(r.found) == r.c.Room {
			r.more = true
			break
		}
		r.found = append(r.found, storage.LaterMessage{MessageID: storage.MessageID{Seq: at.Seq}, Due: at.Due})
		r.c.Next = Moment{at.Due, at.Seq + 1}
	}
	m.readers = append(m.readers, r)
}

func (m *shareModel) ring() {
	to := take(m.t, &m.timers)
	if m.x.Resume(numbered(to)) {
		m.readers = append(m.readers, &shareReader{to: to})
	}
}

// run adds messages, in rounds, with random steps between, and lets the model come to rest.
func (m *shareModel) run() {
	t := m.t
	m.stored, m.fired = make(map[Moment]int), make(map[Moment]int)
	for i := range rapid.IntRange(0, 40).Draw(t, "rounds") {
		for j := range rapid.SampledFrom([]int{0, 1, 5, 40, 100}).Draw(t, "new") {
			to := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "receiver")
			due := rapid.IntRange(1, 50).Draw(t, "due")*3 + to
			if m.orderly {
				due = 3*(100*i+j+1) + to
			}
			at := Moment{Due: int64(due), Seq: uint64(1000*i + j + 1)}
			m.stored[at], m.known = to, append(m.known, at)
		}
		if !m.orderly && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			m.remove()
		}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			m.step()
		}
	}
	for m.step() {
	}
	if len(m.x.m) != 0 || m.x.taken != 0 {
		t.Fatalf("%d receivers are left, and %d places are taken", len(m.x.m), m.x.taken)
	}
}

// Proves M6, M7: messages that are let go are not forgotten, in any order of events, also if those that were read
// are deleted before they are fired. All memory is given back at the end.
func TestSharesForgetNoMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &shareModel{t: t}
		m.run()
		if len(m.stored) != 0 {
			t.Fatalf("%d messages are left", len(m.stored))
		}
	})
}

// Proves M6: messages that come due in order and stay stored, because their method is not
// registered, are fired once each.
func TestSharesFireOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &shareModel{t: t, orderly: true}
		m.run()
		if len(m.fired) != len(m.stored) {
			t.Fatalf("%d of %d messages were fired", len(m.fired), len(m.stored))
		}
	})
}

// Proves M7. The messages that a reading has found are deleted before they come. The caller reads again
// when the last of them has given back its place; if the reading has found none, after a wait.
func TestShareWhoseFoundMessagesAreDeleted(t *testing.T) {
	var x Shares
	to := numbered(0)
	for i := 1; i <= 60; i++ {
		x.Enter(to, at(i))
	}
	reads := 0
	var c CatchUp
	for i := 1; i <= 28; i++ {
		if x.Leave(to, uint64(i)) {
			reads++
			c = x.Begin(to)
		}
	}
	c.Next = at(31)
	placed, wait := x.end(to, c, true, 29, 30)
	if reads != 1 || len(placed) != 2 || wait || x.Resume(to) {
		t.Errorf("%d readings, %v get places, and the caller is to wait: %v", reads, placed, wait)
	}
	if !x.Leave(to, 29) || x.Leave(to, 30) { // they are deleted; half of the places were free before
		t.Error("no reading after the deletion")
	}
	c = x.Begin(to)
	if _, wait = x.end(to, c, true); !wait || c.Next != at(31) || !x.Resume(to) || x.Resume(to) {
		t.Error("the caller is to read once after the wait")
	}
	if c = x.Begin(to); c.Next != at(31) || c.Last != at(60) {
		t.Errorf("the third reading goes from %v to %v", c.Next, c.Last)
	}
	if _, wait = x.end(to, c, false); wait || x.Resume(to) || len(x.m) != 0 {
		t.Error("the receiver is left")
	}
}

// Proves M7. A message that comes due while the index is read for its receiver gets its place with
// those that the reading has found, and not a second later.
func TestMessageThatIsDueDuringAReading(t *testing.T) {
	var x Shares
	to := numbered(0)
	for i := 1; i <= 40; i++ {
		x.Enter(to, at(i))
	}
	var c CatchUp
	for i := 1; i <= 28; i++ {
		if x.Leave(to, uint64(i)) {
			c = x.Begin(to)
		}
	}
	if x.Enter(to, at(30)) {
		t.Error("a message gets a place during a reading")
	}
	if placed, wait := x.end(to, c, false, 29, 30, 31); len(placed) != 3 || wait || !x.Enter(to, at(30)) || x.Enter(to, at(41)) {
		t.Errorf("%v get places, and the caller waits: %v", placed, wait)
	}
}
