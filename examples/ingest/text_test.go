package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 999999: "999,999", 1234567: "1,234,567",
		-999: "-999", -1000: "-1,000", 9223372036854775807: "9,223,372,036,854,775,807",
	} {
		if got := grouped(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	if got := plural(1, "file") + plural(0, "file") + plural(2000, "file"); got != "1 file0 files2,000 files" {
		t.Errorf("plurals are %s", got)
	}
}

// No line is wider than asked, a line is as full as it can be, and no word is lost
// or broken.
func TestWrap(t *testing.T) {
	const text = "one two three four/which/is/long five"
	for width, want := range map[int]string{
		1:   "one\n  two\n  three\n  four/which/is/long\n  five",
		7:   "one two\n  three\n  four/which/is/long\n  five",
		6:   "one\n  two\n  three\n  four/which/is/long\n  five",
		37:  text,
		36:  "one two three four/which/is/long\n  five",
		100: text,
	} {
		if got := wrap(text, width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for width, want := range map[int]string{5: "añejo", 4: "añe…", 1: "…", 6: "añejo"} {
		if got := cut("añejo", width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

// wantNarrow fails if a line is wider than a place that is no terminal may have.
// A single word, such as a path, may be.
func wantNarrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if utf8.RuneCountInString(line) > columns && len(strings.Fields(line)) > 1 {
			t.Errorf("wider than %d columns: %q", columns, line)
		}
	}
}

// sentences are the lines of a text, with the broken ones put together again.
func sentences(text string) []string {
	return slices.Collect(strings.Lines(strings.ReplaceAll(text, "\n  ", " ")))
}
