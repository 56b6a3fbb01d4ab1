package storage

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
	"unique"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// maxLabelBytes bounds the length of a label.
const maxLabelBytes = 64

// A Label is a word by which objects of a class are found: the store lists all objects of
// a class that have it, without a read of the others. An object has one label or none. The
// zero value is no label. Labels are few and objects are many, so a Label is one word in
// memory; two with the same text are equal.
type Label struct{ text unique.Handle[string] }

// NewLabel returns the label with a text: UTF-8 without NUL, of at most 64 bytes. The empty
// text is no label.
func NewLabel(text string) (Label, error) {
	switch {
	case text == "":
		return Label{}, nil
	case len(text) > maxLabelBytes:
		return Label{}, fmt.Errorf("label has %d bytes, the limit is %d", len(text), maxLabelBytes)
	case !utf8.ValidString(text):
		return Label{}, fmt.Errorf("label %q is not UTF-8", text)
	case strings.Contains(text, "\x00"):
		return Label{}, errors.New("label holds NUL")
	}
	return Label{unique.Make(text)}, nil
}

// String is the text of the label, empty for none.
func (l Label) String() string {
	if l == (Label{}) {
		return ""
	}
	return l.text.Value()
}

// The rows of a label have this form, so that one range read finds all objects of a class
// with a label, in the order of their names:
//
//	shard 0x0b class 0x00 label 0x00 name
//
// The header of the object has the label too. So a turn that changes the label knows the row
// to delete without a search, and an object that ends takes its row along. MoveLabel writes
// the row and SetHeader the header, in one batch, and Check compares the two (S11).

// labelPrefix begins the label rows of a class in a shard, and with a label those of the
// label.
func labelPrefix(dst []byte, shard int, class string, l Label) []byte {
	dst = append(append(prefix(dst, shard, kindLabel), class...), 0)
	if l != (Label{}) {
		dst = append(append(dst, l.String()...), 0)
	}
	return dst
}

// labelKey is the key of the label row of an object.
func labelKey(dst []byte, shard int, id ID, l Label) []byte {
	return append(labelPrefix(dst, shard, id.Class, l), id.Name...)
}

// Neither class nor label holds a zero byte, so the first two zero bytes of a key end them,
// whatever the name holds.

// decodeLabelKey reads a key that labelKey made, without its shard and kind.
func decodeLabelKey(rest []byte) (id ID, label string, err error) {
	class, tail, ok := cut0(rest)
	if !ok {
		return ID{}, "", errKey(rest)
	}
	label, name, ok := cut0(tail)
	if !ok || label == "" {
		return ID{}, "", errKey(rest)
	}
	return ID{class, string(name)}, label, nil
}

// MoveLabel changes the label row of an object from the label that is stored to another.
// Either may be the zero value, for none. The header of the object has its label too, so
// the caller sets the header in the same batch, or drops it.
func (b *Batch) MoveLabel(o Object, from, to Label) {
	if from == to {
		return
	}
	if from != (Label{}) {
		b.Delete(labelKey(make([]byte, 0, keyRoom), o.Shard, o.ID, from))
	}
	if to != (Label{}) {
		b.Set(labelKey(make([]byte, 0, keyRoom), o.Shard, o.ID, to), nil)
	}
}

// Labelled calls f with each object of the class that has the label, by shard and name,
// from the one after the object named after on ("" for the first), until f returns false.
// It reads the rows of that label alone.
func (s *Store) Labelled(class string, l Label, after string, f func(ID) bool) error {
	if l == (Label{}) {
		return nil
	}
	first := 0
	if after != "" {
		first = s.ShardOf(ID{class, after})
	}
	more := true
	for shard := first; shard < s.shards && more; shard++ {
		begin := labelPrefix(nil, shard, class, l)
		// No label goes on where this one ends, because the zero byte behind it ends the range.
		end := PrefixEnd(string(begin))
		if after != "" && shard == first {
			begin = append(append(begin, after...), 0)
		}
		it, err := s.iter(nil, begin, []byte(end), false, 3)
		if err != nil {
			return err
		}
		for more && it.Next() {
			id, _, keyErr := decodeLabelKey(it.Key())
			if keyErr != nil {
				err = s.fail(keyErr)
				break
			}
			more = f(id)
		}
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A host counts its labels once, after it was opened, and follows the changes by itself. The
// objects that were stored before may be millions, so the count is over a snapshot that is
// made before the first turn, and read while turns go on.

// LabelCount counts the objects of each class and label as they were when it was made. It
// is for one goroutine, and must be closed before the store.
type LabelCount struct {
	store *Store
	base  engine.Iterator // over the label rows of all shards, and all that lies between
	shard int             // the shard read last; -1: none
}

// CountLabels returns a count over a snapshot of now. It reads nothing yet.
func (s *Store) CountLabels() (*LabelCount, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.exit()
	lower, _ := kindRange(0, kindLabel)
	_, upper := kindRange(s.shards-1, kindLabel)
	base, err := s.engine.NewIter(lower, upper)
	if err != nil {
		return nil, s.fail(err)
	}
	return &LabelCount{store: s, base: base, shard: -1}, nil
}

// Next calls f with each labelled object of the next shard, until f returns false. It
// reports whether the snapshot has further shards.
func (c *LabelCount) Next(f func(class, label string) bool) (more bool, err error) {
	s := c.store
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.exit()
	c.shard++
	lower, upper := kindRange(c.shard, kindLabel)
	// One iterator serves all shards, because one for each would be 4,096 of them. It skips
	// the rows between by a seek.
	for ok := c.base.SeekGE(lower); ok && bytes.Compare(c.base.Key(), upper) < 0; ok = c.base.Next() {
		id, label, err := decodeLabelKey(c.base.Key()[len(lower):])
		if err != nil {
			return false, s.fail(err)
		}
		// A caller that has enough, for example because its host shuts down, need not wait
		// for the rest of a large shard.
		if !f(id.Class, label) {
			break
		}
	}
	if err := c.base.Error(); err != nil {
		return false, s.fail(err)
	}
	return c.shard+1 < s.shards, nil
}

// Close gives the snapshot back.
func (c *LabelCount) Close() error {
	if err := c.base.Close(); err != nil {
		return c.store.fail(err)
	}
	return nil
}
