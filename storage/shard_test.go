package storage

import (
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// The shard of an object is the hash of class, a zero byte and name, whether they
// fit the room that needs no allocation or not: a stored object is found by it.
func TestShardOfIsTheHash(t *testing.T) {
	for _, n := range []int{1, 2*keyRoom - 3, 2*keyRoom - 2, 2*keyRoom - 1, 1000} {
		id := ID{"c", strings.Repeat("n", n)}
		if got, want := ShardOf(id, 64), int(xxhash.Sum64String(id.Class+"\x00"+id.Name)%64); got != want {
			t.Errorf("a name of %d bytes: shard %d, want %d", n, got, want)
		}
	}
	if got := ShardOf(ID{"cart", "alice"}, 1<<16); got != 16033 {
		t.Errorf("cart/alice: shard %d; stores hold it at 16033", got)
	}
	if n := testing.AllocsPerRun(10, func() { ShardOf(ID{"cart", "alice"}, 64) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
