package storage

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// An opening that uses up 2^32 numbers goes on with those of the epochs that
// follow, and the next opening begins after all of them, whether it follows an end
// in order or the loss of power at the moment at which the first new number is in a
// durable commit.
//
// Case ST1. Proves S10.
func TestNumbersGoOnAfterABlock(t *testing.T) {
	counters := map[string]struct {
		set  func(s *Store, n uint64)
		next func(s *Store) uint64
	}{
		"objects":   {func(s *Store, n uint64) { s.numbers.Store(n) }, func(s *Store) uint64 { return uint64(s.NewNumber()) }},
		"sequences": {func(s *Store, n uint64) { s.seqs.Store(n) }, (*Store).NextSeq},
	}
	for name, c := range counters {
		for _, crash := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " crash ", crash), func(t *testing.T) {
				fsys := vfs.NewCrashableMem()
				s := open(t, memOptions(fsys))
				c.set(s, 4<<blockBits-2)
				last := c.next(s)
				for range 3 {
					n := c.next(s)
					if n != last+1 {
						t.Errorf("after %#x comes %#x", last, n)
					}
					last = n
				}
				commit(t, s, func(b *Batch) { b.SetMeta("last", []byte{1}) })
				after := fsys.CrashClone(vfs.CrashCloneCfg{})
				checkAndClose(t, s)
				if !crash {
					after = fsys
				}
				s = open(t, memOptions(after))
				defer checkAndClose(t, s)
				if n := c.next(s); n <= last {
					t.Errorf("the next opening gives %#x after %#x", n, last)
				}
				if s.Epoch() != 5 || s.Previous().Epoch != 1 || s.Previous().Clean == crash {
					t.Errorf("the next opening has epoch %d, after %+v", s.Epoch(), s.Previous())
				}
			})
		}
	}
}

// The next block is reserved so many numbers before its first, and no earlier.
//
// Case ST1.
func TestBlocksAreReservedAhead(t *testing.T) {
	s := memStore(t)
	s.seqs.Store(2<<blockBits - reserveAhead - 2)
	for _, want := range []uint64{1, 2, 2} {
		if s.NextSeq(); s.through.Load() != want {
			t.Errorf("after %#x numbers up to epoch %d are reserved, want %d", s.seqs.Load(), s.through.Load(), want)
		}
	}
}

// A damaged epoch row is found, also in its newer form.
func TestEpochRowThroughIsChecked(t *testing.T) {
	s := memStore(t)
	for _, through := range []uint64{s.Epoch() + 1, s.Epoch() + 1<<20} {
		b := s.epochRow(false, 1, through)
		_, _, from, to, _ := parseRecord(b.Repr(), batchHeaderLen)
		row := b.Repr()[from:to]
		if p, err := decodeEpoch(row); err != nil || p.through != through || p.Epoch != s.Epoch() {
			t.Errorf("%x is read as %+v, %v", row, p, err)
		}
		row[len(row)-1] = 0
		if p, err := decodeEpoch(row[:len(row)-1]); err == nil {
			t.Errorf("%x is read as %+v", row, p)
		}
	}
}
