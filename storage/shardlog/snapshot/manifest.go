package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// manifest says how a view is put together. Its text has a line for each file, and the last line is a checksum of the others:
//
//	holdfast snapshot 1
//	store 0f1e2d3c4b5a69788796a5b4c3d2e1f0
//	file 1284 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 000005.sst
//	check 5d3a91f0
//
// The manifest of a base has the line "base" behind the first two: the position row is not in its files.
type manifest struct {
	store string // the id of the store, see storage.Store.ID; it may be empty
	base  bool
	files []file // in the order of their names
}

// file is a file of a view. One without bytes has no blob.
type file struct {
	name   string
	size   int64
	sha256 string // in hexadecimal; the name of its blob
}

const (
	manifestHead = "holdfast snapshot "
	// manifestVersion is the version that this package writes and reads.
	manifestVersion = 1
	// maxManifestFiles bounds what a manifest can make a reader do: a view of 1 TB has fewer files.
	maxManifestFiles = 1 << 20
)

// text is the manifest as it is registered.
func (m manifest) text() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\nstore %s\n", manifestHead, manifestVersion, m.store)
	if m.base {
		b.WriteString("base\n")
	}
	for _, f := range m.files {
		fmt.Fprintf(&b, "file %d %s %s\n", f.size, f.sha256, f.name)
	}
	fmt.Fprintf(&b, "check %08x\n", crc32.Checksum([]byte(b.String()), crc32.MakeTable(crc32.Castagnoli)))
	return []byte(b.String())
}

// blobs are the names of the blobs, each once and in order.
func (m manifest) blobs() []string {
	var names []string
	for _, f := range m.files {
		if f.size > 0 {
			names = append(names, f.sha256)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// bytes is the length of all files.
func (m manifest) bytes() (n int64) {
	for _, f := range m.files {
		n += f.size
	}
	return n
}

// format returns the format file.
func (m manifest) format() (f file, ok bool) {
	i := slices.IndexFunc(m.files, func(f file) bool { return f.name == storage.FormatFile })
	if i < 0 {
		return f, false
	}
	return m.files[i], true
}

// chainOf is the chain of a base: the first 8 bytes of the SHA-256 of its manifest.
func chainOf(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:8])
}

// read reads the manifest of a snapshot and checks all that it says, because names of files come from it.
func read(s shardlog.Snapshot) (manifest, error) {
	m, err := parse(string(s.Manifest))
	switch {
	case err != nil:
	case m.base && s.Chain != chainOf(s.Manifest):
		err = errors.New("the chain of the base is not the hash of its manifest")
	case !slices.Equal(m.blobs(), slices.Sorted(slices.Values(s.Blobs))):
		err = errors.New("its blobs are not those of the manifest")
	}
	if err != nil {
		return m, fmt.Errorf("%w: the manifest at record %d: %w", ErrDamaged, s.Last, err)
	}
	return m, nil
}

// parse reads the text of a manifest.
func parse(text string) (m manifest, err error) {
	rest, ok := strings.CutPrefix(text, manifestHead)
	line, rest, _ := strings.Cut(rest, "\n")
	switch version, err := strconv.Atoi(line); {
	case !ok || err != nil:
		return m, errors.New("it is not a manifest of Holdfast")
	case version != manifestVersion:
		return m, fmt.Errorf("it has version %d, this program reads version %d: use the program that wrote it", version, manifestVersion)
	}
	line, rest, _ = strings.Cut(rest, "\n")
	if m.store, ok = strings.CutPrefix(line, "store "); !ok {
		return m, fmt.Errorf("line %q is not understood", line)
	}
	rest, m.base = strings.CutPrefix(rest, "base\n")
	for strings.HasPrefix(rest, "file ") {
		line, rest, _ = strings.Cut(rest, "\n")
		f, err := parseFile(line)
		if err != nil {
			return m, err
		}
		if n := len(m.files); n == maxManifestFiles || n > 0 && m.files[n-1].name >= f.name {
			return m, fmt.Errorf("file %d, %s, does not come after the one before", n, f.name)
		}
		m.files = append(m.files, f)
	}
	if text != string(m.text()) {
		return m, errors.New("its checksum does not fit")
	}
	if _, ok := m.format(); !ok {
		return m, fmt.Errorf("the file %s is missing", storage.FormatFile)
	}
	return m, nil
}

// parseFile reads the line of a file.
func parseFile(line string) (f file, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 4 {
		return f, fmt.Errorf("line %q is not understood", line)
	}
	f.name, f.sha256 = fields[3], fields[2]
	if f.size, err = strconv.ParseInt(fields[1], 10, 64); err != nil || f.size < 0 {
		return f, fmt.Errorf("line %q is not understood", line)
	}
	if sum, err := hex.DecodeString(f.sha256); err != nil || len(sum) != sha256.Size {
		return f, fmt.Errorf("line %q has no SHA-256", line)
	}
	if !isPlain(f.name) {
		return f, fmt.Errorf("%q cannot be a file of a view", f.name)
	}
	return f, nil
}

// isPlain reports whether name is that of a file which a view can have: no path, no hidden file, and none of those that the process
// makes that has the directory.
func isPlain(name string) bool {
	switch name {
	case "", "LOCK", "WITNESS", shardlog.ProofFile, shardlog.ProofFile + ".new", storage.FormatFile + ".new", storage.FormatFile + ".restore":
		return false
	}
	return name[0] != '.' && len(name) <= 200 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c)
	})
}
