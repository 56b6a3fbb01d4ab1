package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-dev/holdfast/internal/row"
)

// MaxNameBytes bounds the length of an object's name (O1).
const MaxNameBytes = 1024

// maxClassBytes bounds the length of a class name.
const maxClassBytes = 128

// ID names an object for ever. An object that is deleted and made again has the same
// ID and another Number.
type ID struct {
	Class string `json:"class"`
	Name  string `json:"name"`
}

// String is the class and the name with a slash between.
func (id ID) String() string { return id.Class + "/" + id.Name }

// Validate reports why id cannot name an object: a name is UTF-8 of 1 to
// MaxNameBytes bytes, a class the same without NUL or slash, up to 128 bytes.
func (id ID) Validate() error {
	if err := ValidateClass(id.Class); err != nil {
		return err
	}
	switch {
	case id.Name == "":
		return errors.New("name is empty")
	case len(id.Name) > MaxNameBytes:
		return fmt.Errorf("name has %d bytes, the limit is %d", len(id.Name), MaxNameBytes)
	case !utf8.ValidString(id.Name):
		return fmt.Errorf("name %q is not UTF-8", id.Name)
	}
	return nil
}

// ValidateClass reports why class cannot name a class.
func ValidateClass(class string) error {
	switch {
	case class == "":
		return errors.New("class name is empty")
	case len(class) > maxClassBytes:
		return fmt.Errorf("class name has %d bytes, the limit is %d", len(class), maxClassBytes)
	case !utf8.ValidString(class):
		return fmt.Errorf("class name %q is not UTF-8", class)
	case strings.ContainsAny(class, "\x00/"):
		return fmt.Errorf("class name %q holds NUL or a slash", class)
	}
	return nil
}

// A Number stands for an object in its keys, so that a long name is stored once and not
// in each key, and so that a new life of an object never meets rows of an old one. Each life of an object has a fresh
// one: an epoch in the upper half, a counter in the lower (numbers.go).
type Number uint64

// The layout of keys. Every key begins with its shard, two bytes big-endian, and
// a byte for its kind. FORMAT.md draws the tables.
const (
	kindHeader  = 0x01 // class 0x00 name                  → number, epoch
	kindRow     = 0x02 // number, sub-kind, …              → rows of one life of an object
	kindIndex   = 0x03 // due, number                      → generation, class, name
	kindOpen    = 0x04 // number                           → open-execution mark
	kindExpiry  = 0x05 // time, how the expiring keys begin → nothing, or class 0x00 name
	kindEvent   = 0x06 // class 0x00 name length, name, seq → event
	kindDead    = 0x07 // class 0x00 name length, name, generation → dead letter
	kindMessage = 0x08 // class 0x00 name length, name, queue, seq, row → message, or its state
	kindLater   = 0x09 // due, seq → queue, class 0x00 name of the receiver
	kindFeed    = 0x0a // position; of metaShard alone → event's object, seq, kind
	kindLabel   = 0x0b // class 0x00 label 0x00 name     → nothing
	kindEnd     = 0x0c

	subAlarm = 0x01 // the alarm row
	subData  = 0x02 // the user's keys
	subMark  = 0x03 // marks: removal of the bucket, key
	subEnd   = 0x04

	metaShard = 0xffff // rows of the store itself
	// MaxShards bounds the number of shards of a store.
	MaxShards = 4096
)

// ShardOf returns the shard of id among shards. It is a hash of class and name, so it
// is the same in each process, and objects of one class spread over all shards. Keys of
// one shard lie together, because readers of the alarm index read shard by shard.
func ShardOf(id ID, shards int) int {
	var room [2 * keyRoom]byte // names are mostly short: then this is no allocation
	text := append(append(room[:0], id.Class...), 0)
	text = append(text, id.Name...)
	return int(xxhash.Sum64(text) % uint64(shards))
}

// prefix begins each key: shard and kind.
func prefix(dst []byte, shard int, kind byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(shard)), kind)
}

// kindRange returns the bounds of all keys of one kind in a shard.
func kindRange(shard int, kind byte) (lower, upper []byte) {
	return prefix(nil, shard, kind), prefix(nil, shard, kind+1)
}

// keyRoom is the room for a key that is made only to be copied into a batch: one
// that fits needs no allocation.
const keyRoom = 64

// headerKey is the key of the header of an object.
func headerKey(dst []byte, shard int, id ID) []byte {
	dst = prefix(dst, shard, kindHeader)
	dst = append(dst, id.Class...)
	dst = append(dst, 0)
	return append(dst, id.Name...)
}

// rowPrefixLen is the length of the keys that rowKey makes.
const rowPrefixLen = 12

// rowKey begins the rows of one life of an object.
func rowKey(dst []byte, shard int, n Number, sub byte) []byte {
	dst = prefix(dst, shard, kindRow)
	dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	return append(dst, sub)
}

// indexKey is the key of an alarm in the alarm index, which sorts by due time.
func indexKey(dst []byte, shard int, due int64, n Number) []byte {
	dst = prefix(dst, shard, kindIndex)
	dst = binary.BigEndian.AppendUint64(dst, uint64(due))
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

// openKey is the key of an open-execution mark.
func openKey(dst []byte, shard int, n Number) []byte {
	return binary.BigEndian.AppendUint64(prefix(dst, shard, kindOpen), uint64(n))
}

// expiryPrefixLen is the length of an entry of the expiry index before the expiring
// key, which it has without the shard.
const expiryPrefixLen = 11

// expiryKey is the key of an entry of the expiry index: rows with keys that begin with
// key, which has no shard, go at the given time.
func expiryKey(dst []byte, shard int, at int64, key []byte) []byte {
	dst = prefix(dst, shard, kindExpiry)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	return append(dst, key...)
}

// namedPrefix begins the keys of kinds that outlive the object: events and dead
// letters. The length before the name keeps names apart that begin alike.
func namedPrefix(dst []byte, shard int, kind byte, id ID) []byte {
	dst = prefix(dst, shard, kind)
	dst = append(dst, id.Class...)
	dst = append(dst, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(id.Name)))
	return append(dst, id.Name...)
}

// namedKey is the key of an event or a dead letter.
func namedKey(dst []byte, shard int, kind byte, id ID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(namedPrefix(dst, shard, kind, id), seq)
}

// decodeNamed splits a key that namedKey made, without its shard and kind.
func decodeNamed(rest []byte) (id ID, seq uint64, err error) {
	class, tail, ok := cut0(rest)
	if !ok || len(tail) < 2 {
		return ID{}, 0, errKey(rest)
	}
	n := int(binary.BigEndian.Uint16(tail))
	tail = tail[2:]
	if len(tail) != n+8 {
		return ID{}, 0, errKey(rest)
	}
	return ID{class, string(tail[:n])}, binary.BigEndian.Uint64(tail[n:]), nil
}

// decodeHeaderKey reads a key that headerKey made, without its shard and kind.
func decodeHeaderKey(rest []byte) (ID, error) {
	class, name, ok := cut0(rest)
	if !ok {
		return ID{}, errKey(rest)
	}
	return ID{class, string(name)}, nil
}

// cut0 splits b at its first zero byte.
func cut0(b []byte) (class string, rest []byte, ok bool) {
	for i, c := range b {
		if c == 0 {
			return string(b[:i]), b[i+1:], true
		}
	}
	return "", nil, false
}

// errKey is the error of a key that no function here makes.
func errKey(b []byte) error { return fmt.Errorf("%w: key %x", ErrCorrupt, b) }

// after returns the smallest key greater than all keys that begin with p.
func after(p []byte) []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0xff {
			q := append([]byte(nil), p[:i+1]...)
			q[i]++
			return q
		}
	}
	return nil
}

// header is the value of a header row.
type header struct {
	number Number
	epoch  uint64 // of the last commit of the object
	label  Label
}

const headerVersion = 1

// appendHeader appends the value of a header row. An object without a label has none
// there, so its header is that of format 3.
func appendHeader(dst []byte, h header) []byte {
	w := row.Writer(dst).Byte(headerVersion).Uint(uint64(h.number)).Uint(h.epoch)
	if h.label != (Label{}) {
		w = w.Text(h.label.String())
	}
	return w
}

// decodeHeader reads the value that appendHeader has appended.
func decodeHeader(b []byte) (h header, err error) {
	r := row.Read(b)
	version := r.Byte()
	h = header{number: Number(r.Uint()), epoch: r.Uint()}
	r.Required()
	if text := r.Bytes(); len(text) > 0 && r.OK() {
		if h.label, err = NewLabel(string(text)); err != nil {
			return header{}, fmt.Errorf("%w: header %x: %w", ErrCorrupt, b, err)
		}
	}
	r.End()
	if version != headerVersion || !r.OK() {
		return header{}, fmt.Errorf("%w: header %x", ErrCorrupt, b)
	}
	return h, nil
}
