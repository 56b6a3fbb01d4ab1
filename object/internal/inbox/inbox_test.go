package inbox

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

var (
	anna = Receiver{storage.ID{Class: "c", Name: "anna"}, 1}
	bob  = Receiver{storage.ID{Class: "c", Name: "bob"}, 65} // in the stripe of anna
	errX = errors.New("x")
)

// msg is a message with a number, which takes size bytes with the overhead.
func msg(to Receiver, seq uint64, size int) *Message {
	return &Message{MessageID: storage.MessageID{To: to.ID, Shard: to.Shard, Queue: 1, Seq: seq}, Bytes: size - overheadBytes}
}

// small is the size of a message that takes next to nothing.
const small = overheadBytes + 1

// arrive lets n small messages arrive with the numbers from first on, and returns those that go on at once.
func arrive(s *Inboxes, to Receiver, first uint64, n int) (now []*Message) {
	for i := range n {
		if m := msg(to, first+uint64(i), small); s.Arrive(m) {
			now = append(now, m)
		}
	}
	return now
}

// is fails the test unless got is want.
func is[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sums fails the test unless that many messages are under way and wait.
func sums(t *testing.T, s *Inboxes, under, waiting int) {
	t.Helper()
	u, w, _ := s.Sum()
	is(t, "under way and waiting", fmt.Sprint(u, w), fmt.Sprint(under, waiting))
}

// empty fails the test unless no box is left.
func empty(t *testing.T, s *Inboxes) {
	t.Helper()
	sums(t, s, 0, 0)
	is(t, "bytes", s.bytes.Load(), 0)
	for i := range s.stripes {
		is(t, "boxes of a stripe", len(s.stripes[i].boxes), 0)
	}
}

func TestNumberOfMessagesUnderWay(t *testing.T) {
	var s Inboxes
	now := arrive(&s, anna, 1, MaxMessages)
	is(t, "that go on at once", len(now), MaxMessages)
	if n, reason := s.Waiting(anna); n != 0 || reason != nil {
		t.Errorf("%d wait, %v", n, reason)
	}
	is(t, "number 65 goes on at once", s.Arrive(msg(anna, 65, small)), false)
	if n, reason := s.Waiting(anna); n != 1 || reason != nil {
		t.Errorf("%d wait, %v", n, reason)
	}
	is(t, "another receiver", s.Arrive(msg(bob, 66, small)), true)
	// The half, 32, must be done before a reader begins.
	for i, m := range now {
		is(t, fmt.Sprint("a reader begins at message ", i), s.Land(m, true), i == MaxMessages/2-1)
	}
	is(t, "still a backlog", s.Arrive(msg(anna, 67, small)), false)
	sums(t, &s, 1, 2)
}

func TestBytesUnderWayOfOneReceiver(t *testing.T) {
	for _, c := range []struct {
		first, second int
		fits          bool
	}{
		{small, MaxBytes - small, true},
		{small, MaxBytes - small + 1, false},
		{2 * MaxBytes, small, false}, // one is always let through
	} {
		var s Inboxes
		is(t, "the first", s.Arrive(msg(anna, 1, c.first)), true)
		is(t, fmt.Sprint("the second of ", c), s.Arrive(msg(anna, 2, c.second)), c.fits)
	}
}

func TestBytesUnderWayInTheHost(t *testing.T) {
	for _, more := range []int{0, 1} {
		var s Inboxes
		large := msg(anna, 1, MaxHostBytes-small)
		is(t, "the first", s.Arrive(large), true)
		is(t, fmt.Sprint("the second beyond by ", more), s.Arrive(msg(bob, 2, small+more)), more == 0)
		is(t, "hungry", s.Hungry(), more == 1)
		if more == 0 {
			continue
		}
		is(t, "fed while the host is full", len(s.Feed(10)), 0)
		is(t, "hungry still", s.Hungry(), true)
		is(t, "anna reads", s.Land(large, true), false)
		if read := s.Feed(10); !slices.Equal(read, []Receiver{bob}) {
			t.Errorf("fed: %v", read)
		}
		is(t, "hungry at the end", s.Hungry(), false)
	}
}

// Receivers that wait for room are fed when half of the host's is free, and as many at a time
// as the caller asks for.
func TestFeed(t *testing.T) {
	var s Inboxes
	half, rest := msg(anna, 1, MaxHostBytes/2+overheadBytes), msg(anna, 2, MaxHostBytes/2+1+overheadBytes)
	s.add(s.stripe(anna).box(anna), half)
	s.add(s.stripe(anna).box(anna), rest)
	other := Receiver{storage.ID{Class: "c", Name: "carl"}, 2}
	is(t, "bob's", s.Arrive(msg(bob, 3, small)), false)
	is(t, "carl's", s.Arrive(msg(other, 4, small)), false)
	s.Land(half, true)
	is(t, "fed a byte above the half", len(s.Feed(1)), 0)
	s.Land(rest, true)
	is(t, "first fed", s.Feed(1)[0], bob)
	is(t, "carl is hungry", s.Hungry(), true)
	is(t, "then fed", s.Feed(1)[0], other)
	is(t, "nobody is hungry", s.Hungry(), false)

	// A reader of a hungry receiver that has begun otherwise is not begun twice.
	s.starve(bob)
	is(t, "fed again", len(s.Feed(1)), 0)
}

// read takes the messages with the given numbers in one reading, as far as there is room.
func read(s *Inboxes, to Receiver, upper uint64, seqs ...uint64) (taken []*Message, next Next) {
	if _, ok := s.Begin(to); !ok {
		return nil, -1
	}
	for _, seq := range seqs {
		m := msg(to, seq, small)
		if !s.Take(m) {
			return taken, s.End(to, upper, false)
		}
		taken = append(taken, m)
	}
	return taken, s.End(to, upper, true)
}

func TestReadingToTheEndOfABacklog(t *testing.T) {
	var s Inboxes
	is(t, "a reader of a receiver that was found", s.Found(anna, 3), true)
	is(t, "a reader of one that is known", s.Found(anna, 3), false)
	is(t, "known", s.Known(anna), true)
	is(t, "bob is known", s.Known(bob), false)
	taken, next := read(&s, anna, 10, 1, 2, 3)
	is(t, "next", next, Rest)
	is(t, "taken", len(taken), 3)
	sums(t, &s, 3, 0)
	is(t, "a message after the backlog", s.Arrive(msg(anna, 10, small)), true)
	s.Land(&Message{MessageID: taken[0].MessageID}, true) // none that is under way
	sums(t, &s, 4, 0)
	if _, ok := s.Begin(bob); ok {
		t.Error("a reading of no box begins")
	}
	if _, ok := s.Begin(anna); ok {
		t.Error("a reading without a backlog begins")
	}
}

// Proves M3.
// A message that joins while the reader is at work keeps the backlog: the reader has not
// seen it. One with a lesser number than the reader's bound it has seen.
func TestMessagesThatJoinAReading(t *testing.T) {
	for joined, ends := range map[uint64]bool{9: true, 10: false} {
		var s Inboxes
		s.Found(anna, 1)
		r, ok := s.Begin(anna)
		is(t, "begins", ok, true)
		is(t, "from", r.From[1], 0)
		is(t, "arrives", s.Arrive(msg(anna, joined, small)), false)
		want := Later
		if ends {
			want = Rest
		}
		is(t, fmt.Sprint("next after ", joined), s.End(anna, 10, true), want)
		is(t, fmt.Sprint("known after ", joined), s.Known(anna), !ends)
		if !ends {
			if r, ok = s.Begin(anna); !ok {
				t.Fatal("no reading begins")
			}
			is(t, "goes on from", r.From[1], joined)
			is(t, "and ends", s.End(anna, joined+1, true), Rest)
		}
		empty(t, &s)
	}
}

func TestReadingInPortions(t *testing.T) {
	var s Inboxes
	s.Found(anna, 200)
	var seqs []uint64
	for i := range 200 {
		seqs = append(seqs, uint64(i+1))
	}
	taken, next := read(&s, anna, 1000, seqs...)
	is(t, "taken", len(taken), MaxMessages)
	is(t, "next", next, Rest)
	sums(t, &s, MaxMessages, 200-MaxMessages)
	for i, m := range taken {
		is(t, fmt.Sprint("reads after ", i), s.Land(m, true), i == MaxMessages/2-1)
	}
	r, _ := s.Begin(anna)
	is(t, "goes on from", r.From[1], MaxMessages+1)
	is(t, "after all have landed", s.End(anna, 1000, false), Again)
	other := msg(bob, 1000, MaxHostBytes)
	is(t, "another takes all the room of the host", s.Arrive(other), true)
	s.Begin(anna)
	is(t, "takes beside it", s.Take(msg(anna, MaxMessages+1, small)), false)
	is(t, "without room in the host", s.End(anna, 1000, false), Rest)
	is(t, "hungry", s.Hungry(), true)
	s.Land(other, true)
	is(t, "fed", len(s.Feed(1)), 1)
	r, _ = s.Begin(anna)
	m := msg(anna, MaxMessages+1, small)
	is(t, "takes", s.Take(m), true)
	is(t, "goes on at once", s.End(anna, 1000, false), Again)
	r, _ = s.Begin(anna)
	is(t, "passes what is under way", fmt.Sprint(r.Under(m.Seq), r.Under(m.Seq+1)), "true false")
}

func TestPause(t *testing.T) {
	var s Inboxes
	now := arrive(&s, anna, 5, 3)
	is(t, "pauses", s.Pause(now[0], errX), 1)
	is(t, "again", s.Pause(now[1], errX), 0)
	var paused []string
	s.Paused(func(to Receiver, n int, reason error) { paused = append(paused, fmt.Sprint(to.ID, n, reason)) })
	if _, _, n := s.Sum(); n != 1 || !slices.Equal(paused, []string{fmt.Sprint(anna.ID, 3, errX)}) {
		t.Errorf("%d paused: %q", n, paused)
	}
	for _, m := range now {
		is(t, "withdrawn", m.Withdrawn(), true)
		is(t, "detached", m.Detached(), false)
	}
	n, reason := s.Waiting(anna)
	is(t, "waiting", n, 3)
	is(t, "reason", reason, errX)
	is(t, "one that arrives", s.Arrive(msg(anna, 8, small)), false)
	is(t, "a reader before the end of the pause", s.Land(now[0], false), false)
	is(t, "a reader while one is under way", s.Resume(anna), false)
	is(t, "a second end of the pause", s.Resume(anna), false)
	is(t, "the end of no pause", s.Resume(bob), false)
	if _, reason = s.Waiting(anna); reason != nil {
		t.Errorf("after the pause: %v", reason)
	}
	is(t, "a reader after the second", s.Land(now[1], false), false)
	is(t, "a reader after the third", s.Land(now[2], false), true)
	r, _ := s.Begin(anna)
	is(t, "begins with the first", r.From[1], 5)
}

// Pauses are counted until a message is handled.
func TestPausesInARow(t *testing.T) {
	var s Inboxes
	s.Found(anna, 9)
	for i, want := range []int{1, 2, 3, 1} {
		taken, _ := read(&s, anna, 100, 7)
		is(t, "pauses", s.Pause(taken[0], errX), want)
		s.Land(taken[0], i == 2)
		is(t, "a reader", s.Resume(anna), true)
	}
}

// Proves M3 and N5. A suspension withdraws the messages that have not begun, and counts as no pause in a row. Those behind one that has
// lent its turn out pass it when the suspension ends.
func TestSuspend(t *testing.T) {
	var s Inboxes
	now := arrive(&s, anna, 5, 4)
	now[0].Begun = true
	is(t, "pauses", s.Suspend(now[1], errX), true)
	is(t, "again", s.Suspend(now[2], errX), false)
	for i, want := range []bool{false, true, true, true} {
		is(t, "withdrawn", now[i].Withdrawn(), want)
	}
	n, reason := s.Waiting(anna)
	is(t, "waiting", n, 3)
	is(t, "reason", reason, errX)
	is(t, "one that arrives", s.Arrive(msg(anna, 9, small)), false)
	is(t, "a reader before the end", s.Land(now[1], false), false)
	is(t, "a reader while two are under way", s.Resume(anna), false)
	is(t, "a reader after the next", s.Land(now[2], false), false)
	is(t, "a reader after the last", s.Land(now[3], false), true)
	taken, _ := read(&s, anna, 100, 6, 7, 8, 9)
	is(t, "the first pause", s.Pause(taken[0], errX), 1)
	is(t, "the one that has begun", now[0].Withdrawn(), true)
	is(t, "a suspension of a paused one", s.Suspend(taken[1], errX), false)
	s.Detach(anna)
	is(t, "a suspension by a detached one", s.Suspend(taken[2], errX), false)
}

// Proves M7. Messages that a Pause or a Hold has withdrawn and that were handled all the same, because their
// commit was under way, wait no more; neither do those that the caller has removed during a Hold.
func TestWaitingOfThoseThatAreHandled(t *testing.T) {
	var s Inboxes
	now := arrive(&s, anna, 5, 4)
	s.Pause(now[0], errX)
	s.Hold(anna)
	for i, handled := range []bool{false, true, true} {
		s.Land(now[i], handled)
		n, _ := s.Waiting(anna)
		is(t, "waiting", n, []int{4, 3, 2}[i])
	}
	for _, want := range []int{1, 0, 0} {
		s.Removed(anna, 1)
		n, _ := s.Waiting(anna)
		is(t, "waiting", n, want)
	}
}

// Proves M3.
// A pause and its end while a reader is at work: the reader stops, because it has passed
// messages that wait again, no second one begins beside it, and the next begins with the first message.
func TestPauseDuringAReading(t *testing.T) {
	var s Inboxes
	s.Found(anna, 9)
	s.Begin(anna)
	first := msg(anna, 3, small)
	is(t, "takes", s.Take(first), true)
	s.Pause(first, errX)
	is(t, "takes in a pause", s.Take(msg(anna, 4, small)), false)
	s.Land(first, false)
	is(t, "a second reader", s.Resume(anna), false)
	is(t, "takes after the pause", s.Take(msg(anna, 4, small)), false)
	is(t, "next", s.End(anna, 100, true), Again)
	r, _ := s.Begin(anna)
	is(t, "begins with the first", r.From[1], 3)

	// The same with an end of the reading within the pause, and a Begin within one.
	s.Take(first)
	first.place.Store(inPlace)
	s.Pause(first, errX)
	is(t, "next in a pause", s.End(anna, 100, false), Rest)
	if _, ok := s.Begin(anna); ok {
		t.Error("a reading begins in a pause")
	}
	s.Land(first, false)
	is(t, "a reader after the pause", s.Resume(anna), true)

	// A reader that begins while messages of before the pause are under way would pass them.
	s.Begin(anna)
	again := msg(anna, 3, small)
	s.Take(again)
	s.Pause(again, errX)
	is(t, "a reader", s.Resume(anna), false)
	is(t, "next", s.End(anna, 100, false), Rest)
	if _, ok := s.Begin(anna); ok {
		t.Error("a reading begins before the last withdrawn message has landed")
	}
	is(t, "a reader at last", s.Land(again, false), true)
}

func TestDetach(t *testing.T) {
	var s Inboxes
	is(t, "a reader of no box", s.Detach(anna), false)
	now := arrive(&s, anna, 5, 2)
	is(t, "a reader", s.Detach(anna), true)
	is(t, "a second one", s.Detach(anna), false)
	is(t, "withdrawn and detached", fmt.Sprint(now[0].Withdrawn(), now[1].Detached()), "true true")
	sums(t, &s, 0, 2)
	is(t, "bytes", s.bytes.Load(), 0)
	is(t, "one that comes later", s.Arrive(msg(anna, 7, small)), false)
	is(t, "a detached one lands", s.Land(now[0], true), false)
	is(t, "a detached one pauses", s.Pause(now[1], errX), 0)
	r, _ := s.Begin(anna)
	is(t, "begins with the first", r.From[1], 5)
	is(t, "passes none", r.Under(5), false)
	again := msg(anna, 5, small)
	s.Take(again)
	// At the end of an activation with a reader at work the reader begins anew.
	is(t, "a reader beside the other", s.Detach(anna), false)
	is(t, "takes", s.Take(msg(anna, 6, small)), false)
	is(t, "next", s.End(anna, 100, false), Again)
	r, _ = s.Begin(anna)
	is(t, "begins with the first again", r.From[1], 5)
	is(t, "and ends", s.End(anna, 100, true), Rest)
	empty(t, &s)
	is(t, "without a box", s.Land(now[1], false), false)

	// In a pause the end of the pause brings the reader.
	m := arrive(&s, anna, 200, 1)[0]
	s.Pause(m, errX)
	is(t, "a reader in a pause", s.Detach(anna), false)
	is(t, "a reader after it", s.Resume(anna), true)
}

// Proves M4.
// A Hold keeps all messages back until its Release: those under way are withdrawn, and no
// reader begins meanwhile, also after the end of a pause. Holds nest.
func TestHold(t *testing.T) {
	var s Inboxes
	now := arrive(&s, anna, 5, 2)
	s.Hold(anna)
	for _, m := range now {
		is(t, "withdrawn", m.Withdrawn(), true)
	}
	is(t, "one that arrives", s.Arrive(msg(anna, 7, small)), false)
	is(t, "a pause meanwhile", s.Pause(now[0], errX), 1)
	is(t, "its end", s.Resume(anna), false)
	s.Hold(anna)
	is(t, "the end of the inner one", s.Release(anna), false)
	is(t, "a reader after the first", s.Land(now[0], false), false)
	is(t, "a reader after the second", s.Land(now[1], false), false)
	if _, ok := s.Begin(anna); ok {
		t.Error("a reading begins meanwhile")
	}
	if n, reason := s.Waiting(anna); n != 3 || reason != nil {
		t.Errorf("%d wait, %v", n, reason)
	}
	is(t, "a reader after the end", s.Release(anna), true)
	r, ok := s.Begin(anna)
	is(t, "it begins", ok, true)
	is(t, "with the first", r.From[1], 5)
	is(t, "and ends", s.End(anna, 8, true), Rest)
	empty(t, &s)

	// Without a message there is nothing to read, and nothing is left.
	s.Hold(bob)
	is(t, "a reader of bob", s.Release(bob), true)
	_, next := read(&s, bob, 8)
	is(t, "next", next, Rest)
	empty(t, &s)
}
