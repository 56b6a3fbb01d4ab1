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

// A receiver with messages behind gets no place for a later one, and is read for when half of its
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
	first, last, n := x.Begin(to)
	if first != at(100) || last != at(130) || n != 30-14 {
		t.Errorf("the reading goes from %v to %v, for %d", first, last, n)
	}
	if x.Enter(to, at(131)) || x.Enter(to, at(99)) {
		t.Error("a message gets a place during a reading")
	}
	if x.End(to, true, at(130), last) {
		t.Error("others are under way, but the caller is to wait")
	}
	if x.Resume(to) || x.Enter(to, at(131)) || !x.Enter(to, at(98)) || !x.Under(to, 98) {
		t.Error("after the reading")
	}
}

// shareModel is a host in small: an index by time, a scheduler over it, and messages under way.
type shareModel struct {
	x       Shares
	t       *rapid.T
	stored  map[Moment]int // the receiver of each message
	known   []Moment       // to the scheduler, which fires them
	under   []Moment
	readers []*shareReader
	timers  []int // receivers to resume
}

// shareReader is a reading: begun, and then ended.
type shareReader struct {
	to         int
	begun      bool
	next, last Moment
	more       bool
	found      []Moment
}

// take removes one of a list.
func take[T any](t *rapid.T, from *[]T) T {
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	v := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return v
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
	return true
}

func (m *shareModel) fire() {
	at := take(m.t, &m.known)
	to, ok := m.stored[at]
	if ok && !slices.Contains(m.under, at) && m.x.Enter(numbered(to), at) {
		m.under = append(m.under, at)
	}
}

func (m *shareModel) finish() {
	at := take(m.t, &m.under)
	to := int(at.Due) % 3
	delete(m.stored, at)
	if m.x.Leave(numbered(to), at.Seq) {
		m.readers = append(m.readers, &shareReader{to: to})
	}
}

func (m *shareModel) read() {
	r := take(m.t, &m.readers)
	if r.begun {
		if m.x.End(numbered(r.to), r.more, r.next, r.last) {
			m.timers = append(m.timers, r.to)
		}
		m.known = append(m.known, r.found...)
		return
	}
	var n int
	r.next, r.last, n = m.x.Begin(numbered(r.to))
	r.begun, r.more = true, false
	all := make([]Moment, 0, len(m.stored))
	for at := range m.stored {
		all = append(all, at)
	}
	slices.SortFunc(all, Moment.Compare)
	for _, at := range all {
		if at.Compare(r.next) < 0 || at.Compare(r.last) > 0 || m.stored[at] != r.to || m.x.Under(numbered(r.to), at.Seq) {
			continue
		}
		if len(r.found) == n {
			r.more = true
			break
		}
		r.found, r.next = append(r.found, at), Moment{at.Due, at.Seq + 1}
	}
	m.readers = append(m.readers, r)
}

func (m *shareModel) ring() {
	to := take(m.t, &m.timers)
	if m.x.Resume(numbered(to)) {
		m.readers = append(m.readers, &shareReader{to: to})
	}
}

// Messages that are let go are not forgotten, in any order of events, also if those that were read
// are deleted before they are fired. All memory is given back at the end.
func TestSharesForgetNoMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &shareModel{t: t, stored: make(map[Moment]int)}
		for i := range rapid.IntRange(0, 40).Draw(t, "rounds") {
			for j := range rapid.SampledFrom([]int{0, 1, 5, 40}).Draw(t, "new") {
				to := rapid.IntRange(0, 2).Draw(t, "receiver")
				due := rapid.IntRange(1, 50).Draw(t, "due")*3 + to
				at := Moment{Due: int64(due), Seq: uint64(1000*i + j + 1)}
				m.stored[at], m.known = to, append(m.known, at)
			}
			if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
				for at := range m.stored {
					if !slices.Contains(m.under, at) {
						delete(m.stored, at)
					}
				}
			}
			for range rapid.IntRange(0, 20).Draw(t, "steps") {
				m.step()
				if m.x.taken > Places || m.x.taken != len(m.under) {
					t.Fatalf("%d places are taken, %d messages are under way", m.x.taken, len(m.under))
				}
			}
		}
		for m.step() {
		}
		if len(m.stored) != 0 || len(m.x.m) != 0 || m.x.taken != 0 {
			t.Fatalf("%d messages are left, and %d receivers", len(m.stored), len(m.x.m))
		}
	})
}

// Proves M7. The messages that a reading has found are deleted before they come, while none is under way. The
// caller, who waits, reads again then, and only then.
func TestShareWhoseFoundMessagesAreDeleted(t *testing.T) {
	var x Shares
	to := numbered(0)
	for i := 1; i <= 60; i++ {
		x.Enter(to, at(i))
	}
	reads := 0
	for i := 1; i <= 28; i++ {
		if x.Leave(to, uint64(i)) {
			reads++
			x.Begin(to)
		}
	}
	if reads != 1 || x.Resume(to) || !x.End(to, true, at(44), at(60)) {
		t.Error("the caller of End is to wait")
	}
	if !x.Resume(to) || x.Resume(to) {
		t.Error("the caller is to read once after the wait")
	}
	if first, last, _ := x.Begin(to); first != at(44) || last != at(60) || x.End(to, false, last, last) || x.Resume(to) || len(x.m) != 0 {
		t.Errorf("the second reading goes from %v to %v", first, last)
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
	for i := 1; i <= 28; i++ {
		if x.Leave(to, uint64(i)) {
			x.Begin(to)
		}
	}
	if x.Enter(to, at(30)) {
		t.Error("a message gets a place during a reading")
	}
	if !x.End(to, false, at(41), at(40)) || !x.Enter(to, at(30)) || !x.Enter(to, at(40)) || x.Enter(to, at(41)) {
		t.Error("the messages that were read get places, and no later one")
	}
}
