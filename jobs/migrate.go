package jobs

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
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
func (r *Reader[T]) Validate() error {
	switch {
	case len(r.Version) > MaxVersionBytes:
		return fmt.Errorf("%w: Version has %d bytes, the limit is %d", ErrInvalid, len(r.Version), MaxVersionBytes)
	case !utf8.ValidString(r.Version):
		return fmt.Errorf("%w: Version %q is not UTF-8", ErrInvalid, r.Version)
	case r.Migrate != nil && r.Version == "":
		return fmt.Errorf("%w: %s needs a Version: without one no value is of another version", ErrInvalid, r.Field)
	}
	return nil
}

// Read sets *into to the value that raw is, which was stored under the version
// from: by Migrate if that is another version than the present, else by the codec.
// Migrate gets a copy of raw; a panic in it is an error. If the value cannot be
// read, *into is zero, and the error wants its object (DecodeError.Of).
func (r *Reader[T]) Read(codec object.Codec, from string, raw []byte, into *T) *DecodeError {
	migrates := r.Migrate != nil && from != r.Version
	var err error
	if migrates {
		*into, err = r.migrate(from, raw)
	} else {
		err = codec.Decode(raw, into)
	}
	if err == nil {
		return nil
	}
	var none T
	*into = none
	return &DecodeError{Stored: from, Version: r.Version, Err: err, field: r.Field, migrated: migrates}
}

// migrate calls Migrate.
func (r *Reader[T]) migrate(from string, raw []byte) (v T, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		switch p := recover(); p := p.(type) {
		case nil: // runtime.Goexit, which the caller of the work tells of
		case seam.Killed:
			panic(p)
		default:
			err = &PanicError{Value: p, Stack: string(debug.Stack())}
		}
	}()
	v, err = r.Migrate(from, bytes.Clone(raw))
	returned = true
	return v, err
}

// DecodeError says that a stored value cannot be read by the present definition: it
// does not decode, or its migration failed. The value is kept as it is.
type DecodeError struct {
	ID      storage.ID // of the object
	Value   string     // its name in the object, say "state"
	Stored  string     // the version that it was stored under; empty if that had none
	Version string     // of the present definition
	Err     error      // of the codec, or of Migrate

	field    string
	migrated bool
}

// Of returns e as that of a value of an object.
func (e *DecodeError) Of(id storage.ID, value string) *DecodeError {
	e.ID, e.Value = id, value
	return e
}

// maxCauseBytes is how much of the text of its cause is in a DecodeError, so that the
// text is stored whole, with its advice (MaxTextBytes), but for very long names.
const maxCauseBytes = 512

// Error names the object, the value, both versions, the cause, and a way out.
func (e *DecodeError) Error() string {
	failed := "does not decode"
	if e.migrated {
		failed = "is not migrated"
	}
	return fmt.Sprintf("%s: %s, stored under %s and read under %s, %s: %s: %s, or go back to %s",
		e.ID, e.Value, called(e.Stored), called(e.Version), failed, alarm.Cut(e.cause(), maxCauseBytes), e.remedy(), e.origin())
}

// remedy is the way forward.
func (e *DecodeError) remedy() string {
	switch {
	case e.migrated:
		return "mend Config." + e.field
	case e.Version == "":
		return "give Config a Version, and Config." + e.field
	case e.Version == e.Stored:
		return "give Config another Version, and Config." + e.field
	}
	return "give Config." + e.field
}

// origin is the way back.
func (e *DecodeError) origin() string {
	if e.Stored == "" || e.Stored == e.Version {
		return "the program that stored it"
	}
	return called(e.Stored)
}

// cause is the text of Err, without the package of a panic.
func (e *DecodeError) cause() string {
	if p, ok := e.Err.(*PanicError); ok {
		return fmt.Sprintf("it panicked: %v", p.Value)
	}
	return e.Err.Error()
}

func called(version string) string {
	if version == "" {
		return "no version"
	}
	return fmt.Sprintf("version %q", version)
}

// Unwrap returns the error of the codec, or of Migrate.
func (e *DecodeError) Unwrap() error { return e.Err }
