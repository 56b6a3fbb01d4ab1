package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
)

// watch reads the lines of all processes, and waits for events in them.
type watch struct {
	mu    sync.Mutex
	book  *judge.Book
	order *judge.Order
	file  *os.File
	log   *bufio.Writer
	wrong error // of the log

	serves   string // the node that has opened the store last
	opened   int    // times that a node has opened the store
	acked    map[string]time.Time
	finished bool
	changed  chan struct{} // closed and made anew with each change of the fields above
}

func newWatch(dir string) (*watch, error) {
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	w := &watch{book: judge.NewBook(), order: judge.NewOrder(), file: file, log: bufio.NewWriter(file), acked: make(map[string]time.Time), changed: make(chan struct{})}
	w.book.Several = true
	return w, nil
}

// reader gives the lines of one process to the watch.
func (w *watch) reader(name string) func(raw []byte, l judge.Line) {
	return func(raw []byte, l judge.Line) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, err := fmt.Fprintf(w.log, "%s %s", name, raw); err != nil {
			w.wrong = err
		}
		w.book.Read(l)
		w.order.Read(l)
		switch l.Kind {
		case judge.Opened:
			w.serves = name
			w.opened++
		case judge.Ack:
			w.acked[name] = time.Unix(0, l.At)
		case judge.Finished:
			w.finished = true
		default:
			return
		}
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// wait waits until a question about the watch has the answer true. The question is asked under the mutex.
func (w *watch) wait(ctx context.Context, ask func() bool) error {
	for {
		w.mu.Lock()
		yes, changed := ask(), w.changed
		w.mu.Unlock()
		if yes {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// until is wait with a limit, for something that must happen.
func (w *watch) until(ctx context.Context, limit time.Duration, what string, ask func() bool) error {
	late := fmt.Errorf("%s did not come within %s", what, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	return w.wait(ctx, ask)
}

// owner is the node that has opened the store last.
func (w *watch) owner() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.serves
}

// answered is a node other than besides that has had an answer after a moment, and when. The caller holds the mutex.
func (w *watch) answered(besides string, after time.Time) (name string, at time.Time) {
	if at := w.acked[w.serves]; w.serves != besides && at.After(after) {
		return w.serves, at
	}
	return "", time.Time{}
}

// forget forgets the openings and answers so far, and keeps all that is judged.
func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serves, w.opened = "", 0
	clear(w.acked)
}

// close writes the rest of the log.
func (w *watch) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.log.Flush(); w.wrong == nil {
		w.wrong = err
	}
	if err := w.file.Close(); w.wrong == nil {
		w.wrong = err
	}
	return w.wrong
}
