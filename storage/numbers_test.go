package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// An opening that uses up 2^32 numbers goes on with the numbers of the following epochs.
// The next opening begins after all of them. That holds after an end in order, and after
// a loss of power right after the first commit with a new number.
//
// Case ST1. Proves S10.
func TestNumbersGoOnAfterABlock(t *testing.T) {
	counters := map[string]struct {
		set  func(s *Store, n uint64)
		next func(s *Store) uint64
	}{
		"objects":   {func(s *Store, n uint64) { s.numbers.Store(n) }, func(s *Store) uint64 { return uint64(s.NewNumber()) }},
		"sequences": {func(s *Store, n uint64) { s.seqs.Store(n) }, (*Store).NextSeq},
		"positions": {func(s *Store, n uint64) { s.feed.last.Store(n) }, func(s *Store) uint64 { return s.nextOf(&s.feed.last) }},
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

// The next block is reserved reserveAhead numbers before its first one, and no earlier.
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
		_, _, from, to, _ := parseRecord(b.Repr(), engine.HeaderBytes)
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

// The last epoch gives numbers, also the last but reserveAhead of them. Then the store ends, before it
// could give a number twice: no later commit succeeds, and no Open. Its rows can still be read.
//
// Case ST21. Proves S10.
func TestNumbersEndWithTheLastEpoch(t *testing.T) {
	for name, counter := range map[string]func(s *Store) *atomic.Uint64{
		"objects":   func(s *Store) *atomic.Uint64 { return &s.numbers },
		"sequences": func(s *Store) *atomic.Uint64 { return &s.seqs },
		"positions": func(s *Store) *atomic.Uint64 { return &s.feed.last },
	} {
		t.Run(name, func(t *testing.T) {
			o := memOptions(vfs.NewMem())
			s := open(t, o)
			commit(t, s, func(b *Batch) { b.SetMeta("user", []byte("kept")) })
			s.through.Store(lastEpoch - 1)
			checkAndClose(t, s)

			s = open(t, o)
			if s.Epoch() != lastEpoch {
				t.Fatalf("epoch %#x", s.Epoch())
			}
			counter(s).Store(math.MaxUint64 - 1<<blockBits - reserveAhead - 1)
			for i, alive := range []bool{true, false, false} {
				last := counter(s).Load()
				if n := s.nextOf(counter(s)); n != last+1 || n>>blockBits != lastEpoch {
					t.Errorf("after %#x comes %#x", last, n)
				}
				var b Batch
				b.SetMeta("last", []byte{byte(i)})
				_, err := s.Commit(&b)
				if (err == nil) != alive || !alive && (!errors.Is(err, ErrStorage) || !errors.Is(err, errNumbers)) {
					t.Errorf("number %d: Commit returns %v", i, err)
				}
			}
			if err := s.Close(); !errors.Is(err, errNumbers) {
				t.Errorf("Close: %v", err)
			}

			wantOpenError(t, o, errNumbers, "store", "copy its objects into a new store")
			s = openReader(t, o)
			if v, _, err := s.Meta("user"); string(v) != "kept" || err != nil {
				t.Errorf("the reader finds %q, %v", v, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The power fails at each operation of the disk around the commit that reserves a block, and around
// the first number of that block. No later opening gives a number again that a surviving row has.
//
// Case ST1. Proves S10.
func TestCrashesAroundABlock(t *testing.T) {
	for _, counter := range []func(s *Store) *atomic.Uint64{
		func(s *Store) *atomic.Uint64 { return &s.numbers },
		func(s *Store) *atomic.Uint64 { return &s.seqs },
	} {
		fsys := crashfs.New(vfs.NewCrashableMem(), nil)
		s := open(t, memOptions(fsys))
		var moments []crashfs.Moment
		fsys.SetBefore(func(crashfs.Op) error {
			moments = append(moments, fsys.Capture())
			return nil
		})
		for _, from := range []uint64{2<<blockBits - reserveAhead - 3, 2<<blockBits - 3} {
			counter(s).Store(from)
			for range 5 {
				n := s.nextOf(counter(s))
				commit(t, s, func(b *Batch) { b.SetMeta("last", binary.BigEndian.AppendUint64(nil, n)) })
			}
		}
		fsys.SetBefore(nil)
		checkAndClose(t, s)
		blocks := map[uint64]bool{}
		for i, m := range moments {
			for _, keep := range []crashfs.Keep{crashfs.KeepNone, crashfs.KeepAll} {
				image, err := m.Image(keep)
				if err != nil {
					t.Fatal(err)
				}
				s := open(t, memOptions(image))
				v, ok, err := s.Meta("last")
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					last := binary.BigEndian.Uint64(v)
					blocks[last>>blockBits] = true
					if n := s.nextOf(counter(s)); n <= last {
						t.Errorf("crash %d of %d: %#x comes after %#x", i, len(moments), n, last)
					}
				}
				checkAndClose(t, s)
			}
		}
		if len(moments) < 15 || !blocks[1] || !blocks[2] {
			t.Errorf("%d crashes, rows of the blocks %v", len(moments), blocks)
		}
	}
}

// A store that does not come near the end of its block stores no bound.
func TestNoBlockNoRow(t *testing.T) {
	s := memStore(t)
	s.seqs.Store(2<<blockBits - reserveAhead - 3)
	began := s.pipeline.began.Load()
	for range 2 {
		s.NextSeq()
	}
	if n := s.pipeline.began.Load() - began; n != 0 {
		t.Errorf("%d commits before the bound", n)
	}
	if s.NextSeq(); s.pipeline.began.Load()-began != 1 {
		t.Errorf("%d commits at the bound", s.pipeline.began.Load()-began)
	}
}
