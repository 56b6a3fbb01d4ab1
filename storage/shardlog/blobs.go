package shardlog

import (
	"context"
	"io"
)

// PartBytes is how long the parts are in which blobs are moved. The last one of a blob may be shorter.
const PartBytes = 4 << 20

// Blobs keeps the files of snapshots, for each shard its own. A name is that of a content, such as its hash: two blobs of one name have the
// same bytes. Its methods may be called from any goroutine. Package shardlogtest tests an implementation.
//
// Unknown outcomes are those of a Directory, and each method may be called again.
type Blobs interface {
	// Put stores a blob from a reader up to its end, part by part, and returns an error of the reader as it is. The blob is there as a
	// whole or not at all. If a blob of the name is there, Put may store nothing and need not read. A blob may be lost in a crash
	// of the engine, as a whole, until a snapshot that names it is registered. The name must not be empty.
	Put(ctx context.Context, shard int, name string, r io.Reader) error
	// Get calls f with the parts of a blob in order, until f fails, and returns the error of f. The part is valid during the
	// call, and f may call the Blobs. It returns ErrMissing if the blob is not there, also when it is removed meanwhile.
	Get(ctx context.Context, shard int, name string, f func(part []byte) error) error
	// List returns the blobs of a shard, in the order of their names.
	List(ctx context.Context, shard int) ([]Blob, error)
	// Collect removes the blobs of a shard that no snapshot names, and what earlier calls of Put have left, if term is the newest. Snapshots are
	// those that Directory.Snapshots returns. It returns ErrFenced, and removes nothing, if another term has begun or the shard is in
	// quarantine. Collect and Register wait for one another, so no snapshot names a blob that is removed. Beside a Put of the shard, it may
	// remove that blob: the owner makes one call after the other. The term of a shard without a claim is 0.
	Collect(ctx context.Context, shard int, term uint64) error
}

// Blob is a blob in a list.
type Blob struct {
	Name  string
	Bytes int64
}
