package workerpool

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// route names the partition of a task: by its key, else by its unique key or its
// idempotency key, so that a repeat finds it, else anyone.
func (p *Pool[In, Out]) route(from object.Caller, s *submission[In]) string {
	n := p.config.Partitions
	if n == 1 {
		return "0"
	}
	var h uint64
	switch o := &s.Options; {
	case o.Key != "":
		h = hash([]byte(o.Key))
	case o.Unique != "":
		h = hash([]byte(o.Unique))
	case o.Once != "":
		h = hash([]byte(o.Once))
	default:
		h = random(from)
		if h == 0 {
			b, _ := json.Marshal(s.In) // no more than a seed
			h = hash(b)
		}
	}
	return strconv.Itoa(jump(h, n))
}

// random is a number from the caller's host, or 0 if the caller has none to give.
func random(from object.Caller) uint64 {
	if s, ok := from.(interface{ Seams() *seam.Seams }); ok {
		return s.Seams().Rand.Uint64()
	}
	return 0
}

// hash is FNV-1a with its bits mixed once more.
func hash(b []byte) uint64 {
	f := fnv.New64a()
	f.Write(b)
	h := f.Sum64()
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// jump is a number in [0, n) that changes for 1 in n+1 hashes only when n becomes
// n+1 (Lamping, Veach: A Fast, Minimal Memory, Consistent Hash Algorithm).
func jump(h uint64, n int) int {
	b, j := int64(-1), int64(0)
	for j < int64(n) {
		b = j
		h = h*2862933555777941757 + 1
		j = int64(float64(b+1) * (float64(int64(1)<<31) / float64(h>>33+1)))
	}
	return int(b)
}
