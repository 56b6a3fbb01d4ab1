package harness

import (
	"fmt"
	"strings"
	"time"
)

// How much of a timeline a failure shows: rows around each crash and at the
// ends. Gaps that are no longer than the line that would tell of them are shown.
const (
	rowsAtBegin     = 2
	rowsBeforeCrash = 12
	rowsAfterCrash  = 8
	rowsAtEnd       = 8
	notesShown      = 15 // of a kind; if there are more, those near the other lines
	foldPeriod      = 16 // rows of a stretch that is folded if it repeats
	foldRepeats     = 3  // as often as it must stand there
)

// row is a line of the table of points.
type row struct {
	at     time.Duration // negative: none
	start  int
	object string
	point  string // with its ordinal
	name   string // without
	tail   string // more about it
	note   *note  // instead of a point
	points int    // that the row stands for
}

// same reports whether two rows tell the same, but for times and ordinals.
func (r row) same(o row) bool {
	return r.note == nil && o.note == nil && r.start == o.start && r.object == o.object && r.name == o.name && r.name != ""
}

// excerpt is the part of a timeline that matters for a failure.
func (l *timeline) excerpt() string { return table(cut(fold(l.rows()))) }

// text is the whole timeline.
func (l *timeline) text() string { return table(l.rows()) }

// rows are the points, with those before and after a thing that have nothing
// between them in one, and the notes in their places.
func (l *timeline) rows() []row {
	var rows []row
	notes := l.notes
	for i := 0; i <= len(l.hits); i++ {
		for len(notes) > 0 && notes[0].before == i {
			rows = append(rows, row{at: notes[0].at, note: &notes[0]})
			notes = notes[1:]
		}
		if i == len(l.hits) {
			break
		}
		h := l.hits[i]
		if next := i + 1; next < len(l.hits) && (len(notes) == 0 || notes[0].before != next) && h.pairs(l.hits[next]) {
			rows = append(rows, pairRow(h, l.hits[next]))
			i++
			continue
		}
		rows = append(rows, hitRow(h))
	}
	return rows
}

// pairs reports whether h and o are the points before and after one step.
func (h hit) pairs(o hit) bool {
	kind, ok := strings.CutSuffix(h.Name, "/before")
	return ok && o.Name == kind+"/after" && o.Object == h.Object && o.n == h.n && o.at == h.at && o.start == h.start
}

func hitRow(h hit) row {
	return row{at: h.at, start: h.start, object: h.Object, name: h.Name, point: fmt.Sprintf("%s #%d", h.Name, h.n), tail: commitTail(h), points: 1}
}

func pairRow(before, after hit) row {
	r := hitRow(after)
	r.name = strings.TrimSuffix(before.Name, "/before")
	r.point, r.points = fmt.Sprintf("%s #%d", r.name, after.n), 2
	if r.name == "sync" {
		r.tail = count(before.unsynced-after.unsynced, "commit") + " made durable"
	}
	return r
}

// commitTail tells at a commit how many a crash would put at risk.
func commitTail(h hit) string {
	if h.Name != "commit/after" && h.Name != "sync/before" {
		return ""
	}
	return fmt.Sprintf("%d unsynced", h.unsynced)
}

// fold shortens stretches of rows that repeat.
func fold(rows []row) []row {
	var out []row
	for i := 0; i < len(rows); {
		period, times := repeats(rows[i:])
		if times < foldRepeats || period*(times-1) < 3 {
			out = append(out, rows[i])
			i++
			continue
		}
		out = append(out, rows[i:i+period]...)
		rest := rows[i+period : i+period*times]
		what := "this row"
		if period > 1 {
			what = fmt.Sprintf("these %d rows", period)
		}
		out = append(out, row{at: rest[len(rest)-1].at, points: points(rest), tail: fmt.Sprintf("... %s, %d times more", what, times-1)})
		i += period * times
	}
	return out
}

// repeats finds the stretch at the beginning of rows that is repeated most
// often, and how often it stands there.
func repeats(rows []row) (period, times int) {
	for p := 1; p <= foldPeriod && p <= len(rows)/foldRepeats; p++ {
		n := p
		for n < len(rows) && rows[n].same(rows[n-p]) {
			n++
		}
		if n/p >= foldRepeats && (n/p-1)*p > (times-1)*period {
			period, times = p, n/p
		}
	}
	return period, times
}

func points(rows []row) (n int) {
	for _, r := range rows {
		n += r.points
	}
	return n
}

// cut leaves out the rows that are far from everything that happened.
func cut(rows []row) []row {
	keep := make([]bool, len(rows))
	show := func(from, to int) {
		for i := max(from, 0); i < min(to, len(rows)); i++ {
			keep[i] = true
		}
	}
	show(0, rowsAtBegin)
	show(len(rows)-rowsAtEnd, len(rows))
	notes := make(map[noteKind]int)
	for _, r := range rows {
		if r.note != nil {
			notes[r.note.kind]++
		}
	}
	for i, r := range rows {
		switch {
		case r.note == nil:
		case r.note.kind == noteCrash:
			show(i-rowsBeforeCrash, i+rowsAfterCrash+1)
		case r.note.kind == noteFailure:
			show(i-rowsAtEnd, i+1)
		case notes[r.note.kind] <= notesShown:
			show(i, i+1)
		}
	}
	return gaps(rows, keep)
}

// gaps puts a row that counts the points in place of those that are not kept.
func gaps(rows []row, keep []bool) []row {
	var out []row
	for i := 0; i < len(rows); {
		n := i
		for n < len(rows) && !keep[n] {
			n++
		}
		switch {
		case n == i:
			out = append(out, rows[i])
			i++
		case n-i < 2:
			out = append(out, rows[i:n]...)
			i = n
		default:
			out = append(out, row{at: -1, tail: "... " + count(points(rows[i:n]), "point"), points: points(rows[i:n])})
			i = n
		}
	}
	return out
}

// Widths of the columns of a table of points.
const (
	timeWidth   = 12
	startWidth  = 6
	objectWidth = 28
	pointWidth  = 26
)

// table is rows in columns: time, start of the process, object, point.
func table(rows []row) string {
	if len(rows) == 0 {
		return ""
	}
	objects := len("object")
	for _, r := range rows {
		objects = max(objects, min(len([]rune(r.object)), objectWidth))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %*s  %*s  %-*s  %s\n", timeWidth-2, "time", startWidth, "start", objects, "object", "point")
	last := time.Duration(-1)
	for _, r := range rows {
		at := ""
		if r.at >= 0 && r.at != last {
			at, last = r.at.String(), r.at
		}
		var line string
		switch {
		case r.note != nil:
			line = noteText(at, *r.note)
		case r.name == "":
			line = fmt.Sprintf("  %*s  %*s  %s", timeWidth-2, at, startWidth, "", r.tail)
		default:
			line = fmt.Sprintf("  %*s  %*d  %-*s  %-*s %s", timeWidth-2, at, startWidth, r.start, objects, shorten(r.object, objectWidth), pointWidth, r.point, r.tail)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// noteText is a note in the table: a crash over its whole width, others with a
// mark in the margin.
func noteText(at string, n note) string {
	switch n.kind {
	case noteCrash:
		return banner('=', n.text)
	case noteFailure:
		return margin(at, "FAILED", "", n.text)
	case noteLog:
		return margin(at, "", "| ", n.text)
	}
	return margin(at, "", "-- ", n.text)
}

// margin is a text beside the time and a word, each of its lines after a mark.
func margin(at, word, mark, text string) string {
	first := fmt.Sprintf("  %*s  %*s  ", timeWidth-2, at, startWidth, word)
	rest := strings.Repeat(" ", len(first)) + mark
	return first + mark + strings.ReplaceAll(wrap(text, reportWidth-len(rest)), "\n", "\n"+rest)
}

// banner is a text in a line of signs as wide as the report; a text that is too
// wide for it is wrapped within.
func banner(sign byte, text string) string {
	const least = 6
	var lines []string
	for line := range strings.SplitSeq(wrap(text, reportWidth-2*least-2), "\n") {
		left := (reportWidth - 2 - len(line)) / 2
		right := reportWidth - 2 - len(line) - left
		lines = append(lines, strings.Repeat(string(sign), max(left, 1))+" "+line+" "+strings.Repeat(string(sign), max(right, 1)))
	}
	return strings.Join(lines, "\n")
}
