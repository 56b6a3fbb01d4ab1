package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/storage"
)

// Proves J15: Versions say of each value the version that it was stored under, however
// deploys and rollbacks follow one another, also after those of values that are gone
// were forgotten, and are read as they were stored.
func TestVersionsOfValues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var v Versions
		var want []string
		version := ""
		for range rapid.IntRange(0, 60).Draw(rt, "values") {
			if rapid.IntRange(0, 3).Draw(rt, "deploy") == 0 {
				version = rapid.SampledFrom([]string{"", "1", "2", strings.Repeat("x", MaxVersionBytes)}).Draw(rt, "version")
			}
			v = v.From(uint64(len(want)), version)
			want = append(want, version)
		}
		gone := rapid.IntRange(0, len(want)).Draw(rt, "gone")
		v = v.Since(uint64(gone))
		back, err := ParseVersions([]byte(v))
		if err != nil || back != v {
			rt.Fatalf("%x is read as %x, %v", v, back, err)
		}
		for n := gone; n < len(want); n++ {
			if got := v.At(uint64(n)); got != want[n] {
				rt.Fatalf("value %d of %q, of which %d are gone, was stored under %q: %x", n, want, gone, got, v)
			}
		}
		if len(want) > 0 && v.Last() != version {
			rt.Fatalf("the last version of %q is %q", want, v.Last())
		}
	})
}

// Versions take no room while the version stays, and no more than those of values that
// are there still.
func TestVersionsAreSmall(t *testing.T) {
	var v Versions
	for n := range uint64(1000) {
		v = v.From(n, "")
	}
	if v != "" {
		t.Errorf("values without a version take %x", v)
	}
	for n := range uint64(1000) {
		v = v.From(n, fmt.Sprint(n/500))
	}
	if want := Versions("\x00\x010\xf4\x03\x011"); v != want {
		t.Errorf("versions %x, want %x", v, want)
	}
	for n, want := range map[uint64]Versions{499: v, 500: v[3:], 5000: v[3:]} {
		if got := v.Since(n); got != want {
			t.Errorf("since %d: %x, want %x", n, got, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = Versions("").From(7, ""), v.From(1000, "1").At(3) }); n > 0 {
		t.Errorf("a value of the same version costs %v allocations", n)
	}
	if got := v.From(500, "0"); got != v[:3] { // nothing was stored under version 1 after all
		t.Errorf("a change that had no value stays: %x", got)
	}
}

func TestDamagedVersions(t *testing.T) {
	if got := Versions("\x80").At(1); got != "" {
		t.Errorf("a number that is cut off has version %q", got)
	}
	for name, b := range map[string]string{
		"cut in a number": "\x80", "no version": "\x01", "cut in a version": "\x01\x02a",
		"the same number twice": "\x01\x01a\x01\x01b", "falling numbers": "\x02\x01a\x01\x01b",
	} {
		if v, err := ParseVersions([]byte(b)); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: read as %x, %v", name, v, err)
		}
	}
}

func FuzzVersions(f *testing.F) {
	f.Add([]byte("\x00\x010\xf4\x03\x011"), uint64(7))
	f.Add([]byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00"), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, n uint64) {
		v, err := ParseVersions(b)
		if err != nil {
			return
		}
		if now, later := v.At(n), v.Since(n).At(n); now != later {
			t.Errorf("%x: %d was stored under %q, and %q when the others are forgotten", b, n, now, later)
		}
		next := v.From(n, "next")
		if _, err := ParseVersions([]byte(next)); err != nil || next.At(n) != "next" || n > 0 && next.At(n-1) != v.At(n-1) {
			t.Errorf("%x from %d on is %x, %v", b, n, next, err)
		}
	})
}
