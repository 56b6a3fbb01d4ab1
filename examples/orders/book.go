package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// kind says in which direction money moved.
type kind string

const (
	charge kind = "charge"
	refund kind = "refund"
)

// entry is one line of the payment server's book: a charge or a refund that it has made.
type entry struct {
	Line  int    `json:"line"` // 1 for the first; the number of a charge is its line
	Kind  kind   `json:"kind"`
	Key   string `json:"key"` // idempotency key of the request
	Order int    `json:"order"`
	Cents int64  `json:"cents"`
	Of    int    `json:"of,omitempty"` // of a refund: the number of the charge
}

// book is the file of the payment server: one line of JSON for each charge and refund,
// appended and synced before the server answers. A request with a key that the book has
// gets the first result, also from a later process.
//
// The book knows keys and nothing else: two charges of one order under two keys are two
// charges, because a real payment server could not tell either. So a mistake of the
// workflow shows in the book.
type book struct {
	mu     sync.Mutex
	file   *os.File
	byKey  map[string]entry
	lines  []entry
	broken error // a failed write: the file may end in half a line
}

// Errors of requests that no repeat can heal.
var (
	errOtherRequest = errors.New("the idempotency key belongs to another request")
	errNoCharge     = errors.New("there is no such charge")
)

// openBook opens the book, or makes it. The end of the last line may be missing, because
// the process was killed while it wrote. Such a line was never answered, so openBook
// removes it.
func openBook(path string) (*book, error) {
	lines, size, err := readBook(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	b := &book{file: file, byKey: make(map[string]entry), lines: lines}
	for _, e := range lines {
		b.byKey[e.Key] = e
	}
	if err := b.start(path, size); err != nil {
		return nil, errors.Join(fmt.Errorf("open the book %s: %w", path, err), file.Close())
	}
	return b, nil
}

// start makes the file as long as its whole lines, and its name and length durable.
func (b *book) start(path string, size int64) error {
	if err := b.file.Truncate(size); err != nil {
		return err
	}
	if _, err := b.file.Seek(size, io.SeekStart); err != nil {
		return err
	}
	if err := b.file.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readBook reads the whole lines of a book and their length in bytes. A book that is not
// there has none.
func readBook(path string) (lines []entry, size int64, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Line != len(lines)+1 {
			return nil, 0, fmt.Errorf("line %d of the book %s is damaged: %q", len(lines)+1, path, bytes.TrimSpace(line))
		}
		lines, size = append(lines, e), size+int64(len(line))
	}
	return lines, size, nil
}

// add writes an entry and syncs it. A repeat, that is a request with a key that the book
// has, adds nothing and gets the first entry. A refund is of the whole charge.
func (b *book) add(e entry) (first entry, repeat bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return entry{}, false, b.broken
	}
	if e.Kind == refund {
		if e.Of < 1 || e.Of > len(b.lines) || b.lines[e.Of-1].Kind != charge || b.lines[e.Of-1].Order != e.Order {
			return entry{}, false, errNoCharge
		}
		e.Cents = b.lines[e.Of-1].Cents
	}
	if first, repeat = b.byKey[e.Key]; repeat {
		if e.Line = first.Line; e != first {
			return entry{}, false, errOtherRequest
		}
		return first, true, nil
	}
	e.Line = len(b.lines) + 1
	if err := b.write(e); err != nil {
		b.broken = fmt.Errorf("write the book: %w", err)
		return entry{}, false, b.broken
	}
	b.byKey[e.Key], b.lines = e, append(b.lines, e)
	return e, false, nil
}

func (b *book) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := b.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return b.file.Sync()
}

func (b *book) close() error { return b.file.Close() }
