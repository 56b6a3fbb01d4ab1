package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Create makes a snapshot of an open store while commits go on. It makes a checkpoint in the new
// directory DIR.checkpoint beside that of the store, which costs links and little space on the
// same disk, and removes it at the end. It counts as a backup after Verify.
//
// An error is that of the backup alone: the store lives on, and no snapshot is there. It wraps
// the errors of storage.Store.Checkpoint, storage.ErrLocked if another backup of the store or a
// change of the repository is under way, and ErrNoRepository if the directory holds other files.
// The end of ctx ends it with the cause of ctx.
func (r *Repository) Create(ctx context.Context, store *storage.Store) (s Snapshot, err error) {
	if store.Dir() == "" {
		return s, errors.New("backup: the store keeps no files")
	}
	c := content{Store: store.ID(), Epoch: store.Epoch(), Begun: r.now()}
	return r.create(c, func() (files []file, err error) {
		work := pebblestore.Dir{FS: r.root.FS, Path: store.Dir() + ".checkpoint"}
		err = within(r.o, work, func() (err error) {
			copied := pebblestore.Dir{FS: work.FS, Path: work.Join("store")}
			p := r.pacer()
			pace := func(bytes int) error { return p.moved(ctx, bytes) }
			if err := store.CheckpointPaced(ctx, copied.Path, pace); err != nil {
				return wrap(err)
			}
			files, err = r.add(ctx, c.Store, copied, p)
			return err
		})
		return files, err
	})
}

// CreateFrom makes a snapshot of the store in a directory that no program has open, as Create
// does. It changes no byte of the directory; to the first Open of a restored copy it is as though
// the program had ended as it has here. The errors are also those of storage.OpenReadOnly.
func (r *Repository) CreateFrom(ctx context.Context, dir string) (Snapshot, error) {
	o := r.o
	o.Dir = dir
	store, err := storage.OpenReadOnly(o) // its lock keeps programs away
	if err != nil {
		return Snapshot{}, wrap(err)
	}
	c := content{Store: store.ID(), Epoch: store.Previous().Epoch, Begun: r.now()}
	s, err := r.create(c, func() ([]file, error) {
		return r.add(ctx, c.Store, pebblestore.Dir{FS: r.root.FS, Path: store.Dir()}, nil)
	})
	return s, errors.Join(err, store.Close())
}

// create makes the repository, locks it, and makes a snapshot of the files that add has added. All that can fail
// comes before the snapshot has its name, because one that is there counts as made.
func (r *Repository) create(c content, add func() ([]file, error)) (s Snapshot, err error) {
	lock, err := r.make()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if c.Files, err = add(); err != nil {
		return s, err
	}
	return r.name(c)
}

// within makes a directory, locks it and calls do, and removes it with all that is in it. Rests
// of an earlier call that a crash has cut off are removed first.
func within(o storage.Options, work pebblestore.Dir, do func() error) (err error) {
	if err := work.Make(); err != nil {
		return wrap(err)
	}
	lock, err := storage.LockDir(o, work.Path, false)
	if err != nil {
		return wrap(err)
	}
	defer func() { err = errors.Join(err, wrap(work.FS.RemoveAll(work.Path)), lock.Close()) }()
	if err := work.FS.RemoveAll(work.Join("store")); err != nil {
		return wrap(err)
	}
	return do()
}

// add makes durable blobs of the files of a store in a directory, which nothing changes meanwhile.
func (r *Repository) add(ctx context.Context, store string, from pebblestore.Dir, p *pacer) (files []file, err error) {
	names, err := from.List()
	if err != nil {
		return nil, wrap(err)
	}
	known, err := r.known(store)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		info, err := from.FS.Stat(from.Join(name))
		if err != nil {
			return nil, wrap(err)
		}
		if info.IsDir() || name == "LOCK" || !plain(name) {
			continue // of the system, and of the server
		}
		add := r.addNew
		if known[named{name, info.Size()}] {
			add = r.addKnown
		}
		f, err := add(ctx, from, name, p)
		if err == nil && f.Bytes != info.Size() {
			err = damaged(from.Join(name), "it has changed while it was copied")
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, wrap(r.dir(blobsDir).Sync())
}

// name writes the file of a snapshot. Its blobs are durable.
func (r *Repository) name(c content) (s Snapshot, err error) {
	c.Format = snapshotFormat
	text, err := c.seal()
	if err != nil {
		return s, err
	}
	dir := r.dir(snapshotsDir)
	name := nameOf(c)
	for n := 2; ; n++ { // another of the same millisecond
		if _, err := dir.FS.Stat(dir.Join(name + jsonSuffix)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return s, wrap(err)
		}
		name = fmt.Sprintf("%s-%d", nameOf(c), n)
	}
	if err := removeFile(dir, name+markSuffix); err != nil {
		return s, err
	}
	if err := write(dir, name+jsonSuffix, text); err != nil {
		return s, err
	}
	return c.describe(name), nil
}

// named is a file of a snapshot, of which the content may be another.
type named struct {
	name  string
	bytes int64
}

// known are the files of the newest snapshot of a store. One that cannot be read is passed over, because it only spares
// time.
func (r *Repository) known(store string) (map[named]bool, error) {
	known := make(map[named]bool)
	names, err := r.names()
	for _, name := range slices.Backward(names) {
		c, _, err := r.load(name)
		if err != nil || c.Store != store {
			continue
		}
		for _, f := range c.Files {
			known[named{f.Name, f.Bytes}] = true
		}
		break
	}
	return known, err
}

// addKnown makes the blob of a file that the repository probably has: it hashes the file, and copies it if there is
// no blob of that content. A blob of another length than the file is damaged, and is made anew.
func (r *Repository) addKnown(ctx context.Context, from pebblestore.Dir, name string, p *pacer) (f file, err error) {
	f, err = transfer(ctx, from, name, nil, p)
	if err != nil || r.has(f) {
		return f, err
	}
	again, err := r.addNew(ctx, from, name, p)
	if err == nil && again != f {
		err = damaged(from.Join(name), "it has changed while it was copied")
	}
	return f, err
}

// addNew makes the blob of a file that the repository probably does not have: it reads the file once, for its copy and for
// the hash that is the name of that. The copy goes if there is a blob of that content.
func (r *Repository) addNew(ctx context.Context, from pebblestore.Dir, name string, p *pacer) (f file, err error) {
	blobs := r.dir(blobsDir)
	f, err = place(ctx, from, name, blobs, copyName, p)
	if err == nil && !r.has(f) {
		err = wrap(blobs.Rename(copyName, f.SHA256))
		if err == nil {
			return f, nil
		}
	}
	removed := blobs.FS.Remove(blobs.Join(copyName))
	if err == nil {
		err = wrap(removed)
	}
	return f, err
}

// has reports whether there is a blob of a file, of its length.
func (r *Repository) has(f file) bool {
	blobs := r.dir(blobsDir)
	info, err := blobs.FS.Stat(blobs.Join(f.SHA256))
	return err == nil && info.Size() == f.Bytes
}

// place copies a file to another directory and syncs the copy. It returns what it has read.
func place(ctx context.Context, from pebblestore.Dir, name string, to pebblestore.Dir, as string, p *pacer) (f file, err error) {
	create := to.Create
	if p != nil {
		create = to.CreateFlowing
	}
	w, err := create(as)
	if err != nil {
		return f, wrap(err)
	}
	f, err = transfer(ctx, from, name, w, p)
	if err == nil {
		err = wrap(w.Sync())
	}
	return f, errors.Join(err, wrap(w.Close()))
}

// transfer reads a file and writes it to w, unless that is nil. It returns its length and hash.
func transfer(ctx context.Context, from pebblestore.Dir, name string, w io.Writer, p *pacer) (f file, err error) {
	in, err := from.FS.Open(from.Join(name))
	if err != nil {
		return f, wrap(err)
	}
	defer func() { err = errors.Join(err, wrap(in.Close())) }()
	f.Name = name
	sum := sha256.New()
	buffer := make([]byte, 256<<10) // fits the cache of a core: with 1 MiB, a tenth more time goes into read and hash
	if p != nil {
		buffer = make([]byte, 1<<20) // of which each is one wait for the disk
	}
	for {
		if ctx.Err() != nil {
			return f, wrap(seam.Cause(ctx))
		}
		n, err := in.Read(buffer)
		moved := n
		sum.Write(buffer[:n])
		f.Bytes += int64(n)
		if w != nil && n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return f, wrap(err)
			}
			moved += n
		}
		if waited := p.moved(ctx, moved); waited != nil {
			return f, wrap(waited)
		}
		if err == io.EOF {
			f.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return f, nil
		}
		if err != nil {
			return f, wrap(err)
		}
	}
}
