package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/storage"
)

// oneLine is the text of an error on one line. An error of several mistakes has them on lines
// of their own.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
}

// shown is a name as a table prints it: as it is, or quoted if it holds what a terminal would
// not print, so that no name can move the cursor or forge a row.
func shown(name string) string {
	if q := strconv.Quote(name); q[1:len(q)-1] != name || strings.ContainsRune(name, ' ') || name == "" {
		return q
	}
	return name
}

// shownID is an object's class and name for a table.
func shownID(id storage.ID) string { return shown(id.Class) + "/" + shown(id.Name) }

// quotedOrNone is a user's text on one line; empty stays empty.
func quotedOrNone(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%q", text)
}

// quoted is a user's text for a table; empty is a dash.
func quoted(text string) string { return cmp.Or(quotedOrNone(text), "-") }

// at is a time for a table, in UTC; a zero time is a dash.
func at(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// sized is a size for a table.
func sized(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, name := float64(n)/unit, "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if value < unit {
			break
		}
		value, name = value/unit, next
	}
	return fmt.Sprintf("%.1f %s", value, name)
}

// print writes v as one JSON value, or else the rows as a table under the heads. Each row has
// as many cells as there are heads.
func (s *session) print(v any, heads []string, rows [][]string) error {
	if s.format == "json" {
		return printJSON(s.out, v)
	}
	t := tabwriter.NewWriter(s.out, 1, 8, 2, ' ', 0)
	if len(rows) > 0 {
		fmt.Fprintln(t, strings.Join(heads, "\t"))
	}
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// printJSON writes one JSON value over several lines. Its strings keep < and &, because no browser reads it.
func printJSON(w io.Writer, v any) error {
	return writeJSON(w, v, "  ")
}

// printJSONLine writes one JSON value on a line of its own.
func printJSONLine(w io.Writer, v any) error {
	return writeJSON(w, v, "")
}

func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// printable is raw as escaped returns it if it is JSON, and else printed as a value.
func printable(raw []byte) []byte {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return []byte(value(raw))
	}
	return escaped(raw)
}

// escaped returns JSON with an escape in place of each character that a terminal would not print, such as DEL, which
// encoding/json leaves as it is. Such a character is in a string, because all others are ASCII.
func escaped(raw []byte) []byte {
	b := make([]byte, 0, len(raw))
	for _, r := range string(raw) {
		if strconv.IsPrint(r) || r == '\n' || r == '\t' {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// note writes a line for people: nothing of it goes into JSON.
func (s *session) note(format string, args ...any) {
	if s.format != "json" {
		fmt.Fprintf(s.out, format+"\n", args...)
	}
}
