package engine

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage"
)

// Versions says under which version of its definition each value of an object was
// stored. Values are numbered in the order in which they were stored, and only a
// change of the version takes room: it is as it is stored, for each change
//
//	uvarint number of the first value · version as a text
//
// with numbers that grow. Values before the first change have no version; so has
// each value of the empty Versions. Two are equal if they say the same.
type Versions string

// At returns the version that value n was stored under.
func (v Versions) At(n uint64) (version string) {
	for v != "" {
		first, text, rest := v.next()
		if first > n {
			break
		}
		version, v = text, rest
	}
	return version
}

// Last returns the version of the newest values.
func (v Versions) Last() string { return v.At(1<<64 - 1) }

// From returns v where value n and those after it are stored under a version.
func (v Versions) From(n uint64, version string) Versions {
	kept := v.before(n)
	switch {
	case kept.Last() == version:
		return kept
	case v.before(n+1) == v && v.Last() == version: // just so already
		return v
	}
	return Versions(row.Writer(kept).Uint(n).Text(version))
}

// before returns the changes of v at values below n.
func (v Versions) before(n uint64) Versions {
	rest := v
	for rest != "" {
		first, _, next := rest.next()
		if first >= n {
			break
		}
		rest = next
	}
	return v[:len(v)-len(rest)]
}

// Since returns v without the changes that concern values below n alone.
func (v Versions) Since(n uint64) Versions {
	for v != "" {
		_, _, rest := v.next()
		if rest == "" {
			break
		}
		if first, _, _ := rest.next(); first > n {
			break
		}
		v = rest
	}
	return v
}

// next splits off the first change of a v that is not empty.
func (v Versions) next() (first uint64, version string, rest Versions) {
	first, v = v.uvarint()
	size, v := v.uvarint()
	return first, string(v[:size]), v[size:]
}

func (v Versions) uvarint() (n uint64, rest Versions) {
	for i, shift := 0, 0; i < len(v); i, shift = i+1, shift+7 {
		n |= uint64(v[i]&0x7f) << shift
		if v[i] < 0x80 {
			return n, v[i+1:]
		}
	}
	return n, ""
}

// ParseVersions reads Versions as they are stored. Its error is a storage.ErrCorrupt.
func ParseVersions(b []byte) (Versions, error) {
	r := row.Read(b)
	for last, some := uint64(0), false; r.Len() > 0; some = true {
		first := r.Uint()
		r.Bytes()
		r.Required()
		if some && first <= last {
			r.Fail()
		}
		last = first
	}
	if !r.OK() {
		return "", fmt.Errorf("%w: versions %x", storage.ErrCorrupt, b)
	}
	return Versions(b), nil
}
