package pebblestore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// SumsFile is the name of a file beside Pebble's files with their checksums.
//
// Pebble takes damage at the end of its manifest for a torn write: it opens the
// store as it was before the newest flush, although the log of that is gone. It does not
// miss a log either, nor the end of one before the newest. So for each manifest
// this file says up to where it was synced, for each finished log how long it is,
// each with a checksum of the content, and for a log that was only begun that no
// byte of it is known:
//
//	MANIFEST-000020 1284 5d3a91f0 8c1e77b2
//	000023.log 0 00000000 6d1f20aa
//	000023.log 65536 00b1c2d3 4f5e6a7b
//	000023.log gone 91ab34cd
//
// The last column is a checksum of the line. A manifest's line is durable before
// Pebble acts on the change that it wrote there; the line that a log was begun before its
// first sync ends, and the line that it is gone before it goes.
const SumsFile = "HOLDFAST.sums"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums is the content of the sums file and the file, open for more lines.
type sums struct {
	mu    sync.Mutex
	file  vfs.File       // nil: closed
	lines map[string]sum // the newest line of each file
}

// sum is the length and checksum of a file, or of its synced part.
type sum struct {
	length int64
	crc    uint32
}

func (s sum) of(p []byte) sum {
	return sum{s.length + int64(len(p)), crc32.Update(s.crc, castagnoli, p)}
}

// hasSum tells the files of which the sums file speaks.
func hasSum(base string) bool { return isLog(base) || isManifest(base) }

func isLog(base string) bool      { return strings.HasSuffix(base, ".log") }
func isManifest(base string) bool { return strings.HasPrefix(base, "MANIFEST-") }

// readSums reads the sums file of the database in dir and compares the logs and the
// present manifest ("" for a new database) with it. It changes no file. The result keeps
// the lines that still matter, and stores no more of them until begin.
func readSums(fsys vfs.FS, dir, manifest string) (*sums, error) {
	s, err := loadSums(fsys, dir, manifest)
	if err != nil {
		return nil, err
	}
	for _, name := range s.names() {
		if err := s.compare(fsys, dir, name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// loadSums reads the sums file and forgets the manifests that are no longer of use.
func loadSums(fsys vfs.FS, dir, manifest string) (*sums, error) {
	s := &sums{lines: make(map[string]sum)}
	if manifest == "" {
		return s, nil
	}
	path := fsys.PathJoin(dir, SumsFile)
	text, err := readFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", engine.ErrCorrupt, path)
	}
	if err == nil {
		err = s.parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	maps.DeleteFunc(s.lines, func(name string, _ sum) bool { return isManifest(name) && name != manifest })
	if _, ok := s.lines[manifest]; !ok {
		return nil, fmt.Errorf("%w: %s does not speak of %s", engine.ErrCorrupt, path, manifest)
	}
	return s, nil
}

// names are the names of the files that have a line, in order.
func (s *sums) names() []string { return slices.Sorted(maps.Keys(s.lines)) }

// parse reads the lines. Only the last may be torn.
func (s *sums) parse(text string) error {
	for text != "" {
		line, rest, whole := strings.Cut(text, "\n")
		name, sum, gone, ok := parseSum(line)
		switch {
		case !ok && rest == "":
			return nil
		case !ok || !whole:
			return fmt.Errorf("%w: line %q", engine.ErrCorrupt, line)
		case gone:
			delete(s.lines, name)
		default:
			s.lines[name] = sum
		}
		text = rest
	}
	return nil
}

func parseSum(line string) (name string, s sum, gone, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 || line != sealed(line[:i]) {
		return "", sum{}, false, false
	}
	if name, gone = strings.CutSuffix(line[:i], " gone"); gone {
		return name, sum{}, true, true
	}
	n, err := fmt.Sscanf(line[:i], "%s %d %x", &name, &s.length, &s.crc)
	return name, s, false, n == 3 && err == nil
}

// sealed is a line with its own checksum.
func sealed(line string) string {
	return fmt.Sprintf("%s %08x", line, crc32.Checksum([]byte(line), castagnoli))
}

func sumLine(name string, s sum) string { return fmt.Sprintf("%s %d %08x", name, s.length, s.crc) }

// compare compares one file with its line.
func (s *sums) compare(fsys vfs.FS, dir, name string) error {
	path := fsys.PathJoin(dir, name)
	got, err := sumOf(fsys, path, s.lines[name].length)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is missing; %s speaks of it", engine.ErrCorrupt, path, SumsFile)
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	case got != s.lines[name]:
		return fmt.Errorf("%w: %s differs from the bytes that were written; %s says so", engine.ErrCorrupt, path, SumsFile)
	}
	return nil
}

// sumOf sums the first length bytes of a file.
func sumOf(fsys vfs.FS, path string, length int64) (s sum, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return sum{}, err
	}
	buf := make([]byte, min(length, 1<<20))
	for s.length < length && err == nil {
		var n int
		n, err = f.Read(buf[:min(int64(len(buf)), length-s.length)])
		s = s.of(buf[:n])
	}
	if err == io.EOF {
		err = nil
	}
	return s, errors.Join(err, f.Close())
}

// begin writes the present lines into a new file, which replaces the old one
// when it is durable.
func (s *sums) begin(fsys vfs.FS, dir string) error {
	path := fsys.PathJoin(dir, SumsFile)
	if err := s.replace(fsys, dir, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// replace is begin for the file called path.
func (s *sums) replace(fsys vfs.FS, dir, path string) error {
	f, err := fsys.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	s.file = f
	for _, name := range s.names() {
		if err == nil {
			err = s.write(sumLine(name, s.lines[name]))
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fsys.Rename(path+".new", path)
	}
	if err == nil {
		err = Dir{fsys, dir}.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// covers reports whether there is a sum of the content of the file.
func (s *sums) covers(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[name].length > 0
}

func (s *sums) write(line string) error {
	_, err := s.file.Write([]byte(sealed(line) + "\n"))
	return err
}

// synced stores that the part of a manifest with this sum is durable.
func (s *sums) synced(name string, now sum) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.lines[name] == now {
		return nil
	}
	return s.put(name, now)
}

// put makes a line durable.
func (s *sums) put(name string, now sum) error {
	s.lines[name] = now
	if err := s.write(sumLine(name, now)); err != nil {
		return err
	}
	return s.file.Sync()
}

// begun stores that there is a log of this name.
func (s *sums) begun(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.lines[name]; ok || s.file == nil {
		return nil
	}
	return s.put(name, sum{})
}

// finished stores the sum of a log to which nothing will be added. It is made
// durable by the next line that is synced, or by close.
func (s *sums) finished(name string, now sum) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	s.lines[name] = now
	return s.write(sumLine(name, now))
}

// gone stores that a log is about to be removed or written over.
func (s *sums) gone(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.lines[name]; !ok || s.file == nil {
		return nil
	}
	delete(s.lines, name)
	if err := s.write(name + " gone"); err != nil {
		return err
	}
	return s.file.Sync()
}

func (s *sums) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Sync(), s.file.Close())
	s.file = nil
	return err
}
