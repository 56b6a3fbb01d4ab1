package harness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/seam"
)

// script makes a timeline of lines: "point object", or "CRASH", "log text".
func script(lines ...string) *timeline {
	l := &timeline{}
	l.reset()
	start, at := 1, time.Duration(0)
	for _, line := range lines {
		name, object, _ := strings.Cut(line, " ")
		switch name {
		case "CRASH":
			l.add(at, noteCrash, fmt.Sprintf("CRASH 1: start %d dies", start))
			start++
		case "wait":
			at += time.Minute
		case "log":
			l.log(at, object)
		default:
			p := seam.Point{Name: name, Object: object}
			l.counts[p]++
			l.hits = append(l.hits, hit{place: place{p, l.counts[p]}, at: at, start: start})
		}
	}
	return l
}

func repeat(n int, lines ...string) (all []string) {
	for range n {
		all = append(all, lines...)
	}
	return all
}

// The points before and after one action are one row, unless another point lies between
// them.
func TestRowsArePairs(t *testing.T) {
	l := script("commit/before a", "commit/after a", "sync/before", "log between", "sync/after", "commit/before a", "commit/after b")
	var got []string
	for _, r := range l.rows() {
		got = append(got, strings.TrimSpace(r.object+" "+r.point))
	}
	want := []string{"a commit #1", "sync/before #1", "", "sync/after #1", "a commit/before #2", "b commit/after #1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A stretch that repeats is shown once, with any ordinals and times.
func TestRepeatedRowsAreFolded(t *testing.T) {
	l := script(append(repeat(50, "handler/enter a", "ack/after a", "wait"), "handler/enter b")...)
	want := `        time   start  object  point
          0s       1  a       handler/enter #1
                   1  a       ack/after #1
       49m0s          ... these 2 rows, 49 times more
       50m0s       1  b       handler/enter #1
`
	if diff := cmp.Diff(want, l.excerpt()); diff != "" {
		t.Error(diff)
	}
	if rows := fold(script("x a", "x b", "x a", "x c").rows()); len(rows) != 4 {
		t.Errorf("rows that differ are folded: %v", rows)
	}
}

// However long a run is, the crash, the rows around it and the end are shown, each log
// line if there are few, and every line fits.
func TestExcerptIsShort(t *testing.T) {
	var lines []string
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("handler/enter object/with-a-very-long-name-that-goes-on-and-on/%d", i))
		if i%100 == 0 {
			lines = append(lines, "log "+strings.Repeat("something to say ", 8))
		}
		if i == 200 {
			lines = append(lines, "CRASH")
		}
	}
	text := script(lines...).excerpt()
	got := strings.Split(strings.TrimSpace(text), "\n")
	if len(got) > 60 {
		t.Errorf("%d lines:\n%s", len(got), text)
	}
	for _, want := range []string{"=== CRASH 1: start 1 dies ===", "on-and-on/200", "on-and-on/201", "on-and-on/399", "points", "| something to say"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, line := range got {
		if len(line) > reportWidth {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// A table shows the changes, cell by cell, and long cells on several lines.
func TestFactTable(t *testing.T) {
	before := scene{"a/1": {{"alarm", "none"}, {"total", "1"}, {"note", strings.Repeat("x", 40)}}}
	end := scene{"a/1": {{"alarm", "at 1h0m0s"}, {"total", "1"}, {"new", "yes"}}}
	want := `  a/1      before the crash           right after it             at the end
    alarm  none                       =                          at 1h0m0s
    new    -                          =                          yes
    note   xxxxxxxxxxxxxxxxxxxxxxxxx  =                          -
           xxxxxxxxxxxxxxx
    unchanged: total 1
`
	got := factTable("a/1", []moment{{"before the crash", before}, {"right after it", before}, {"at the end", end}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
