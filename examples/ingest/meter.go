package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// meter shows the progress: a bar on a terminal, plain lines elsewhere.
type meter interface {
	// show tells that done of total tasks have ended.
	show(done, total uint64)
	// say prints a line.
	say(format string, args ...any)
	// end ends the showing.
	end()
	// how tells how far it was, for a sentence: " at 10 of 20 files", or nothing.
	how() string
}

func newMeter(w io.Writer) meter {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &bar{place: place{w: w}}
	}
	return &lines{place: place{w: w}}
}

// place is how far it is.
type place struct {
	w           io.Writer
	done, total uint64
}

func (p *place) how() string {
	if p.total == 0 {
		return ""
	}
	return fmt.Sprintf(" at %d of %d files", p.done, p.total)
}

// bar is a progress bar.
type bar struct {
	place
	bar *progressbar.ProgressBar
}

func (b *bar) show(done, total uint64) {
	b.done, b.total = done, total
	if total == 0 {
		return
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(int64(total),
			progressbar.OptionSetWriter(b.w), progressbar.OptionSetDescription("Indexing"),
			progressbar.OptionShowCount(), progressbar.OptionSetWidth(40), progressbar.OptionSetPredictTime(false))
	}
	if b.bar.GetMax64() != int64(total) {
		b.bar.ChangeMax64(int64(total))
	}
	_ = b.bar.Set64(int64(min(done, total))) // a terminal that does not take it shows nothing
}

func (b *bar) say(format string, args ...any) {
	b.end()
	fmt.Fprintf(b.w, format+"\n", args...)
}

func (b *bar) end() {
	if b.bar != nil {
		fmt.Fprintln(b.w)
		b.bar = nil
	}
}

// lines prints a line each second in which something happened.
type lines struct {
	place
	last time.Time
}

func (l *lines) show(done, total uint64) {
	moved := done != l.done || total != l.total
	l.done, l.total = done, total
	if now := time.Now(); moved && total > 0 && now.Sub(l.last) >= time.Second {
		l.last = now
		fmt.Fprintf(l.w, "Indexed %d of %d files.\n", done, total)
	}
}

func (l *lines) say(format string, args ...any) { fmt.Fprintf(l.w, format+"\n", args...) }

func (l *lines) end() {}
