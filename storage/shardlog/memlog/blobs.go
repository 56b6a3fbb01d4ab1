package memlog

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Put implements shardlog.Blobs.
func (l *Log) Put(ctx context.Context, shard int, name string, r io.Reader) error {
	if name == "" {
		return fmt.Errorf("%w: a blob has an empty name", shardlog.ErrRefused)
	}
	var parts [][]byte
	for {
		there, err := l.parts(ctx, shard, name)
		if err != nil || there != nil {
			return err
		}
		part, err := io.ReadAll(io.LimitReader(r, shardlog.PartBytes))
		if err != nil {
			return err
		}
		if len(part) == 0 {
			break
		}
		parts = append(parts, part)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	l.at(shard).blobs[name] = append([][]byte{}, parts...) // not nil, although it may be empty
	return nil
}

// Get implements shardlog.Blobs.
func (l *Log) Get(ctx context.Context, shard int, name string, f func(part []byte) error) error {
	for n := 0; ; n++ {
		parts, err := l.parts(ctx, shard, name)
		switch {
		case err != nil:
			return err
		case parts == nil:
			return fmt.Errorf("%w: %s", shardlog.ErrMissing, name)
		case n == len(parts):
			return nil
		}
		if err := f(slices.Clone(parts[n])); err != nil {
			return err
		}
	}
}

// parts returns the parts of a blob, or nil if it is not there.
func (l *Log) parts(ctx context.Context, shard int, name string) ([][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return nil, err
	}
	return l.at(shard).blobs[name], nil
}

// List implements shardlog.Blobs.
func (l *Log) List(ctx context.Context, shard int) ([]shardlog.Blob, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return nil, err
	}
	s := l.at(shard)
	var found []shardlog.Blob
	for _, name := range slices.Sorted(maps.Keys(s.blobs)) {
		b := shardlog.Blob{Name: name}
		for _, part := range s.blobs[name] {
			b.Bytes += int64(len(part))
		}
		found = append(found, b)
	}
	return found, nil
}

// Collect implements shardlog.Blobs.
func (l *Log) Collect(ctx context.Context, shard int, term uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	s := l.at(shard)
	if err := s.owned(term); err != nil {
		return err
	}
	s.collect()
	return nil
}

// collect removes the blobs that no snapshot names.
func (s *shard) collect() {
	named := make(map[string]bool)
	for _, snapshot := range s.kept() {
		for _, name := range snapshot.Blobs {
			named[name] = true
		}
	}
	maps.DeleteFunc(s.blobs, func(name string, _ [][]byte) bool { return !named[name] })
}
