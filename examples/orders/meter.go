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

// Times between two showings.
const (
	onTerminal = 100 * time.Millisecond
	elsewhere  = time.Second
)

func (m *meter) show(c *campaign) {
	every := elsewhere
	if m.terminal {
		every = onTerminal
	}
	if time.Since(m.last) >= every {
		m.last = time.Now()
		m.print(c)
	}
}

func (m *meter) print(c *campaign) {
	text := fmt.Sprintf("%d of %d orders have ended; kills: %d of %d of the worker, %d of %d of the payment server",
		c.tally.ended(), c.s.orders, c.kills[worker], c.s.kills, c.kills[paymentServer], c.s.serverKills)
	if text == m.shown {
		return
	}
	m.shown = text
	if m.terminal {
		fmt.Fprintf(m.w, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(m.w, text)
}

// end shows where it ended.
func (m *meter) end(c *campaign) {
	m.print(c)
	if m.terminal {
		fmt.Fprintln(m.w)
	}
}
