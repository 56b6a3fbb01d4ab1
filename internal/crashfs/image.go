package crashfs

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Keep chooses the unsynced bytes that a crash leaves: none, all, or a torn part. Any
// Keep but the two named ones is the seed of a torn part: each block of 4 KiB of a file
// is kept or lost by itself.
type Keep int

const (
	KeepNone Keep = 0
	KeepAll  Keep = -1 // as after the kill of a process
)

// blockBytes is how much of a file is kept or lost together.
const blockBytes = 4096

// Moment is the content of a file system between two operations, with the synced and
// the unsynced bytes apart. It never changes, so several goroutines may make images of
// it at once.
type Moment struct {
	synced, all Tree
	lengths     map[string]int64 // how much of each file in all was synced
	fresh       map[string]bool  // names in all that stand for another file in synced, or for none
}

// Capture is the present moment of an FS over a crashable vfs.MemFS. Call it only
// in the function that the FS calls before an operation; elsewhere use Crash.
func (f *FS) Capture() Moment {
	mem := f.FS.(*vfs.MemFS)
	return Moment{
		synced:  Read(mem.CrashClone(vfs.CrashCloneCfg{})),
		all:     Read(mem),
		lengths: maps.Clone(f.synced),
		fresh:   maps.Clone(f.fresh),
	}
}

// Crash is the file system that a crash would leave now, between two operations.
func (f *FS) Crash(keep Keep) (*vfs.MemFS, error) {
	f.mu.Lock()
	m := f.Capture()
	f.mu.Unlock()
	return m.Image(keep)
}

// Image is the file system as a crash at the moment leaves it. All of it is
// synced. Names of files are kept or lost together.
func (m Moment) Image(keep Keep) (*vfs.MemFS, error) {
	kept := keep == KeepAll || keep != KeepNone && coin(keep, "names", 0)
	return m.write(keep, func(string) bool { return kept })
}

// Scatter is Image on a file system without a journal: each name that was made,
// moved or removed since its directory was synced is kept or lost by itself.
func (m Moment) Scatter(seed Keep) (*vfs.MemFS, error) {
	return m.write(seed, func(name string) bool { return coin(seed, name, -1) })
}

// write makes an image. kept decides for each unsynced name whether it stands for its
// newest file.
func (m Moment) write(keep Keep, kept func(name string) bool) (*vfs.MemFS, error) {
	out := make(Tree)
	for _, names := range []Tree{m.synced, m.all} {
		for name := range names {
			from := m.synced
			if kept(name) {
				from = m.all
			}
			if data, ok := from[name]; ok && data == nil {
				out[name] = nil
			} else if ok {
				out[name] = m.file(name, keep, kept(name))
			}
		}
	}
	return out.Write()
}

// file is the content of a file: the synced bytes, overlaid with the kept blocks of the
// unsynced ones.
func (m Moment) file(name string, keep Keep, kept bool) []byte {
	last, ok := m.all[name]
	switch {
	case !ok || m.fresh[name] && !kept:
		return m.synced[name]
	case keep == KeepAll:
		return last
	case m.fresh[name]:
		return overlay(last[:min(m.lengths[name], int64(len(last)))], last, keep, name)
	default: // LOCK is not synced, and made unseen
		return overlay(m.synced[name], last, keep, name)
	}
}

// overlay is synced with some blocks of last.
func overlay(synced, last []byte, keep Keep, name string) []byte {
	data := append([]byte{}, synced...)
	for from := 0; from < len(last); from += blockBytes {
		if keep == KeepNone || !coin(keep, name, from) {
			continue
		}
		block := last[from:min(from+blockBytes, len(last))]
		if grow := from + len(block) - len(data); grow > 0 {
			data = append(data, make([]byte, grow)...)
		}
		copy(data[from:], block)
	}
	return data
}

// coin falls the same way for the same arguments.
func coin(keep Keep, name string, block int) bool {
	h := fnv.New64a()
	h.Write([]byte(name))
	var coins rand.PCG
	coins.Seed(h.Sum64()^uint64(block), uint64(keep))
	return coins.Uint64()&1 == 1
}
