package storagetest

import (
	"flag"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/storage"
)

// scale multiplies the number of points of each test.
var scale = flag.Int("scale", 1, "multiplies the crashes, errors and damages tried")

// slowdown divides the number of points of each test.
var slowdown = 1

func points(n int) int { return max(n/slowdown, 5) }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// small are the options of a store that flushes and compacts early.
func small(fsys vfs.FS, dir string) storage.Options {
	return storage.Options{
		Dir:    dir,
		Shards: 4,
		Pebble: storage.PebbleOptions{FS: fsys, CacheBytes: 1 << 20, MemTableBytes: 64 << 10},
	}
}

func openSmall(fsys vfs.FS, dir string) (*storage.Store, error) {
	return storage.Open(small(fsys, dir))
}

func openWitnessed(fsys vfs.FS, dir string) (*storage.Store, error) {
	o := small(fsys, dir)
	o.Witness = true
	return storage.Open(o)
}

// No crash before any operation on files loses what was acknowledged, tears a
// commit, or leaves a store that does not open. Proves S9 and A1.
func TestCrash(t *testing.T) {
	var sum Figures
	for seed := range uint64(*scale) {
		f := Crash(t, openSmall, Options{Seed: seed, Points: points(1000)})
		sum.Points += f.Points
		sum.Nested += f.Nested
	}
	t.Logf("fs_crash_points=%d nested=%d", sum.Points, sum.Nested)
}

// The making of a store may be cut off at each operation.
func TestCrashInCreation(t *testing.T) {
	f := Crash(t, openSmall, Options{Commits: 3, Points: points(2000)})
	t.Logf("fs_crash_points=%d nested=%d", f.Points, f.Nested)
}

// A store whose log is not synced does not pass.
func TestCrashFindsAMissingSync(t *testing.T) {
	found := &failures{TB: t}
	Crash(found, func(fsys vfs.FS, dir string) (*storage.Store, error) {
		return openSmall(lazyFS{fsys}, dir)
	}, Options{Commits: 9, Points: points(300)})
	if found.count.Load() == 0 {
		t.Error("a log that is never synced passes")
	}
}

// failures counts errors instead of reporting them.
type failures struct {
	testing.TB
	count atomic.Int64
}

func (f *failures) Errorf(string, ...any) { f.count.Add(1) }

// lazyFS does not sync logs.
type lazyFS struct{ vfs.FS }

func (l lazyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = lazyFile{f}
	}
	return f, err
}

type lazyFile struct{ vfs.File }

func (lazyFile) Sync() error                { return nil }
func (lazyFile) SyncData() error            { return nil }
func (lazyFile) SyncTo(int64) (bool, error) { return false, nil }

// No failed operation on files makes the store acknowledge what is not durable,
// go on after it, or hang. Proves S9 and O13's storage side.
func TestErrors(t *testing.T) {
	var sum Figures
	for seed := range uint64(*scale) {
		f := Errors(t, openSmall, Options{Seed: seed, Commits: 30, Points: points(200)})
		sum.Points += f.Points
		sum.Died += f.Died
	}
	t.Logf("fs_errors=%d died=%d", sum.Points, sum.Died)
}

// Damage of any file is an error that names the file, or does no harm; the
// newest block of the log is the one exception. Proves S9.
func TestDamage(t *testing.T) {
	var sum Figures
	for seed := range uint64(*scale) {
		sum.add(Damage(t, openSmall, Options{Seed: seed, Points: points(2000)}))
	}
	t.Logf("bit_flips=%d refused=%d lost=%d", sum.Points, sum.Refused, sum.Lost)
}

// With a witness file no damage loses what was acknowledged without a word, and
// no crash makes it accuse a store that is whole. Proves S9's last sentence.
func TestWitness(t *testing.T) {
	var sum Figures
	for seed := range uint64(*scale) {
		sum.add(Damage(t, openWitnessed, Options{Seed: seed, Points: points(1000), Witness: true}))
		f := Crash(t, openWitnessed, Options{Seed: seed, Points: points(300)})
		t.Logf("fs_crash_points=%d", f.Points)
	}
	t.Logf("bit_flips=%d refused=%d lost=%d", sum.Points, sum.Refused, sum.Lost)
}

// The same on a real disk, in processes that may be killed. Proves S9 and O13's
// storage side where the process does not survive.
func TestErrorsInChild(t *testing.T) {
	f := ErrorsInChild(t, openSmall, Options{Commits: 20, Points: points(30 * *scale)})
	t.Logf("fs_errors_child=%d died=%d", f.Points, f.Died)
}
