package storagetest

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Keep says what a crash leaves of what was not synced.
type Keep int

// The zero Keep keeps none, KeepAll all, and any other is the seed of a torn
// part: each block of 4 KiB of a file is kept or lost by itself, names of files
// are kept or lost together, as a journal of the file system does it.
const (
	KeepNone Keep = 0
	KeepAll  Keep = -1
)

// moment is what a file system holds between two operations, with and without
// what was not synced.
type moment struct {
	synced, all *vfs.MemFS
	lengths     map[string]int64 // how much of each file in all was synced
	fresh       map[string]bool  // names in all that stand for another file in synced, or for none
}

// capture must be called by before of fsys, which is over mem.
func capture(mem *vfs.MemFS, fsys *hookFS) moment {
	return moment{crashClone(mem, KeepNone), crashClone(mem, KeepAll), maps.Clone(fsys.synced), maps.Clone(fsys.fresh)}
}

func crashClone(mem *vfs.MemFS, keep Keep) *vfs.MemFS {
	if keep == KeepNone {
		return mem.CrashClone(vfs.CrashCloneCfg{})
	}
	// All of it, so that the random source is asked and does not matter.
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
}

// image is a file system as the crash leaves it. CrashClone with a percentage
// between would differ from call to call.
func (m moment) image(keep Keep) (*vfs.MemFS, error) {
	switch keep {
	case KeepNone:
		return crashClone(m.synced, KeepAll), nil
	case KeepAll:
		return crashClone(m.all, KeepAll), nil
	}
	t := tear{moment: m, keep: keep, names: m.synced, out: vfs.NewCrashableMem()}
	if choose(keep, "names", 0) {
		t.names = m.all
	}
	return t.out, t.dir("")
}

// tear makes a torn image.
type tear struct {
	moment
	keep  Keep
	names *vfs.MemFS // one of the moment's, whose names survive
	out   *vfs.MemFS
}

// dir copies a directory, with files torn.
func (t tear) dir(path string) error {
	entries, err := t.names.List(path)
	if err != nil {
		return err
	}
	slices.Sort(entries)
	for _, entry := range entries {
		name := t.out.PathJoin(path, entry)
		info, err := t.names.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err = t.out.MkdirAll(name, 0o755); err == nil {
				err = t.dir(name)
			}
		} else {
			var data []byte
			if data, err = t.file(name); err == nil {
				err = writeFile(t.out, name, data)
			}
		}
		if err != nil {
			return err
		}
	}
	return syncDir(t.out, path)
}

// file is the content of a file: what was synced, overlaid with the blocks that
// are kept of what was not.
func (t tear) file(name string) ([]byte, error) {
	last, err := readFile(t.all, name)
	if errors.Is(err, errAbsent) || t.fresh[name] && t.names == t.synced {
		return readFile(t.synced, name)
	}
	if err != nil {
		return nil, err
	}
	data := slices.Clone(last[:min(t.lengths[name], int64(len(last)))])
	if !t.fresh[name] {
		if synced, err := readFile(t.synced, name); err == nil {
			data = synced
		} else if !errors.Is(err, errAbsent) { // as LOCK is, which is made unseen
			return nil, err
		}
	}
	const blockBytes = 4096
	for from := 0; from < len(last); from += blockBytes {
		if !choose(t.keep, name, from) {
			continue
		}
		block := last[from:min(from+blockBytes, len(last))]
		if grow := from + len(block) - len(data); grow > 0 {
			data = append(data, make([]byte, grow)...)
		}
		copy(data[from:], block)
	}
	return data, nil
}

// choose is a coin that falls the same way for the same arguments.
func choose(keep Keep, name string, block int) bool {
	h := fnv.New64a()
	h.Write([]byte(name))
	return splitmix(h.Sum64()^splitmix(uint64(keep)^splitmix(uint64(block))))&1 == 1
}

// splitmix spreads the bits of x.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// noise is n bytes that do not compress and differ from seed to seed.
func noise(seed uint64, n int) []byte {
	out := make([]byte, 0, n+8)
	for len(out) < n {
		seed = splitmix(seed)
		out = binary.LittleEndian.AppendUint64(out, seed)
	}
	return out[:n]
}

var errAbsent = errors.New("file is absent")

func readFile(fsys vfs.FS, name string) ([]byte, error) {
	if _, err := fsys.Stat(name); err != nil {
		return nil, errAbsent
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

func writeFile(fsys vfs.FS, name string, data []byte) error {
	f, err := fsys.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Clone(data)) // Write may change what it is given
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(fsys vfs.FS, name string) error {
	d, err := fsys.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
