package storage

import (
	"errors"
	"fmt"
)

// Errors of opening a store.
var (
	// ErrLocked is returned by Open when another store is open on the directory;
	// the error names the process that holds it.
	ErrLocked = errors.New("storage: directory is in use")
	// ErrFormat is returned by Open when the directory was written in a format
	// that this version does not read, or with another number of shards.
	ErrFormat = errors.New("storage: format does not fit")
	// ErrNotStore is returned by Open when the directory is not empty and was
	// not made by Holdfast, or is no directory.
	ErrNotStore = errors.New("storage: not a store")
)

// Errors of using a store.
var (
	// ErrStorage is wrapped by every error after which the store is dead. A
	// commit that was not yet reported durable may or may not have survived.
	ErrStorage = errors.New("storage failed")
	// ErrCorrupt is wrapped, beside ErrStorage, when the files hold what was
	// never written.
	ErrCorrupt = errors.New("files are damaged")
	// ErrAckedDataLost is returned by Open with Options.Witness when the store
	// lacks commits that were reported durable.
	ErrAckedDataLost = errors.New("storage: acknowledged data is lost")
	// ErrNoSpace is returned by Commit when free space is below the floor.
	// Nothing was changed; the same commit may be tried again.
	ErrNoSpace = errors.New("storage: no space left")
	// ErrClosed is wrapped, beside ErrStorage, after Close.
	ErrClosed = errors.New("storage: closed")
	// ErrNotFound is what an Engine returns for an absent key.
	ErrNotFound = errors.New("storage: key not found")
)

// fatalError is the first error that ended a store.
type fatalError struct{ cause error }

func (e *fatalError) Error() string   { return fmt.Sprintf("%v: %v", ErrStorage, e.cause) }
func (e *fatalError) Unwrap() []error { return []error{ErrStorage, e.cause} }
