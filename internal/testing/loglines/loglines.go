// Package loglines keeps the lines that a host logs, for tests of them.
package loglines

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Recorder is a slog.Handler that keeps each line. Its zero value is ready, and its
// methods may be called from any task.
type Recorder struct {
	Tell func(Line) // if set, it is called with each line before that is kept

	mu    sync.Mutex
	lines []Line
}

// Line is one line of a log.
type Line struct {
	Level slog.Level
	Text  string            // the message
	Attrs map[string]string // times in RFC 3339, and other values as fmt prints them
	order []string
}

// String is the line without its stack: the level, the message, and each attribute
// as key=value in the order in which they were given.
func (l Line) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", l.Level, l.Text)
	for _, key := range l.order {
		if key != "stack" {
			fmt.Fprintf(&b, " %s=%s", key, l.Attrs[key])
		}
	}
	return b.String()
}

// Logger returns a logger that writes to r.
func (r *Recorder) Logger() *slog.Logger { return slog.New(&handler{r: r}) }

// From returns the lines of at least a level, in order.
func (r *Recorder) From(level slog.Level) (lines []Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		if l.Level >= level {
			lines = append(lines, l)
		}
	}
	return lines
}

// Text is the lines of at least a level, one below the other.
func (r *Recorder) Text(level slog.Level) string {
	var all []string
	for _, l := range r.From(level) {
		all = append(all, l.String())
	}
	return strings.Join(all, "\n")
}

// handler is a Recorder with the attributes of Logger.With.
type handler struct {
	r     *Recorder
	attrs []slog.Attr
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{r: h.r, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *handler) WithGroup(string) slog.Handler { return h }

func (h *handler) Handle(_ context.Context, record slog.Record) error {
	l := Line{Level: record.Level, Text: record.Message, Attrs: make(map[string]string)}
	note := func(a slog.Attr) bool {
		l.order = append(l.order, a.Key)
		if l.Attrs[a.Key] = a.Value.String(); a.Value.Kind() == slog.KindTime {
			l.Attrs[a.Key] = a.Value.Time().UTC().Format(time.RFC3339)
		}
		return true
	}
	for _, a := range h.attrs {
		note(a)
	}
	record.Attrs(note)
	if h.r.Tell != nil {
		h.r.Tell(l)
	}
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	h.r.lines = append(h.r.lines, l)
	return nil
}
