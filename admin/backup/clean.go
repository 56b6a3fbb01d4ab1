package backup

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Keep says which snapshots Clean keeps. The zero value keeps all.
type Keep struct {
	Last int // this many of the newest of each store
	Days int // those that were begun less than so many times 24 hours ago
}

// Remove removes a snapshot, durably. Its blobs go with the next Clean.
func (r *Repository) Remove(name string) (err error) {
	lock, err := r.lock(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	dir := r.dir(snapshotsDir)
	if !plain(name) {
		return fmt.Errorf("%w: %q", ErrNoSnapshot, name)
	}
	if _, err := dir.FS.Stat(dir.Join(name + jsonSuffix)); err != nil {
		return fmt.Errorf("%w: %s in %s: %w", ErrNoSnapshot, name, r.root.Path, err)
	}
	return r.remove(name)
}

// remove removes the files of a snapshot, durably.
func (r *Repository) remove(name string) error {
	dir := r.dir(snapshotsDir)
	if err := errors.Join(removeFile(dir, name+markSuffix), removeFile(dir, name+jsonSuffix)); err != nil {
		return err
	}
	return wrap(dir.Sync())
}

// Clean removes the snapshots that keep does not name, and all blobs that no snapshot names. It
// always keeps the newest snapshot of each store that is verified. It returns the names of the removed ones and
// the bytes of the removed blobs. It removes nothing if the file of a snapshot cannot be read,
// because the blobs that it names are unknown: the error names the file.
func (r *Repository) Clean(keep Keep) (removed []string, freedBytes int64, err error) {
	if keep.Last < 0 || keep.Days < 0 {
		return nil, 0, fmt.Errorf("backup: keep %d snapshots and %d days: neither may be negative", keep.Last, keep.Days)
	}
	lock, err := r.lock(false)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	list, err := r.List()
	if err != nil {
		return nil, 0, fmt.Errorf("nothing is removed: %w", err)
	}
	for _, s := range keep.others(list, r.now()) {
		if err := r.remove(s.Name); err != nil {
			return removed, 0, err
		}
		removed = append(removed, s.Name)
	}
	freedBytes, err = r.sweep()
	return removed, freedBytes, err
}

// others are the snapshots of a list, oldest first, that are not kept.
func (k Keep) others(list []Snapshot, now time.Time) (others []Snapshot) {
	if k == (Keep{}) {
		return nil
	}
	newer, verified := make(map[string]int), make(map[string]bool) // by store
	for _, s := range slices.Backward(list) {
		kept := newer[s.Store] < k.Last || now.Sub(s.Begun) < time.Duration(k.Days)*24*time.Hour
		newer[s.Store]++
		if !s.Verified.IsZero() && !verified[s.Store] {
			kept, verified[s.Store] = true, true
		}
		if !kept {
			others = append(others, s)
		}
	}
	slices.Reverse(others)
	return others
}

// sweep removes the blobs that no snapshot names, and the rests of calls that were cut off.
func (r *Repository) sweep() (freedBytes int64, err error) {
	named := make(map[string]bool)
	names, err := r.names()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		c, _, err := r.load(name)
		if err != nil {
			return 0, err
		}
		for _, f := range c.Files {
			named[f.SHA256] = true
		}
	}
	blobs := r.dir(blobsDir)
	all, err := blobs.List()
	if err != nil {
		return 0, wrap(err)
	}
	for _, name := range all {
		if named[name] {
			continue
		}
		if info, err := blobs.FS.Stat(blobs.Join(name)); err == nil {
			freedBytes += info.Size()
		}
		if err := removeFile(blobs, name); err != nil {
			return freedBytes, err
		}
	}
	scratch := r.dir(scratchDir)
	return freedBytes, errors.Join(wrap(blobs.Sync()), wrap(scratch.FS.RemoveAll(scratch.Path)))
}
