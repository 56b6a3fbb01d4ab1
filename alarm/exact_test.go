package alarm

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/row"
)

// The tests of this file find mutations of internal/prove/mutation that the others
// let pass: defaults, stored bytes, and bounds at their own value.

func TestConfigDefaults(t *testing.T) {
	got := Config{}.withDefaults()
	if got.InFlight != 1024 || got.LookAhead != 256 || got.Batch != 128 || got.Recheck != time.Minute {
		t.Errorf("defaults: %+v", got)
	}
	got = Config{InFlight: 1, LookAhead: 2, Batch: 3, Recheck: 4}.withDefaults()
	if got.InFlight != 1 || got.LookAhead != 2 || got.Batch != 3 || got.Recheck != 4 {
		t.Errorf("given values: %+v", got)
	}
}

// The bytes of the index are those of FORMAT.md.
func TestIndexBytes(t *testing.T) {
	want := []byte{1, 5, 1, 'c', 2, 'n', 'm'}
	if got := AppendIndex(nil, 5, "c", "nm"); !bytes.Equal(got, want) {
		t.Errorf("index value %v, want %v", got, want)
	}
}

func TestNoEntryIsAfterTheEnd(t *testing.T) {
	last := Entry{Due: timeOf(math.MaxInt64), Object: math.MaxUint64}
	if posOf(&last).after(end) {
		t.Error("the last entry is after the end")
	}
}

// A class loses its last alarm, and the turns of the other classes stay.
func TestTurnStaysWhenAClassGoes(t *testing.T) {
	var f fair
	nodes := make(map[string][]*node)
	for _, class := range []string{"a", "b", "c", "d"} {
		for range 2 {
			n := &node{Entry: Entry{Class: class}}
			f.push(n)
			nodes[class] = append(nodes[class], n)
		}
	}
	f.pop() // of a
	f.pop() // of b
	f.remove(nodes["a"][1])
	if n := f.pop(); n.Class != "c" {
		t.Errorf("after a and b, with a gone, it is the turn of %s, want c", n.Class)
	}
}

// An alarm that is set during a read, for a time after the last alarm of the read, stays
// on the disk, because memory holds no alarm beyond its bound.
func TestSetBeyondAReadStaysOnDisk(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LookAhead = 4 })
	for i := range uint64(10) {
		r.x.put(r.entry(i, time.Second))
	}
	r.x.during = func() {
		r.x.during = nil
		r.set(r.entry(50, 2*time.Second))
	}
	r.s.Start()
	r.run()
	for _, n := range r.s.shards[0].nodes {
		if n.pos.after(r.s.shards[0].bound) {
			t.Errorf("object %d is beyond the bound", n.Object)
		}
	}
	r.advance(2 * time.Second)
	want(t, r.handle(), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50)
}

// If all alarms in memory are cleared, the others are read from the disk.
func TestClearOfAllInMemoryReadsOn(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LookAhead = 4 })
	for i := range uint64(10) {
		r.x.put(r.entry(i, time.Second))
	}
	r.s.Start()
	r.run()
	for i := range uint64(4) {
		r.clear(Entry{Object: i})
	}
	r.advance(time.Second)
	want(t, r.handle(), 4, 5, 6, 7, 8, 9)
}

// A scheduler that holds nothing has no timer.
func TestStopShardStopsTheTimer(t *testing.T) {
	r := newRig(t, nil)
	r.x.put(r.entry(1, time.Second))
	r.s.Start()
	r.run()
	r.s.StopShard(0)
	if len(r.timers) != 0 {
		t.Errorf("%d timers are armed for a shard that is stopped", len(r.timers))
	}
}

// A stored row cuts the text of an error at its bound, and not before.
func TestRowCutsTheErrorAtItsBound(t *testing.T) {
	stored := func(length int) []byte {
		row := someRow
		row.LastError = strings.Repeat("x", length)
		return AppendRow(nil, row)
	}
	whole := stored(MaxErrorBytes)
	if row, err := DecodeRow(whole); err != nil || len(row.LastError) != MaxErrorBytes {
		t.Errorf("an error of %d bytes is kept with %d: %v", MaxErrorBytes, len(row.LastError), err)
	}
	if longer := stored(MaxErrorBytes + 1); !bytes.Equal(longer, whole) {
		t.Errorf("a longer error is stored in %d bytes, want %d", len(longer), len(whole))
	}
}

// A read is made again if maxTouched objects changed during it, and not if one less
// did.
func TestReadMadeAgainAtItsBound(t *testing.T) {
	for touched, scans := range map[int]int{maxTouched - 1: 1, maxTouched: 2} {
		r := newRig(t, nil)
		r.x.put(r.entry(1, time.Second))
		r.x.during = func() {
			r.x.during = nil
			for i := range touched {
				r.s.Clear(0, 1_000_000+uint64(i))
			}
		}
		r.s.Start()
		r.run()
		if r.x.scans != scans {
			t.Errorf("%d objects changed: %d reads, want %d", touched, r.x.scans, scans)
		}
	}
}

// The map of changed objects is given back when it has grown beyond 1,024, so that
// one busy read does not cost its memory for ever.
func TestBigMapIsGivenBack(t *testing.T) {
	for touched, kept := range map[int]bool{1024: true, 1025: false} {
		r := newRig(t, nil)
		r.x.during = func() {
			for i := range touched {
				r.s.Clear(0, uint64(i))
			}
		}
		r.s.Start()
		r.run()
		if got := r.s.reading.touched != nil; got != kept {
			t.Errorf("%d objects changed: map kept is %t, want %t", touched, got, kept)
		}
	}
}

// A shard that is started twice is read once, and a scheduler that has been stopped
// holds nothing.
func TestSecondStartDoesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.x.put(r.entry(1, time.Second))
	r.s.Start()
	r.run()
	r.s.StartShard(0)
	r.run()
	if r.x.scans != 1 {
		t.Errorf("started twice: %d reads, want 1", r.x.scans)
	}
	r.s.Stop()
	r.s.StartShard(0)
	r.set(r.entry(2, time.Second))
	if st := r.s.Stats(); st != (Stats{}) {
		t.Errorf("after Stop: %+v", st)
	}
}

// An alarm that was in flight while its shard was stopped may have been changed
// meanwhile, and is not fired again when the host returns it. The restart has read
// the disk.
func TestReturnAfterARestartOfTheShard(t *testing.T) {
	for _, stored := range []bool{false, true} {
		r := newRig(t, nil)
		e := r.entry(1, 0)
		r.x.put(e)
		r.s.Start()
		r.run()
		r.s.StopShard(0)
		if !stored {
			r.x.delete(0, 1)
		}
		r.s.StartShard(0)
		r.run()
		r.got = nil
		r.s.Return(e)
		r.run()
		if fired := len(r.got) == 1; fired != stored {
			t.Errorf("stored is %t, fired again is %t", stored, fired)
		}
	}
}

// A shard holds up to twice the look-ahead; one more, and it drops back to the
// look-ahead.
func TestTrimAtItsBound(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LookAhead = 4 })
	r.s.Start()
	r.run()
	for i := range uint64(9) {
		r.set(r.entry(i, time.Duration(i+1)*time.Second))
		if held, want := r.s.Stats().Held, []int{1, 2, 3, 4, 5, 6, 7, 8, 4}[i]; held != want {
			t.Errorf("after %d alarms %d are held, want %d", i+1, held, want)
		}
	}
	r.advance(time.Minute)
	want(t, r.handle(), 0, 1, 2, 3, 4, 5, 6, 7, 8)
}

// Text that is not UTF-8 is cut too, though it has no characters to keep whole.
func TestCutOfBytes(t *testing.T) {
	if got := len(Cut(strings.Repeat("\x80", 20), 10)); got != 10-utf8.UTFMax {
		t.Errorf("%d bytes are left of 20, cut at 10", got)
	}
}

// If the last class in the ring is next and loses its alarms, the first class is next.
func TestTurnWrapsWhenTheLastClassGoes(t *testing.T) {
	var f fair
	var last *node
	for _, class := range []string{"a", "a", "b", "b", "c"} {
		last = &node{Entry: Entry{Class: class}}
		f.push(last)
	}
	f.pop() // of a
	f.pop() // of b
	f.remove(last)
	if n := f.pop(); n.Class != "a" {
		t.Errorf("it is the turn of %s, want a", n.Class)
	}
}

// The first byte of a row is its version. A count has at most 31 bits. A longer error,
// stored by another writer, is cut when it is read.
func TestRowAtItsBounds(t *testing.T) {
	if b := AppendRow(nil, Row{}); b[0] != 1 {
		t.Errorf("version %d, want 1", b[0])
	}
	greatest := Row{Attempt: math.MaxInt32, Crashes: math.MaxInt32}
	if got, err := DecodeRow(AppendRow(nil, greatest)); err != nil || got != greatest {
		t.Errorf("the greatest counts: %+v, %v", got, err)
	}
	if got, err := DecodeRow(AppendRow(nil, Row{Attempt: math.MaxInt32 + 1})); err == nil {
		t.Errorf("one more: %+v", got)
	}
	long := row.Writer{1, 1, 1, 1, 0, 0, 0}
	long = long.Text(strings.Repeat("x", MaxErrorBytes+1))
	if got, err := DecodeRow(long); err != nil || len(got.LastError) != MaxErrorBytes {
		t.Errorf("a long error of another writer: %d bytes, %v", len(got.LastError), err)
	}
}
