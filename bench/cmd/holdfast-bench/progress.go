package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress tells the case that is being measured: on a terminal in one line that is
// written over, else in one line for each case.
type progress struct {
	w        io.Writer
	terminal bool
	total    int
	done     int
	what     string
	start    time.Time
}

func newProgress(w io.Writer, total int) *progress {
	p := &progress{w: w, total: total, start: time.Now()}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// begin is told of each case before it is prepared.
func (p *progress) begin(what string) {
	p.done++
	p.what = strings.TrimSpace(what)
	p.show("prepare")
}

// round is told of each round before it begins.
func (p *progress) round(n, of int) {
	if p.terminal {
		p.show(fmt.Sprintf("round %d of %d", n, of))
	}
}

func (p *progress) show(step string) {
	line := fmt.Sprintf("[%d/%d %s] %s", p.done, p.total, time.Since(p.start).Round(time.Second), p.what)
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s: %s", line, step)
		return
	}
	fmt.Fprintln(p.w, line)
}

func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
