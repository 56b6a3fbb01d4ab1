package pebblestore

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// logger is Pebble's logger, and keeps the error that ended the engine. Pebble calls
// Fatalf where it cannot go on. If Fatalf returned, Pebble would answer with success for
// commits that never became durable.
type logger struct {
	log         *slog.Logger
	end         ending
	panicked    atomic.Bool   // Pebble stopped in the middle of its work
	closing     atomic.Bool   // all is durable in the log, and Close flushes it
	failedTries atomic.Uint64 // background work that failed since any succeeded
}

// fatalLog is the text of a Fatalf as an error.
type fatalLog struct{ text string }

func (f *fatalLog) Error() string { return f.text }

func (l *logger) failed() error { return l.end.err() }

func (l *logger) Infof(string, ...any) {}

func (l *logger) Errorf(format string, args ...any) {
	if l.log != nil {
		l.log.Error("pebble: " + fmt.Sprintf(format, args...))
	}
}

// Fatalf ends the engine first, and never returns. On the goroutine of a caller
// of the engine it panics, to be turned into an error by recoverFatal; a
// goroutine of Pebble's own ends.
func (l *logger) Fatalf(format string, args ...any) {
	f := &fatalLog{fmt.Sprintf(format, args...)}
	l.panicked.Store(true)
	l.end.fail(f)
	l.Errorf("%s", f.text)
	if calledByEngine() {
		panic(f)
	}
	runtime.Goexit()
}

// calledByEngine reports whether a method of the engine, of its iterators, or
// open is on the stack; each of them recovers.
func calledByEngine() bool {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		name := frame.Function
		if strings.Contains(name, "pebblestore.(*Store)") || strings.Contains(name, "pebblestore.(*iterator)") || strings.HasSuffix(name, "pebblestore.open") {
			return true
		}
		if !more {
			return false
		}
	}
}

// corrupt ends the engine with the name of a damaged file, which the error that
// the reader gets leaves out.
func (l *logger) corrupt(info pebble.DataCorruptionInfo) {
	err := fmt.Errorf("%w: %s: %w", engine.ErrCorrupt, info.Path, info.Details)
	l.end.fail(err)
	l.Errorf("%v", err)
}

// readError is the error of a read, or the one that has ended the engine.
func (l *logger) readError(err error) error {
	if failed := l.failed(); err != nil && failed != nil {
		return failed
	}
	return wrap("read", err)
}

// recoverFatal turns the panic of Fatalf, or Pebble's own with an error, into an
// error.
func (l *logger) recoverFatal(err *error) {
	r := recover()
	if r == nil {
		return
	}
	e, ok := r.(error)
	if !ok || errors.As(e, new(runtime.Error)) {
		panic(r)
	}
	l.panicked.Store(true)
	l.end.fail(e)
	*err = l.failed()
}

// backgroundTries is how often in a row Pebble's background work may fail before
// the engine ends. Pebble tries again without a pause; a disk that refuses so
// many times in so short a time will not come back by itself, and writers would
// wait for it.
const backgroundTries = 16

// background counts failed flushes and compactions, and logs the first of a row of
// failures. While the engine closes, a full disk ends it at once: nothing is lost,
// and more tries would fail too.
func (l *logger) background(err error) {
	tries := l.failedTries.Add(1)
	full := l.closing.Load() && IsFull(err)
	switch {
	case full && l.log != nil && tries == 1:
		l.log.Warn("disk is full: the store closes without tidying up, and the next open reads its log", "error", err.Error())
	case tries == 1:
		l.Errorf("background: %v", err)
	}
	if full || tries >= backgroundTries {
		l.end.fail(wrap("work in the background", err))
	}
}

func (l *logger) flushed(info pebble.FlushInfo) { l.worked(info.Err) }

func (l *logger) compacted(info pebble.CompactionInfo) { l.worked(info.Err) }

func (l *logger) worked(err error) {
	if err == nil {
		l.failedTries.Store(0)
	}
}
