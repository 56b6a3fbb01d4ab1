package storage

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHeaderRoundTrip(t *testing.T) {
	for _, h := range []header{{}, {1, 1, Label{}}, {1<<32 | 7, 3, label(t, "failed")}, {math.MaxUint64, math.MaxUint64, label(t, strings.Repeat("x", maxLabelBytes))}} {
		if got, err := decodeHeader(appendHeader(nil, h)); err != nil || got != h {
			t.Errorf("%v reads as %v, %v", h, got, err)
		}
	}
}

func FuzzDecodeHeader(f *testing.F) {
	f.Add(appendHeader(nil, header{1<<32 | 7, 3, Label{}}))
	f.Add(appendHeader(nil, header{1, 3, label(f, "failed")}))
	f.Add([]byte{})
	f.Add([]byte{headerVersion})
	f.Add([]byte{headerVersion, 0xff})
	f.Add(append([]byte{headerVersion}, slices.Repeat([]byte{0xff}, 11)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHeader(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%x: %v is not ErrCorrupt", b, err)
			}
			return
		}
		if again, err := decodeHeader(appendHeader(nil, h)); err != nil || again != h {
			t.Fatalf("%v reads as %v, %v", h, again, err)
		}
	})
}

func FuzzDecodeEpoch(f *testing.F) {
	f.Add([]byte{1, 1, 7, 0, 0})
	f.Add([]byte{1, 0, 0xff})
	f.Add([]byte{2, 0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := decodeEpoch(b); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%x: %v is not ErrCorrupt", b, err)
		}
	})
}

func TestDecodeEpoch(t *testing.T) {
	got, err := decodeEpoch([]byte{1, 0, 9, 2, 20})
	want := Previous{through: 9, Epoch: 9, Crashes: 2, OpenedAt: time.Unix(0, 10)}
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	got, err = decodeEpoch([]byte{1, 0, 9, 2, 20, 7})
	want.CrashedEpoch = 7
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"", "\x01", "\x02\x00\x01\x01\x01", "\x01\x00", "\x01\x00\x01", "\x01\x00\x01\x01", "\x01\x00\xff\xff"} {
		if _, err := decodeEpoch([]byte(bad)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestFormatRoundTrip(t *testing.T) {
	for _, n := range []int{1, 64, MaxShards} {
		for want := oldestFormat; want <= FormatVersion; want++ {
			f, err := parseFormat(formatText(want, n))
			if err != nil || f != (format{version: want, shards: n}) {
				t.Errorf("version %d, %d shards read as %+v, %v", want, n, f, err)
			}
		}
	}
}

func TestFormatRefusesOtherText(t *testing.T) {
	good := formatText(FormatVersion, 64)
	for _, text := range []string{
		"", "holdfast store", "other store\nformat 2\nshards 64\n", "holdfast store\nformat x\n", fmt.Sprintf("holdfast store\nformat %d\n", FormatVersion),
		strings.Replace(good, "shards 64", "shards 0", 1), strings.Replace(good, "shards 64", "shards -1", 1),
		strings.Replace(good, "shards 64", "shards 5000", 1), strings.Replace(good, "shards 64", "shards 99999999999999999999", 1),
		good[:len(good)/2],
	} {
		if _, err := parseFormat(text); err == nil {
			t.Errorf("%q is accepted", text)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error has several lines: %v", text, err)
		}
	}
}

// No single flipped bit of the format file makes it the file of another store with
// another number of shards, which would hide objects. Proves S9's "never returned as
// data".
func TestFormatNoticesFlippedBits(t *testing.T) {
	good := []byte(formatText(FormatVersion, 64))
	for i := range len(good) * 8 {
		text := slices.Clone(good)
		text[i/8] ^= 1 << (i % 8)
		if f, err := parseFormat(string(text)); err == nil && f.version == FormatVersion {
			t.Errorf("bit %d: %q reads as %+v", i, text, f)
		}
	}
}

func FuzzParseFormat(f *testing.F) {
	f.Add(formatText(FormatVersion, 64))
	f.Add("holdfast store\nformat 4\nshards 64\nmore 1\n")
	f.Add("holdfast store\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		read, err := parseFormat(text)
		if err == nil && read.version == FormatVersion && (read.shards < 1 || read.shards > MaxShards) {
			t.Fatalf("%q: %d shards", text, read.shards)
		}
	})
}
