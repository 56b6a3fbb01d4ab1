package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
)

// journal writes lines. Each is one write, and add returns after it.
type journal struct {
	timed bool // each line says when it was written

	mu  sync.Mutex
	out io.Writer
	buf bytes.Buffer
}

func (j *journal) write(l judge.Line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.buf.Reset()
	if j.timed {
		l.At = seams.Clock.Now().UnixNano()
	}
	err := json.NewEncoder(&j.buf).Encode(l)
	if err == nil {
		_, err = j.out.Write(j.buf.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "program: write the log:", err)
		os.Exit(ExitShutdown)
	}
}

func (j *journal) trouble(format string, args ...any) {
	j.write(judge.Line{Kind: judge.Trouble, Text: fmt.Sprintf(format, args...)})
}

// handler makes a line of each recovery that the host logs, and writes warnings and
// errors to stderr.
type handler struct {
	slog.Handler
	journal *journal
}

func newLogger(j *journal) *slog.Logger {
	return slog.New(handler{slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}), j})
}

func (h handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "recovered" {
		h.journal.write(judge.Line{Kind: judge.Recovered})
	}
	if r.Level < slog.LevelWarn {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.journal}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.journal}
}
