package harness

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/storage"
)

// dumpMost bounds the objects that a failure prints.
const dumpMost = 20

// Dump is what is stored of an object: its keys, alarm and open-execution mark.
func (s *Sim) Dump(id storage.ID) string {
	view := s.Store()
	o, err := view.Find(id)
	if err != nil {
		return err.Error()
	}
	return dumpObject(view, o)
}

// dump is what is stored of the first objects.
func (s *Sim) dump() string {
	view, err := openView(s.disk, s.cfg.shards)
	if err != nil {
		return err.Error()
	}
	classes, err := view.Classes()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	left := dumpMost
	for _, class := range classes {
		_ = view.Objects(class, "", func(o storage.Object) bool {
			if left--; left >= 0 {
				b.WriteString(dumpObject(view, o))
			}
			return left > 0
		})
	}
	if left <= 0 {
		b.WriteString("  ... and other objects\n")
	}
	return b.String()
}

func dumpObject(view *storedState, o storage.Object) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s", o.ID)
	if o.Number == 0 {
		b.WriteString(" does not exist\n")
		return b.String()
	}
	fmt.Fprintf(&b, " (last commit by start %d)", o.Epoch)
	if row, ok, _ := view.Alarm(o); ok {
		b.WriteString(" alarm " + alarmText(row))
	}
	if mark, ok, _ := view.Open(o); ok {
		fmt.Fprintf(&b, " open execution %q", mark)
	}
	b.WriteByte('\n')
	it, err := view.ListData(nil, o, "", "", false)
	if err != nil {
		return b.String() + err.Error()
	}
	defer it.Close()
	for it.Next() {
		fmt.Fprintf(&b, "    %s = %s\n", printable(it.Key()), printable(it.Value()))
	}
	return b.String()
}

func alarmText(value []byte) string {
	row, err := alarm.DecodeRow(value)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("at %s, attempt %d", row.Due.Sub(machine.Epoch), row.Attempt)
	if row.LastError != "" {
		text += fmt.Sprintf(", after %q", row.LastError)
	}
	return text
}

// printable is b as text if it is text, and shortened.
func printable(b []byte) string {
	const most = 200
	if len(b) > most {
		return fmt.Sprintf("%.*q... (%d bytes)", most, b, len(b))
	}
	for _, c := range b {
		if c < ' ' || c > '~' {
			return fmt.Sprintf("%q", b)
		}
	}
	return string(b)
}
