package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A bar begins where it is told to, ends full, and fits into the line.
func TestBar(t *testing.T) {
	var out strings.Builder
	b := &bar{place: place{w: &out}}
	b.show(0, 0) // nothing is known yet
	if out.Len() > 0 || b.how() != "" {
		t.Errorf("before the start it shows %q and tells %q", out.String(), b.how())
	}
	b.show(4123, 7711)
	b.show(7711, 7711)
	b.say("all is indexed")
	frames := strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\r' || r == '\n' })
	if !strings.HasPrefix(frames[0], "Indexed 4,123 of 7,711 files  53% |██") {
		t.Errorf("the first frame is %q", frames[0])
	}
	if last := frames[len(frames)-2]; !strings.HasPrefix(last, "Indexed 7,711 of 7,711 files 100% |██") || !strings.HasSuffix(out.String(), "\nall is indexed\n") {
		t.Errorf("the last frame is %q, and all is %q", last, out.String())
	}
	for _, frame := range frames {
		if utf8.RuneCountInString(frame) > columns {
			t.Errorf("a frame is wider than %d columns: %q", columns, frame)
		}
	}
	if got := b.how(); got != " at 7,711 of 7,711 files" {
		t.Errorf("it tells%s", got)
	}
}

// The count is shown before the first percent is full.
func TestBarBelowOnePercent(t *testing.T) {
	var out strings.Builder
	b := &bar{place: place{w: &out}}
	b.show(0, 7711)
	b.show(64, 7711)
	for _, want := range []string{"Indexed     0 of 7,711 files   0% |", "Indexed    64 of 7,711 files   0% |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it shows %q, without %q", out.String(), want)
		}
	}
}
