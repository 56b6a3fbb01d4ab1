package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// upload puts the files of a directory, which nothing changes meanwhile, into blobs, and returns the snapshot of them without its place.
// Files in m come from memory, see memory.
func (o Options) upload(ctx context.Context, dir pebblestore.Dir, m manifest, instead ...memory) (s shardlog.Snapshot, err error) {
	sources, err := o.sources(ctx, dir, instead)
	if err != nil {
		return s, err
	}
	there, err := o.Blobs.List(ctx, o.Shard)
	if err != nil {
		return s, fmt.Errorf("list blobs: %w", err)
	}
	has := make(map[string]bool, len(there))
	for _, b := range there {
		has[b.Name] = true
	}
	var missing []source
	var size int64
	for _, from := range sources {
		m.files = append(m.files, from.file)
		if from.size > 0 && !has[from.sha256] {
			has[from.sha256] = true
			missing = append(missing, from)
			size += from.size
		}
	}
	o.Logger.Info("snapshot: the upload begins", "files", len(missing), "bytes", size, "ofFiles", len(m.files), "ofBytes", m.bytes())
	p := o.pace("snapshot: the upload goes on", o.BytesPerSecond, size)
	for _, from := range missing {
		if err := o.put(ctx, from, p); err != nil {
			return s, fmt.Errorf("upload %s: %w", from.name, err)
		}
	}
	o.Logger.Info("snapshot: the upload has ended", "bytes", size)
	return shardlog.Snapshot{Manifest: m.text(), Blobs: m.blobs()}, nil
}

// source is a file that can be opened.
type source struct {
	file
	open func() (io.ReadCloser, error)
}

// memory is a file that stands in memory in place of the one of its name.
type memory struct {
	name string
	text []byte
}

// sources are the files of a directory with their hashes, in the order of their names.
func (o Options) sources(ctx context.Context, dir pebblestore.Dir, instead []memory) ([]source, error) {
	names, err := dir.List()
	if err != nil {
		return nil, err
	}
	open := make(map[string]func() (io.ReadCloser, error))
	for _, name := range names {
		info, err := dir.FS.Stat(dir.Join(name))
		if err != nil {
			return nil, err
		}
		if isPlain(name) && !info.IsDir() {
			open[name] = func() (io.ReadCloser, error) { return dir.FS.Open(dir.Join(name)) }
		}
	}
	for _, m := range instead {
		open[m.name] = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.text)), nil }
	}
	var found []source
	for name, open := range open {
		f, err := hashed(ctx, name, open)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		found = append(found, source{f, open})
	}
	slices.SortFunc(found, func(a, b source) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return found, nil
}

// hashed reads a file for its length and hash.
func hashed(ctx context.Context, name string, open func() (io.ReadCloser, error)) (f file, err error) {
	in, err := open()
	if err != nil {
		return f, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, &ending{in, ctx})
	if closed := in.Close(); err == nil {
		err = closed
	}
	return file{name: name, size: n, sha256: hex.EncodeToString(sum.Sum(nil))}, err
}

// ending is a reader that ends with a context.
type ending struct {
	io.Reader
	ctx context.Context
}

func (e *ending) Read(p []byte) (int, error) {
	if err := seam.Cause(e.ctx); err != nil {
		return 0, err
	}
	return e.Reader.Read(p)
}

// put uploads a file.
func (o Options) put(ctx context.Context, from source, p *pacer) error {
	in, err := from.open()
	if err != nil {
		return err
	}
	err = o.Blobs.Put(ctx, o.Shard, from.sha256, &compared{in: in, want: from.file, sum: sha256.New(), ctx: ctx, pacer: p})
	if closed := in.Close(); err == nil {
		err = closed
	}
	return err
}

// compared is a reader of a file that fails at the end if the file is not the one that was hashed. It goes at the rate of its pacer.
type compared struct {
	in    io.Reader
	want  file
	sum   hash.Hash
	n     int64
	ctx   context.Context
	pacer *pacer
}

func (c *compared) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	if err == io.EOF && (c.n != c.want.size || hex.EncodeToString(c.sum.Sum(nil)) != c.want.sha256) {
		return n, fmt.Errorf("%w: %s has changed while it was uploaded", ErrDamaged, c.want.name)
	}
	if waited := c.pacer.moved(c.ctx, n); waited != nil {
		return n, waited
	}
	return n, err
}
