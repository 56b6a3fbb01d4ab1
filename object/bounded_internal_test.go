package object

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// still is a clock that stands still.
type still struct{ seam.Clock }

func (still) Now() time.Time { return time.Unix(1000, 0) }

// The table of failing constructors takes new names when it is full, and forgets
// those that failed longest ago.
//
// Case ST10. Proves O4.
func TestFailingConstructorsAreForgottenInOrder(t *testing.T) {
	c := &hosted{class: &class{name: "c"}, host: &Host{seams: seam.Seams{Clock: still{}}}}
	f, cause := &failing{}, errors.New("bad day")
	knows := func(i int) bool { return errors.Is(f.check(c, fmt.Sprint(i)), cause) }
	for i := range failingMax {
		f.note(c, fmt.Sprint(i), cause)
	}
	if !knows(0) || !knows(failingMax-1) {
		t.Errorf("at %d names one is forgotten", failingMax)
	}
	f.note(c, "0", cause) // 1 is the oldest now
	f.note(c, fmt.Sprint(failingMax), cause)
	if !knows(0) || knows(1) || !knows(2) || !knows(failingMax) {
		t.Errorf("beyond %d names: 0 is known: %v, 1: %v, 2: %v, the new one: %v", failingMax, knows(0), knows(1), knows(2), knows(failingMax))
	}
	f.forget("2")
	f.note(c, "1", cause)
	if knows(2) || !knows(1) || !knows(3) || len(f.m) != failingMax || f.order.Len() != failingMax {
		t.Errorf("after one was forgotten there are %d names, %d in order", len(f.m), f.order.Len())
	}
}

// The report keeps the last lines, in order, at every length around its bound.
//
// Cases ST11, ST23. Proves R6.
func TestReportKeepsTheLastLines(t *testing.T) {
	var p report
	for n := range 2*reportMax + 2 {
		p.add(Recovery{Attempt: n})
		switch n + 1 {
		case 1, reportMax - 1, reportMax, reportMax + 1, reportMax + 2, 2*reportMax - 1, 2 * reportMax, 2*reportMax + 1:
		default:
			continue
		}
		lines, total := p.last()
		kept := min(n+1, reportMax)
		if total != n+1 || len(lines) != kept {
			t.Fatalf("after %d lines: %d of %d", n+1, len(lines), total)
		}
		for i, l := range lines {
			if want := n + 1 - kept + i; l.Attempt != want {
				t.Fatalf("after %d lines, line %d is %d, want %d", n+1, i, l.Attempt, want)
			}
		}
	}
}

// A line costs the same however long the report is: it moves none of the others.
//
// Case ST11.
func TestReportMovesNoLines(t *testing.T) {
	var p report
	for n := range reportMax + 1 {
		p.add(Recovery{Attempt: n})
	}
	if p.lines[1].Attempt != 1 || p.lines[reportMax-1].Attempt != reportMax-1 {
		t.Error("a new line moved others")
	}
}
