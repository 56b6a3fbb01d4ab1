package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrBadTarget is wrapped by the error of Checkpoint for a directory that exists, or that lies
// within that of the store.
var ErrBadTarget = errors.New("storage: checkpoint: not a new directory beside the store")

// Checkpoint makes a copy of the database in a new directory to, while the database goes on, with
// all batches that were applied before the call. Tables are linked where that is possible, and
// copied otherwise; the rest is copied. A failure is an error of the checkpoint alone, but for one of the
// sync that it begins with: it removes the new directory, and the database lives on. The copy has its sums, so OpenReadOnly and Inspect
// read it. before is called before each write of the copy with its bytes, and may wait; its error ends the checkpoint.
func (e *Store) Checkpoint(to string, before func(bytes int) error) (err error) {
	if e.readOnly {
		return ErrReadOnly
	}
	to, err = realNew(Dir{e.dir.FS, to})
	if err != nil {
		return err
	}
	if err := e.target(to); err != nil {
		return err
	}
	// Pebble would sync by itself beside the other syncs, which checkTail does not allow.
	if err := e.Sync(); err != nil {
		return err
	}
	e.copying.Lock()
	defer e.copying.Unlock()
	if err := e.target(to); err != nil { // another Checkpoint has made it meanwhile
		return err
	}
	if err := before(0); err != nil { // while another Checkpoint was made
		return err
	}
	e.files.before.Store(&before)
	defer e.files.before.Store(nil)
	defer e.log.recoverFatal(&err)
	err = errors.Join(e.db.Checkpoint(to), e.files.takeOutside())
	if errors.Is(err, fs.ErrExist) { // another process has made it, so it is not removed
		return fmt.Errorf("%w: %w", ErrBadTarget, err)
	}
	if err == nil {
		err = finishCopy(Dir{e.dir.FS, to}, before)
	}
	if err == nil {
		err = e.log.failed()
	}
	if err != nil {
		return errors.Join(wrap("checkpoint to "+to, err), e.dir.FS.RemoveAll(to))
	}
	return nil
}

// realNew is the real path of a directory that does not exist: that of the nearest directory
// above it that does, with the rest behind it.
func realNew(d Dir) (string, error) {
	rest := ""
	for at := d.Path; ; {
		_, err := d.FS.Stat(at)
		if err == nil {
			real, err := Dir{d.FS, at}.Real()
			if rest == "" || err != nil {
				return real.Path, err
			}
			return d.FS.PathJoin(real.Path, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		up := d.FS.PathDir(at)
		if up == at {
			return d.Path, nil
		}
		rest = d.FS.PathJoin(d.FS.PathBase(at), rest)
		at = up
	}
}

// target checks that the directory is new and no part of the store.
func (e *Store) target(to string) error {
	for path := to; ; path = e.dir.FS.PathDir(path) {
		if path == e.dir.Path {
			return fmt.Errorf("%w: %s lies in %s: name another", ErrBadTarget, to, e.dir.Path)
		}
		if e.dir.FS.PathDir(path) == path {
			break
		}
	}
	switch _, err := e.dir.FS.Stat(to); {
	case err == nil:
		return fmt.Errorf("%w: %s exists: name another", ErrBadTarget, to)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// finishCopy cuts the newest log of a copy off behind its last whole record, and writes the sums
// of its logs and manifest. A log that is written while it is copied may have old bytes before new
// ones, which would look like damage. All that was synced before lies before them.
//
// It also makes the lock file, because readers of a directory without one hold no lock.
func finishCopy(d Dir, before func(bytes int) error) error {
	if err := d.Write(lockFile, ""); err != nil {
		return err
	}
	path, number, err := newestLog(d.FS, d.Path)
	if err == nil && path != "" {
		err = cut(d, d.FS.PathBase(path), number, before)
	}
	if err != nil {
		return err
	}
	names, err := d.List()
	if err != nil {
		return err
	}
	s := &sums{lines: make(map[string]sum)}
	for _, name := range names {
		if !hasSum(name) {
			continue
		}
		if err := before(0); err != nil {
			return err
		}
		info, err := d.FS.Stat(d.Join(name))
		if err != nil {
			return err
		}
		if s.lines[name], err = sumOf(d.FS, d.Join(name), info.Size()); err != nil {
			return err
		}
	}
	if err := s.begin(d.FS, d.Path); err != nil {
		return err
	}
	return s.close()
}

// cutSuffix is that of a log while it is cut.
const cutSuffix = ".cut"

// cut makes a log anew that ends behind its last whole record. before is called before each part is written.
func cut(d Dir, name string, number uint64, before func(bytes int) error) error {
	log, err := d.FS.Open(d.Join(name))
	if err != nil {
		return err
	}
	t := tail{number: binary.LittleEndian.AppendUint32(nil, uint32(number))}
	err = t.read(log)
	if err == nil {
		err = writeParts(d, name+cutSuffix, io.NewSectionReader(log, 0, t.end), before)
	}
	if err := errors.Join(err, log.Close()); err != nil {
		return err
	}
	return d.Rename(name+cutSuffix, name)
}

// writeParts makes a file of all that r has, and syncs it.
func writeParts(d Dir, name string, r io.Reader, before func(bytes int) error) (err error) {
	w, err := d.CreateFlowing(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	part := make([]byte, 256<<10)
	for {
		n, err := io.ReadFull(r, part)
		if err == io.EOF {
			return w.Sync()
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		if err := before(n); err != nil {
			return err
		}
		if _, err := w.Write(part[:n]); err != nil {
			return err
		}
	}
}
