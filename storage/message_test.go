package storage

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// send commits messages to a receiver, hands them over and returns their numbers.
func send(t testing.TB, s *Store, to ID, queue byte, values ...string) (ids []MessageID) {
	t.Helper()
	var b Batch
	for _, v := range values {
		b.AddMessage(s.ShardOf(to), to, queue, []byte(v))
	}
	ticket, err := s.Commit(&b)
	if err == nil {
		err = s.WaitDurable(ticket)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.HandedOver(b.MessageSeq(0))
	for i := range values {
		ids = append(ids, MessageID{To: to, Shard: s.ShardOf(to), Queue: queue, Seq: b.MessageSeq(i)})
	}
	return ids
}

// messages lists the messages of a queue as value, or as value=state@due.
func messages(t rapidT, s *Store, to ID, queue byte, lower, upper uint64) (out []string) {
	t.Helper()
	err := s.Messages(to, queue, lower, upper, func(m StoredMessage) bool {
		if m.To != to || m.Queue != queue || m.Shard != s.ShardOf(to) || m.Seq < lower || m.Seq >= upper {
			t.Fatalf("a message %v among those of %s from %d to %d", m.MessageID, to, lower, upper)
		}
		out = append(out, textOf(m))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func textOf(m StoredMessage) string {
	if !m.Stated {
		return string(m.Value)
	}
	return fmt.Sprintf("%s=%s@%d", m.Value, m.State, m.Due)
}

// rapidT is a testing.TB or a rapid.T.
type rapidT interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// later lists the index by time of a shard as number@due.
func later(t rapidT, s *Store, shard int, due int64, seq uint64, limit int) (out []string) {
	t.Helper()
	found, err := s.ScanLater(shard, due, seq, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		out = append(out, fmt.Sprintf("%s/%d/%d@%d", m.To, m.Queue, m.Seq, m.Due))
	}
	return out
}

// A receiver's messages are listed by queue, in the order of their numbers, between two
// bounds. Proves S12.
func TestMessagesBetweenBounds(t *testing.T) {
	s := memStore(t)
	to := ID{"c", "n"}
	first := send(t, s, to, 1, "a")[0].Seq
	send(t, s, to, 0, "urgent")
	rest := send(t, s, to, 1, "b", "c")
	b, c := rest[0].Seq, rest[1].Seq
	for _, r := range []struct {
		queue        byte
		lower, upper uint64
		want         []string
	}{
		{1, 0, math.MaxUint64, []string{"a", "b", "c"}},
		{0, 0, math.MaxUint64, []string{"urgent"}},
		{1, first, c + 1, []string{"a", "b", "c"}},
		{1, first + 1, c, []string{"b"}},
		{1, b, b + 1, []string{"b"}},
		{1, b, b, nil},
		{1, c, b, nil},
		{1, c + 1, math.MaxUint64, nil},
		{1, 0, first, nil},
	} {
		if got := messages(t, s, to, r.queue, r.lower, r.upper); !slices.Equal(got, r.want) {
			t.Errorf("queue %d from %#x to %#x: %q, want %q", r.queue, r.lower, r.upper, got, r.want)
		}
	}
	for stop := 1; stop <= 3; stop++ {
		n := 0
		if err := s.Messages(to, 1, 0, math.MaxUint64, func(StoredMessage) bool { n++; return n < stop }); err != nil || n != stop {
			t.Errorf("a reader that stops at message %d gets %d, %v", stop, n, err)
		}
	}
}

// Messages of receivers with names that begin alike, or that hold zero bytes, stay apart.
// Proves S12.
func TestMessagesOfHostileNamesStayApart(t *testing.T) {
	s := memStore(t)
	ids := hostileIDs()
	for _, id := range ids {
		for queue := range byte(Queues) {
			m := send(t, s, id, queue, fmt.Sprint(id, queue))[0]
			commit(t, s, func(b *Batch) { b.SetMessageState(m, 0, int64(m.Seq), []byte{queue}) })
		}
	}
	for _, id := range ids {
		for queue := range byte(Queues) {
			var got []StoredMessage
			err := s.Messages(id, queue, 0, math.MaxUint64, func(m StoredMessage) bool { got = append(got, m); return true })
			if err != nil || len(got) != 1 || string(got[0].Value) != fmt.Sprint(id, queue) || !bytes.Equal(got[0].State, []byte{queue}) {
				t.Fatalf("queue %d of %.20q has %v, %v", queue, id, got, err)
			}
		}
	}
	n := 0
	for shard := range s.Shards() {
		found, err := s.ScanLater(shard, 0, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			if n++; m.Due != int64(m.Seq) || m.Shard != s.ShardOf(m.To) {
				t.Errorf("the index by time has %+v", m)
			}
			if stored, ok, err := s.Message(m.MessageID); !ok || err != nil || string(stored.Value) != fmt.Sprint(m.To, m.Queue) {
				t.Errorf("the message of entry %+v is %+v, %v, %v", m, stored, ok, err)
			}
		}
	}
	if n != len(ids)*Queues {
		t.Errorf("the index by time has %d entries, want %d", n, len(ids)*Queues)
	}
}

// A state replaces the one before and moves the entry of its message in the index by time.
// The message and its bytes stay. Proves S12.
func TestMessageStateMovesItsEntry(t *testing.T) {
	s := memStore(t)
	m := send(t, s, ID{"c", "n"}, 0, "m")[0]
	at := func(due int64) string { return fmt.Sprintf("c/n/0/%d@%d", m.Seq, due) }
	for _, step := range []struct {
		from, to int64
		state    string
		want     string
		entries  []string
	}{
		{0, 0, "parked", "m=parked@0", nil},
		{0, 5, "", "m=@5", []string{at(5)}},
		{5, 5, "same", "m=same@5", []string{at(5)}},
		{5, math.MaxInt64, "last", "m=last@9223372036854775807", []string{at(math.MaxInt64)}},
		{math.MaxInt64, 1, "first", "m=first@1", []string{at(1)}},
		{1, 0, "rests", "m=rests@0", nil},
	} {
		commit(t, s, func(b *Batch) { b.SetMessageState(m, step.from, step.to, []byte(step.state)) })
		got, ok, err := s.Message(m)
		if !ok || err != nil || textOf(got) != step.want || got.MessageID != m {
			t.Errorf("from %d to %d: Message is %+v, %v, %v; want %s", step.from, step.to, got, ok, err, step.want)
		}
		if got := messages(t, s, m.To, 0, 0, math.MaxUint64); !slices.Equal(got, []string{step.want}) {
			t.Errorf("from %d to %d: Messages has %q", step.from, step.to, got)
		}
		if got := later(t, s, m.Shard, 0, 0, 10); !slices.Equal(got, step.entries) {
			t.Errorf("from %d to %d: the index by time has %q, want %q", step.from, step.to, got, step.entries)
		}
		if err := s.Check(); err != nil {
			t.Errorf("S12: from %d to %d: %v", step.from, step.to, err)
		}
	}
}

// DeleteMessage takes the state and the entry along and leaves the messages beside it. Proves
// S12.
func TestDeleteMessageLeavesNothing(t *testing.T) {
	for name, due := range map[string]int64{"no state": -1, "a state": 0, "a time": 7} {
		t.Run(name, func(t *testing.T) {
			s := memStore(t)
			to := ID{"c", "n"}
			ids := send(t, s, to, 1, "before", "m", "after")
			if due >= 0 {
				commit(t, s, func(b *Batch) {
					for _, id := range ids {
						b.SetMessageState(id, 0, due, []byte("s"))
					}
				})
			}
			commit(t, s, func(b *Batch) { b.DeleteMessage(ids[1], due >= 0, max(due, 0)) })
			if err := s.Check(); err != nil {
				t.Errorf("S12: %v", err)
			}
			if got := messages(t, s, to, 1, 0, math.MaxUint64); len(got) != 2 || !strings.HasPrefix(got[0], "before") || !strings.HasPrefix(got[1], "after") {
				t.Errorf("left are %q", got)
			}
			if m, ok, err := s.Message(ids[1]); ok || err != nil {
				t.Errorf("the deleted message is %+v, %v", m, err)
			}
			if got := later(t, s, ids[1].Shard, 0, 0, 10); due > 0 && len(got) != 2 || due <= 0 && got != nil {
				t.Errorf("the index by time has %q", got)
			}
			commit(t, s, func(b *Batch) {
				b.DeleteMessage(ids[0], due >= 0, max(due, 0))
				b.DeleteMessage(ids[2], due >= 0, max(due, 0))
			})
			for shard := range s.Shards() {
				for _, kind := range []byte{kindMessage, kindLater} {
					if err := s.scan(shard, kind, nil, func(key, _ []byte) error { return errKey(key) }); err != nil {
						t.Errorf("a row of kind %d is left: %v", kind, err)
					}
				}
			}
		})
	}
}

// HasMessages looks at both queues and only before its bound. Proves S12.
func TestHasMessagesBeforeABound(t *testing.T) {
	s := memStore(t)
	has := func(to ID, upper uint64) bool {
		t.Helper()
		found, err := s.HasMessages(to, upper)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	neighbours := []ID{{"c", "a\x00"}, {"c", "a"}, {"c", "b"}, {"b", "a"}}
	for _, id := range neighbours[:1] {
		send(t, s, id, 0, "x")
	}
	for queue := range byte(Queues) {
		to := neighbours[1+queue]
		if has(to, math.MaxUint64) {
			t.Errorf("%s has messages at the beginning", to)
		}
		m := send(t, s, to, queue, "m")[0]
		if has(to, m.Seq) || !has(to, m.Seq+1) || !has(to, math.MaxUint64) || has(to, 0) {
			t.Errorf("queue %d: before the number %v, behind it %v", queue, has(to, m.Seq), has(to, m.Seq+1))
		}
		older := send(t, s, to, 1-queue, "m")[0]
		if !has(to, older.Seq) {
			t.Errorf("queue %d: the bound of one queue hides the other", queue)
		}
		commit(t, s, func(b *Batch) { b.DeleteMessage(m, false, 0) })
		if has(to, older.Seq) || !has(to, older.Seq+1) {
			t.Errorf("queue %d: after the removal: %v, %v", queue, has(to, older.Seq), has(to, older.Seq+1))
		}
	}
	if has(neighbours[3], math.MaxUint64) {
		t.Error("the messages of others count")
	}
}

// ScanLater goes through a shard's index by time in portions: by time, then by number. Proves
// S12.
func TestScanLaterInPortions(t *testing.T) {
	s := memStore(t)
	to := ID{"c", "n"}
	ids := send(t, s, to, 1, "0", "1", "2", "3", "4")
	due := []int64{30, 10, 20, 10, math.MaxInt64}
	commit(t, s, func(b *Batch) {
		for i, id := range ids {
			b.SetMessageState(id, 0, due[i], nil)
		}
	})
	var want []string
	for _, i := range []int{1, 3, 2, 0, 4} {
		want = append(want, fmt.Sprintf("c/n/1/%d@%d", ids[i].Seq, due[i]))
	}
	shard := s.ShardOf(to)
	for limit := 1; limit <= 6; limit++ {
		var got []string
		at, seq := int64(0), uint64(0)
		for {
			portion, err := s.ScanLater(shard, at, seq, limit)
			if err != nil || len(portion) > limit {
				t.Fatalf("limit %d: %d entries, %v", limit, len(portion), err)
			}
			if len(portion) == 0 {
				break
			}
			for _, m := range portion {
				got = append(got, fmt.Sprintf("%s/%d/%d@%d", m.To, m.Queue, m.Seq, m.Due))
				at, seq = m.Due, m.Seq
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("portions of %d: %q, want %q", limit, got, want)
		}
	}
	if got := later(t, s, shard, 10, ids[1].Seq-1, 1); !slices.Equal(got, want[:1]) {
		t.Errorf("just before the first entry: %q", got)
	}
	if got := later(t, s, shard, 0, 0, 0); got != nil {
		t.Errorf("a limit of 0 gives %q", got)
	}
	if got := later(t, s, (shard+1)%s.Shards(), 0, 0, 10); got != nil {
		t.Errorf("another shard has %q", got)
	}
}

// Readers of messages see the snapshot of their call, while commits go on.
func TestMessagesShowTheirMoment(t *testing.T) {
	s := memStore(t)
	to := ID{"c", "n"}
	ids := send(t, s, to, 1, "a", "b", "c")
	var got []string
	err := s.Messages(to, 1, 0, math.MaxUint64, func(m StoredMessage) bool {
		got = append(got, textOf(m))
		commit(t, s, func(b *Batch) {
			b.DeleteMessage(ids[len(got)-1], false, 0)
			if len(got) < 3 {
				b.SetMessageState(ids[2], 0, 0, []byte("tried"))
			}
		})
		send(t, s, to, 1, "new")
		return true
	})
	if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q, %v", got, err)
	}
	commit(t, s, func(b *Batch) { b.DeleteMessage(ids[2], true, 0) })
	if got := messages(t, s, to, 1, 0, math.MaxUint64); !slices.Equal(got, []string{"new", "new", "new"}) {
		t.Errorf("afterwards: %q", got)
	}
}
