package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Snapshot is one backup of one store.
type Snapshot struct {
	Name  string    `json:"name"`
	Store string    `json:"store"` // the id of the source, see storage.Store.ID
	Epoch uint64    `json:"epoch"` // of the source
	Begun time.Time `json:"begun"` // every commit acknowledged before is in it
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"` // of all files; the repository keeps those of equal content once
	// Verified is when Verify last found nothing. Zero: never, so it does not count as a backup.
	Verified time.Time `json:"verified,omitzero"`
}

// content is the stored form of a snapshot.
type content struct {
	Format int       `json:"format"`
	Store  string    `json:"store"`
	Epoch  uint64    `json:"epoch"`
	Begun  time.Time `json:"begun"`
	Files  []file    `json:"files"` // sorted by name

	path string // of its file in the repository, once it was read
}

// file is a file of a store.
type file struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // the name of its blob
}

// sealed is a file of the repository: content and its hash.
type sealed struct {
	Snapshot json.RawMessage `json:"snapshot"`
	SHA256   string          `json:"sha256"`
}

// mark is the file of a snapshot that was verified.
type mark struct {
	At     time.Time `json:"at"`
	SHA256 string    `json:"sha256"` // of the file of the snapshot
}

const (
	snapshotFormat = 1
	jsonSuffix     = ".json"
	markSuffix     = ".verified"
	// maxSnapshotBytes bounds what is read of a snapshot's file: a store with a million files has less.
	maxSnapshotBytes = 256 << 20
)

// nameOf is the name of a snapshot that was begun then: its names sort by time.
func nameOf(c content) string {
	return c.Begun.UTC().Format("20060102T150405.000Z") + fmt.Sprintf("-%d", c.Epoch)
}

// plain reports whether name is a file's name and nothing else: no path, hidden file or blank.
func plain(name string) bool {
	if name == "" || name[0] == '.' || len(name) > 200 {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c)
	})
}

// isHash reports whether text is a SHA-256 in hexadecimal, as hashOf writes it.
func isHash(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size && hex.EncodeToString(b) == text
}

// hashOf is the SHA-256 of a text in hexadecimal.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// seal returns the file of a snapshot.
func (c content) seal() (string, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return "", wrap(err)
	}
	text, err := json.Marshal(sealed{raw, hashOf(string(raw))})
	return string(text) + "\n", wrap(err)
}

// load reads and checks the file of a snapshot. It returns its text too.
func (r *Repository) load(name string) (c content, text string, err error) {
	dir := r.dir(snapshotsDir)
	if !plain(name) {
		return c, "", fmt.Errorf("%w: %q", ErrNoSnapshot, name)
	}
	path := dir.Join(name + jsonSuffix)
	info, err := dir.FS.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, "", fmt.Errorf("%w: %s in %s", ErrNoSnapshot, name, r.root.Path)
	}
	if err == nil && info.Size() > maxSnapshotBytes {
		return c, "", damaged(path, "it has %d bytes", info.Size())
	}
	if err == nil {
		text, err = dir.Read(name + jsonSuffix)
	}
	if err != nil {
		return c, "", wrap(err)
	}
	c, err = parse(path, text)
	return c, text, err
}

// parse reads the text of a snapshot's file and checks all that is used of it.
func parse(path, text string) (c content, err error) {
	var s sealed
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.SHA256 != hashOf(string(s.Snapshot)) {
		return c, damaged(path, "its text does not fit its hash")
	}
	if err := json.Unmarshal(s.Snapshot, &c); err != nil {
		return c, damaged(path, "%v", err)
	}
	c.path = path
	if c.Format != snapshotFormat {
		return c, fmt.Errorf("backup: %s has format %d, this program reads format %d: use the program that wrote it", path, c.Format, snapshotFormat)
	}
	seen := make(map[string]bool)
	for _, f := range c.Files {
		switch {
		case !plain(f.Name) || f.Name == "LOCK":
			return c, damaged(path, "%q is no name of a file of a store", f.Name)
		case seen[f.Name]:
			return c, damaged(path, "it has %s twice", f.Name)
		case !isHash(f.SHA256) || f.Bytes < 0:
			return c, damaged(path, "the hash or the length of %s is none", f.Name)
		}
		seen[f.Name] = true
	}
	if !seen[storage.FormatFile] {
		return c, damaged(path, "it has no %s", storage.FormatFile)
	}
	return c, nil
}

// wrap adds the file of the snapshot to an error of its store; nil stays nil.
func (c content) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("backup: the store of %s: %w", c.path, err)
}

// damaged is the error of a file that is not as it was written.
func damaged(path, text string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrDamaged, path, fmt.Sprintf(text, args...))
}

// describe returns a snapshot as List shows it while it has no mark.
func (c content) describe(name string) Snapshot {
	s := Snapshot{Name: name, Store: c.Store, Epoch: c.Epoch, Begun: c.Begun, Files: len(c.Files)}
	for _, f := range c.Files {
		s.Bytes += f.Bytes
	}
	return s
}

// describe returns a snapshot as List shows it.
func (r *Repository) describe(name string, c content, text string) (Snapshot, error) {
	s := c.describe(name)
	read, err := r.dir(snapshotsDir).Read(name + markSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, wrap(err)
	}
	var m mark
	if json.Unmarshal([]byte(read), &m) == nil && m.SHA256 == hashOf(text) {
		s.Verified = m.At
	}
	return s, nil
}

// List returns the snapshots, oldest first, and reads nothing but their files: that of a large
// store has a megabyte. One that cannot be read is left out, and the error, which comes with the
// list, names its file. It takes no lock. The memory is that of one file and of the list.
func (r *Repository) List() (list []Snapshot, err error) {
	if err := r.exists(); err != nil {
		return nil, err
	}
	names, err := r.names()
	var errs []error
	for _, name := range names {
		c, text, err := r.load(name)
		if errors.Is(err, ErrNoSnapshot) { // removed meanwhile
			continue
		}
		var s Snapshot
		if err == nil {
			s, err = r.describe(name, c, text)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, s)
	}
	return list, errors.Join(append(errs, err)...)
}

// names lists the names of the snapshots, oldest first.
func (r *Repository) names() (names []string, err error) {
	all, err := r.dir(snapshotsDir).List()
	for _, name := range all {
		if name, ok := strings.CutSuffix(name, jsonSuffix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, wrap(err)
}

// removeFile removes a file that may be absent.
func removeFile(d pebblestore.Dir, name string) error {
	if err := d.FS.Remove(d.Join(name)); !errors.Is(err, fs.ErrNotExist) {
		return wrap(err)
	}
	return nil
}
