package workload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// blob is an object with values that do not compress.
type blob struct{ st *object.State }

var (
	// Blobs is their class.
	Blobs   = object.Define("blob", func(_ context.Context, st *object.State) (*blob, error) { return &blob{st}, nil })
	putBlob = object.Handle(Blobs, "put", func(b *blob, ctx context.Context, n int) (struct{}, error) {
		value := make([]byte, blobBytes)
		_, _ = rand.Read(value) // it never fails
		return struct{}{}, b.st.Storage().PutBytes(ctx, fmt.Sprint(n), value)
	})
)

// blobBytes is the size of a value.
const blobBytes = 64 << 10

// FillBlobs stores so many bytes.
func (h *Host) FillBlobs(ctx context.Context, bytes int64) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for i := range bytes / blobBytes {
		g.Go(func() error {
			_, err := putBlob.Call(ctx, h, fmt.Sprint(i%1000), int(i))
			return err
		})
	}
	return g.Wait()
}

// Vault is a repository of backups.
type Vault struct {
	*backup.Repository
	dir  string
	name string // of the snapshot
}

// OpenVault opens a repository in a directory.
func OpenVault(dir string) (*Vault, error) {
	r, err := backup.Open(dir, storage.Options{})
	return &Vault{Repository: r, dir: dir}, err
}

// Make makes a snapshot of a host.
func (v *Vault) Make(ctx context.Context, h *Host) (bytes int64, err error) {
	made, err := v.Create(ctx, h.Store())
	v.name = made.Name
	return made.Bytes, err
}

// Check verifies the snapshot.
func (v *Vault) Check(ctx context.Context) error {
	_, err := v.Verify(ctx, v.name, nil)
	return err
}

// RestoreTo restores the snapshot.
func (v *Vault) RestoreTo(ctx context.Context, dir string) error {
	_, err := v.Restore(ctx, v.name, dir)
	return err
}

// LinkTo restores the snapshot with links to the tables of the repository.
func (v *Vault) LinkTo(ctx context.Context, dir string) error {
	_, err := v.RestoreLinked(ctx, v.name, dir)
	return err
}

// Read reads all files of the repository, and returns their size.
func (v *Vault) Read() (bytes int64, err error) {
	err = v.each(func(_ string, r io.Reader) error {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 1<<20))
		bytes += n
		return err
	})
	return bytes, err
}

// CopyTo copies all files of the repository into a directory, one after the other, and syncs each.
func (v *Vault) CopyTo(_ context.Context, dir string) error {
	return v.each(func(name string, r io.Reader) error {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if _, err = io.CopyBuffer(struct{ io.Writer }{f}, r, make([]byte, 1<<20)); err == nil {
			err = f.Sync()
		}
		return errors.Join(err, f.Close())
	})
}

// each calls do with each file of the repository: its name, and its content through read(2).
func (v *Vault) each(do func(name string, r io.Reader) error) error {
	return filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(do(d.Name(), struct{ io.Reader }{f}), f.Close())
	})
}
