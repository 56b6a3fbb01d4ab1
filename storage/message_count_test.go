package storage

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The count of messages is that of its moment, by receiver, and states do not count. Proves
// S12.
func TestCountMessagesOfASnapshot(t *testing.T) {
	s := memStore(t)
	want, later := map[ID]int{}, map[ID]int{}
	var last MessageID
	for i, id := range []ID{{"c", "a"}, {"c", "a\x00"}, {"c", "ab"}, {"b", "a"}, {"c", "z"}, {"d", ""}} {
		for n := range i + 1 {
			last = send(t, s, id, byte(n%Queues), "m")[0]
			commit(t, s, func(b *Batch) { b.SetMessageState(last, 0, int64(n%2), nil) })
		}
		want[id], later[id] = i+1, (i+1)/2
	}
	counts := func(c *MessageCount, later map[ID]int) (got map[ID]int) {
		t.Helper()
		got = map[ID]int{}
		shards := 0
		for more := true; more; shards++ {
			var err error
			if more, err = c.Next(func(to ID, n int) bool {
				got[to] += n
				if c.Later() != later[to] {
					t.Errorf("%s has %d messages with a time, want %d", to, c.Later(), later[to])
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil || shards != s.Shards() {
			t.Fatalf("%d shards of %d were counted, %v", shards, s.Shards(), err)
		}
		return got
	}
	old, err := s.CountMessages()
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, func(b *Batch) { b.DeleteMessage(last, true, 1) })
	send(t, s, ID{"later", "n"}, 0, "m")
	if got := counts(old, later); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the snapshot has %v, want %v", got, want)
	}
	want[last.To]--
	later[last.To]--
	want[ID{"later", "n"}] = 1
	now, err := s.CountMessages()
	if err != nil {
		t.Fatal(err)
	}
	if got := counts(now, later); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("afterwards there are %v, want %v", got, want)
	}
}

// A count that is told to stop goes on with the next shard.
func TestCountMessagesStops(t *testing.T) {
	s := memStore(t)
	receivers := map[int]int{} // by shard
	for i := range 20 {
		to := ID{"c", fmt.Sprint(i)}
		send(t, s, to, 0, "m")
		receivers[s.ShardOf(to)]++
	}
	c, err := s.CountMessages()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for shard := range s.Shards() {
		stop, calls := receivers[shard]-1, 0
		more, err := c.Next(func(ID, int) bool { calls++; return calls < stop })
		if err != nil || more != (shard < s.Shards()-1) || calls != stop || stop < 1 {
			t.Errorf("shard %d: %d calls of %d, more %v, %v", shard, calls, stop, more, err)
		}
	}
	if more, err := c.Next(func(ID, int) bool { t.Error("called again"); return true }); more || err != nil {
		t.Errorf("after the last shard: %v, %v", more, err)
	}
}

// A count does not hold up the end of the store, not even for the rest of a shard.
func TestCountMessagesBesideTheEnd(t *testing.T) {
	s, err := Open(Options{Engine: memstore.New(), Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		send(t, s, ID{"c", fmt.Sprint(i)}, 0, "m")
	}
	c, err := s.CountMessages()
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	more, err := c.Next(func(to ID, _ int) bool {
		if found, err := s.HasMessages(to, math.MaxUint64); !found || err != nil {
			t.Errorf("HasMessages of %s: %v, %v", to, found, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		calls++
		return true
	})
	if !errors.Is(err, ErrClosed) || more || calls != 1 {
		t.Errorf("%d calls, more %v, %v", calls, more, err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close of the count: %v", err)
	}
}
