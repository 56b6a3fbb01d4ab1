package engine

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// MaxVersionBytes bounds the Version of a definition.
const MaxVersionBytes = 128

// Reader reads the values of a job type that were stored under any version of its
// definition (J15). Its methods may be called from any task.
type Reader[T any] struct {
	// Version is that of the present definition.
	Version string
	// Migrate makes a T of the bytes of a value that was stored under another
	// version, and of no other. Nil: the codec decodes those of all versions.
	Migrate func(from string, raw []byte) (T, error)
	// Field is the name of Migrate in the Config of the definition.
	Field string
}

// Validate reports the first mistake in r, as an ErrInvalid: a Version that is
// longer than MaxVersionBytes or no UTF-8, or a Migrate without a Version.
func (r *Reader[T]) Validate() error { return validVersion(r.Version, r.Migrate != nil, r.Field) }

// validVersion is Validate without the type of the values.
func validVersion(version string, migrates bool, field string) error {
	switch {
	case len(version) > MaxVersionBytes:
		return fmt.Errorf("%w: Version has %d bytes, the limit is %d", jobs.ErrInvalid, len(version), MaxVersionBytes)
	case !utf8.ValidString(version):
		return fmt.Errorf("%w: Version %q is not UTF-8", jobs.ErrInvalid, version)
	case migrates && version == "":
		return fmt.Errorf("%w: %s needs a Version: without one no value is of another version", jobs.ErrInvalid, field)
	}
	return nil
}

// Read sets *into to the value that raw is, which was stored under the version
// from: by Migrate if that is another version than the present, else by the codec.
// Migrate gets a copy of raw; a panic in it is an error. If the value cannot be
// read, *into is zero, and the error wants its object (DecodeError.Of).
func (r *Reader[T]) Read(codec object.Codec, from string, raw []byte, into *T) *jobs.DecodeError {
	migrates := r.Migrate != nil && from != r.Version
	var err error
	if migrates {
		err = migrate(raw, func(raw []byte) (err error) {
			*into, err = r.Migrate(from, raw)
			return err
		})
	} else {
		err = codec.Decode(raw, into)
	}
	if err == nil {
		return nil
	}
	var none T
	*into = none
	return &jobs.DecodeError{Stored: from, Version: r.Version, Err: err, Field: r.Field, Migrated: migrates}
}

// migrate calls Migrate. If that ends its goroutine, the caller of the work tells of it.
func migrate(raw []byte, call func(raw []byte) error) error {
	return seam.Guard(func() error { return call(bytes.Clone(raw)) }, func(p *seam.PanicError) error { return p })
}
