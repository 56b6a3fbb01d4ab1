package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// clock stands still until a test moves it.
type clock struct{ now atomic.Int64 }

func (c *clock) Now() time.Time { return time.Unix(0, c.now.Load()) }

func (c *clock) AfterFunc(d time.Duration, f func()) seam.Timer { return time.AfterFunc(d, f) }

func newClock() *clock {
	c := new(clock)
	c.now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

// options are those of a store with four shards, and of a repository, in fsys.
func options(fsys vfs.FS, c seam.Clock) storage.Options {
	return storage.Options{
		Dir: "store", Shards: 4, MinFreeBytes: -1, Seams: seam.Seams{Clock: c},
		Pebble: pebblestore.Options{FS: fsys, MemTableBytes: 64 << 10, CacheBytes: 1 << 20},
	}
}

// world is a store and a repository in one file system.
type world struct {
	t     *testing.T
	o     storage.Options
	clock *clock
	store *storage.Store
	repo  *Repository
}

func newWorld(t *testing.T, fsys vfs.FS) *world {
	t.Helper()
	w := &world{t: t, clock: newClock()}
	w.o = options(fsys, w.clock)
	var err error
	if w.store, err = storage.Open(w.o); err == nil {
		w.repo, err = Open("repo", w.o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Abandon() })
	return w
}

// commit makes number n durable.
func (w *world) commit(n int) {
	w.t.Helper()
	if err := commitTo(w.store, n); err != nil {
		w.t.Fatal(err)
	}
}

func commitTo(s *storage.Store, n int) error {
	var b storage.Batch
	b.SetMeta("n", []byte(strconv.Itoa(n)))
	b.SetMeta(fmt.Sprint("filler", n%7), make([]byte, 9000))
	at, err := s.Commit(&b)
	if err == nil {
		err = s.WaitDurable(at)
	}
	return err
}

// create makes a snapshot a minute after the one before.
func (w *world) create() Snapshot {
	w.t.Helper()
	w.clock.now.Add(int64(time.Minute))
	s, err := w.repo.Create(w.t.Context(), w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) verify(name string) Snapshot {
	w.t.Helper()
	s, err := w.repo.Verify(w.t.Context(), name, func(f storage.Finding) { w.t.Errorf("found %+v", f) })
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// last is the number that the store in a directory holds.
func last(t *testing.T, o storage.Options, dir string) (n int) {
	t.Helper()
	o.Dir = dir
	s, err := storage.OpenReadOnly(o)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := s.Meta("n")
	n, _ = strconv.Atoi(string(v)) // 0 before the first
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return n
}

// tree is the content of all files below a directory.
func tree(t *testing.T, d pebblestore.Dir) map[string]string {
	t.Helper()
	all := make(map[string]string)
	names, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := d.FS.Stat(d.Join(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			for below, text := range tree(t, pebblestore.Dir{FS: d.FS, Path: d.Join(name)}) {
				all[name+"/"+below] = text
			}
			continue
		}
		if all[name], err = d.Read(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Snapshots that are made beside a writer hold each commit that was acknowledged before, on the
// disk of the store and on another one. A later one adds no table that the repository has. Each
// gets its mark by Verify alone, and the live store is left as a store.
//
// Proves B1. Proves B2.
func TestSnapshotsBesideAWriter(t *testing.T) {
	for _, links := range []bool{true, false} {
		t.Run(fmt.Sprint("links ", links), func(t *testing.T) {
			var fsys vfs.FS = vfs.NewMem()
			if !links {
				fsys = errorfs.Wrap(fsys, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if op.Kind == errorfs.OpLink {
						return &fs.PathError{Op: "link", Path: op.Path, Err: syscall.EXDEV}
					}
					return nil
				}))
			}
			w := newWorld(t, fsys)
			var acked atomic.Int64
			stop := make(chan struct{})
			var writer sync.WaitGroup
			begun := make(chan struct{})
			writer.Go(func() {
				for n := 1; ; n++ {
					if err := commitTo(w.store, n); err != nil {
						t.Errorf("a commit beside a backup: %v", err)
						return
					}
					acked.Store(int64(n))
					if n == 20 {
						close(begun)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
			<-begun
			for i := range 3 {
				before := acked.Load()
				s := w.create()
				if s.Store != w.store.ID() || len(s.Store) != 32 || s.Epoch != 1 || !s.Verified.IsZero() || !s.Begun.Equal(w.clock.Now()) {
					t.Errorf("snapshot %+v of store %q", s, w.store.ID())
				}
				if list, err := w.repo.List(); err != nil || len(list) != i+1 || list[i] != s {
					t.Errorf("%v, %v", list, err)
				}
				if v := w.verify(s.Name); !v.Verified.Equal(w.clock.Now()) {
					t.Errorf("verified at %v", v.Verified)
				}
				to := fmt.Sprint("restored", i)
				if _, err := w.repo.Restore(t.Context(), "", to); err != nil {
					t.Fatal(err)
				}
				if n := last(t, w.o, to); int64(n) < before {
					t.Errorf("snapshot %d ends with %d, and %d was acknowledged", i, n, before)
				}
			}
			close(stop)
			writer.Wait()
			if err := errors.Join(w.store.Check(), w.store.Close()); err != nil {
				t.Error(err)
			}
			if _, err := fsys.Stat("store.checkpoint"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the checkpoint is left: %v", err)
			}
			w.clock.now.Add(int64(time.Hour))
			first, err := w.repo.CreateFrom(t.Context(), "store")
			before := tree(t, w.repo.dir(blobsDir))
			second, again := w.repo.CreateFrom(t.Context(), "store")
			if err := errors.Join(err, again); err != nil || first.Name == second.Name || first.Bytes != second.Bytes {
				t.Errorf("%+v, %+v, %v", first, second, err)
			}
			if after := tree(t, w.repo.dir(blobsDir)); len(after) != len(before) || len(after) < 10 {
				t.Errorf("%d blobs, before %d", len(after), len(before))
			}
		})
	}
}

// The power fails before each operation of a backup, of its check and of a clean-up. The live store
// has each acknowledged commit. Each snapshot that is there is whole; one that bears a mark was
// verified before; and the next backup, check and clean-up succeed.
//
// Proves B1. Proves B2. Proves B3.
func TestPowerCutInABackup(t *testing.T) {
	fsys := crashfs.New(vfs.NewCrashableMem(), nil)
	w := newWorld(t, fsys)
	w.commit(1)
	type moment struct {
		crashfs.Moment
		created, removed bool // Create and Clean have returned
	}
	var moments []moment
	var created, removed, taken bool
	var seen sync.Mutex // operations of Pebble run beside those of the test
	take := func(crashfs.Op) error {
		seen.Lock()
		defer seen.Unlock()
		if taken {
			moments = append(moments, moment{fsys.Capture(), created, removed})
		}
		return nil
	}
	old := w.create()
	w.commit(2)
	taken = true
	fsys.SetBefore(take)
	s := w.create()
	created = true
	w.verify(s.Name)
	gone, _, err := w.repo.Clean(Keep{Last: 1})
	removed = true
	if err != nil || !slices.Equal(gone, []string{old.Name}) {
		t.Fatal(gone, err)
	}
	moments = append(moments, moment{fsys.Capture(), true, true})
	fsys.SetBefore(nil)
	marked, unmarked := 0, 0
	for i, m := range moments {
		for _, keep := range []crashfs.Keep{crashfs.KeepNone, crashfs.KeepAll, 1} {
			image, err := m.Image(keep)
			if err != nil {
				t.Fatal(err)
			}
			o := options(image, w.clock)
			if n := last(t, o, "store"); n != 2 {
				t.Errorf("crash %d: the store ends with %d", i, n)
			}
			repo, err := Open("repo", o)
			if err != nil {
				t.Fatal(err)
			}
			list, err := repo.List()
			if err != nil {
				t.Fatalf("crash %d: %v", i, err)
			}
			names := make(map[string]bool)
			for _, found := range list {
				names[found.Name] = true
				switch {
				case found.Verified.IsZero():
					unmarked++
				case !m.created:
					t.Errorf("crash %d: %s is marked before it was verified", i, found.Name)
				default:
					marked++
				}
				if _, err := repo.Verify(t.Context(), found.Name, nil); err != nil {
					t.Errorf("crash %d, keep %v: %v", i, keep, err)
				}
			}
			if m.created && !names[s.Name] || m.removed && names[old.Name] || !names[old.Name] && !names[s.Name] {
				t.Errorf("crash %d: %v", i, names)
			}
		}
	}
	if len(moments) < 60 || marked == 0 || unmarked == 0 {
		t.Errorf("%d crashes, snapshots with a mark %d, without %d", len(moments), marked, unmarked)
	}
	t.Log(len(moments), "moments")
}

// Nothing is verified but by a look at each byte: with a flipped bit, a shorter or a missing blob, or a
// snapshot's file that was swapped for another, no mark is written, and the mark of before goes or does not
// count. Restore refuses all of them by the name of the file, and leaves the directory empty.
//
// Proves B1.
func TestDamagedRepository(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.commit(1)
	first := w.create()
	for n := range 30 {
		w.commit(n + 2)
	}
	s := w.verify(w.create().Name)
	whole := tree(t, w.repo.root)
	c, text, err := w.repo.load(s.Name)
	if err != nil {
		t.Fatal(err)
	}
	table := slices.IndexFunc(c.Files, func(f file) bool { return strings.HasSuffix(f.Name, ".sst") && f.Bytes > 2000 })
	other := (table + 1) % len(c.Files)
	format := blobsDir + "/" + c.Files[slices.IndexFunc(c.Files, isFormat)].SHA256
	blob := blobsDir + "/" + c.Files[table].SHA256
	document := snapshotsDir + "/" + s.Name + jsonSuffix
	reseal := func(change func(*content)) string {
		changed, err := parse("", text)
		if err != nil {
			t.Fatal(err)
		}
		change(&changed)
		sealed, err := changed.seal()
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	flip := func(text string, at int) string { return text[:at] + string(text[at]^1) + text[at+1:] }
	rename := func(name string) string { return reseal(func(c *content) { c.Files[table].Name = name }) }
	for name, change := range map[string]struct {
		path, text string
		want       string
	}{
		"flipped":   {blob, flip(whole[blob], 1000), blob},
		"truncated": {blob, whole[blob][:1000], blob},
		"missing":   {blob, "", blob},
		"swapped":   {blob, whole[blobsDir+"/"+c.Files[other].SHA256], blob},
		"format":    {format, flip(whole[format], 10), format},
		"nowhere":   {format, "", format},
		"torn":      {document, text[:len(text)/2], document},
		"edited":    {document, strings.Replace(text, `"epoch":1`, `"epoch":2`, 1), document},
		"parent":    {document, rename("../../outside"), "../../outside"},
		"path":      {document, rename("a/b"), "a/b"},
		"absolute":  {document, rename("/etc/passwd"), "/etc/passwd"},
		"lock":      {document, rename("LOCK"), "LOCK"},
		"hidden":    {document, rename("."), document},
		"twice":     {document, rename(c.Files[other].Name), c.Files[other].Name},
		"blob":      {document, reseal(func(c *content) { c.Files[table].SHA256 = "../../store/HOLDFAST" }), c.Files[table].Name},
		"other":     {document, reseal(func(c *content) { c.Files[table].SHA256 = c.Files[other].SHA256 }), c.Files[other].SHA256},
		"no format": {document, reseal(func(c *content) {
			c.Files = slices.DeleteFunc(c.Files, isFormat)
		}), storage.FormatFile},
		"large format":     {document, reseal(func(c *content) { c.Files[slices.IndexFunc(c.Files, isFormat)].Bytes = 1 << 40 }), ""},
		"newer":            {document, reseal(func(c *content) { c.Format = 2 }), document + " has format 2"},
		"newer repository": {formatFile, "holdfast repository\nformat 2\n", formatFile},
		"a file missing":   {document, reseal(func(c *content) { c.Files = slices.Delete(c.Files, table, table+1) }), document},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			put := maps.Clone(whole)
			if put[change.path] = change.text; change.text == "" {
				delete(put, change.path)
			}
			o := options(mem, w.clock)
			for path, text := range put {
				d := o.Pebble.Dir(filepath.Dir("repo/" + path))
				if err := errors.Join(d.Make(), d.Write(filepath.Base(path), text)); err != nil {
					t.Fatal(err)
				}
			}
			repo, err := Open("repo", o)
			if err != nil {
				t.Fatal(err)
			}
			before := tree(t, repo.root)
			for name, way := range ways {
				if !way.verified {
					continue
				}
				_, err = way.restore(repo, t.Context(), s.Name, "to")
				if err == nil || !strings.Contains(err.Error(), change.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("restored by %s: %v", name, err)
				}
				if _, err := mem.Stat("to"); err == nil {
					if left := tree(t, o.Pebble.Dir("to")); len(left) > 0 {
						t.Errorf("left by %s: %v", name, slices.Sorted(maps.Keys(left)))
					}
				}
			}
			if !maps.Equal(before, tree(t, repo.root)) {
				t.Error("a restore has changed the repository")
			}
			if _, err := repo.Verify(t.Context(), s.Name, nil); err == nil || !strings.Contains(err.Error(), change.want) {
				t.Errorf("verified: %v", err)
			}
			list, err := repo.List()
			for _, l := range list {
				if l.Name == s.Name && !l.Verified.IsZero() {
					t.Errorf("it counts as verified: %+v, %v", l, err)
				}
			}
			if change.path == document && name != "a file missing" && name != "other" && name != "large format" {
				if _, _, err := repo.Clean(Keep{}); err == nil {
					t.Error("cleaned, although a snapshot cannot be read")
				}
			}
			if outside, err := mem.List(""); err != nil || slices.ContainsFunc(outside, func(n string) bool { return n != "repo" && n != "to" }) {
				t.Errorf("the root holds %v, %v", outside, err)
			}
			if change.path == document {
				if _, err := repo.Verify(t.Context(), first.Name, nil); err != nil {
					t.Errorf("the other snapshot: %v", err)
				}
			}
		})
	}
}

// A block of a table that was damaged before the backup fits the hash of its blob. It is a finding that names the table, the
// snapshot does not count, and no store is restored of it.
//
// Proves B1.
func TestBackupOfADamagedTable(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 30 {
		value := make([]byte, 9000) // which does not compress, so that the table has blocks without rows that an opening reads
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		var b storage.Batch
		b.SetMeta(fmt.Sprintf("filler%02d", n), value)
		if _, err := w.store.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	d := w.o.Pebble.Dir("store")
	table := ""
	for name, text := range tree(t, d) {
		if isTable(name) && len(text) > 100_000 {
			table = max(table, name)
		}
	}
	text, err := d.Read(table)
	if at := len(text) / 2; err == nil {
		err = d.Write(table, text[:at]+string([]byte{text[at] ^ 1})+text[at+1:])
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.repo.CreateFrom(t.Context(), "store")
	if err != nil {
		t.Fatal(err)
	}
	var found []storage.Finding
	_, err = w.repo.Verify(t.Context(), s.Name, func(f storage.Finding) { found = append(found, f) })
	if !errors.Is(err, ErrDamaged) || len(found) != 1 || found[0].File != table {
		t.Errorf("found %+v, %v; the damage is in %s", found, err, table)
	}
	if list, err := w.repo.List(); err != nil || len(list) != 1 || !list[0].Verified.IsZero() {
		t.Errorf("listed are %+v, %v", list, err)
	}
	for name, way := range ways {
		if _, err := way.restore(w.repo, t.Context(), s.Name, "copy"); err == nil {
			t.Errorf("a store is restored of it: %s", name)
		}
	}
}

// Clean keeps the newest, the young ones and the newest that is verified, and removes no blob that a
// snapshot names. Beside a backup under way it is refused. A snapshot that it keeps is whole.
//
// Proves B1.
func TestClean(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	const day = 24 * time.Hour
	var all []Snapshot
	for n := range 6 {
		w.commit(n + 1)
		all = append(all, w.create())
		w.clock.now.Add(int64(day - time.Minute))
	}
	w.clock.now.Add(int64(time.Minute))
	w.verify(all[1].Name)
	for _, c := range []struct {
		keep Keep
		want []int // of all, that are left
	}{
		{Keep{}, []int{0, 1, 2, 3, 4, 5}},
		{Keep{Days: 6}, []int{1, 2, 3, 4, 5}}, // the first is exactly six days old
		{Keep{Last: 3, Days: 4}, []int{1, 3, 4, 5}},
		{Keep{Last: 1}, []int{1, 5}},
	} {
		if _, _, err := w.repo.Clean(c.keep); err != nil {
			t.Fatal(err)
		}
		list, err := w.repo.List()
		var want, got []string
		for _, i := range c.want {
			want = append(want, all[i].Name)
		}
		for _, s := range list {
			got = append(got, s.Name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v leaves %v, %v, want %v", c.keep, got, err, want)
		}
	}
	for _, i := range []int{1, 5} {
		w.verify(all[i].Name)
	}
	before := len(tree(t, w.repo.dir(blobsDir)))
	if err := errors.Join(w.repo.Remove(all[1].Name), w.repo.Remove(all[5].Name)); err != nil {
		t.Error(err)
	}
	if err := w.repo.Remove("../" + formatFile); !errors.Is(err, ErrNoSnapshot) {
		t.Error(err)
	}
	if _, freed, err := w.repo.Clean(Keep{}); err != nil || freed == 0 || before == 0 || len(tree(t, w.repo.dir(blobsDir))) != 0 {
		t.Errorf("%d blobs, freed %d, %v", before, freed, err)
	}
	if _, _, err := w.repo.Clean(Keep{Last: -1}); err == nil {
		t.Error("a negative number is taken")
	}
}

// A first backup reads each file once and writes it once. The next one reads each once, and writes content that the repository does not have.
// One without a snapshot before it finds the content by its hash, and drops the copies. The file of a copy that was cut off is gone after a backup, and after a clean-up.
//
// Proves B3.
func TestCreateReadsEachFileOnce(t *testing.T) {
	const checkpoint = "store.checkpoint/store/"
	var mu sync.Mutex // guards both
	read, written := make(map[string]int), 0
	w := newWorld(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		name, ok := strings.CutPrefix(op.Path, checkpoint)
		switch {
		case op.Kind == errorfs.OpOpen && ok && isTable(name):
			read[name]++
		case op.Kind == errorfs.OpCreate && strings.HasPrefix(op.Path, "repo/"+blobsDir):
			written++
		}
		return nil
	})))
	for n := range 30 {
		w.commit(n + 1)
	}
	blobs := w.repo.dir(blobsDir)
	rest := func() {
		if err := errors.Join(blobs.Make(), blobs.Write(copyName, "the begin of a copy")); err != nil {
			t.Fatal(err)
		}
	}
	left := func(after string) {
		if _, err := blobs.FS.Stat(blobs.Join(copyName)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a copy is left after %s: %v", after, err)
		}
	}
	rest()
	var all []Snapshot
	for i, most := range []int{100, 5, 100} { // the second has another log, and what tells of it; the third copies content that is there
		if i == 2 {
			if err := errors.Join(w.repo.Remove(all[0].Name), w.repo.Remove(all[1].Name)); err != nil {
				t.Fatal(err)
			}
		}
		read, written = make(map[string]int), 0
		s := w.create()
		all = append(all, s)
		if i != 1 && written != s.Files || written > most {
			t.Errorf("backup %d has %d files, and wrote %d", i, s.Files, written)
		}
		for name, n := range read {
			if n != 1 {
				t.Errorf("backup %d reads %s %d times", i, name, n)
			}
		}
		if len(read) == 0 {
			t.Errorf("backup %d reads no table", i)
		}
		left("a backup")
		w.verify(s.Name)
	}
	rest()
	if _, _, err := w.repo.Clean(Keep{}); err != nil {
		t.Error(err)
	}
	left("a clean-up")
}

// A clean-up beside a backup is refused, at each operation of the backup.
func TestCleanBesideABackup(t *testing.T) {
	refused := 0
	var w *world
	var armed atomic.Bool
	w = newWorld(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed.Load() && strings.HasPrefix(op.Path, "repo/blobs/") && op.Kind == errorfs.OpCreate {
			armed.Store(false)
			if _, _, err := w.repo.Clean(Keep{}); errors.Is(err, storage.ErrLocked) {
				refused++
			} else {
				t.Errorf("cleaned beside a backup: %v", err)
			}
			armed.Store(true)
		}
		return nil
	})))
	w.commit(1)
	w.create()
	w.commit(2)
	armed.Store(true)
	s := w.create()
	armed.Store(false)
	w.verify(s.Name)
	if refused == 0 {
		t.Error("no clean-up was tried")
	}
}

// A restored store is dormant, has another id and epochs far ahead, and its directory must be empty.
// No number that the source gives out after the snapshot, in any of its openings, is given out by
// the copy, awake or not.
//
// Proves S17.
func TestRestoredStoreGivesNoNumberAgain(t *testing.T) {
	for _, witness := range []bool{false, true} {
		w := newWorld(t, vfs.NewMem())
		w.o.Witness = witness
		w.commit(1)
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if w.store, err = storage.Open(w.o); err != nil {
			t.Fatal(err)
		}
		s := w.verify(w.create().Name)
		id := w.store.ID()
		given := make(map[uint64]bool)
		greatest := uint64(0)
		for range 5 { // later openings of the source
			for range 50 {
				given[uint64(w.store.NewNumber())] = true
				greatest = w.store.NextSeq()
			}
			if err := w.store.Close(); err != nil {
				t.Fatal(err)
			}
			if w.store, err = storage.Open(w.o); err != nil {
				t.Fatal(err)
			}
		}
		if w.store.ID() != id {
			t.Errorf("the source has changed its id from %s to %s", id, w.store.ID())
		}
		if _, err := w.repo.Restore(t.Context(), s.Name, "copy"); err != nil {
			t.Fatal(err)
		}
		before := tree(t, w.o.Pebble.Dir("copy"))
		if _, err := w.repo.Restore(t.Context(), s.Name, "copy"); !errors.Is(err, ErrNotEmpty) || !maps.Equal(before, tree(t, w.o.Pebble.Dir("copy"))) {
			t.Errorf("a second restore: %v", err)
		}
		o := w.o
		o.Dir = "copy"
		dormant := true
		for opening := range 3 {
			c, err := storage.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if c.Dormant() != dormant || c.ID() == id || len(c.ID()) != 32 || c.Epoch() < w.store.Epoch()+1<<19 {
				t.Errorf("opening %d: dormant %v, id %s, epoch %d, the source has %s and %d", opening, c.Dormant(), c.ID(), c.Epoch(), id, w.store.Epoch())
			}
			for range 50 {
				if n := uint64(c.NewNumber()); given[n] {
					t.Errorf("object number %#x is given out again", n)
				}
				if n := c.NextSeq(); n <= greatest {
					t.Errorf("sequence number %#x follows %#x", n, greatest)
				}
			}
			if err := errors.Join(commitTo(c, 7), c.Check(), c.Close()); err != nil {
				t.Error(err)
			}
			if err := storage.Wake(o); err != nil {
				t.Error(err)
			}
			dormant = false
		}
	}
}

// way is a way to restore a snapshot that is verified, or is not.
type way struct {
	restore  func(r *Repository, ctx context.Context, name, dir string) (Snapshot, error)
	verified bool
}

var ways = map[string]way{
	"copies":            {(*Repository).Restore, true},
	"links":             {(*Repository).RestoreLinked, true},
	"unverified copies": {(*Repository).Restore, false},
	"unverified links":  {(*Repository).RestoreLinked, false},
}

// The power fails before each operation of a restore and of the Wake behind it. The directory holds
// no store, or the whole store with the epochs far ahead; it never opens as the source did. The
// repository is as it was.
//
// Proves S17. Proves B1.
func TestPowerCutInARestore(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { cutRestore(t, way) })
	}
}

func cutRestore(t *testing.T, way way) {
	fsys := crashfs.New(vfs.NewCrashableMem(), nil)
	w := newWorld(t, fsys)
	w.commit(1)
	s := w.create()
	if way.verified {
		w.verify(s.Name)
	}
	blobs := tree(t, w.repo.dir(blobsDir))
	var moments []crashfs.Moment
	var seen sync.Mutex
	fsys.SetBefore(func(op crashfs.Op) error {
		seen.Lock()
		defer seen.Unlock()
		moments = append(moments, fsys.Capture())
		return nil
	})
	o := w.o
	o.Dir = "copy"
	_, err := way.restore(w.repo, t.Context(), s.Name, o.Dir)
	if err := errors.Join(err, storage.Wake(o)); err != nil {
		t.Fatal(err)
	}
	moments = append(moments, fsys.Capture())
	fsys.SetBefore(nil)
	states := make(map[string]int)
	for i, m := range moments {
		for _, keep := range []crashfs.Keep{crashfs.KeepNone, crashfs.KeepAll, 1} {
			image, err := m.Image(keep)
			if err != nil {
				t.Fatal(err)
			}
			o := options(image, w.clock)
			if !maps.Equal(blobs, tree(t, o.Pebble.Dir("repo/"+blobsDir))) {
				t.Errorf("crash %d: the repository has changed", i)
			}
			o.Dir = "copy"
			c, err := storage.OpenReadOnly(o)
			if err != nil {
				states["none"]++
				continue
			}
			states[fmt.Sprint("dormant ", c.Dormant())]++
			if err := errors.Join(c.Check(), c.Close()); err != nil {
				t.Error(err)
			}
			if n := last(t, o, "copy"); n != 1 || c.Epoch() < 1<<20 || c.ID() == w.store.ID() {
				t.Errorf("crash %d: the copy ends with %d, epoch %d, id %s", i, n, c.Epoch(), c.ID())
			}
		}
	}
	if len(moments) < 40 || states["none"] == 0 || states["dormant true"] == 0 || states["dormant false"] == 0 {
		t.Errorf("%d crashes: %v", len(moments), states)
	}
}

// A store that was restored by links has the tables of the repository, and lives on without a change of one: it is woken,
// writes, compacts what it has, and gives up tables. Its tables stay when the repository gives up theirs. Where
// the file system has no links it has copies.
//
// Proves B1.
func TestRestoreLinked(t *testing.T) {
	t.Chdir(t.TempDir())
	links := true
	var mu sync.Mutex // guards linked
	var linked []string
	w := newWorld(t, errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpLink {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if linked = append(linked, filepath.Base(op.Path)); !links {
			return &fs.PathError{Op: "link", Path: op.Path, Err: syscall.EXDEV}
		}
		return nil
	})))
	for n := range 40 {
		w.commit(n + 1)
	}
	s := w.verify(w.create().Name)
	c, _, err := w.repo.load(s.Name)
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, w.repo.root)
	for _, links = range []bool{false, true} {
		linked = nil
		if err := os.RemoveAll("copy"); err != nil {
			t.Fatal(err)
		}
		if made, err := w.repo.RestoreLinked(t.Context(), "", "copy"); err != nil || made != s {
			t.Fatalf("%+v, %v, want %+v", made, err, s)
		}
		for _, f := range c.Files {
			if slices.Contains(linked, f.SHA256) != isTable(f.Name) {
				t.Errorf("links were asked of %q, and %s is %s", linked, f.SHA256, f.Name)
			}
			blob, err := os.Stat(filepath.Join("repo", blobsDir, f.SHA256))
			if err != nil {
				t.Fatal(err)
			}
			own, err := os.Stat(filepath.Join("copy", f.Name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // Adopt has opened the store, which begins to compact
			}
			if same := os.SameFile(blob, own); err != nil || same != (links && isTable(f.Name)) {
				t.Errorf("with links %v: %s is a link: %v, %v", links, f.Name, same, err)
			}
		}
		if len(linked) == 0 {
			t.Error("no links were asked of")
		}
	}
	o := w.o
	o.Dir = "copy"
	if err := storage.Wake(o); err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	given := func() (up int) {
		for _, f := range c.Files {
			if _, err := os.Stat(filepath.Join("copy", f.Name)); isTable(f.Name) && errors.Is(err, fs.ErrNotExist) {
				up++
			}
		}
		return up
	}
	n := 40
	for ; n < 140 || given() == 0 && n < 10_000; n++ {
		if err := commitTo(store, n+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(store.Check(), store.Close()); err != nil {
		t.Error(err)
	}
	if given() == 0 || last(t, w.o, "copy") != n {
		t.Errorf("the copy has given up %d tables and ends with %d, want %d", given(), last(t, w.o, "copy"), n)
	}
	if !maps.Equal(before, tree(t, w.repo.root)) {
		t.Error("the life of the copy has changed the repository")
	}
	w.verify(s.Name)
	if err := os.RemoveAll("copy"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.RestoreLinked(t.Context(), "", "copy"); err != nil {
		t.Fatal(err)
	}
	err = w.repo.Remove(s.Name)
	if err == nil {
		_, _, err = w.repo.Clean(Keep{})
	}
	if left := tree(t, w.repo.dir(blobsDir)); err != nil || len(left) > 0 {
		t.Errorf("%d blobs are left, %v", len(left), err)
	}
	if found, err := storage.Verify(t.Context(), o, storage.Verification{}); err != nil || found > 0 {
		t.Errorf("%d findings, %v", found, err)
	}
}

// Another restore into the directory begins before each operation of a restore. One of the two makes
// the store, and the other changes nothing of it.
func TestTwoRestoresIntoOneDirectory(t *testing.T) {
	var mu sync.Mutex // guards the three below, because a restore copies several files at a time
	var before func()
	count, at := 0, -1
	due := func(path string) func() {
		mu.Lock()
		defer mu.Unlock()
		if before == nil || !strings.HasPrefix(path, "copy") {
			return nil
		}
		if count++; count != at {
			return nil
		}
		do := before
		before = nil
		return do
	}
	fsys := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if do := due(op.Path); do != nil {
			do()
		}
		return nil
	}))
	w := newWorld(t, fsys)
	w.commit(1)
	own := w.repo
	s := w.verify(w.create().Name)
	repo, err := Open("another repo", w.o) // in memory a lock is of one alone
	if err != nil {
		t.Fatal(err)
	}
	w.repo = repo
	same := w.verify(w.create().Name)
	first, second := 0, 0
	for at = 1; ; at++ {
		if at > 20 {
			at += 8 // a restore copies many files, one as the other
		}
		if err := fsys.RemoveAll("copy"); err != nil {
			t.Fatal(err)
		}
		var other error
		began := false
		set := func(do func()) {
			mu.Lock()
			defer mu.Unlock()
			count, before = 0, do
		}
		set(func() {
			began = true
			_, other = repo.Restore(t.Context(), same.Name, "copy")
		})
		_, err := own.Restore(t.Context(), s.Name, "copy")
		set(nil)
		if !began {
			break
		}
		switch {
		case err == nil && errors.Is(other, ErrNotEmpty):
			first++
		case other == nil && errors.Is(err, ErrNotEmpty):
			second++
		default:
			t.Errorf("operation %d: the restores end with %v and %v", at, err, other)
			continue
		}
		if n := last(t, w.o, "copy"); n != 1 {
			t.Errorf("operation %d: the copy ends with %d", at, n)
		}
	}
	if first < 20 || second < 2 {
		t.Errorf("the first made the store %d times, the other one %d times", first, second)
	}
}

// A pipe in the place of a blob is damage, and is not read, because nobody writes to it.
func TestPipeForABlob(t *testing.T) {
	t.Chdir(t.TempDir())
	w := newWorld(t, vfs.Default)
	w.commit(1)
	s := w.verify(w.create().Name)
	c, _, err := w.repo.load(s.Name)
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join("repo", blobsDir, c.Files[0].SHA256)
	if err := errors.Join(os.Remove(blob), syscall.Mkfifo(blob, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.Verify(t.Context(), s.Name, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("verify: %v", err)
	}
	if _, err := w.repo.Restore(t.Context(), s.Name, "copy"); !errors.Is(err, ErrDamaged) {
		t.Errorf("restore: %v", err)
	}
}

// Each store of a repository has its own newest snapshots, and no name stands for those of two.
func TestTwoStoresInOneRepository(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	o := w.o
	o.Dir = "another"
	another, err := storage.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Abandon()
	own := w.store
	var all []Snapshot
	for _, store := range []*storage.Store{another, another, another, own, own, own} {
		w.store = store
		w.commit(1)
		all = append(all, w.create())
	}
	w.verify(all[3].Name)
	if s, err := w.repo.Restore(t.Context(), "", "first"); err != nil || s.Name != all[3].Name {
		t.Errorf("restored %s, %v", s.Name, err)
	}
	w.verify(all[0].Name)
	if _, err := w.repo.Restore(t.Context(), "", "second"); !errors.Is(err, ErrNoSnapshot) ||
		!strings.Contains(err.Error(), all[0].Name) || !strings.Contains(err.Error(), all[3].Name) {
		t.Errorf("a restore without a name: %v", err)
	}
	removed, _, err := w.repo.Clean(Keep{Last: 1})
	if want := []string{all[1].Name, all[4].Name}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %v, %v, want %v", removed, err, want)
	}
}

// A repository is not made in a directory with other files, and none is looked for where none is.
func TestNotARepository(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	if _, err := w.repo.List(); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
	if _, err := w.repo.Verify(t.Context(), "a", nil); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
	d := w.o.Pebble.Dir("repo")
	if err := errors.Join(d.Make(), d.Write("letter.txt", "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.Create(t.Context(), w.store); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
	if err := w.store.Close(); err != nil {
		t.Error(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	other, err := Open("other", w.o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.CreateFrom(ctx, "store"); !errors.Is(err, enough) {
		t.Error(err)
	}
	if list, err := other.List(); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	if _, err := other.Restore(t.Context(), "", "copy"); !errors.Is(err, ErrNoSnapshot) {
		t.Error(err)
	}
	if _, err := Open("", w.o); err == nil {
		t.Error("a repository without a directory")
	}
}
