package storage

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Rollback takes messages back: they are not stored, and the numbers go to the others. It
// makes no difference whether the batch has an overlay, and what is written in their place.
// Proves S12.
func TestRollbackTakesMessagesBack(t *testing.T) {
	for name, before := range map[string]int{"few records": 0, "overlay": fewRecords + 1} {
		t.Run(name, func(t *testing.T) {
			s := memStore(t)
			o := newObject(t, s, "c", "sender")
			to := ID{"c", "n"}
			shard := s.ShardOf(to)
			var b Batch
			read := func() {
				t.Helper()
				if v, ok, err := s.Data(&b, o, "k"); err != nil || ok && string(v) != "v" {
					t.Fatalf("Data: %q, %v, %v", v, ok, err)
				}
			}
			for i := range before {
				b.SetData(o, fmt.Sprint("other", i), nil)
			}
			b.AddMessage(shard, to, 1, []byte("first"))
			outer := b.Savepoint()
			b.AddMessage(shard, to, 1, []byte("dropped"))
			inner := b.Savepoint()
			b.AddMessage(shard, to, 0, []byte("dropped too"))
			b.AddDelayedMessage(shard, to, 1, []byte("dropped as well"), 5, nil)
			read()
			b.Rollback(inner)
			read()
			b.Rollback(outer)
			value := bytes.Repeat([]byte("v"), 300) // lies where the numbers would be
			b.SetData(o, "long", value)
			b.AddMessage(shard, to, 1, []byte("last"))
			read()
			if _, err := s.Commit(&b); err != nil {
				t.Fatal(err)
			}
			s.HandedOver(b.MessageSeq(0))
			if v, _, err := s.Data(nil, o, "long"); !bytes.Equal(v, value) || err != nil {
				t.Errorf("S12: a value in the place of a message is %q, %v", v, err)
			}
			if got := messages(t, s, to, 1, 0, math.MaxUint64); !slices.Equal(got, []string{"first", "last"}) {
				t.Errorf("S12: stored are %q", got)
			}
			if got := messages(t, s, to, 0, 0, math.MaxUint64); got != nil {
				t.Errorf("S12: stored are %q", got)
			}
			for i, want := range []string{"first", "last"} {
				m, ok, err := s.Message(MessageID{to, shard, 1, b.MessageSeq(i)})
				if !ok || err != nil || string(m.Value) != want {
					t.Errorf("message %d is %q, %v, %v", i, m.Value, ok, err)
				}
			}
		})
	}
}

// A batch without its messages, by Rollback to its beginning, draws no number and needs no
// HandedOver.
func TestRollbackOfAllMessages(t *testing.T) {
	s := memStore(t)
	var b Batch
	begin := b.Savepoint()
	b.SetMeta("k", nil)
	kept := b.Savepoint()
	b.AddMessage(0, ID{"c", "n"}, 0, []byte("m"))
	b.Rollback(kept)
	before := s.MessagesBelow()
	if _, err := s.Commit(&b); err != nil || s.MessagesBelow() != before {
		t.Errorf("%v, readers stop at %#x, were at %#x", err, s.MessagesBelow(), before)
	}
	b.Rollback(begin)
	if !b.Empty() || b.Len() != 0 {
		t.Errorf("rolled back to its beginning the batch has %d bytes", b.Len())
	}
}

// Reset forgets messages, and keeps no large memory for them.
func TestResetForgetsMessages(t *testing.T) {
	s := memStore(t)
	to := ID{"c", "n"}
	var b Batch
	for _, n := range []int{1, 3, 5000} { // 5,000 are more than Reset keeps the memory of
		for range n {
			b.AddMessage(s.ShardOf(to), to, 0, []byte("dropped"))
		}
		b.Reset()
		if b.messages = b.messages[:cap(b.messages)]; len(b.messages) > 16 {
			t.Errorf("after %d messages Reset keeps room for %d", n, len(b.messages))
		}
		b.Reset()
		b.SetMeta("k", []byte(strings.Repeat("v", 100)))
		before := s.MessagesBelow()
		if _, err := s.Commit(&b); err != nil || s.MessagesBelow() != before {
			t.Errorf("%v, readers stop at %#x, were at %#x", err, s.MessagesBelow(), before)
		}
		if v, _, err := s.Meta("k"); string(v) != strings.Repeat("v", 100) || err != nil {
			t.Errorf("the value is %q, %v", v, err)
		}
		b.Reset()
	}
	if got := messages(t, s, to, 0, 0, math.MaxUint64); got != nil {
		t.Errorf("stored are %d messages", len(got))
	}
}

// The bytes of a batch with messages depend only on its calls, until numbers are drawn.
func TestBatchesOfMessagesAreDeterministic(t *testing.T) {
	made := func() string {
		var b Batch
		b.AddMessage(3, ID{"c", "n"}, 1, []byte("m"))
		b.SetMessageState(MessageID{ID{"c", "n"}, 3, 1, 7}, 5, 6, []byte("s"))
		b.DeleteMessage(MessageID{ID{"c", "n"}, 3, 1, 8}, true, 9)
		return string(b.Repr())
	}
	if a, b := made(), made(); a != b {
		t.Errorf("%x and %x", a, b)
	}
}

// A message costs its sender's batch no allocation but the room for its bytes.
func TestAddMessageAllocatesNothing(t *testing.T) {
	var b Batch
	to, value := ID{"account", "a name of a usual length"}, []byte("value")
	add := func() {
		b.Reset()
		b.AddMessage(3, to, 1, value)
		b.DeleteMessage(MessageID{to, 3, 1, 7}, true, 9)
	}
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A delayed message has its number in its three keys, and one that Rollback has taken back
// leaves no number in the bytes that take its place. Proves S12.
func TestNumbersOfDelayedMessages(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "sender")
	to := ID{"c", "n"}
	shard := s.ShardOf(to)
	var b Batch
	b.AddDelayedMessage(shard, to, 1, []byte("first"), 5, []byte("s"))
	place := b.Savepoint()
	b.AddDelayedMessage(shard, to, 1, []byte("dropped"), 6, nil)
	b.Rollback(place)
	value := bytes.Repeat([]byte("v"), 300) // lies where the numbers would be
	b.SetData(o, "long", value)
	b.AddMessage(shard, to, 1, []byte("second"))
	b.AddDelayedMessage(shard, to, 0, []byte("third"), 7, nil)
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	s.HandedOver(b.MessageSeq(0))
	if err := s.Check(); err != nil {
		t.Errorf("S12: %v", err)
	}
	if v, _, err := s.Data(nil, o, "long"); !bytes.Equal(v, value) || err != nil {
		t.Errorf("S12: a value in the place of a message is %q, %v", v, err)
	}
	entries, err := s.ScanLater(shard, 0, 0, 10)
	want := []LaterMessage{{MessageID{to, shard, 1, b.MessageSeq(0)}, 5}, {MessageID{to, shard, 0, b.MessageSeq(2)}, 7}}
	if err != nil || !slices.Equal(entries, want) {
		t.Errorf("S12: the index by time has %v, %v, want %v", entries, err, want)
	}
	m, ok, err := s.Message(want[0].MessageID)
	if !ok || err != nil || string(m.Value) != "first" || string(m.State) != "s" || m.Due != 5 {
		t.Errorf("the message is %+v, %v, %v", m, ok, err)
	}
	if b.Reset(); len(b.messages) != 0 || len(b.delayed) != 0 {
		t.Error("an empty batch has messages")
	}
}
