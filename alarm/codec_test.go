package alarm

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var someRow = Row{
	Due:       time.Unix(1_700_000_000, 123).UTC(),
	Gen:       math.MaxUint64,
	Scheduled: time.Unix(1_600_000_000, 0).UTC(),
	Attempt:   3,
	Crashes:   1,
	LastError: "no route to host",
	Dead:      true,
	CutEpoch:  9,

	OwnersLost: 4,
}

func TestRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Custom(func(t *rapid.T) time.Time { return timeOf(rapid.Int64Min(0).Draw(t, "ns")) })
		r := Row{
			Due:       at.Draw(t, "due"),
			Gen:       rapid.Uint64().Draw(t, "gen"),
			Scheduled: at.Draw(t, "scheduled"),
			Attempt:   rapid.IntRange(0, math.MaxInt32).Draw(t, "attempt"),
			Crashes:   rapid.IntRange(0, math.MaxInt32).Draw(t, "crashes"),
			LastError: rapid.StringN(-1, -1, MaxErrorBytes).Draw(t, "error"),
			Dead:      rapid.Bool().Draw(t, "dead"),
			CutEpoch:  rapid.Uint64().Draw(t, "cut epoch"),

			OwnersLost: rapid.IntRange(0, math.MaxInt32).Draw(t, "owners lost"),
		}
		got, err := DecodeRow(AppendRow(nil, r))
		if err != nil || got != r {
			t.Fatalf("%v, %v", err, cmp.Diff(r, got))
		}
	})
}

// Every older row is a shorter one: whole fields are missing at its end.
func TestRowOfAnOlderVersion(t *testing.T) {
	due, whole := someRow.Due, AppendRow(nil, someRow)
	wants := []Row{
		{Due: due, Gen: someRow.Gen, Scheduled: due},
		{Due: due, Gen: someRow.Gen, Scheduled: someRow.Scheduled},
		{Due: due, Gen: someRow.Gen, Scheduled: someRow.Scheduled, Attempt: 3},
		{Due: due, Gen: someRow.Gen, Scheduled: someRow.Scheduled, Attempt: 3, Crashes: 1},
		{Due: due, Gen: someRow.Gen, Scheduled: someRow.Scheduled, Attempt: 3, Crashes: 1, Dead: true},
		{Due: due, Gen: someRow.Gen, Scheduled: someRow.Scheduled, Attempt: 3, Crashes: 1, Dead: true, LastError: someRow.LastError},
		{Due: due, Gen: someRow.Gen, Scheduled: someRow.Scheduled, Attempt: 3, Crashes: 1, Dead: true, LastError: someRow.LastError, CutEpoch: 9},
		someRow,
	}
	var got []Row
	for n := range len(whole) + 1 {
		if r, err := DecodeRow(whole[:n]); err == nil {
			got = append(got, r)
		} else if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if d := cmp.Diff(wants, got); d != "" {
		t.Error(d)
	}
}

func TestNewerVersionsAreRead(t *testing.T) {
	row := append(AppendRow(nil, someRow), "more"...)
	row[0]++
	if r, err := DecodeRow(row); err != nil || r != someRow {
		t.Errorf("row: %v, %v", r, err)
	}
	value := append(AppendIndex(nil, 7, "cart", "alice"), "more"...)
	value[0]++
	if gen, class, name, err := DecodeIndex(value); err != nil || gen != 7 || class != "cart" || name != "alice" {
		t.Errorf("index: %d %q %q %v", gen, class, name, err)
	}
}

func TestRowKeepsItsLimits(t *testing.T) {
	long := strings.Repeat("é", MaxErrorBytes)
	early, late := time.Unix(-5, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	b := AppendRow(nil, Row{Due: late, Scheduled: early, Attempt: -1, Crashes: -1, LastError: "x" + long})
	r, err := DecodeRow(b)
	if err != nil {
		t.Fatal(err)
	}
	if r.Due != timeOf(math.MaxInt64) || !r.Scheduled.IsZero() || r.Attempt != 0 || r.Crashes != 0 {
		t.Errorf("%+v", r)
	}
	if n := len(r.LastError); n > MaxErrorBytes || n < MaxErrorBytes-utf8.UTFMax || !utf8.ValidString(r.LastError) {
		t.Errorf("last error has %d bytes", n)
	}
}

func TestCorruptIsAnError(t *testing.T) {
	huge := bytes.Repeat([]byte{0xff}, 12)
	for name, b := range map[string][]byte{
		"empty":        nil,
		"version 0":    {0, 1, 1},
		"no end":       append([]byte{1}, huge...),
		"time too big": {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1},
		"count":        {1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"length":       {1, 1, 1, 1, 1, 1, 1, 200, 1},
	} {
		if r, err := DecodeRow(b); !errors.Is(err, ErrCorrupt) || r != (Row{}) {
			t.Errorf("row, %s: %v, %v", name, r, err)
		}
	}
	whole := AppendIndex(nil, 300, "cart", "alice")
	for n := range whole {
		if _, _, _, err := DecodeIndex(whole[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("index of %d bytes: %v", n, err)
		}
	}
}

func FuzzDecodeRow(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendRow(nil, Row{}))
	f.Add(AppendRow(nil, someRow))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRow(b)
		if err != nil {
			return
		}
		again, err := DecodeRow(AppendRow(nil, r))
		if err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzDecodeIndex(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendIndex(nil, 0, "", ""))
	f.Add(AppendIndex(nil, 1<<40, "cart", "alice"))
	f.Fuzz(func(t *testing.T, b []byte) {
		gen, class, name, err := DecodeIndex(b)
		if err != nil {
			return
		}
		g, c, n, err := DecodeIndex(AppendIndex(nil, gen, class, name))
		if err != nil || g != gen || c != class || n != name {
			t.Fatalf("%d %q %q became %d %q %q, %v", gen, class, name, g, c, n, err)
		}
	})
}

func TestIndexAllocatesOnce(t *testing.T) {
	b := AppendIndex(nil, 9, "cart", strings.Repeat("n", 100))
	if n := testing.AllocsPerRun(100, func() { _, _, _, _ = DecodeIndex(b) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
