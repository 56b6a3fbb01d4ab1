package alarm

import "encoding/binary"

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
	dst = append(dst, indexVersion)
	dst = binary.AppendUvarint(dst, gen)
	dst = appendText(dst, class)
	return appendText(dst, name)
}

// DecodeIndex is the reverse of AppendIndex. It copies what it returns. Its
// error wraps ErrCorrupt.
func DecodeIndex(b []byte) (gen uint64, class, name string, err error) {
	d := decoder{what: "index"}
	d.version(b)
	gen = d.uvarint()
	all := d.rest
	c := len(d.bytes())
	classEnd := len(all) - len(d.rest)
	n := len(d.bytes())
	nameEnd := len(all) - len(d.rest)
	if d.err != nil {
		return 0, "", "", d.err
	}
	text := string(all[:nameEnd]) // one allocation for both
	return gen, text[classEnd-c : classEnd], text[nameEnd-n:], nil
}
