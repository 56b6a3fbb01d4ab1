package engine

import (
	"errors"
	"io"
)

// Engine is an ordered key-value store with atomic batches. All methods may be
// called concurrently, but Close only when no other call is under way.
type Engine interface {
	// Get returns the value of key, which stays valid until closer is closed,
	// or ErrNotFound with a nil closer.
	Get(key []byte) (value []byte, closer io.Closer, err error)
	// NewIter returns an iterator over a snapshot of the keys in [lower, upper).
	// A nil bound is none.
	NewIter(lower, upper []byte) (Iterator, error)
	// Apply makes the batch with the representation repr visible as a whole.
	// It does not wait until the batch is durable, and does not keep repr.
	Apply(repr []byte) error
	// Sync returns nil when every batch is durable that was applied before the call.
	Sync() error
	// Usage estimates the bytes that the keys in [lower, upper) take.
	Usage(lower, upper []byte) (sizeBytes uint64, err error)
	// Close makes everything durable and releases the engine. Iterators that are
	// still open may be moved and closed afterwards.
	Close() error
}

// Iterator walks the keys of a snapshot in byte order. It is for one goroutine.
// The positioning methods report whether a key was found; Key and Value stay
// valid until the next of them.
type Iterator interface {
	First() bool
	Last() bool
	SeekGE(key []byte) bool // to the first key that is not less
	SeekLT(key []byte) bool // to the last key that is less
	// SetBounds moves the iterator to the keys in [lower, upper) of the same snapshot, and off
	// its key. The bounds stay the caller's.
	SetBounds(lower, upper []byte)
	Next() bool
	Prev() bool
	Valid() bool
	Key() []byte
	ValueAndErr() ([]byte, error)
	// Error returns the error that ended the walk early, or nil at its end.
	Error() error
	Close() error
}

// Mortal is an Engine that can fail between two calls, for example because a write
// in the background failed. A Store asks such an engine to tell it at once, so that
// an idle program learns of a broken disk before its next commit.
type Mortal interface {
	Engine
	// OnDeath calls f with the error when the engine fails, or now if it has
	// failed. f may be called more than once, and while the engine holds locks: it
	// must not call the engine.
	OnDeath(f func(error))
}

// Fenced is an Engine over a log that another process can take over between two calls. Its reads say what this process
// knows, so a Store asks with Sync before a reply that depends on reads alone leaves. Nil says that no other process
// had taken over when the call began, also if nothing was applied since the Sync before. Sync may take minutes, because
// it waits while the log does not answer.
type Fenced interface {
	Engine
	// GiveUp makes a Sync that waits for the log, and each later one, return an error soon.
	GiveUp()
	// Full returns an error while the log refuses batches because it has no space left. A Sync waits until it has. Full
	// answers at once.
	Full() error
	// Replaced reports whether the process that had the log before this opening has another name, and so is another
	// node. It is false for a log that nobody had, and does not tell how that process ended.
	Replaced() bool
}

// Errors of an engine, which the Store tells from all others.
var (
	// ErrNotFound is the answer of Get for a key that is absent.
	ErrNotFound = errors.New("storage: key not found")
	// ErrCorrupt is wrapped by each error for bytes that were never written so:
	// a damaged file, or a row that cannot be read.
	ErrCorrupt = errors.New("files are damaged")
)
