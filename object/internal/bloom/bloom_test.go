package bloom

import (
	"math/rand/v2"
	"testing"
)

// A set misses no member, at any size, and reports few that it does not have.
func TestSet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var b Set
	var members []uint64
	for _, size := range []int{1, 40, 41, 1000, 100_000} {
		for len(members) < size {
			if b.Full() {
				b.Grow()
			}
			hash := random.Uint64()
			members = append(members, hash)
			b.Add(hash)
		}
		for i, hash := range members {
			if !b.Has(hash) {
				t.Fatalf("member %d of %d is missed", i, size)
			}
		}
		const tries = 100_000
		wrong := 0
		for range tries {
			if b.Has(random.Uint64()) {
				wrong++
			}
		}
		if wrong > tries/80 {
			t.Errorf("of %d strangers to %d members %d are reported", tries, size, wrong)
		}
	}
	bytes := 0
	for _, part := range b.parts {
		bytes += len(part) * blockBytes
	}
	if b.Len() != len(members) || bytes > 6*len(members) {
		t.Errorf("%d members take %d bytes, by its own account they are %d", len(members), bytes, b.Len())
	}
}
