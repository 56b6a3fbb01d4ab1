package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// meter shows the progress: one line that changes on a terminal, and a line each second
// elsewhere.
type meter struct {
	w        io.Writer
	terminal bool
	last     time.Time
	shown    string
}

func newMeter(w io.Writer) *meter {
	f, ok := w.(*os.File)
	return &meter{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// showEvery is the time between two lines that are not on a terminal.
const showEvery = time.Second

func (m *meter) show(l look) {
	if l.size.Packages == 0 || !m.terminal && time.Since(m.last) < showEvery {
		return
	}
	m.last = time.Now()
	text := fmt.Sprintf("%d of %d packages are read, %d of %d shards are merged", l.read, l.size.Packages, l.merged, l.size.Shards)
	if l.stuck != "" {
		text += "; stuck: " + l.stuck
	}
	switch {
	case text == m.shown:
		return
	case m.terminal:
		fmt.Fprintf(m.w, "\r\x1b[K%s", text)
	default:
		fmt.Fprintln(m.w, text)
	}
	m.shown = text
}

// end leaves the line.
func (m *meter) end() {
	if m.terminal && m.shown != "" {
		fmt.Fprintln(m.w)
	}
}
