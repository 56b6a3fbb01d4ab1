// Package memstore is an engine.Engine in memory for simulations, with crashes.
//
//   - Apply makes a batch visible, Sync makes all visible batches durable, and Crash
//     returns the store that a process finds after the one before died: the durable
//     batches and as many of the later ones, in order, as the caller asks for.
//   - A snapshot, and a crash, costs nothing: the tree of keys is never changed,
//     only replaced along the path of a change.
package memstore

import (
	"errors"
	"io"
	"sync"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Store is an engine in memory. The methods of engine.Engine may be called
// concurrently. It never fails before it is closed.
type Store struct {
	mu     sync.Mutex
	root   *node   // everything applied
	synced *node   // everything durable
	later  []*node // the root after each batch applied since the last Sync
	closed bool
}

var _ engine.Engine = (*Store)(nil)

var errClosed = errors.New("memstore: closed")

// New returns an empty store.
func New() *Store { return &Store{} }

// Unsynced is the number of batches applied since the last Sync.
func (s *Store) Unsynced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.later)
}

// Crash returns a store that holds the durable batches of s and the first keep of
// its unsynced ones, or all of them if there are fewer. s is not changed.
func (s *Store) Crash(keep int) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.synced
	if keep = min(keep, len(s.later)); keep > 0 {
		root = s.later[keep-1]
	}
	return &Store{root: root, synced: root}
}

// Apply implements engine.Engine.
func (s *Store) Apply(repr []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	root := s.root
	err := engine.ReadBatch(repr, func(r engine.Record) {
		switch {
		case !r.Deleted:
			root = root.set(string(r.Key), append([]byte{}, r.Value...))
		case r.Upper != nil:
			root = root.deleteRange(string(r.Key), string(r.Upper))
		default:
			root = root.delete(string(r.Key))
		}
	})
	if err != nil {
		return err
	}
	s.root = root
	s.later = append(s.later, root)
	return nil
}

// Sync implements engine.Engine.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.sync()
	return nil
}

func (s *Store) sync() {
	s.synced = s.root
	clear(s.later)
	s.later = s.later[:0]
}

// Get implements engine.Engine.
func (s *Store) Get(key []byte) ([]byte, io.Closer, error) {
	root, err := s.snapshot()
	if err != nil {
		return nil, nil, err
	}
	n := root.find(string(key))
	if n == nil {
		return nil, nil, engine.ErrNotFound
	}
	return n.value, nothing{}, nil
}

func (s *Store) snapshot() (*node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	return s.root, nil
}

// nothing is the closer of a value, which needs no release.
type nothing struct{}

func (nothing) Close() error { return nil }

// NewIter implements engine.Engine.
func (s *Store) NewIter(lower, upper []byte) (engine.Iterator, error) {
	root, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	return &iterator{root: root, lower: string(lower), upper: string(upper), open: upper == nil}, nil
}

// Usage implements engine.Engine.
func (s *Store) Usage(lower, upper []byte) (sizeBytes uint64, err error) {
	it, err := s.NewIter(lower, upper)
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, _ := it.ValueAndErr()
		sizeBytes += uint64(len(it.Key()) + len(v))
	}
	return sizeBytes, it.Close()
}

// Close implements engine.Engine. It makes everything durable, so that Crash finds it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.sync()
		s.closed = true
	}
	return nil
}
