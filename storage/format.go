package storage

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// The format file is the first file of a store. It is plain text, so that a person who
// finds the directory sees which program and version wrote it. While the store is being
// made the file has its second name. So Open tells a directory that was left half made
// from one with files of others, and from a store that has lost its database.
const (
	formatFile    = "HOLDFAST"
	formatFileNew = "HOLDFAST.new"
)

// format is the content of a format file.
type format struct {
	version  int
	shards   int
	dormant  bool // a restored copy that Wake has not woken yet
	view     bool // see Options.Over
	complete bool // the store has been made: its database must exist
	move     Move // where the store goes, see Leave
}

// readFormat reads the format file, or writes it into an empty directory. The caller
// wants so many shards, or 0 for any number, and a view of a log or not. It changes nothing in a directory that it
// refuses: one with another version or number of shards, with files of others, or that is the other of view and store.
func readFormat(dir pebblestore.Dir, want int, view bool) (format, error) {
	f, err := findFormat(dir, want)
	switch {
	case err != nil:
		return f, err
	case f.move != Move{}:
		return f, f.move.refused(dir)
	case f.version == 0:
		return createFormat(dir, format{version: FormatVersion, shards: cmp.Or(want, DefaultShards), view: view})
	case f.view && !view:
		return f, errView(dir)
	case view && !f.view:
		return f, errPlain(dir)
	}
	return f, nil
}

// # Views and stores
//
// A view of a log (Options.Over) is marked in its format file, because its files look like those of a store:
//
//   - A view without its log is refused, also to a look and to Verify. Commits that the log has acknowledged may be in the
//     memory of a process that died, and then they are in no file of the view.
//   - A store with a log is refused, because its rows stand in no record: another machine would never see them.
//   - A checkpoint of a view is a store of its own, with all that was acknowledged before it.
//   - A view that is damaged is removed. The next opening makes it again from the log.

// errView refuses a view of a log to all that have no log.
func errView(dir pebblestore.Dir) error {
	return fmt.Errorf("%w: %s is a view of a log: open it with that log, because it may lack what the log has", ErrMovedStore, dir.Path)
}

// findFormat reads the format file and changes nothing. Without a format file the version
// is 0.
func findFormat(dir pebblestore.Dir, want int) (format, error) {
	for _, name := range []string{formatFile, formatFileNew} {
		path := dir.Join(name)
		text, err := dir.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return format{}, fmt.Errorf("storage: read %s: %w", path, err)
		}
		f, err := parseFormat(text)
		f.complete = name == formatFile
		switch {
		case err != nil && name == formatFileNew:
			continue // cut off while it was written: there is nothing beside it
		case err != nil:
			return format{}, fmt.Errorf("%w: %s: %w", ErrFormat, path, &unreadable{err})
		case !f.known():
			return format{}, errVersion(path, f.version)
		case want != 0 && want != f.shards:
			return format{}, fmt.Errorf("%w: %s was made with %d shards, not %d: the number cannot change", ErrFormat, dir.Path, f.shards, want)
		}
		return f, nil
	}
	return format{}, nil
}

// known reports whether this package reads the version.
func (f format) known() bool { return oldestFormat <= f.version && f.version <= FormatVersion }

// errVersion refuses a store of a version that this package does not read.
func errVersion(path string, version int) error {
	return fmt.Errorf("%w: %s has format version %d, this program reads versions %d to %d: use the program that wrote it, or another directory",
		ErrFormat, path, version, oldestFormat, FormatVersion)
}

// unreadable is the error of a format file that no version of this package wrote.
type unreadable struct{ error }

func (u *unreadable) Unwrap() error { return u.error }

// createFormat writes the format file of a store that is yet to be made. The directory
// may hold files that a file system or this package puts there, and no others.
func createFormat(dir pebblestore.Dir, f format) (format, error) {
	other, err := otherFile(dir)
	if err != nil {
		return format{}, err
	}
	if other != "" {
		return format{}, fmt.Errorf("%w: %s holds other files (%s): name an empty directory", ErrNotStore, dir.Path, other)
	}
	return f, writeFormat(dir, f)
}

// otherFile returns the name of a file that neither a file system nor this package puts into
// the directory of a store that is yet to be made, or "" if there is none. A store that has
// lost its format file is an error.
func otherFile(dir pebblestore.Dir) (string, error) {
	names, err := dir.List()
	if err != nil {
		return "", fmt.Errorf("storage: %w", err)
	}
	if slices.Contains(names, restoreFile) {
		return "", fmt.Errorf("%w: %w in %s: restore it again", ErrNotStore, ErrRestoring, dir.Path)
	}
	if slices.Contains(names, pebblestore.SumsFile) {
		return "", fmt.Errorf("storage: %w: %s is missing from the store in %s: bring it back from a copy of the store", ErrCorrupt, formatFile, dir.Path)
	}
	for _, name := range names {
		switch name {
		case "LOCK", "lost+found", formatFileNew:
		default:
			return name, nil
		}
	}
	return "", nil
}

// writeFormat writes the format file under its second name.
func writeFormat(dir pebblestore.Dir, f format) error {
	if err := dir.Write(formatFileNew, f.text()); err != nil {
		return fmt.Errorf("storage: write %s: %w", dir.Join(formatFileNew), err)
	}
	return syncDir(dir)
}

// changeFormat gives a store the format f: FormatVersion in place of an earlier one, so that
// programs of the earlier version refuse it from now on, or one that is not dormant any more.
// Its rows stay as they are.
func changeFormat(dir pebblestore.Dir, f format) error {
	// A crash between the two leaves both names. Open then reads the first, which has the
	// earlier format still, and changes it again.
	f.version = FormatVersion
	if err := writeFormat(dir, f); err != nil {
		return err
	}
	return completeFormat(dir)
}

// completeFormat gives the format file its lasting name, once the database has been made or
// its version has risen.
func completeFormat(dir pebblestore.Dir) error {
	if err := dir.Rename(formatFileNew, formatFile); err != nil {
		return fmt.Errorf("storage: make %s: %w", dir.Join(formatFile), err)
	}
	return syncDir(dir)
}

// syncDir makes the names in the directory durable.
func syncDir(dir pebblestore.Dir) error {
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}

// formatText is the content of the format file of a store that is not dormant.
func formatText(version, shards int) string { return format{version: version, shards: shards}.text() }

// text is the content of the format file. Its last line is a checksum of the others: with a
// wrong number of shards no object would be found. A program from before there were dormant
// stores, views, or moves refuses one, because the checksum does not fit the lines that it knows.
func (f format) text() string {
	text := fmt.Sprintf("holdfast store\nformat %d\nshards %d\n", f.version, f.shards)
	if f.dormant {
		text += "dormant\n"
	}
	if f.view {
		text += "view\n"
	}
	if f.move.Done {
		text += movedLine + f.move.Cluster + "\n"
	} else if f.move.Cluster != "" {
		text += movingLine + f.move.Cluster + "\n"
	}
	return text + formatCheck(text) + "\n"
}

// formatCheck is the last line of a format file.
func formatCheck(text string) string {
	return fmt.Sprintf("check %08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// parseFormat reads the content of a format file. It reads no more than the number of
// another version.
func parseFormat(text string) (f format, err error) {
	rest, ok := strings.CutPrefix(text, "holdfast store\n")
	if !ok {
		return f, errors.New("it is not a format file of Holdfast")
	}
	line, rest, _ := strings.Cut(rest, "\n")
	if f.version, err = formatNumber(line, "format"); err != nil || !f.known() {
		return f, err
	}
	line, rest, _ = strings.Cut(rest, "\n")
	if f.shards, err = formatNumber(line, "shards"); err != nil {
		return format{}, err
	}
	rest, f.dormant = strings.CutPrefix(rest, "dormant\n")
	rest, f.view = strings.CutPrefix(rest, "view\n")
	line, _, _ = strings.Cut(rest, "\n")
	if cluster, ok := strings.CutPrefix(line, movingLine); ok {
		f.move.Cluster = cluster
	} else if cluster, ok := strings.CutPrefix(line, movedLine); ok {
		f.move = Move{cluster, true}
	}
	if f.shards > MaxShards || text != f.text() {
		return format{}, errors.New("its checksum does not fit")
	}
	return f, nil
}

// formatNumber reads a line of a name and a positive number, for example "shards 64".
// The error shows the line, because a person may have edited the file.
func formatNumber(line, name string) (int, error) {
	value, ok := strings.CutPrefix(line, name+" ")
	n, err := strconv.Atoi(value)
	if !ok || err != nil || n < 1 {
		return 0, fmt.Errorf("line %q is not understood", line)
	}
	return n, nil
}
