package debounce

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// CheckVersions reports a row that is stored under another version than that of its form.
func CheckVersions(rows map[string][]byte, form func(raw []byte) string) error {
	b, err := decodeBuffer(rows[bufferKey])
	if err != nil {
		return err
	}
	for _, g := range []generation{b.closed, b.open} {
		for key, row := range rows {
			position, isEvent := strings.CutPrefix(key, eventPrefix(g.number))
			if !isEvent && key != stateKey(g.number) {
				continue
			}
			n := uint64(0)
			if isEvent {
				if n, err = strconv.ParseUint(position, 16, 64); err != nil {
					return err
				}
			}
			_, raw, err := splitRow(row)
			if err != nil {
				return err
			}
			if version := g.versions.At(n); version != form(raw) {
				return fmt.Errorf("row %q is stored as of version %q: %s", key, version, raw)
			}
		}
	}
	return nil
}

// CheckRows tells the mistakes in the stored keys of a debounce object: the buffer must
// account for each event and each state, and for nothing else.
func CheckRows(rows map[string][]byte) error {
	row, ok := rows[bufferKey]
	if !ok {
		if len(rows) > 0 {
			return fmt.Errorf("there are rows and no buffer: %q", slices.Sorted(maps.Keys(rows)))
		}
		return nil
	}
	b, err := decodeBuffer(row)
	if err != nil {
		return err
	}
	for key, row := range rows {
		if strings.HasPrefix(key, eventPrefix(b.open.number)) || key == stateKey(b.open.number) {
			g, _, err := splitRow(row)
			if err != nil || g.number != b.open.number {
				return fmt.Errorf("the row %q tells of %+v, %v", key, g, err)
			}
			if g.count > b.open.count {
				b.open = g
			}
		}
	}
	var want []string
	for _, g := range []generation{b.closed, b.open} {
		if g.folded {
			want = append(want, stateKey(g.number))
			continue
		}
		for i := range g.count {
			want = append(want, eventKey(g.number, i))
		}
	}
	var have []string
	for key := range rows {
		if strings.HasPrefix(key, "e/") || strings.HasPrefix(key, "s/") {
			have = append(have, key)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		return fmt.Errorf("the buffer tells of rows %q, and there are %q", want, have)
	}
	return nil
}

// CountEvents counts the events in the stored keys of a debounce object, and those that it
// has flushed or dropped.
func CountEvents(rows map[string][]byte) (n int, err error) {
	if rows == nil {
		return 0, nil
	}
	b, err := decodeBuffer(rows[bufferKey])
	for key := range rows {
		if strings.HasPrefix(key, "e/") {
			n++
		}
	}
	return n + int(b.flushed+b.dropped), err
}
