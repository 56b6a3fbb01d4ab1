package object

// bloom is a set of hashes that may report a member it does not have, one time in
// a hundred or so, and never misses one that it has. It grows by parts, each four
// times as large as the one before, and never moves what it holds. The zero value
// is empty and takes no member before grow.
type bloom struct {
	parts [][]bloomBlock // the last one takes new members
	room  int            // how many more the last part takes
	n     int            // members, without those that were there already by its own account
}

// bloomBlock holds one bit in each word for each of its members.
type bloomBlock [8]uint32

const (
	bloomBlockBytes = 32
	bloomFirst      = 2  // blocks of the first part
	bloomPerBlock   = 16 // members for each block, so 16 bits for each
)

// nextBytes is the size of the part that grow adds.
func (b *bloom) nextBytes() int64 { return int64(bloomBlockBytes*bloomFirst) << (2 * len(b.parts)) }

// grow adds a part.
func (b *bloom) grow() {
	blocks := int(b.nextBytes() / bloomBlockBytes)
	b.parts = append(b.parts, make([]bloomBlock, blocks))
	b.room = blocks * bloomPerBlock
}

// add makes the hash a member. There must be room.
func (b *bloom) add(hash uint64) {
	block, bits := place(b.parts[len(b.parts)-1], hash)
	for i := range block {
		block[i] |= 1 << (bits >> (5 * i) & 31)
	}
	b.room--
	b.n++
}

// has reports whether the hash may be a member.
func (b *bloom) has(hash uint64) bool {
	for _, part := range b.parts {
		block, bits := place(part, hash)
		missing := uint32(0)
		for i, word := range block {
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
func place(part []bloomBlock, hash uint64) (block *bloomBlock, bits uint64) {
	const odd = 0x9e3779b97f4a7c15
	return &part[(hash>>32)*uint64(len(part))>>32], hash * odd >> 24
}
