package storage

import (
	"bytes"
	"errors"
	"testing"
)

// Keys that hold a class and a name are read as they were written, and no other
// bytes are read as one.
func FuzzDecodeNamed(f *testing.F) {
	f.Add(namedKey(nil, 1, kindEvent, ID{"cart", "alice"}, 7)[3:])
	f.Add(namedKey(nil, 1, kindDead, ID{"c", "a\x00b"}, ^uint64(0))[3:])
	f.Add([]byte("no zero"))
	f.Fuzz(func(t *testing.T, rest []byte) {
		id, seq, err := decodeNamed(rest)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again := namedKey(nil, 1, kindEvent, id, seq)[3:]; !bytes.Equal(again, rest) {
			t.Fatalf("%x is read as %q %d, which is written as %x", rest, id, seq, again)
		}
	})
}

func FuzzDecodeHeaderKey(f *testing.F) {
	f.Add(headerKey(nil, 1, ID{"cart", "alice"})[3:])
	f.Add(headerKey(nil, 1, ID{"c", "\x00/\xff"})[3:])
	f.Fuzz(func(t *testing.T, rest []byte) {
		id, err := decodeHeaderKey(rest)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again := headerKey(nil, 1, id)[3:]; !bytes.Equal(again, rest) {
			t.Fatalf("%x is read as %q, which is written as %x", rest, id, again)
		}
	})
}

// Keys of messages are read as they were written, and no other bytes are read as one.
func FuzzDecodeMessageKey(f *testing.F) {
	f.Add(messageKey(nil, MessageID{ID{"cart", "alice"}, 1, 0, 7}, messageValue)[3:])
	f.Add(messageKey(nil, MessageID{ID{"c", "a\x00b"}, 1, 1, ^uint64(0)}, messageState)[3:])
	f.Add(messageKey(nil, MessageID{ID{"c", "n"}, 1, Queues, 1}, messageValue)[3:])
	f.Add(messageKey(nil, MessageID{ID{"c", "n"}, 1, 0, 0}, messageValue)[3:])
	f.Add(namedKey(nil, 1, kindEvent, ID{"c", "n"}, 7)[3:])
	f.Add([]byte("c\x00\xff\xff"))
	f.Add([]byte("no zero"))
	f.Fuzz(func(t *testing.T, rest []byte) {
		id, row, err := decodeMessageKey(1, rest)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again := messageKey(nil, id, row)[3:]; !bytes.Equal(again, rest) {
			t.Fatalf("%x is read as %+v, which is written as %x", rest, id, again)
		}
	})
}

// Entries of the index by time are read as they were written, and no other bytes are read as
// one.
func FuzzDecodeLater(f *testing.F) {
	f.Add(laterKey(nil, 1, 1<<60, 7)[3:], []byte("\x01cart\x00alice"))
	f.Add(laterKey(nil, 1, 0, 7)[3:], []byte("\x00c\x00n"))
	f.Add(laterKey(nil, 1, -1, 7)[3:], []byte("\x00c\x00n"))
	f.Add([]byte("short"), []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m, err := decodeLater(1, key, value)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		var b Batch
		b.SetMessageState(m.MessageID, 0, m.Due, nil)
		if again := valuesOf(t, &b)[1]; !bytes.Equal(again, value) || !bytes.Equal(laterKey(nil, 1, m.Due, m.Seq)[3:], key) {
			t.Fatalf("%x %x is read as %+v, which is written as %x", key, value, m, again)
		}
	})
}

// Any bytes of a state are read as a time and a state, or are damage.
func FuzzReadMessageState(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x05state"))
	f.Add(make([]byte, 8))
	f.Add(make([]byte, 7))
	f.Add([]byte("\x80\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, value []byte) {
		var m StoredMessage
		if err := m.readState(value); err != nil {
			if !errors.Is(err, ErrCorrupt) || m.Stated {
				t.Fatal(err)
			}
			return
		}
		var b Batch
		b.SetMessageState(MessageID{}, 0, m.Due, m.State)
		if again := valuesOf(t, &b)[0]; !bytes.Equal(again, value) || !m.Stated {
			t.Fatalf("%x is read as %+v, which is written as %x", value, m, again)
		}
	})
}

// Two different objects never share a key, and their keys are in the order of
// their names. Only valid IDs reach keys.
func FuzzKeysTellObjectsApart(f *testing.F) {
	f.Add("cart", "alice", "cart", "alice2", uint64(1), uint64(1))
	f.Add("cart", "a\x00", "cart", "a", uint64(0), uint64(256))
	f.Fuzz(func(t *testing.T, classA, nameA, classB, nameB string, seqA, seqB uint64) {
		a, b := ID{classA, nameA}, ID{classB, nameB}
		if a.Validate() != nil || b.Validate() != nil {
			return
		}
		if same := bytes.Equal(headerKey(nil, 0, a), headerKey(nil, 0, b)); same != (a == b) {
			t.Fatalf("%q and %q: the same header: %v", a, b, same)
		}
		if same := bytes.Equal(namedKey(nil, 0, kindEvent, a, seqA), namedKey(nil, 0, kindEvent, b, seqB)); same != (a == b && seqA == seqB) {
			t.Fatalf("%q %d and %q %d: the same event: %v", a, seqA, b, seqB, same)
		}
		if same := bytes.Equal(messageKey(nil, MessageID{a, 0, 0, seqA}, 0), messageKey(nil, MessageID{b, 0, 0, seqB}, 0)); same != (a == b && seqA == seqB) {
			t.Fatalf("%q %d and %q %d: the same message: %v", a, seqA, b, seqB, same)
		}
		if a != b && bytes.HasPrefix(namedKey(nil, 0, kindEvent, a, seqA), namedPrefix(nil, 0, kindEvent, b)) {
			t.Fatalf("an event of %q is one of %q", a, b)
		}
		if classA == classB && (bytes.Compare(headerKey(nil, 0, a), headerKey(nil, 0, b)) < 0) != (nameA < nameB) {
			t.Fatalf("%q and %q are listed in another order than their names", a, b)
		}
		if ShardOf(a, 64) != ShardOf(ID{classA, nameA}, 64) {
			t.Fatalf("%q has two shards", a)
		}
	})
}

// after is the least bound of all keys with a prefix.
func FuzzAfter(f *testing.F) {
	f.Add([]byte("a"), []byte("b"))
	f.Add([]byte{0xff, 0xff}, []byte{0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, p, key []byte) {
		end := after(p)
		below := end == nil || bytes.Compare(key, end) < 0
		if in := bytes.Compare(key, p) >= 0 && below; in != bytes.HasPrefix(key, p) {
			t.Fatalf("prefix %x, bound %x: %x is in it: %v", p, end, key, in)
		}
	})
}

func FuzzSplitExpiring(f *testing.F) {
	f.Add(appendExpiring(nil, 1<<60, []byte("value")))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, row []byte) {
		expires, value, err := splitExpiring(row)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again := appendExpiring(nil, expires, value); !bytes.Equal(again, row) {
			t.Fatalf("%x is written as %x", row, again)
		}
	})
}

// Any bytes of a witness file are read as the number of a whole slot, or as 0.
func FuzzReadWitness(f *testing.F) {
	f.Add(make([]byte, 2*witnessSlot))
	f.Add(append(witnessSlotOf(3), witnessSlotOf(4)...))
	f.Add(witnessSlotOf(1 << 63)[:witnessSlot-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		n, found := readWitness(b), false
		for at := 0; at+witnessSlot <= len(b); at += witnessSlot {
			slot := witnessSlotOf(n)
			found = found || bytes.Equal(b[at:at+12], slot[:12])
		}
		if n != 0 && !found {
			t.Fatalf("%x tells of %d", b, n)
		}
	})
}
