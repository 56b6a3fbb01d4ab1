package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Verify reads each blob of a snapshot back and compares its length and hash with the manifest. It returns ErrDamaged for one that differs,
// and shardlog.ErrMissing for one that is not there. Its reads have no limit of rate. The end of ctx ends it with the cause of ctx.
func (o Options) Verify(ctx context.Context, s shardlog.Snapshot) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	return o.wrap("verifying", o.verify(ctx, s))
}

func (o Options) verify(ctx context.Context, s shardlog.Snapshot) error {
	m, err := read(s)
	if err != nil {
		return err
	}
	o.Logger.Info("snapshot: the verification begins", "record", s.Last, "bytes", m.bytes())
	p := o.pace("snapshot: the verification goes on", 0, m.bytes())
	seen := make(map[string]bool, len(m.files))
	for _, f := range m.files {
		if seen[f.sha256] {
			continue
		}
		seen[f.sha256] = true
		if err := o.get(ctx, f, p, func([]byte) error { return nil }); err != nil {
			return err
		}
	}
	o.Logger.Info("snapshot: the verification has ended", "record", s.Last)
	return nil
}

// get calls f with the parts of the blob of a file, and compares all of them with the manifest at the end.
func (o Options) get(ctx context.Context, want file, p *pacer, f func(part []byte) error) error {
	sum := sha256.New()
	n := int64(0)
	give := func(part []byte) error {
		sum.Write(part)
		if n += int64(len(part)); n > want.size {
			return errLong
		}
		if err := f(part); err != nil {
			return err
		}
		return p.moved(ctx, len(part))
	}
	if want.size > 0 {
		if err := o.Blobs.Get(ctx, o.Shard, want.sha256, give); err != nil && !errors.Is(err, errLong) {
			return fmt.Errorf("%s: %w", want.name, err)
		}
	}
	if n != want.size || hex.EncodeToString(sum.Sum(nil)) != want.sha256 {
		return fmt.Errorf("%w: the blob of %s, %s, is not the file that was uploaded", ErrDamaged, want.name, want.sha256)
	}
	return nil
}

// errLong ends the read of a blob that is longer than its file.
var errLong = errors.New("snapshot: the blob is too long")
