package harness

import (
	"fmt"
	"slices"
	"strings"
)

// A failure shows the rows of at most objectsShown objects, factsShown facts of each,
// and factLines lines of one fact.
const (
	objectsShown = 3
	factsShown   = 30
	factLines    = 3
)

// moment is a column of the table of stored rows.
type moment struct {
	title string
	scene scene
}

// stored is a table of the objects that matter for the problem of a run: before its
// last crash, right after it, and at the end.
func (s *Sim) stored() string {
	end, err := s.disk.view()
	if err != nil {
		return err.Error()
	}
	last := moment{"at the end", readScene(end, s.cfg.shards)}
	moments := []moment{last}
	if s.scenes.before != nil {
		if s.scenes.after == nil {
			s.scenes.after = end
		}
		title := "before the crash"
		if s.crashes > 1 {
			title = fmt.Sprintf("before crash %d", s.crashes)
		}
		moments = []moment{
			{title, readScene(s.scenes.before, s.cfg.shards)},
			{"right after it", readScene(s.scenes.after, s.cfg.shards)},
			last,
		}
	}
	names, others := s.relevant(moments)
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(factTable(name, moments))
	}
	if len(others) > 0 {
		b.WriteString("\n" + indent(wrap(fmt.Sprintf("%s left out: %s", count(len(others), "more object"), shorten(strings.Join(others, ", "), 200)), reportWidth-2), "  ") + "\n")
	}
	return b.String()
}

// relevant are the objects to show: the one that the problem is about, or the one
// that was at work last when the process died; then those that changed since; then
// the first ones.
func (s *Sim) relevant(moments []moment) (names, others []string) {
	all := make(map[string]facts)
	for _, m := range moments {
		for name, f := range m.scene {
			all[name] = f
		}
	}
	var order []string
	add := func(name string) {
		if _, ok := all[name]; ok && !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	add(s.concerned)
	add(s.timeline.atWork(func(name string) bool { _, ok := all[name]; return ok }))
	for _, name := range sortedKeys(all) {
		if changed(name, moments) {
			add(name)
		}
	}
	if len(order) == 0 {
		for _, name := range sortedKeys(all) {
			add(name)
		}
	}
	n := min(len(order), objectsShown)
	return order[:n], order[n:]
}

// atWork is the object of the last point before the last crash that was one of
// an object.
func (l *timeline) atWork(is func(name string) bool) string {
	to := len(l.hits)
	for _, n := range l.notes {
		if n.kind == noteCrash {
			to = n.before
		}
	}
	for _, h := range slices.Backward(l.hits[:to]) {
		if is(h.Object) {
			return h.Object
		}
	}
	return ""
}

func changed(name string, moments []moment) bool {
	first := moments[0].scene[name]
	return slices.ContainsFunc(moments[1:], func(m moment) bool { return !slices.Equal(first, m.scene[name]) })
}

// factTable is an object at each moment: a row for each fact that changed, and the
// others in short. An object that did not change is shown with all rows.
func factTable(object string, moments []moment) string {
	var rows [][]string
	var same []string
	quiet := !changed(object, moments)
	for _, name := range factNames(object, moments) {
		values := make([]string, len(moments))
		for i, m := range moments {
			values[i] = m.scene[object].get(name)
		}
		if !quiet && len(slices.Compact(slices.Clone(values))) == 1 {
			same = append(same, name+" "+values[0])
			continue
		}
		rows = append(rows, append([]string{name}, dittos(values)...))
	}
	if n := len(rows) - factsShown; n > 0 {
		rows = rows[:factsShown]
		same = append(same, count(n, "more row")+" that changed")
	}
	var b strings.Builder
	head := []string{object}
	for _, m := range moments {
		head = append(head, m.title)
	}
	b.WriteString(columns(append([][]string{head}, rows...)))
	if len(same) > 0 {
		b.WriteString(indent(wrap("unchanged: "+shorten(strings.Join(same, ", "), 2*reportWidth), reportWidth-4), "    ") + "\n")
	}
	return b.String()
}

// dittos has "=" in place of each value that is the one before it.
func dittos(values []string) []string {
	out := slices.Clone(values)
	for i := range values[1:] {
		if values[i+1] == values[i] {
			out[i+1] = "="
		}
	}
	return out
}

// factNames are the names of an object's facts at all moments, in the order in
// which they come.
func factNames(object string, moments []moment) []string {
	var names []string
	for _, m := range moments {
		at := 0
		for _, f := range m.scene[object] {
			if i := slices.Index(names, f.name); i >= 0 {
				at = i + 1
				continue
			}
			names = slices.Insert(names, at, f.name)
			at++
		}
	}
	if len(names) == 0 {
		return []string{"(nothing is stored)"}
	}
	return names
}

// columns lays out cells: the first column as wide as it needs up to a limit, the
// others in equal parts of the rest, with long cells on several lines.
func columns(rows [][]string) string {
	const most = 30
	first := 0
	for _, r := range rows[1:] {
		first = max(first, len([]rune(r[0]))+2)
	}
	first = min(max(first, len([]rune(rows[0][0]))), most)
	width := (reportWidth - 2 - first) / (len(rows[0]) - 1)
	var b strings.Builder
	for n, r := range rows {
		name := r[0]
		if n > 0 {
			name = "  " + name
		}
		lines := [][]string{chunks(name, first, factLines)}
		height := len(lines[0])
		for _, cell := range r[1:] {
			lines = append(lines, chunks(cell, width-2, factLines))
			height = max(height, len(lines[len(lines)-1]))
		}
		for y := range height {
			line := "  " + pad(lines[0], y, first)
			for _, cell := range lines[1:] {
				line += "  " + pad(cell, y, width-2)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// pad is a line of a cell, as wide as its column.
func pad(lines []string, y, width int) string {
	text := ""
	if y < len(lines) {
		text = lines[y]
	}
	return fmt.Sprintf("%-*s", width, text)
}
