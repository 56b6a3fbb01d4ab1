package debounce

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

func drawTime(rt *rapid.T, name string) time.Time {
	n := rapid.Int64Range(0, 1<<62).Draw(rt, name)
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func drawGeneration(rt *rapid.T, number uint64) generation {
	return generation{
		number: number,
		count:  rapid.IntRange(0, 1<<40).Draw(rt, "count"),
		folded: rapid.Bool().Draw(rt, "folded"),
		first:  drawTime(rt, "first"), last: drawTime(rt, "last"), full: drawTime(rt, "full"),
		manual: drawTime(rt, "manual"), due: drawTime(rt, "due"),
		reason: Reason(rapid.SampledFrom([]string{"", "quiet", "maxWait", "maxEvents", "manual"}).Draw(rt, "reason")),
	}
}

func drawVersions(rt *rapid.T, name string) (v engine.Versions) {
	for i, version := range rapid.SliceOfN(rapid.StringN(0, 5, 9), 0, 4).Draw(rt, name) {
		v = v.From(uint64(i), version)
	}
	return v
}

func drawBuffer(rt *rapid.T) buffer {
	number := rapid.Uint64Range(2, 1<<60).Draw(rt, "number")
	b := buffer{open: drawGeneration(rt, number)}
	if rapid.Bool().Draw(rt, "isClosed") {
		b.closed = drawGeneration(rt, number-1)
	}
	b.open.versions = drawVersions(rt, "versions of open")
	if b.isClosed() {
		b.closed.versions = drawVersions(rt, "versions of closed")
	}
	b.flushed = rapid.Int64Min(0).Draw(rt, "flushed")
	b.dropped = rapid.Int64Min(0).Draw(rt, "dropped")
	b.idle = drawTime(rt, "idle")
	return b
}

func TestBufferRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBuffer(rt)
		got, err := decodeBuffer(b.appendTo(nil))
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(b, got, cmp.AllowUnexported(buffer{}, generation{})); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// A row of an earlier version lacks the fields at the end: they are zero.
func TestBufferWithoutNewFields(t *testing.T) {
	old := buffer{open: generation{number: 3, count: 2, first: at(1), last: at(2)}}
	row := old.appendTo(nil)
	row = row[:len(row)-3] // no closed generation, no counts, no time since when it is idle
	got, err := decodeBuffer(row)
	if err != nil {
		t.Fatal(err)
	}
	if got.open.count != 2 || got.isClosed() || got.flushed != 0 || !got.idle.IsZero() {
		t.Errorf("read %+v", got)
	}
}

// Proves J15: a buffer stored before versions were kept is read as one without versions,
// and a buffer without versions is still stored in that form. Versions are at the end of
// the row, those of the open generation first.
func TestBufferOfBefore(t *testing.T) {
	const before = "\x01" + "\x03\x04\x00\x02\x04\x00\x00\x00\x00" + "\x02\x02\x00\x02\x02\x00\x00\x06\x05quiet" + "\x0a\x00"
	b := buffer{
		open:    generation{number: 3, count: 2, first: time.Unix(0, 1).UTC(), last: time.Unix(0, 2).UTC()},
		closed:  generation{number: 2, count: 1, first: time.Unix(0, 1).UTC(), last: time.Unix(0, 1).UTC(), due: time.Unix(0, 3).UTC(), reason: ReasonQuiet},
		flushed: 5,
	}
	for want, versions := range map[string]engine.Versions{before: "", before + "\x00" + "\x03\x00\x01x" + "\x06\x00\x01w\x01\x01x": "\x00\x01x"} {
		b.open.versions, b.closed.versions = versions, ""
		if versions != "" {
			b.closed.versions = "\x00\x01w\x01\x01x"
		}
		if got := string(b.appendTo(nil)); got != want {
			t.Errorf("stored as %x, want %x", got, want)
		}
		if got, err := decodeBuffer([]byte(want)); err != nil || got != b {
			t.Errorf("%x is read as %+v, %v", want, got, err)
		}
	}
	if _, err := decodeBuffer([]byte(before + "\x02\x00\x01\x00")); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("damaged versions: %v", err)
	}
}

func TestDamagedBuffer(t *testing.T) {
	good := (&buffer{open: generation{number: 4}, closed: generation{number: 3, count: 1, reason: ReasonQuiet}}).appendTo(nil)
	wrongVersion := append([]byte{9}, good[1:]...)
	gap := (&buffer{open: generation{number: 9}, closed: generation{number: 3}}).appendTo(nil)
	for name, row := range map[string][]byte{"empty": {}, "version": wrongVersion, "no generation": {bufferVersion, 0}, "a gap": gap} {
		if _, err := decodeBuffer(row); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A row of an event is read as it was stored, and a damaged row is an error.
func TestRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGeneration(rt, rapid.Uint64Min(1).Draw(rt, "number"))
		g.count = max(g.count, 1)
		encoded := rapid.SliceOf(rapid.Byte()).Draw(rt, "encoded")
		got, rest, err := splitRow(appendRow(nil, g, encoded))
		if err != nil || got != g || !bytes.Equal(rest, encoded) {
			rt.Fatalf("%+v with %x is read as %+v with %x, %v", g, encoded, got, rest, err)
		}
	})
}

func TestDamagedRow(t *testing.T) {
	for name, row := range map[string][]byte{
		"empty":         {},
		"version":       {9, 1, 2},
		"no generation": {rowVersion, 0},
		"no events":     appendRow(nil, generation{number: 1}, nil),
		"no end":        {rowVersion, 1, 0x80},
	} {
		if g, _, err := splitRow(row); !errors.Is(err, errDamaged) {
			t.Errorf("%s: read as %+v, error %v", name, g, err)
		}
	}
}

func FuzzRow(f *testing.F) {
	f.Add(appendRow(nil, generation{number: 4, count: 2, first: at(1), last: at(2)}, []byte("event")))
	f.Fuzz(func(t *testing.T, row []byte) {
		g, encoded, err := splitRow(row)
		if err != nil {
			return
		}
		again, rest, err := splitRow(appendRow(nil, g, encoded))
		if err != nil || again != g || !bytes.Equal(rest, encoded) {
			t.Errorf("%+v with %x, stored again, is %+v with %x, %v", g, encoded, again, rest, err)
		}
	})
}

func FuzzBuffer(f *testing.F) {
	f.Add((&buffer{open: generation{number: 4, count: 2}, closed: generation{number: 3, reason: ReasonManual}}).appendTo(nil))
	f.Fuzz(func(t *testing.T, row []byte) {
		b, err := decodeBuffer(row)
		if err != nil {
			return
		}
		again, err := decodeBuffer(b.appendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, again, cmp.AllowUnexported(buffer{}, generation{})); diff != "" {
			t.Error(diff)
		}
	})
}

// Keys are in the order of generation and position.
func TestEventKeysAreOrdered(t *testing.T) {
	keys := []string{eventKey(1, 0), eventKey(1, 1), eventKey(1, 16), eventKey(1, 99_999), eventKey(2, 0), eventKey(16, 0), eventKey(255, 3)}
	for i := 1; i < len(keys); i++ {
		if keys[i-1] >= keys[i] {
			t.Errorf("%q is not before %q", keys[i-1], keys[i])
		}
	}
}
