package storage

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Any calls of AddMessage, AddDelayedMessage, SetMessageState and DeleteMessage, with rollbacks between, leave a
// store that reads like a map and passes its check after each commit. Proves S12.
func TestMessagesReadLikeAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &messageModel{store: memStore(t), stored: map[MessageID]modelMessage{}}
		m.seen = maps.Clone(m.stored)
		rt.Repeat(rapid.StateMachineActions(m))
		if m.store.Err() == nil {
			checkAndClose(t, m.store)
		}
	})
}

// receivers are few, and chosen to be mistaken for one another.
var receivers = []ID{{"c", "a"}, {"c", "a\x00"}, {"c", "\x00"}, {"b", "a"}, {"c", "ab"}}

// modelMessage is a message as it reads; due -1 is no state.
type modelMessage struct {
	value, state string
	due          int64
}

// messageModel is a batch of changes of messages, and a model of what is stored.
type messageModel struct {
	store *Store
	batch Batch
	sent  int // messages so far, each of which has a value of its own

	stored map[MessageID]modelMessage // as it was committed
	seen   map[MessageID]modelMessage // as the batch leaves the stored ones
	added  []MessageID                // by the batch, without numbers
	values []modelMessage             // of those

	savepoints []savedMessages
	open       []uint64 // commits that are not handed over
}

// savedMessages is a savepoint and the model at that moment.
type savedMessages struct {
	place Savepoint
	seen  map[MessageID]modelMessage
	added int
}

func (m *messageModel) Add(rt *rapid.T) {
	to := rapid.SampledFrom(receivers).Draw(rt, "to")
	id := MessageID{To: to, Shard: m.store.ShardOf(to), Queue: rapid.ByteRange(0, Queues-1).Draw(rt, "queue")}
	m.sent++
	value := fmt.Sprint("m", m.sent)
	m.batch.AddMessage(id.Shard, to, id.Queue, []byte(value))
	m.added, m.values = append(m.added, id), append(m.values, modelMessage{value, "", -1})
}

func (m *messageModel) AddDelayed(rt *rapid.T) {
	to := rapid.SampledFrom(receivers).Draw(rt, "to")
	id := MessageID{To: to, Shard: m.store.ShardOf(to), Queue: rapid.ByteRange(0, Queues-1).Draw(rt, "queue")}
	due := rapid.SampledFrom([]int64{1, 2, math.MaxInt64}).Draw(rt, "due")
	m.sent++
	value, state := fmt.Sprint("m", m.sent), rapid.SampledFrom([]string{"", "s"}).Draw(rt, "state")
	m.batch.AddDelayedMessage(id.Shard, to, id.Queue, []byte(value), due, []byte(state))
	m.added, m.values = append(m.added, id), append(m.values, modelMessage{value, state, due})
}

// some is a stored message that the batch has not deleted.
func (m *messageModel) some(rt *rapid.T) (id MessageID, ok bool) {
	ids := slices.SortedFunc(maps.Keys(m.seen), func(a, b MessageID) int { return int(int64(a.Seq - b.Seq)) })
	if len(ids) == 0 {
		return id, false
	}
	return rapid.SampledFrom(ids).Draw(rt, "message"), true
}

func (m *messageModel) State(rt *rapid.T) {
	id, ok := m.some(rt)
	if !ok {
		return
	}
	to := rapid.SampledFrom([]int64{0, 1, 2, math.MaxInt64}).Draw(rt, "due")
	state := rapid.SampledFrom([]string{"", "s", "t"}).Draw(rt, "state")
	old := m.seen[id]
	m.batch.SetMessageState(id, max(old.due, 0), to, []byte(state))
	m.seen[id] = modelMessage{old.value, state, to}
}

func (m *messageModel) Delete(rt *rapid.T) {
	if id, ok := m.some(rt); ok {
		due := m.seen[id].due
		m.batch.DeleteMessage(id, due >= 0, max(due, 0))
		delete(m.seen, id)
	}
}

func (m *messageModel) Save(rt *rapid.T) {
	m.savepoints = append(m.savepoints, savedMessages{m.batch.Savepoint(), maps.Clone(m.seen), len(m.added)})
}

func (m *messageModel) Rollback(rt *rapid.T) {
	if len(m.savepoints) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.savepoints)-1).Draw(rt, "savepoint")
	sp := m.savepoints[i]
	m.batch.Rollback(sp.place)
	m.seen, m.added, m.values, m.savepoints = sp.seen, m.added[:sp.added], m.values[:sp.added], m.savepoints[:i]
}

// Read has the batch build its overlay.
func (m *messageModel) Read(*rapid.T) { m.batch.within("", "") }

func (m *messageModel) Commit(rt *rapid.T) {
	if _, err := m.store.Commit(&m.batch); err != nil {
		rt.Fatal(err)
	}
	for i, id := range m.added {
		id.Seq = m.batch.MessageSeq(i)
		m.seen[id] = m.values[i]
	}
	if len(m.added) > 0 {
		m.open = append(m.open, m.batch.MessageSeq(0))
	}
	m.batch.Reset()
	m.stored, m.added, m.values, m.savepoints = maps.Clone(m.seen), nil, nil, nil
	if err := m.store.Check(); err != nil {
		rt.Fatalf("S12: %v", err)
	}
}

// HandOver ends any of the open commits.
func (m *messageModel) HandOver(rt *rapid.T) {
	if len(m.open) > 0 {
		i := rapid.IntRange(0, len(m.open)-1).Draw(rt, "commit")
		m.store.HandedOver(m.open[i])
		m.open = slices.Delete(m.open, i, i+1)
	}
}

// The empty name is rapid's: it runs after each action.
func (m *messageModel) Check(rt *rapid.T) {
	below := uint64(math.MaxUint64)
	if len(m.open) > 0 {
		if below = m.open[0]; m.store.MessagesBelow() != below {
			rt.Fatalf("S12: readers stop at %#x, want %#x", m.store.MessagesBelow(), below)
		}
	}
	for _, to := range receivers {
		var has bool
		laters := 0
		for queue := range byte(Queues) {
			want := m.want(to, queue, below)
			if got := messages(rt, m.store, to, queue, 0, below); !slices.Equal(got, want) {
				rt.Fatalf("S12: queue %d of %q reads %q, want %q", queue, to, got, want)
			}
			has = has || want != nil
			laters += m.laters(to, queue)
		}
		for _, limit := range []int{0, 1, laters, laters + 1} {
			if n, err := m.store.CountLater(to, limit); n != min(laters, limit) || err != nil {
				rt.Fatalf("M7: CountLater of %q up to %d: %d, %v, want %d", to, limit, n, err, min(laters, limit))
			}
		}
		if found, err := m.store.HasMessages(to, below); found != has || err != nil {
			rt.Fatalf("S12: HasMessages of %q: %v, %v, want %v", to, found, err, has)
		}
	}
	for shard := range m.store.Shards() {
		if got, want := later(rt, m.store, shard, 0, 0, 1000), m.wantLater(shard); !slices.Equal(got, want) {
			rt.Fatalf("S12: the index by time of shard %d reads %q, want %q", shard, got, want)
		}
	}
}

// want is a model of Messages.
func (m *messageModel) want(to ID, queue byte, below uint64) (out []string) {
	for seq, id := range bySeq(m.stored) {
		if c := m.stored[id]; id.To == to && id.Queue == queue && seq < below {
			out = append(out, textOf(StoredMessage{Value: []byte(c.value), State: []byte(c.state), Stated: c.due >= 0, Due: c.due}))
		}
	}
	return out
}

// laters is how many stored messages of a queue have a time.
func (m *messageModel) laters(to ID, queue byte) (n int) {
	for id, c := range m.stored {
		if id.To == to && id.Queue == queue && c.due > 0 {
			n++
		}
	}
	return n
}

// wantLater is a model of ScanLater.
func (m *messageModel) wantLater(shard int) (out []string) {
	for _, due := range []int64{1, 2, math.MaxInt64} {
		for seq, id := range bySeq(m.stored) {
			if id.Shard == shard && m.stored[id].due == due {
				out = append(out, fmt.Sprintf("%s/%d/%d@%d", id.To, id.Queue, seq, due))
			}
		}
	}
	return out
}

// bySeq walks messages in the order of their numbers.
func bySeq(stored map[MessageID]modelMessage) func(yield func(uint64, MessageID) bool) {
	return func(yield func(uint64, MessageID) bool) {
		bySeq := map[uint64]MessageID{}
		for id := range stored {
			bySeq[id.Seq] = id
		}
		for _, seq := range slices.Sorted(maps.Keys(bySeq)) {
			if !yield(seq, bySeq[seq]) {
				return
			}
		}
	}
}
