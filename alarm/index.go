package alarm

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/row"
)

// An index value is
//
//	version (1 byte) | gen | class | name
//
// with uvarint for gen and for the length of each text. The time and the object
// number are in the key, which belongs to the store. Newer fields follow name.
const indexVersion = 1

// AppendIndex appends to dst the value of an index entry: the generation of the
// row it points to and the object's class and name.
func AppendIndex(dst []byte, gen uint64, class, name string) []byte {
	return row.Writer(dst).Byte(indexVersion).Uint(gen).Text(class).Text(name)
}

// DecodeIndex reads a value that AppendIndex has appended. It copies the texts. Its
// error wraps ErrCorrupt.
func DecodeIndex(b []byte) (gen uint64, class, name string, err error) {
	d := row.Read(b)
	version := d.Byte()
	gen = d.Uint()
	c := len(d.Bytes())
	classEnd := len(b) - d.Len()
	n := len(d.Bytes())
	nameEnd := len(b) - d.Len()
	d.Required()
	if version == 0 || !d.OK() {
		return 0, "", "", fmt.Errorf("%w: index entry %x", ErrCorrupt, b)
	}
	text := string(b[:nameEnd]) // one allocation for both
	return gen, text[classEnd-c : classEnd], text[nameEnd-n:], nil
}
