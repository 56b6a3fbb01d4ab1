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
	// show tells that done of total files are indexed.
	show(done, total uint64)
	// say prints a sentence.
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
	return fmt.Sprintf(" at %s of %s", grouped(p.done), plural(p.total, "file"))
}

// bar is a progress bar.
type bar struct {
	place
	bar *progressbar.ProgressBar
}

const (
	barWidth = 40
	// besideBar is how many columns the percentage, the frame and the blanks of the
	// bar take.
	besideBar = 12
)

func (b *bar) show(done, total uint64) {
	if total == 0 || b.bar != nil && done == b.done && total == b.total {
		return
	}
	b.done, b.total = done, total
	width := widthOf(b.w)
	all := grouped(total)
	text := fmt.Sprintf("Indexed %*s of %s", len(all), grouped(done), plural(total, "file"))
	if len(text)+besideBar > width {
		text = fmt.Sprintf("%*s/%s", len(all), grouped(done), all)
	}
	// A terminal that does not take the bar shows nothing, so errors are dropped.
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(int64(total), progressbar.OptionSetWriter(b.w),
			progressbar.OptionSetDescription(text), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetWidth(min(barWidth, max(0, width-len(text)-besideBar))))
		_ = b.bar.Set64(int64(done))
		_ = b.bar.RenderBlank() // because Set64 draws nothing below one percent
		return
	}
	b.bar.Describe(text)
	_ = b.bar.Set64(int64(done))
}

func (b *bar) say(format string, args ...any) {
	b.end()
	say(b.w, format, args...)
}

func (b *bar) end() {
	if b.bar != nil {
		fmt.Fprintln(b.w)
		b.bar = nil
	}
}

// lines prints a line when it begins, each second in which something happened, and at
// the end.
type lines struct {
	place
	told uint64
	last time.Time
}

func (l *lines) show(done, total uint64) {
	moved := done != l.done || total != l.total
	l.done, l.total = done, total
	if moved && total > 0 && time.Since(l.last) >= time.Second {
		l.tell()
	}
}

func (l *lines) tell() {
	l.told, l.last = l.done, time.Now()
	l.say("Indexed %s of %s.", grouped(l.done), plural(l.total, "file"))
}

func (l *lines) say(format string, args ...any) { say(l.w, format, args...) }

func (l *lines) end() {
	if l.done != l.told {
		l.tell()
	}
}
