package transfer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// ImportOptions change an Import. The zero value stores an object that does not exist, without
// its alarm.
type ImportOptions struct {
	// Replace removes an object with the same class and name, in the commit that stores the new
	// one. Without it such an object is object.ErrExists, of the line with the name.
	Replace bool
	// Alarms arms the alarm of the object, which is due at its time in the file. Without it the
	// object has none. A job then rests until something activates it, such as a verb, or the next opening of the store
	// if it has an open execution.
	Alarms bool
	// LeaveMessages imports an object that was exported while messages to it waited. They are
	// not in the file.
	LeaveMessages bool
}

// maxLineBytes bounds a line, and so the memory that a hostile file takes: a value of 32 MiB in
// base64 and its key are less.
const maxLineBytes = 64 << 20

// maxNamedBytes bounds the lines of events and dead letters together, which are in memory.
const maxNamedBytes = 128 << 20

// Import stores the object of a file under the class and name in it, and returns these. It reads
// the file three times, from where it stands: the whole is checked before the first write, and each line of
// it as if a user had sent it. The error of a line has its number and matches ErrFile, or is an error of
// object.Host.Import, such as ErrValueTooLarge. The object gets fresh numbers; an open execution counts
// as one that a crash has cut off, once. It is one commit, or up to 64 of which the last makes it visible.
func Import(ctx context.Context, into *object.Host, file io.ReadSeeker, o ImportOptions) (storage.ID, error) {
	f := &importFile{from: file, options: o, codec: codecName(into.Codec())}
	var err error
	if f.start, err = file.Seek(0, io.SeekCurrent); err != nil {
		return storage.ID{}, fmt.Errorf("transfer: %w", err)
	}
	if err := f.first(); err != nil {
		return storage.ID{}, fmt.Errorf("transfer: %w", err)
	}
	if !o.Alarms {
		f.copy.Alarm = nil
	}
	err = into.Import(ctx, object.Import{Copy: f.copy, Replace: o.Replace, Rows: f.rows})
	if part := (*object.PartError)(nil); errors.As(err, &part) {
		err = fmt.Errorf("line %d: %w", f.lines[kindAlarm+int(part.Part)]+part.Index, err)
	} else if errors.Is(err, object.ErrExists) {
		err = fmt.Errorf("line %d: %w", f.lines[kindHeader], err) // it has the name
	}
	return f.copy.ID, err
}

// importFile is a file that is read more than once.
type importFile struct {
	from    io.ReadSeeker
	start   int64
	options ImportOptions
	codec   string // of the host

	copy  object.Copy
	kept  keeper
	lines [kindSum]int // the first of each kind

	partition int // the first line with a row of a partition
	named     int // bytes of the lines of events and letters
	sum       string
}

// first checks the file, and reads all but keys and marks.
func (f *importFile) first() error {
	s := new(scan)
	s.line = func(l *line, kind, bytes int) error {
		if f.lines[kind] == 0 {
			f.lines[kind] = s.number
		}
		if kind == kindHeader {
			return f.begin(l.Header)
		}
		err := f.take(l, kind, bytes)
		if f.kept.counters && f.partition == 0 {
			f.partition = s.number
		}
		return err
	}
	if err := f.read(s); err != nil {
		return err
	}
	f.sum = s.sum
	if err := f.kept.end(); err != nil {
		return fmt.Errorf("line %d: %w", f.partition, err)
	}
	return nil
}

// rows is object.Import.Rows.
func (f *importFile) rows(letters map[uint64]uint64, key func(string, []byte) error, mark func(string, time.Time, []byte) error) error {
	s := &scan{line: func(l *line, kind, _ int) error {
		switch kind {
		case kindKey:
			k, v, err := renumber(f.kept.job, f.codec, string(*l.Key), *l.Value, letters)
			if err != nil {
				return err
			}
			return key(k, v)
		case kindMark:
			return mark(string(*l.Mark), l.Expires, *l.Value)
		}
		return nil
	}}
	if err := f.read(s); err != nil {
		return err
	}
	if s.sum != f.sum {
		return fmt.Errorf("%w: it has changed while it was read", ErrFile)
	}
	return nil
}

// begin checks the first line.
func (f *importFile) begin(h *header) error {
	id := storage.ID{Class: h.Class, Name: h.Name}
	if err := id.Validate(); err != nil {
		return fmt.Errorf("%w: %w", object.ErrBadName, err)
	}
	if _, err := storage.NewLabel(h.Label); err != nil {
		return err
	}
	switch {
	case h.Codec != "" && h.Codec != f.codec:
		return fmt.Errorf("its values are of the codec %q, and those of the host of %q", h.Codec, f.codec)
	case h.Messages > 0 && !f.options.LeaveMessages:
		return fmt.Errorf("%d %w", h.Messages, ErrMessages)
	}
	f.copy = object.Copy{ID: id, Label: h.Label, Messages: h.Messages}
	f.kept = keeper{id: id}
	return f.kept.end()
}

// take keeps a line of the first reading.
func (f *importFile) take(l *line, kind, bytes int) error {
	c := &f.copy
	switch kind {
	case kindAlarm:
		c.Alarm = l.Alarm
	case kindExecution:
		c.Execution = l.Execution
	case kindLetter:
		l.Letter.DeadLetter.Seq = l.Letter.Seq
		c.Letters = append(c.Letters, l.Letter.DeadLetter)
		f.named += bytes
	case kindEvent:
		e := l.Event
		c.Events = append(c.Events, object.CopiedEvent{Event: object.Event{At: e.At, Kind: e.Kind, Data: *e.Data}, Expires: e.Expires})
		f.named += bytes
	case kindKey:
		return f.kept.see(string(*l.Key), *l.Value)
	}
	if f.named > maxNamedBytes {
		return fmt.Errorf("%w: events and dead letters of more than %d bytes", object.ErrBatchTooLarge, maxNamedBytes)
	}
	return nil
}

// read reads the file from its beginning.
func (f *importFile) read(s *scan) error {
	if _, err := f.from.Seek(f.start, io.SeekStart); err != nil {
		return err
	}
	return s.read(bufio.NewReaderSize(f.from, 1<<16))
}

// scan reads the lines of a file in order, and checks that they are those of an export.
type scan struct {
	line func(l *line, kind, bytes int) error // is called with each line but the last

	number int // of the line
	kind   int // of the line before
	counts counts
	want   counts
	key    []byte // the key, or the mark, of the line before
	seq    uint64 // of the letter before
	sum    string // of the file, once it was read
}

// read reads all lines. Its errors name the line.
func (s *scan) read(r *bufio.Reader) error {
	sum := sha256.New()
	for s.number = 1; ; s.number++ {
		raw, err := readLine(r)
		if err != nil {
			return s.refused(err)
		}
		l, kind, err := parse(raw)
		if err == nil {
			err = s.order(&l, kind)
		}
		if err != nil {
			return s.refused(err)
		}
		if kind == kindSum {
			return s.end(r, *l.Sum, hex.EncodeToString(sum.Sum(nil)))
		}
		sum.Write(raw)
		sum.Write([]byte{'\n'})
		if err := s.line(&l, kind, len(raw)); err != nil {
			return fmt.Errorf("line %d: %w", s.number, err)
		}
	}
}

// refused is the error of a line that no export has.
func (s *scan) refused(err error) error { return fmt.Errorf("%w: line %d: %w", ErrFile, s.number, err) }

// order checks that the line may stand behind the one before.
func (s *scan) order(l *line, kind int) error {
	switch {
	case (s.number == 1) != (kind == kindHeader):
		return errors.New("the first line, and no other, names the object")
	case kind == kindHeader && l.Header.Format != formatVersion:
		return fmt.Errorf("its format is %d, and this program reads %d", l.Header.Format, formatVersion)
	case kind < s.kind:
		return errors.New("the lines are not in their order")
	}
	if kind != s.kind {
		s.kind, s.key = kind, nil
	}
	c := &s.counts
	switch kind {
	case kindHeader:
		s.want = l.Header.Counts
	case kindAlarm:
		c.Alarms++
	case kindExecution:
		c.Executions++
	case kindLetter:
		c.Letters++
		if l.Letter.Seq <= s.seq {
			return errors.New("the dead letters are not in their order")
		}
		s.seq = l.Letter.Seq
	case kindEvent:
		c.Events++
	case kindKey:
		c.Keys++
		return s.sorted(*l.Key)
	case kindMark:
		c.Marks++
		return s.sorted(*l.Mark)
	}
	if c.Alarms > 1 || c.Executions > 1 {
		return errors.New("an object has one alarm and one open execution")
	}
	return nil
}

// sorted checks that a key follows the one before. The first may be empty.
func (s *scan) sorted(key []byte) error {
	if s.key != nil && bytes.Compare(s.key, key) >= 0 {
		return errors.New("the keys are not in their order")
	}
	s.key = append([]byte{}, key...)
	return nil
}

// end checks the last line, and that nothing follows.
func (s *scan) end(r *bufio.Reader, sum, want string) error {
	switch {
	case sum != want:
		return s.refused(errors.New("the bytes before it have another SHA-256"))
	case s.counts != s.want:
		return s.refused(fmt.Errorf("there are other lines than the first one tells: %+v, %+v", s.counts, s.want))
	}
	if _, err := r.ReadByte(); err != io.EOF {
		s.number++
		return s.refused(errors.New("nothing follows the line with the SHA-256"))
	}
	s.sum = sum
	return nil
}

// readLine returns the next line without its end.
func readLine(r *bufio.Reader) (raw []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		raw = append(raw, part...)
		switch {
		case err == nil:
			return raw[:len(raw)-1], nil
		case err == io.EOF:
			return nil, errors.New("the file ends without a line with its SHA-256")
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(raw) > maxLineBytes:
			return nil, fmt.Errorf("it has more than %d bytes", maxLineBytes)
		}
	}
}
