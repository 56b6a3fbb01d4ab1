package storage

import "io"

// Engine is an ordered key-value store with atomic batches: what a Store keeps
// its rows in. Pebble is the one of production; storage/memstore is a plain map
// for simulations. All methods may be called concurrently.
type Engine interface {
	// Get returns the value of key, which stays valid until closer is closed,
	// or ErrNotFound with a nil closer.
	Get(key []byte) (value []byte, closer io.Closer, err error)
	// NewIter returns an iterator over a snapshot of the keys in [lower, upper).
	NewIter(lower, upper []byte) (Iterator, error)
	// Apply makes the batch with the representation repr visible as a whole.
	// It does not wait until it is durable and does not keep repr. What survives
	// a crash is a prefix of the order in which Apply returned.
	Apply(repr []byte) error
	// Sync returns when every batch whose Apply returned before is durable.
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
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	Next() bool
	Prev() bool
	Valid() bool
	Key() []byte
	ValueAndErr() ([]byte, error)
	Error() error
	Close() error
}
