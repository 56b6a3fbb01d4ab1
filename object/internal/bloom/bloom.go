// Package bloom is a set of hashes that answers "no" for certain and "yes" with a small
// chance of error. Package object asks it whether an idempotency key may be stored, so
// that a new key costs no read of the store.
//
//	var s bloom.Set
//	if s.Full() {
//		s.Grow() // adds s.NextBytes() bytes
//	}
//	s.Add(hash)
//	s.Has(hash) // true; of another hash it is false, or true one time in a hundred
//
// A Set has no mutex: one goroutine uses it at a time.
package bloom

// Set is a set of hashes that may report a member it does not have, one time in
// a hundred or so, and never misses one that it has. It grows by parts, each four
// times as large as the one before, and never moves its members. The zero value
// is empty and takes no member before Grow.
type Set struct {
	parts [][]block // the last one takes new members
	room  int       // how many more the last part takes
	n     int       // how many members Add has made
}

// block holds one bit in each word for each of its members. A member is in one block, so
// that a look costs one cache line for each part.
type block [8]uint32

const (
	blockBytes      = 32
	firstBlocks     = 2  // blocks of the first part
	membersPerBlock = 16 // members for each block, so 16 bits for each
)

// Len is how many members Add has made.
func (b *Set) Len() int { return b.n }

// Full reports whether Add needs another part.
func (b *Set) Full() bool { return b.room == 0 }

// NextBytes is the size of the part that Grow adds.
func (b *Set) NextBytes() int64 { return int64(blockBytes*firstBlocks) << (2 * len(b.parts)) }

// Grow adds a part.
func (b *Set) Grow() {
	blocks := int(b.NextBytes() / blockBytes)
	b.parts = append(b.parts, make([]block, blocks))
	b.room = blocks * membersPerBlock
}

// Add makes the hash a member. The set must not be Full.
func (b *Set) Add(hash uint64) {
	blk, bits := place(b.parts[len(b.parts)-1], hash)
	for i := range blk {
		blk[i] |= 1 << (bits >> (5 * i) & 31)
	}
	b.room--
	b.n++
}

// Has reports whether the hash may be a member. False is certain.
func (b *Set) Has(hash uint64) bool {
	for _, part := range b.parts {
		blk, bits := place(part, hash)
		missing := uint32(0)
		for i, word := range blk {
			missing |= ^word & (1 << (bits >> (5 * i) & 31))
		}
		if missing == 0 {
			return true
		}
	}
	return false
}

// place returns the block of a hash, and five bits for each of its words that say
// which bit is the hash's. The block comes from the upper half of the hash; the
// product spreads the lower half over the bits used.
func place(part []block, hash uint64) (in *block, bits uint64) {
	const odd = 0x9e3779b97f4a7c15
	return &part[(hash>>32)*uint64(len(part))>>32], hash * odd >> 24
}
