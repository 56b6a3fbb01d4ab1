package storage

import (
	"errors"
	"sync/atomic"
)

// Object numbers and sequence numbers have the epoch in their upper half and a
// counter in the lower. The counter may run over: the opening then also uses the
// numbers of the epochs that follow, and the next opening begins after those.
//
// Invariant: a number of the block b is only given out once the epoch row with
// through >= b is applied. The row survives if any later commit does, because a prefix
// of the commits survives a crash.

// blockBits is the width of the counter of a number.
const blockBits = 32

// lastEpoch is the last epoch with numbers: a store that would need another one ends. It is one
// less than the last of 32 bits, so that no sum of a number and reserveAhead overflows. With an
// opening in each second it is reached after 136 years.
const lastEpoch = 1<<blockBits - 2

// errNumbers ends a store that has no numbers left. It can still be read.
var errNumbers = errors.New("the store has given out all its numbers: copy its objects into a new store")

// reserveAhead is how many numbers before the end of a block the next block is
// reserved. The row is long durable when the first number of that block is used.
const reserveAhead = 1 << 30

// NewNumber returns a number that no life of an object has had.
func (s *Store) NewNumber() Number { return Number(s.nextOf(&s.numbers)) }

// NextSeq returns a number greater than all that it has returned, also in
// earlier openings of the store.
func (s *Store) NextSeq() uint64 { return s.nextOf(&s.seqs) }

// nextOf counts on, and reserves the next block in time.
func (s *Store) nextOf(counter *atomic.Uint64) uint64 {
	n := counter.Add(1)
	if block := (n + reserveAhead) >> blockBits; block > s.through.Load() {
		s.reserve(block)
	}
	return n
}

// reserve makes the numbers of all blocks up to the given one this opening's. It
// does not wait until that is durable. A store that cannot store it, or that has no blocks
// left, is dead, and nothing that uses the numbers is ever committed.
func (s *Store) reserve(block uint64) {
	s.reserving.Lock()
	defer s.reserving.Unlock()
	if block <= s.through.Load() {
		return
	}
	if block > lastEpoch {
		_ = s.fail(errNumbers) // each later commit returns it
		return
	}
	b := s.epochRow(false, s.crashes, block)
	if s.applyNow(b.Repr()) == nil {
		s.pipeline.applied(b.Len())
		s.through.Store(block)
	}
}
