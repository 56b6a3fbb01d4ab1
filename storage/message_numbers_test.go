package storage

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// messageBatch is a batch with n messages to a receiver.
func messageBatch(s *Store, to ID, n int) *Batch {
	var b Batch
	for i := range n {
		b.AddMessage(s.ShardOf(to), to, 0, fmt.Append(nil, i))
	}
	return &b
}

// Commit draws the numbers of a batch's messages in the order of AddMessage, each greater
// than all before it. The rows have these numbers. Proves S12, S10.
func TestMessageNumbersGrow(t *testing.T) {
	s := memStore(t)
	last := s.FirstSeq()
	for n := 1; n <= 4; n++ {
		to := ID{"c", fmt.Sprint(n)}
		b := messageBatch(s, to, n)
		b.SetMeta("between", nil)
		if _, err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			seq := b.MessageSeq(i)
			if seq <= last {
				t.Errorf("S10: message %d of %d has the number %#x, after %#x", i, n, seq, last)
			}
			last = seq
			m, ok, err := s.Message(MessageID{to, s.ShardOf(to), 0, seq})
			if !ok || err != nil || string(m.Value) != fmt.Sprint(i) {
				t.Errorf("S12: message %d of %d is %+v, %v, %v", i, n, m, ok, err)
			}
		}
		s.HandedOver(b.MessageSeq(0))
		if event := s.NextSeq(); event <= last {
			t.Errorf("S10: an event has the number %#x after %#x", event, last)
		}
	}
}

// A batch of messages draws numbers over the end of a block of 2^32 of them. Proves S10.
func TestMessageNumbersGoOnAfterABlock(t *testing.T) {
	s := memStore(t)
	s.seqs.Store(4<<blockBits - 2)
	ids := send(t, s, ID{"c", "n"}, 0, "a", "b", "c", "d")
	for i, id := range ids {
		if want := uint64(4<<blockBits-1) + uint64(i); id.Seq != want {
			t.Errorf("S10: message %d has the number %#x, want %#x", i, id.Seq, want)
		}
	}
	if got := messages(t, s, ID{"c", "n"}, 0, 0, s.MessagesBelow()); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("S12: %q", got)
	}
}

// FirstSeq parts the messages of earlier openings from those of this one. Proves S10.
func TestFirstSeqPartsTheOpenings(t *testing.T) {
	fsys, to := vfs.NewMem(), ID{"c", "n"}
	for opening := 1; opening <= 3; opening++ {
		s := open(t, memOptions(fsys))
		older := messages(t, s, to, 0, 0, s.FirstSeq())
		if len(older) != 2*(opening-1) || s.MessagesBelow() < s.FirstSeq() {
			t.Errorf("S10: opening %d finds %q before %#x, and reads up to %#x", opening, older, s.FirstSeq(), s.MessagesBelow())
		}
		send(t, s, to, 0, "a", "b")
		if got := messages(t, s, to, 0, s.FirstSeq(), math.MaxUint64); len(got) != 2 {
			t.Errorf("S10: opening %d has sent %q", opening, got)
		}
		checkAndClose(t, s)
	}
}

// MessagesBelow stands at the oldest commit that is not handed over, in whatever order the
// others are. Proves S12.
func TestMessagesBelowStandsAtTheOldest(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}} {
		s := memStore(t)
		var first []uint64
		for range order {
			b := messageBatch(s, ID{"c", "n"}, 2)
			if _, err := s.Commit(b); err != nil {
				t.Fatal(err)
			}
			first = append(first, b.MessageSeq(0))
		}
		s.HandedOver(first[0] + 1)               // the second message of a commit names none
		s.HandedOver(s.FirstSeq())               // nor does a number that was never drawn
		s.HandedOver(first[len(first)-1] + 1000) // nor one that will be
		done := map[int]bool{}
		for _, i := range order {
			oldest := 0
			for done[oldest] {
				oldest++
			}
			if got := s.MessagesBelow(); got != first[oldest] {
				t.Errorf("S12: order %v: with %v handed over readers stop at %#x, want %#x", order, done, got, first[oldest])
			}
			done[i] = true
			s.HandedOver(first[i])
			s.HandedOver(first[i]) // once more changes nothing
		}
		if got, want := s.MessagesBelow(), s.NextSeq(); got != want {
			t.Errorf("S12: order %v: with all handed over readers stop at %#x, want %#x", order, got, want)
		}
	}
}

// The list of open drawings stays short while commits overlap for ever, and so does it behind
// a commit that stays open.
func TestDrawingsThatOverlapAreForgotten(t *testing.T) {
	s := memStore(t)
	draw := func() uint64 {
		b := messageBatch(s, ID{"c", "n"}, 1)
		s.draw(b)
		return b.MessageSeq(0)
	}
	open := draw()
	for range 1000 {
		next := draw()
		if got := s.MessagesBelow(); got != open {
			t.Fatalf("readers stop at %#x, want %#x", got, open)
		}
		s.HandedOver(open)
		open = next
		if n := len(s.drawn.open); n > 4 {
			t.Fatalf("the list of one open drawing has %d entries", n)
		}
	}
	var later []uint64
	for range 100 {
		later = append(later, draw())
	}
	for _, first := range later {
		s.HandedOver(first)
	}
	if got := s.MessagesBelow(); got != open {
		t.Errorf("readers stop at %#x, want %#x", got, open)
	}
	s.HandedOver(open)
	if n := len(s.drawn.open) - s.drawn.head; n != 0 {
		t.Errorf("%d drawings are left", n)
	}
}

// A commit that is refused for lack of space draws no number. Its batch is accepted when there
// is space.
//
// Case ST3.
func TestNoSpaceDrawsNoNumber(t *testing.T) {
	disk, clock := newDisk(100<<20), &manualClock{now: time.Unix(1000, 0)}
	o := memOptions(disk)
	o.MinFreeBytes, o.Seams.Clock = 50<<20, clock
	s := open(t, o)
	defer checkAndClose(t, s)
	to := ID{"c", "n"}
	b := messageBatch(s, to, 2)
	before := s.MessagesBelow()
	disk.freeBytes.Store(0)
	clock.now = clock.now.Add(checkEvery)
	if _, err := s.Commit(b); !errors.Is(err, ErrNoSpace) || s.MessagesBelow() != before || s.NextSeq() != before {
		t.Errorf("without space: %v, readers stop at %#x, were at %#x", err, s.MessagesBelow(), before)
	}
	disk.freeBytes.Store(100 << 20)
	if _, err := s.Commit(b); err != nil || b.MessageSeq(0) != before+1 || s.MessagesBelow() != before+1 {
		t.Errorf("with space: %v, the first number is %#x, and readers stop at %#x", err, b.MessageSeq(0), s.MessagesBelow())
	}
	s.HandedOver(b.MessageSeq(0))
	if got := messages(t, s, to, 0, 0, s.MessagesBelow()); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("stored are %q", got)
	}
}

// gateEngine calls before with each batch.
type gateEngine struct {
	engine.Engine
	before func(repr []byte) error
}

func (e *gateEngine) Apply(repr []byte) error {
	if e.before != nil {
		if err := e.before(repr); err != nil {
			return err
		}
	}
	return e.Engine.Apply(repr)
}

// A commit that fails in the engine is no longer open, so that no reader waits for it.
func TestFailedCommitEndsItsDrawing(t *testing.T) {
	gate := &gateEngine{Engine: memstore.New()}
	s, err := Open(Options{Engine: gate})
	if err != nil {
		t.Fatal(err)
	}
	b := messageBatch(s, ID{"c", "n"}, 3)
	broken := errors.New("broken")
	gate.before = func([]byte) error {
		if got := s.MessagesBelow(); got != b.MessageSeq(0) {
			t.Errorf("S12: while the commit is applied readers stop at %#x, want %#x", got, b.MessageSeq(0))
		}
		return broken
	}
	if _, err := s.Commit(b); !errors.Is(err, broken) {
		t.Errorf("Commit: %v", err)
	}
	if got := s.MessagesBelow(); got != b.MessageSeq(2)+1 {
		t.Errorf("after it readers stop at %#x, want %#x", got, b.MessageSeq(2)+1)
	}
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: %v", err)
	}
}

// A commit that is drawn first and applied last is not passed: a reader stops before it, while
// a later one is applied and handed over, and reads both in order afterwards. Proves S12.
func TestReaderWaitsForAnOlderCommit(t *testing.T) {
	gate := &gateEngine{Engine: memstore.New()}
	s, err := Open(Options{Engine: gate})
	if err != nil {
		t.Fatal(err)
	}
	defer checkAndClose(t, s)
	to := ID{"c", "n"}
	reached, applied, handed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := messageBatch(s, to, 1)
	gate.before = func(repr []byte) error {
		if &repr[0] == &slow.Repr()[0] {
			close(reached)
			<-applied
		}
		return nil
	}
	go func() {
		defer close(handed)
		if _, err := s.Commit(slow); err != nil {
			t.Error(err)
		}
		s.HandedOver(slow.MessageSeq(0))
	}()
	<-reached
	fast := send(t, s, to, 0, "fast")[0]
	below := s.MessagesBelow()
	if got := messages(t, s, to, 0, 0, below); got != nil || below > slow.MessageSeq(0) || slow.MessageSeq(0) >= fast.Seq {
		t.Errorf("S12: beside commit %#x a reader stops at %#x and has read %q", slow.MessageSeq(0), below, got)
	}
	close(applied)
	<-handed
	if got := messages(t, s, to, 0, below, s.MessagesBelow()); !slices.Equal(got, []string{"0", "fast"}) {
		t.Errorf("S12: afterwards it reads %q", got)
	}
}

// Many senders commit beside a reader that goes on from where it stopped. The reader meets
// each message once, and those of one sender in order. Proves S12.
func TestReaderBesideManySenders(t *testing.T) {
	const senders, commits = 8, 60
	s := memStore(t)
	to := ID{"c", "n"}
	news := make(chan struct{}, 1) // told of each commit
	tell := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	var sending sync.WaitGroup
	for sender := range senders {
		sending.Go(func() {
			for n := range commits {
				var b Batch
				for i := range 1 + n%3 {
					b.AddMessage(s.ShardOf(to), to, 0, []byte{byte(sender), byte(n), byte(i)})
				}
				if _, err := s.Commit(&b); err != nil {
					t.Error(err)
				}
				s.HandedOver(b.MessageSeq(0))
				tell()
			}
		})
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()

	var got [senders][]string
	position := uint64(0)
	read := func() {
		below := s.MessagesBelow()
		if below < position {
			t.Errorf("S12: a reader stops at %#x after %#x", below, position)
		}
		err := s.Messages(to, 0, position, below, func(m StoredMessage) bool {
			got[m.Value[0]] = append(got[m.Value[0]], fmt.Sprint(m.Value[1:]))
			return true
		})
		if err != nil {
			t.Error(err)
		}
		position = below
	}
	for open := true; open; read() {
		select {
		case <-news:
		case <-done:
			open = false
		}
	}
	var want []string
	for n := range commits {
		for i := range 1 + n%3 {
			want = append(want, fmt.Sprint([]byte{byte(n), byte(i)}))
		}
	}
	for sender := range senders {
		if !slices.Equal(got[sender], want) {
			t.Errorf("S12: of sender %d the reader has %d messages, want %d, in order", sender, len(got[sender]), len(want))
		}
	}
}
