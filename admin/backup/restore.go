package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Verify reads each file of a snapshot again, compares it with its hash, puts the store together
// in a scratch directory of the repository and verifies it (storage.Verify). If there is nothing
// to find, the snapshot gets its mark, and the time of it is returned. found is called with each
// finding; nil: it is not. The error then is ErrDamaged. A mark of before stays if Verify could
// not be made, and goes if it found damage.
//
// It needs room for a copy of the store where the file system of the repository has no links.
// The other errors are ErrNoSnapshot, those of ctx and those of the file system.
func (r *Repository) Verify(ctx context.Context, name string, found func(storage.Finding)) (s Snapshot, err error) {
	lock, err := r.lock(true)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	c, text, err := r.load(name)
	if err != nil {
		return s, err
	}
	dir := r.dir(snapshotsDir)
	if err := r.check(ctx, c, found); err != nil {
		if errors.Is(err, ErrDamaged) {
			err = errors.Join(err, removeFile(dir, name+markSuffix))
		}
		return s, err
	}
	s = c.describe(name)
	s.Verified = r.now()
	m, err := json.Marshal(mark{s.Verified, hashOf(text)})
	if err == nil {
		err = write(dir, name+markSuffix, string(m)+"\n")
	}
	if err != nil {
		return Snapshot{}, wrap(err)
	}
	return s, nil
}

// check puts a store together in a scratch directory and verifies it.
func (r *Repository) check(ctx context.Context, c content, found func(storage.Finding)) (err error) {
	scratch := r.dir(scratchDir)
	if err := scratch.Make(); err != nil {
		return wrap(err)
	}
	scratch.Path = scratch.Join(fmt.Sprintf("%016x", r.o.Seams.Rand.Uint64()))
	if err := scratch.Make(); err != nil {
		return wrap(err)
	}
	defer func() { err = errors.Join(err, wrap(scratch.FS.RemoveAll(scratch.Path))) }()
	t, err := r.each(ctx, c, scratch, func(f file) error { return r.link(ctx, f, scratch) }) // nothing writes into the scratch store
	if err != nil {
		return err
	}
	return r.sound(ctx, scratch, c, t, found)
}

// tables has the result of pebblestore.CheckTable by the names of tables.
type tables map[string]error

// checked serves storage.Verification.
func (t tables) checked(name string) (damage error, ok bool) {
	damage, ok = t[name]
	return damage, ok
}

// each puts the files of a snapshot into a directory by do, several at a time, and checks the blocks of each table while
// the system has it in memory. The error is as that of all.
func (r *Repository) each(ctx context.Context, c content, dir pebblestore.Dir, do func(f file) error) (t tables, err error) {
	t = make(tables)
	check := func(i int) (damage, err error) {
		if err := do(c.Files[i]); err != nil || !isTable(c.Files[i].Name) {
			return nil, err
		}
		damage, err = pebblestore.CheckTable(ctx, dir, c.Files[i].Name)
		if err != nil {
			return nil, wrap(seam.Cause(ctx))
		}
		return damage, nil
	}
	err = seam.Ordered(r.o.Seams, "backup", len(c.Files), check, func(i int, damage error) error {
		if isTable(c.Files[i].Name) {
			t[c.Files[i].Name] = damage
		}
		return nil
	})
	return t, err
}

// all puts the files of a snapshot into a directory by do, several at a time. The error is that of the first file in their
// order, as though they came one after the other.
func (r *Repository) all(c content, do func(f file) error) error {
	return seam.Ordered(r.o.Seams, "backup", len(c.Files), func(i int) (struct{}, error) { return struct{}{}, do(c.Files[i]) }, nil)
}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// sound verifies the store that was put together of a snapshot. The blocks of some tables of it were checked.
func (r *Repository) sound(ctx context.Context, dir pebblestore.Dir, c content, t tables, found func(storage.Finding)) error {
	o := r.o
	o.Dir = dir.Path
	var first storage.Finding
	n, err := storage.Verify(ctx, o, storage.Verification{Checked: t.checked, Found: func(f storage.Finding) {
		if first.Text == "" {
			first = f
		}
		if found != nil {
			found(f)
		}
	}})
	if err != nil && !errors.Is(err, storage.ErrManyFindings) {
		return c.wrap(err)
	}
	if n > 0 {
		return damaged(c.path, "its store has findings, %d of them, and the first is: %s", n, first.Text)
	}
	return nil
}

// link compares the blob of a file with its hash and links it into a directory, or copies it where the file system has no links.
func (r *Repository) link(ctx context.Context, f file, to pebblestore.Dir) error {
	if err := r.readBlob(ctx, f); err != nil {
		return err
	}
	if to.FS.Link(r.dir(blobsDir).Join(f.SHA256), to.Join(f.Name)) == nil {
		return nil
	}
	return r.fetch(ctx, f, to)
}

// readBlob compares the blob of a file with its hash.
func (r *Repository) readBlob(ctx context.Context, f file) error {
	if err := r.fitting(f); err != nil {
		return err
	}
	got, err := transfer(ctx, r.dir(blobsDir), f.SHA256, nil, nil)
	return r.fits(f, got, err)
}

// fetch copies the blob of a file into a directory, and compares it with its hash.
func (r *Repository) fetch(ctx context.Context, f file, to pebblestore.Dir) error {
	if err := r.fitting(f); err != nil {
		return err
	}
	got, err := place(ctx, r.dir(blobsDir), f.SHA256, to, f.Name, nil)
	return r.fits(f, got, err)
}

// fitting looks at the blob of a file before it is read, because one that is longer would fill the disk,
// and a pipe would never end.
func (r *Repository) fitting(f file) error {
	path := r.dir(blobsDir).Join(f.SHA256)
	info, err := r.root.FS.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.fits(f, file{}, err)
	case err != nil:
		return wrap(err)
	case !info.Mode().IsRegular():
		return damaged(path, "it is no file, and should be %s", f.Name)
	}
	return r.fits(f, file{Bytes: info.Size(), SHA256: f.SHA256}, nil)
}

// fits compares a file as it was read with that of the snapshot.
func (r *Repository) fits(want, got file, err error) error {
	path := r.dir(blobsDir).Join(want.SHA256)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return damaged(path, "it is missing: it is %s", want.Name)
	case err != nil:
		return err
	case got.Bytes != want.Bytes || got.SHA256 != want.SHA256:
		return damaged(path, "its content is not that of its name: it is %s. Remove it, and the next backup makes it anew if the store still has it", want.Name)
	}
	return nil
}

// Restore makes a store of a snapshot in dir, which is made if it is absent and must be empty. An
// empty name is that of the newest snapshot that is verified, if all that are verified are of one
// store. Each file is compared with its hash. The store of a snapshot that is not verified is verified too (storage.Verify); that of one
// that is would be the same bytes again. The store has a new id, numbers that its source has not given out, and is dormant: call storage.Wake
// once the source is gone for good.
//
// After an error the directory is empty, and after a crash it holds files that are no store, or
// the whole store. At most one of two at a time into one directory is made. The errors are ErrNoSnapshot, ErrDamaged, ErrNotEmpty, those of ctx, of
// storage.Adopt and of the file system. It changes nothing in the repository.
func (r *Repository) Restore(ctx context.Context, name, dir string) (Snapshot, error) {
	return r.restoreBy(ctx, r.fetch, name, dir)
}

// RestoreLinked is Restore with links to the tables of the repository in place of copies, where the file system has
// links between both directories; elsewhere it copies. So it takes the time in which the files are read, and little space. A store
// never writes into a table, and Remove and Clean take the repository's name of it alone. But both have one copy on
// the disk: what damages a table in the one, or writes over it in place, damages the other.
func (r *Repository) RestoreLinked(ctx context.Context, name, dir string) (Snapshot, error) {
	return r.restoreBy(ctx, func(ctx context.Context, f file, to pebblestore.Dir) error {
		if isTable(f.Name) {
			return r.link(ctx, f, to)
		}
		return r.fetch(ctx, f, to)
	}, name, dir)
}

// put brings the blob of a file into a directory, and compares it with its hash.
type put func(ctx context.Context, f file, to pebblestore.Dir) error

// restoreBy is Restore with a put of its own.
func (r *Repository) restoreBy(ctx context.Context, p put, name, dir string) (s Snapshot, err error) {
	lock, err := r.lock(true)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if name == "" {
		if name, err = r.newest(); err != nil {
			return s, err
		}
	}
	c, text, err := r.load(name)
	if err != nil {
		return s, err
	}
	if s, err = r.describe(name, c, text); err != nil {
		return s, err
	}
	to := pebblestore.Dir{FS: r.root.FS, Path: dir}
	claim, err := r.claim(to)
	if err != nil {
		return Snapshot{}, err
	}
	if err := r.restore(ctx, p, c, !s.Verified.IsZero(), to, claim); err != nil {
		return Snapshot{}, errors.Join(err, clear(to))
	}
	return s, nil
}

// newest is the name of the newest snapshot that is verified. Those of several stores are an error,
// because the newest may be of the wrong one.
func (r *Repository) newest() (string, error) {
	list, err := r.List()
	var of []Snapshot // the newest of each store
	for _, s := range slices.Backward(list) {
		same := func(other Snapshot) bool { return other.Store == s.Store }
		if !s.Verified.IsZero() && !slices.ContainsFunc(of, same) {
			of = append(of, s)
		}
	}
	switch len(of) {
	case 0:
	case 1:
		return of[0].Name, nil
	default:
		return "", fmt.Errorf("%w: %s has verified snapshots of %d stores: name one, such as %s of the store %s or %s of the store %s",
			ErrNoSnapshot, r.root.Path, len(of), of[0].Name, of[0].Store, of[1].Name, of[1].Store)
	}
	return "", errors.Join(fmt.Errorf("%w: none of %d in %s is verified: verify one, or name it", ErrNoSnapshot, len(list), r.root.Path), err)
}

// empty makes a directory, or checks that it is empty.
func empty(to pebblestore.Dir) error {
	if to.Path == "" {
		return errors.New("backup: name the directory to restore into")
	}
	if err := to.Make(); err != nil {
		return wrap(fmt.Errorf("%s: %w", to.Path, err))
	}
	names, err := to.List()
	for _, name := range names {
		if name != "lost+found" {
			return fmt.Errorf("%w: %s holds %s: name an empty one", ErrNotEmpty, to.Path, name)
		}
	}
	return wrap(err)
}

// claim makes a file in an empty directory and returns its name. Another Restore into the directory
// sees the file, or its own beside it, and ends: of two that see both, neither goes on.
func (r *Repository) claim(to pebblestore.Dir) (name string, err error) {
	if err := empty(to); err != nil {
		return "", err
	}
	name = fmt.Sprintf("restore-%016x", r.o.Seams.Rand.Uint64())
	err = wrap(to.Write(name, "A restore into this directory is under way, or was cut off.\n"))
	var names []string
	if err == nil {
		names, err = to.List()
		names = slices.DeleteFunc(names, func(name string) bool { return name == "lost+found" })
	}
	if err == nil && !slices.Equal(names, []string{name}) {
		err = fmt.Errorf("%w: another restore into %s is under way", ErrNotEmpty, to.Path)
	}
	if err != nil {
		return "", errors.Join(err, removeFile(to, name))
	}
	return name, nil
}

// clear removes the files that a failed Restore has left.
func clear(to pebblestore.Dir) error {
	names, err := to.List()
	errs := []error{wrap(err)}
	for _, name := range names {
		if name != "lost+found" {
			errs = append(errs, removeFile(to, name))
		}
	}
	return errors.Join(errs...)
}

func isFormat(f file) bool { return f.Name == storage.FormatFile }

// maxFormatBytes bounds what is read of a format file, which has some lines.
const maxFormatBytes = 64 << 10

// format is the text of the format file of a snapshot.
func (r *Repository) format(c content) (text string, err error) {
	f := c.Files[slices.IndexFunc(c.Files, isFormat)] // load has refused a snapshot without it
	if f.Bytes > maxFormatBytes {
		return "", damaged(c.path, "its %s has %d bytes", f.Name, f.Bytes)
	}
	if err := r.fitting(f); err != nil {
		return "", err
	}
	text, err = r.dir(blobsDir).Read(f.SHA256)
	return text, r.fits(f, file{Bytes: int64(len(text)), SHA256: hashOf(text)}, wrap(err))
}

// restore puts the files of a snapshot into a directory and makes them a store, which it verifies unless that was done with
// the very bytes, as each hash tells. claim is the only file in the directory.
func (r *Repository) restore(ctx context.Context, p put, c content, verified bool, to pebblestore.Dir, claim string) error {
	format, err := r.format(c)
	if err != nil {
		return err
	}
	rest := c
	rest.Files = slices.DeleteFunc(slices.Clone(c.Files), isFormat) // Adopt writes it, because a copy with it would open as the source
	var t tables
	do := func(f file) error { return p(ctx, f, to) }
	if verified {
		err = r.all(rest, do)
	} else {
		t, err = r.each(ctx, rest, to, do)
	}
	if err != nil {
		return err
	}
	err = removeFile(to, claim) // the other files keep other calls away
	if err == nil {
		err = wrap(to.Sync())
	}
	if err != nil {
		return err
	}
	o := r.o
	o.Dir = to.Path
	if err := storage.Adopt(o, format); err != nil {
		return c.wrap(err)
	}
	if verified {
		return nil
	}
	return r.sound(ctx, to, c, t, nil) // Adopt changes no table and gives its name to no other
}
