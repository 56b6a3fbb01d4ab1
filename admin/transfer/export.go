package transfer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Source is where an object is exported from: an *object.Host, or an object.Reader.
type Source interface {
	Export(ctx context.Context, id storage.ID, f func(object.Copy, *storage.Snapshot) error) error
}

// Errors of this package, beside those of object.Host.Export and Import.
var (
	// ErrMessages is the error of an object with messages that wait.
	ErrMessages = errors.New("messages to it wait, which a file does not have: let them be handled first, or leave them behind with LeaveMessages")
	// ErrNotCarried is the error of an object that cannot live in another store by itself.
	ErrNotCarried = errors.New("partitions of worker pools and objects of the library are not exported and imported")
	// ErrFile is the error of a file that is damaged, or is no export.
	ErrFile = errors.New("not a file of an exported object")
)

// ExportOptions change an Export.
type ExportOptions struct {
	// LeaveMessages exports an object although messages to it wait. They stay in the store, and
	// the file says how many there are.
	LeaveMessages bool
}

// Export writes an object as it is at one moment to w. It returns object.ErrNoObject if it does
// not exist, ErrMessages or ErrNotCarried if it is refused, and an error of w. After an error w may have a part of a
// file, which Import refuses. It takes memory for events, dead letters and the names of marks.
func Export(ctx context.Context, from Source, id storage.ID, w io.Writer, o ExportOptions) error {
	return from.Export(ctx, id, func(c object.Copy, rows *storage.Snapshot) error {
		if c.Messages > 0 && !o.LeaveMessages {
			return fmt.Errorf("%d %w", c.Messages, ErrMessages)
		}
		head := header{Format: formatVersion, Class: id.Class, Name: id.Name, Label: c.Label, Messages: c.Messages}
		if h, ok := from.(*object.Host); ok {
			head.Codec = codecName(h.Codec())
		}
		if err := head.count(&c, rows); err != nil {
			return err
		}
		out := &writer{to: bufio.NewWriter(w), sum: sha256.New()}
		out.put(line{Header: &head})
		out.named(&c)
		err := rows.Data(func(key string, value []byte) error {
			return out.put(line{Key: asBytes([]byte(key)), Value: asBytes(value)})
		})
		if err != nil {
			return err
		}
		err = rows.Marks(func(key string, expires int64, value []byte) error {
			return out.put(line{Mark: asBytes([]byte(key)), Expires: time.Unix(0, expires).UTC(), Value: asBytes(value)})
		})
		if err != nil {
			return err
		}
		return out.end()
	})
}

// codecName names a codec in a file.
func codecName(c object.Codec) string {
	if _, ok := c.(object.JSON); ok {
		return "json"
	}
	return fmt.Sprintf("%T", c)
}

// count counts the lines of each kind, and refuses an object that is not carried.
func (h *header) count(c *object.Copy, rows *storage.Snapshot) error {
	kept := keeper{id: c.ID}
	h.Counts.Letters, h.Counts.Events = len(c.Letters), len(c.Events)
	if c.Alarm != nil {
		h.Counts.Alarms = 1
	}
	if c.Execution != nil {
		h.Counts.Executions = 1
	}
	err := rows.Data(func(key string, value []byte) error {
		h.Counts.Keys++
		return kept.see(key, value)
	})
	if err == nil {
		err = kept.end()
	}
	if err != nil {
		return err
	}
	return rows.Marks(func(string, int64, []byte) error {
		h.Counts.Marks++
		return nil
	})
}

// keeper tells from the keys of an object whether it is carried, and of which job type it is.
type keeper struct {
	id       storage.ID
	job      string // the type of the job; empty for none that is known
	counters bool   // it has the counters of a partition
}

// see looks at a key. Keys come in their order.
func (k *keeper) see(key string, value []byte) error {
	if workerpool.IsPartitionRow(key, value) {
		k.counters = true
	}
	var m jobs.Meta
	if key == jobs.MetaKey && m.Read(k.id.Class, k.id.Name, value) {
		k.job = m.Type
	}
	return nil
}

// end returns ErrNotCarried for an object of the library, and for a partition.
func (k *keeper) end() error {
	if strings.HasPrefix(k.id.Class, "holdfast.") || k.counters && k.job == "" {
		return ErrNotCarried
	}
	return nil
}

// writer writes the lines of a file. Its first error stays.
type writer struct {
	to  *bufio.Writer
	sum hash.Hash
	err error
}

// put writes a line.
func (w *writer) put(l line) error {
	if w.err != nil {
		return w.err
	}
	raw, err := encoded(l)
	if err == nil {
		raw = append(raw, '\n')
		w.sum.Write(raw)
		_, err = w.to.Write(raw)
	}
	w.err = err
	return err
}

// named writes all but keys and marks.
func (w *writer) named(c *object.Copy) {
	if c.Alarm != nil {
		a := *c.Alarm
		a.LastError = strings.ToValidUTF8(a.LastError, "\ufffd")
		w.put(line{Alarm: &a})
	}
	if c.Execution != nil {
		w.put(line{Execution: c.Execution})
	}
	for _, d := range c.Letters {
		w.put(line{Letter: &letter{d.Seq, d}})
	}
	for _, e := range c.Events {
		w.put(line{Event: &event{e.At, e.Kind, e.Expires, asBytes(e.Data)}})
	}
}

// end writes the last line.
func (w *writer) end() error {
	sum := hex.EncodeToString(w.sum.Sum(nil))
	w.put(line{Sum: &sum})
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return w.err
}

// asBytes returns bytes as a line has them.
func asBytes(b []byte) *bytesOrText {
	v := bytesOrText(b)
	return &v
}
