package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The format file is the first file of a store, and plain text, so that whoever
// finds the directory can tell what it is and which version reads it. While the
// store is being made the file has its second name; so a directory in which the
// making was cut off is told both from one with files of others, and from a
// store whose database has been lost.
const (
	formatFile    = "HOLDFAST"
	formatFileNew = "HOLDFAST.new"
)

// format is what the format file says.
type format struct {
	shards   int
	complete bool // the store has been made: its database must exist
}

// readFormat reads the format file, or writes it into an empty directory.
func readFormat(o Options) (format, error) {
	for _, name := range []string{formatFile, formatFileNew} {
		path := o.Pebble.FS.PathJoin(o.Dir, name)
		text, err := readFile(o.Pebble.FS, path)
		if isNotExist(err) {
			continue
		}
		if err != nil {
			return format{}, err
		}
		version, shards, err := parseFormat(text)
		switch {
		case err != nil && name == formatFileNew:
			continue // cut off while it was written: there is nothing beside it
		case err != nil:
			return format{}, fmt.Errorf("%w: %s: %v", ErrFormat, path, err)
		case version != FormatVersion:
			return format{}, fmt.Errorf("%w: %s has format version %d, this program reads version %d: use the program that wrote it, or another directory",
				ErrFormat, path, version, FormatVersion)
		case o.Shards != 0 && o.Shards != shards:
			return format{}, fmt.Errorf("%w: %s was made with %d shards, not %d: the number cannot change", ErrFormat, o.Dir, shards, o.Shards)
		}
		return format{shards, name == formatFile}, nil
	}
	return createFormat(o)
}

func readFile(fsys vfs.FS, path string) (string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return "", fmt.Errorf("storage: %w", err)
	}
	text, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("storage: read %s: %w", path, err)
	}
	return string(text), nil
}

// createFormat writes the format file of a store that is yet to be made.
func createFormat(o Options) (format, error) {
	fsys := o.Pebble.FS
	names, err := fsys.List(o.Dir)
	if err != nil {
		return format{}, fmt.Errorf("storage: %w", err)
	}
	if slices.Contains(names, sumsFile) {
		return format{}, fmt.Errorf("storage: %w: %s is missing from the store in %s: bring it back from a copy of the store", ErrCorrupt, formatFile, o.Dir)
	}
	for _, name := range names {
		switch name {
		case "LOCK", "lost+found", formatFileNew:
		default:
			return format{}, fmt.Errorf("%w: %s holds other files (%s): name an empty directory", ErrNotStore, o.Dir, name)
		}
	}
	shards := cmpOr(o.Shards, DefaultShards)
	path := fsys.PathJoin(o.Dir, formatFileNew)
	if err := writeFile(fsys, path, formatText(shards)); err != nil {
		return format{}, fmt.Errorf("storage: write %s: %w", path, err)
	}
	return format{shards: shards}, syncDir(fsys, o.Dir)
}

func writeFile(fsys vfs.FS, path, text string) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// completeFormat says that the database has been made.
func completeFormat(o Options) error {
	fsys := o.Pebble.FS
	path := fsys.PathJoin(o.Dir, formatFile)
	if err := fsys.Rename(fsys.PathJoin(o.Dir, formatFileNew), path); err != nil {
		return fmt.Errorf("storage: make %s: %w", path, err)
	}
	return syncDir(fsys, o.Dir)
}

// formatText is the content of the format file. Its last line is a checksum of
// the others: with a wrong number of shards no object would be found.
func formatText(shards int) string {
	text := fmt.Sprintf("holdfast store\nformat %d\nshards %d\n", FormatVersion, shards)
	return text + formatCheck(text) + "\n"
}

func formatCheck(text string) string {
	return fmt.Sprintf("check %08x", crc32.Checksum([]byte(text), castagnoli))
}

// parseFormat reads the content of a format file. Of other versions it reads
// the number only.
func parseFormat(text string) (version, shards int, err error) {
	rest, ok := strings.CutPrefix(text, "holdfast store\n")
	if !ok {
		return 0, 0, errors.New("it is not a format file of Holdfast")
	}
	line, rest, _ := strings.Cut(rest, "\n")
	if version, err = formatNumber(line, "format"); err != nil || version != FormatVersion {
		return version, 0, err
	}
	line, _, _ = strings.Cut(rest, "\n")
	if shards, err = formatNumber(line, "shards"); err != nil {
		return 0, 0, err
	}
	if shards > MaxShards || text != formatText(shards) {
		return 0, 0, errors.New("its checksum does not fit")
	}
	return version, shards, nil
}

// formatNumber reads a line of a name and a positive number.
func formatNumber(line, name string) (int, error) {
	value, ok := strings.CutPrefix(line, name+" ")
	n, err := strconv.Atoi(value)
	if !ok || err != nil || n < 1 {
		return 0, fmt.Errorf("line %q is not understood", line)
	}
	return n, nil
}
