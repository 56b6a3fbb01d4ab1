package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderBytes is the length of the header of a batch.
const HeaderBytes = 12

// The kinds of records, which are those of Pebble's batches.
const (
	KindDelete      = 0
	KindSet         = 1
	KindDeleteRange = 15
)

// A Record is one change of a batch: a value set, a key deleted, or the keys in
// [Key, Upper) deleted. Its slices are parts of the batch.
type Record struct {
	Key, Value, Upper []byte
	Deleted           bool // Key is deleted, or the range if Upper is set
}

// ReadBatch calls f with each record of repr in order. It returns an error if repr is
// not the representation of a batch; f may have been called for its first records.
func ReadBatch(repr []byte, f func(Record)) error {
	if len(repr) < HeaderBytes {
		return fmt.Errorf("storage: batch of %d bytes", len(repr))
	}
	rest := repr[HeaderBytes:]
	for range binary.LittleEndian.Uint32(repr[8:]) {
		record, tail, err := readRecord(rest)
		if err != nil {
			return err
		}
		f(record)
		rest = tail
	}
	if len(rest) != 0 {
		return fmt.Errorf("storage: %d bytes after the batch", len(rest))
	}
	return nil
}

// readRecord reads the first record of b and returns the bytes after it.
func readRecord(b []byte) (r Record, rest []byte, err error) {
	if len(b) == 0 {
		return r, nil, errors.New("storage: batch ends early")
	}
	kind := b[0]
	key, rest, ok := takeBytes(b[1:])
	var second []byte
	if ok && kind != KindDelete {
		second, rest, ok = takeBytes(rest)
	}
	if !ok {
		return r, nil, errors.New("storage: batch record is cut off")
	}
	switch kind {
	case KindSet:
		return Record{Key: key, Value: second}, rest, nil
	case KindDelete:
		return Record{Key: key, Deleted: true}, rest, nil
	case KindDeleteRange:
		return Record{Key: key, Upper: second, Deleted: true}, rest, nil
	}
	return r, nil, fmt.Errorf("storage: batch record of kind %d", kind)
}

// takeBytes splits off a field, which has its length before it.
func takeBytes(b []byte) (field, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(n)], b[w+int(n):], true
}
