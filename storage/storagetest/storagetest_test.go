package storagetest

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// How much of each part the tests try, at least. An ordinary run tries a fifth of the
// last number.
var (
	seed     = flag.Uint64("seed", 0, "the first seed")
	cuts     = flag.Int("crashes", 0, "the crashes to try, at least; 0: 500 or 2500")
	faults   = flag.Int("errors", 0, "the errors to try in process, at least; 0: 36 or 180")
	children = flag.Int("children", 20, "the errors to try in processes of their own, at least")
	damages  = flag.Int("damages", 0, "the flipped bits, cuts and removals to try, at least; 0: 500 or 2500")
)

// given is the value of a flag. Without one it is most if scripts/prove runs the tests,
// and else a fifth of that.
func given(flag *int, most int) int {
	if *flag == 0 && !prove.Long() {
		return most / 5
	}
	return cmp.Or(*flag, most)
}

// slowdown divides the number of points of each test.
var slowdown = 1

// sum is the figures of all tests of a run.
var sum struct {
	Crashes  int `json:"fs_crash_points"`
	Errors   int `json:"fs_errors"`
	Children int `json:"fs_errors_child"`
	Damages  int `json:"bit_flips"`
	Wrong    int `json:"wrong_values"`
}

// The last line of a run is its figures, as JSON.
func TestMain(m *testing.M) {
	// The live memory is small, and the garbage is much.
	debug.SetGCPercent(800)
	code := leaks.Run(m)
	line, _ := json.Marshal(sum) // numbers
	fmt.Println(string(line))
	os.Exit(code)
}

// until tries seeds until the points come to a share of n, and adds them to figure.
func until(t *testing.T, figure *int, n int, try func(seed uint64, points int) Figures) {
	t.Helper()
	n = max(n/slowdown, 5)
	for s := *seed; n > 0 && !t.Failed(); s++ {
		f := try(s, n)
		n -= f.Points
		*figure += f.Points
		sum.Wrong += f.Wrong
	}
}

// small are the options of a store that flushes and compacts early.
func small(fsys vfs.FS, dir string) storage.Options {
	return storage.Options{
		Dir:    dir,
		Shards: 4,
		Pebble: pebblestore.Options{FS: fsys, CacheBytes: 1 << 20, MemTableBytes: 64 << 10},
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

// No crash before any operation on files loses an acknowledged commit, tears a commit, or
// leaves a store that does not open. Proves S9 and A1.
func TestCrash(t *testing.T) {
	until(t, &sum.Crashes, given(cuts, 2500)/2, func(seed uint64, points int) Figures {
		return Crash(t, openSmall, Options{Seed: seed, Points: points})
	})
}

// The making of a store may be cut off at each operation.
func TestCrashInCreation(t *testing.T) {
	until(t, &sum.Crashes, given(cuts, 2500)/4, func(seed uint64, points int) Figures {
		return Crash(t, openSmall, Options{Seed: seed, Commits: 3, Points: points})
	})
}

// A crash does not make the witness file accuse a store that is whole. Proves S9's
// last sentence.
func TestCrashWithWitness(t *testing.T) {
	until(t, &sum.Crashes, given(cuts, 2500)/4, func(seed uint64, points int) Figures {
		return Crash(t, openWitnessed, Options{Seed: seed, Points: points})
	})
}

// On a file system that loses names one by one a store either opens and has lost
// nothing, or refuses to open. The manifest is where that can happen; it is the
// known exception of S9, and such crashes are no part of the figures.
func TestCrashWithoutJournal(t *testing.T) {
	none := 0
	until(t, &none, given(cuts, 2500)/4, func(seed uint64, points int) Figures {
		return Crash(t, openSmall, Options{Seed: seed, Points: points, Scatter: true})
	})
}

// A store does not pass if its log is not synced.
func TestCrashFindsAMissingSync(t *testing.T) {
	found := &failures{TB: t}
	f := Crash(found, func(fsys vfs.FS, dir string) (*storage.Store, error) {
		return openSmall(lazyFS{fsys}, dir)
	}, Options{Commits: 9, Points: 300})
	if found.count.Load() == 0 || f.Wrong == 0 {
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

// After a failed operation on files the store acknowledges no commit that is not durable,
// does not go on, and does not hang. Proves S9 and O13's storage side.
func TestErrors(t *testing.T) {
	until(t, &sum.Errors, given(faults, 180), func(seed uint64, points int) Figures {
		return Errors(t, openSmall, Options{Seed: seed, Commits: 30, Points: points})
	})
}

// Damage of any file is an error that names the file, or does no harm. The one exception
// is damage of the bytes of the last sync. Proves S9.
func TestDamage(t *testing.T) {
	until(t, &sum.Damages, given(damages, 2500)*2/3, func(seed uint64, points int) Figures {
		return Damage(t, openSmall, Options{Seed: seed, Points: points})
	})
}

// With a witness file no damage loses acknowledged commits silently. Proves S9's last
// sentence.
func TestDamageWithWitness(t *testing.T) {
	until(t, &sum.Damages, given(damages, 2500)/3+1, func(seed uint64, points int) Figures {
		return Damage(t, openWitnessed, Options{Seed: seed, Points: points, Witness: true})
	})
}

// The same on a real disk, in processes that may be killed. Proves S9 and O13's
// storage side where the process does not survive.
func TestErrorsInChild(t *testing.T) {
	until(t, &sum.Children, *children, func(seed uint64, points int) Figures {
		return ErrorsInChild(t, openSmall, Options{Seed: seed, Commits: 20, Points: points})
	})
}
