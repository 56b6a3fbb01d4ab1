package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLog is Pebble's logger and what it told last. Pebble calls Fatalf where
// it cannot go on, and would answer with success for what never became durable
// if Fatalf returned.
type pebbleLog struct {
	log         *slog.Logger
	end         ending
	panicked    atomic.Bool   // Pebble stopped in the middle of its work
	closing     atomic.Bool   // all is durable in the log, and Close flushes it
	failedTries atomic.Uint64 // background work that failed since any succeeded
}

// fatalLog is what Pebble said last.
type fatalLog struct{ text string }

func (f *fatalLog) Error() string { return f.text }

func (l *pebbleLog) failed() error { return l.end.err() }

func (l *pebbleLog) Infof(string, ...any) {}

func (l *pebbleLog) Errorf(format string, args ...any) {
	if l.log != nil {
		l.log.Error("pebble: " + fmt.Sprintf(format, args...))
	}
}

// Fatalf ends the engine first, and never returns. On the goroutine of a caller
// of the engine it panics, to be turned into an error by recoverFatal; a
// goroutine of Pebble's own ends.
func (l *pebbleLog) Fatalf(format string, args ...any) {
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
// openPebble is on the stack; each of them recovers.
func calledByEngine() bool {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		name := frame.Function
		if strings.Contains(name, "storage.(*pebbleEngine)") || strings.Contains(name, "storage.(*pebbleIter)") || strings.HasSuffix(name, "storage.openPebble") {
			return true
		}
		if !more {
			return false
		}
	}
}

// corrupt ends the engine with the name of a damaged file, which the error that
// the reader gets leaves out.
func (l *pebbleLog) corrupt(info pebble.DataCorruptionInfo) {
	err := fmt.Errorf("%w: %s: %w", ErrCorrupt, info.Path, info.Details)
	l.end.fail(err)
	l.Errorf("%v", err)
}

// readError is err with what is known of it.
func (l *pebbleLog) readError(err error) error {
	if failed := l.failed(); err != nil && failed != nil {
		return failed
	}
	return wrapPebble("read", err)
}

// recoverFatal turns the panic of Fatalf, or Pebble's own with an error, into an
// error.
func (l *pebbleLog) recoverFatal(err *error) {
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
func (l *pebbleLog) background(err error) {
	tries := l.failedTries.Add(1)
	full := l.closing.Load() && isFull(err)
	switch {
	case full && l.log != nil && tries == 1:
		l.log.Warn("disk is full: the store closes without tidying up, and the next open reads its log", "error", err.Error())
	case tries == 1:
		l.Errorf("background: %v", err)
	}
	if full || tries >= backgroundTries {
		l.end.fail(wrapPebble("work in the background", err))
	}
}

// isFull reports whether err is that of a disk, or of a quota, without space.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (l *pebbleLog) flushed(info pebble.FlushInfo) { l.worked(info.Err) }

func (l *pebbleLog) compacted(info pebble.CompactionInfo) { l.worked(info.Err) }

func (l *pebbleLog) worked(err error) {
	if err == nil {
		l.failedTries.Store(0)
	}
}
