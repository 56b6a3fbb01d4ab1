package storage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Open misses each lost file that the sums list. Proves S9.
func TestOpenMissesLostFiles(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := memOptions(mem)
	o.Pebble.MemTableBytes = 64 << 10
	s := open(t, o)
	for range 40 { // several logs
		commit(t, s, func(b *Batch) { b.SetMeta("k", make([]byte, 10<<10)) })
	}
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	checkAndClose(t, s)
	names, err := crashed.List("store")
	if err != nil {
		t.Fatal(err)
	}
	var manifest string // the newest
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") {
			manifest = max(manifest, name)
		}
	}
	tried := 0
	for _, name := range names {
		if name != manifest && name != pebblestore.SumsFile && name != formatFile && !strings.HasSuffix(name, ".log") {
			continue
		}
		tried++
		lost := crashed.CrashClone(vfs.CrashCloneCfg{})
		if err := lost.Remove("store/" + name); err != nil {
			t.Fatal(err)
		}
		o.Pebble.FS = lost
		s, err := Open(o)
		if err == nil {
			s.Close()
		}
		if name == formatFile && errors.Is(err, ErrNotStore) {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if tried < 3 || !slices.Contains(names, pebblestore.SumsFile) {
		t.Errorf("tried %d of %q", tried, names)
	}
}
