package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// verified are the findings of a store.
func verified(t *testing.T, o Options) []Finding {
	t.Helper()
	var all []Finding
	n, err := Verify(t.Context(), o, Verification{Found: func(f Finding) { all = append(all, f) }})
	if err != nil || n != len(all) {
		t.Errorf("%d findings, %d told of, %v", n, len(all), err)
	}
	for _, f := range all {
		if f.Text == "" || strings.Contains(f.Text, "\n") {
			t.Errorf("the text is not one line: %q", f.Text)
		}
	}
	return all
}

// filesOf are the files of findings, in their order.
func filesOf(all []Finding) (names []string) {
	for _, f := range all {
		names = append(names, f.File)
	}
	slices.Sort(names)
	return names
}

// A store in order has no finding, however its program ended, and no byte of it changes. The
// progress ends with all bytes.
//
// Case ST20. Proves S14.
func TestVerifyOfAHealthyStore(t *testing.T) {
	for _, witness := range []bool{false, true} {
		o := memOptions(nil)
		o.Witness = witness
		for name, files := range leftStores(t, o) {
			t.Run(fmt.Sprint(name, " witness ", witness), func(t *testing.T) {
				fsys := written(t, files)
				o.Pebble.FS = fsys
				if all := verified(t, o); len(all) > 0 {
					t.Errorf("findings: %v", all)
				}
				var last, total int64
				_, err := Verify(t.Context(), o, Verification{Progress: func(done, of int64) {
					if done < last || done > of || total != 0 && of != total {
						t.Errorf("%d bytes of %d after %d of %d", done, of, last, total)
					}
					last, total = done, of
				}})
				if err != nil || last != total || total < 100_000 {
					t.Errorf("it ended at %d of %d bytes, %v", last, total, err)
				}
				wantFiles(t, crashfs.Read(fsys), files)
			})
		}
	}
}

// damagedStore is a copy of the files of a store with a change of one of them.
func damagedStore(t *testing.T, files crashfs.Tree, name string, change func([]byte) []byte) Options {
	t.Helper()
	files = maps.Clone(files)
	if data := change(slices.Clone(files[name])); data != nil {
		files[name] = data
	} else {
		delete(files, name)
	}
	return memOptions(written(t, files))
}

func flip(at, bit int) func([]byte) []byte {
	return func(data []byte) []byte { data[at] ^= 1 << bit; return data }
}

// newestFile is the file of a kind with the greatest number, which is the one in use.
func newestFile(files crashfs.Tree, prefix, suffix string) (newest string) {
	for name := range files {
		if strings.HasPrefix(path.Base(name), prefix) && strings.HasSuffix(name, suffix) {
			newest = max(newest, name)
		}
	}
	return newest
}

// tablesInUse are the tables that the database uses: without one of them it cannot be opened. Pebble
// removes the others when it gets round to it, so a run may have some of these.
func tablesInUse(t *testing.T, files crashfs.Tree) (names []string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".sst" {
			continue
		}
		s, err := OpenReadOnly(damagedStore(t, files, name, func([]byte) []byte { return nil }))
		if err != nil {
			names = append(names, name)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(names) == 0 {
		t.Error("no table is in use")
	}
	return names
}

// A damaged manifest is the one finding: the tables of which it tells falsely are not missed.
//
// Proves S14.
func TestVerifyOfADamagedManifest(t *testing.T) {
	files := leftStores(t, memOptions(nil))["closed"]
	name := newestFile(files, "MANIFEST-", "")
	for at := 0; at < len(files[name]); at += 5 {
		all := verified(t, damagedStore(t, files, name, flip(at, at%8)))
		if !slices.Equal(filesOf(all), []string{path.Base(name)}) {
			t.Errorf("byte %d of %d: the findings are %+v", at, len(files[name]), all)
		}
	}
}

// A flipped bit of any table, of the format file, and of the log before its last
// syncs is found and named. The places lie at random distances, so that each block has some.
//
// Case ST20. Proves S14.
func TestVerifyFindsFlippedBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 3))
	stores := leftStores(t, memOptions(nil))
	for _, left := range []string{"closed", "killed"} { // the log of the torn one ends anywhere
		files := stores[left]
		tables := tablesInUse(t, files)
		tried := map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			kind, end, stride := path.Ext(name), len(files[name]), 0
			switch name {
			case newestFile(files, "", ".log"):
				if end = end / 3; left == "killed" {
					stride = max(1, end/6)
				}
			case "store/" + formatFile:
				kind, stride = "format", 3
			}
			if slices.Contains(tables, name) {
				stride = max(1, end/25)
			}
			for at := 0; stride > 0 && at < end; at += 1 + rng.IntN(2*stride) {
				o := damagedStore(t, files, name, flip(at, rng.IntN(8)))
				tried[kind]++
				n, err := Verify(t.Context(), o, Verification{Found: func(f Finding) {
					if f.File != path.Base(name) {
						t.Errorf("%s: byte %d of %s: the finding is %+v", left, at, name, f)
					}
				}})
				newer := path.Base(name) == formatFile && errors.Is(err, ErrFormat) // such as version 5
				if n != 1 && !newer || err != nil && !newer {
					t.Errorf("%s: byte %d of %d of %s: %d findings, %v", left, at, end, name, n, err)
				}
			}
		}
		if tried[".sst"] < 20 || tried["format"] < 5 || left == "killed" && tried[".log"] < 2 {
			t.Errorf("%s: tried %v", left, tried)
		}
	}
}

// A file that is cut short or missing is found and named.
//
// Case ST20. Proves S14.
func TestVerifyFindsShortAndMissingFiles(t *testing.T) {
	files := leftStores(t, memOptions(nil))["closed"]
	half := func(data []byte) []byte { return data[:len(data)/2] }
	gone := func([]byte) []byte { return nil }
	tables := tablesInUse(t, files)
	tried := 0
	for name := range files {
		base := path.Base(name)
		check := func(how string, change func([]byte) []byte, file string) {
			tried++
			all := verified(t, damagedStore(t, files, name, change))
			if len(all) == 0 || !slices.Contains(filesOf(all), file) {
				t.Errorf("%s %s: the findings are %+v", name, how, all)
			}
		}
		switch {
		case slices.Contains(tables, name), name == newestFile(files, "MANIFEST-", ""), base == formatFile:
			check("cut short", half, base)
			check("is missing", gone, base)
		case base == pebblestore.SumsFile:
			check("is missing", gone, base)
		case strings.HasPrefix(base, "marker."):
			check("is missing", gone, strings.Join(strings.Split(base, ".")[:2], "."))
		}
	}
	if tried < 9 {
		t.Errorf("tried %d damages", tried)
	}
}

// A crash in a flush or compaction leaves a torn table that the database does not use. It is no
// damage, because the next Open removes it.
//
// Proves S14.
func TestVerifyPassesOverATornTable(t *testing.T) {
	fsys := written(t, leftStores(t, memOptions(nil))["killed"])
	rewrite(t, fsys, "000999.sst", "the beginning of a table")
	o := memOptions(fsys)
	if all := verified(t, o); len(all) > 0 {
		t.Errorf("findings: %v", all)
	}
	files := crashfs.Read(fsys)
	log := newestFile(files, "", ".log")
	if all := verified(t, damagedStore(t, files, log, flip(0, 1))); !slices.Equal(filesOf(all), []string{path.Base(log)}) {
		t.Errorf("with a damaged log the findings are %v", all)
	}
	checkAndClose(t, open(t, o))
	if _, err := fsys.Stat("store/000999.sst"); err == nil {
		t.Error("Open has kept the table")
	}
}

// Verify goes on after a finding: each of several damaged files is told of, once.
//
// Proves S14.
func TestVerifyTellsOfAllFiles(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	o.Pebble.NoCompactions = true
	for range 4 { // each life leaves tables of its own
		s := open(t, o)
		commit(t, s, func(b *Batch) { b.SetMeta("k", make([]byte, 5000)) })
		checkAndClose(t, s)
	}
	tables := kindFiles(t, fsys, "*.sst")
	slices.Sort(tables)
	manifest := path.Base(newestFile(crashfs.Read(fsys), "MANIFEST-", ""))
	flipKind(t, fsys, tables[0])
	flipKind(t, fsys, tables[2])
	flipKind(t, fsys, manifest)
	want := []string{tables[0], tables[2], manifest}
	if all := verified(t, o); !slices.Equal(filesOf(all), want) {
		t.Errorf("damaged are %v, the findings %v", want, all)
	}
	flipKind(t, fsys, manifest) // it is whole again
	removeKind(t, fsys, tables[1])
	removeKind(t, fsys, tables[3])
	if all := verified(t, o); !slices.Equal(filesOf(all), tables[:4]) {
		t.Errorf("damaged or missing are %v, the findings %v", tables[:4], all)
	}
	_, err := OpenReadOnly(o)
	wantOneLine(t, err, ErrCorrupt, strings.TrimSuffix(tables[1], ".sst"), strings.TrimSuffix(tables[3], ".sst"))
}

// Rows that contradict others are told of with their object, and the check goes on.
//
// Proves S14.
func TestVerifyTellsOfRows(t *testing.T) {
	o := memOptions(vfs.NewMem())
	s := open(t, o)
	want := map[ID]string{}
	for i := range 5 {
		obj := newObject(t, s, "c", fmt.Sprint(i))
		alarm := int64(10)
		commit(t, s, func(b *Batch) { b.MoveAlarm(obj, nil, &alarm, []byte("a"), []byte("a")) })
		switch i {
		case 1:
			commit(t, s, func(b *Batch) { b.Delete(indexKey(nil, obj.Shard, alarm, obj.Number)) })
			want[obj.ID] = "has no index entry"
		case 3:
			commit(t, s, func(b *Batch) { b.Delete(rowKey(nil, obj.Shard, obj.Number, subAlarm)) })
			want[obj.ID] = "without an alarm row"
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	all := verified(t, o)
	for _, f := range all {
		if f.File != "" || want[f.Object] == "" || !strings.Contains(f.Text, want[f.Object]) {
			t.Errorf("the finding is %+v", f)
		}
		delete(want, f.Object)
	}
	if len(all) != 2 || len(want) != 0 {
		t.Errorf("%d findings, missed are %v", len(all), want)
	}
}

// Verify tells of rows as a check of one shard after the other does, although it reads several shards at a time.
//
// Proves S14.
func TestVerifyTellsOfRowsInOrder(t *testing.T) {
	o := memOptions(vfs.NewMem())
	s := open(t, o)
	commit(t, s, func(b *Batch) {
		for i := range 200 {
			b.SetData(Object{Shard: i % 4, Number: Number(1_000_000 + i)}, "k", nil)
		}
	})
	var want []string
	err := s.CheckRows(t.Context(), func(_ ID, err error) error { want = append(want, err.Error()); return nil })
	if err := errors.Join(err, s.Close()); err != nil || len(want) != 200 {
		t.Fatal(len(want), err)
	}
	for range 20 {
		var got []string
		for _, f := range verified(t, o) {
			got = append(got, f.Text)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("Verify tells of %q, want %q", got, want)
		}
	}
}

// Verify tells of MaxFindings findings, and of one more by an error.
//
// Proves S14.
func TestVerifyIsBounded(t *testing.T) {
	for _, n := range []int{MaxFindings, MaxFindings + 1, MaxFindings + 500} {
		o := memOptions(vfs.NewMem())
		s := open(t, o)
		commit(t, s, func(b *Batch) {
			for i := range n {
				b.SetData(Object{Shard: i % 4, Number: Number(1_000_000 + i)}, "k", nil)
			}
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		told := 0
		found, err := Verify(t.Context(), o, Verification{Found: func(Finding) { told++ }})
		if errors.Is(err, ErrManyFindings) != (n > MaxFindings) || (err == nil) != (n == MaxFindings) || found != MaxFindings || told != MaxFindings {
			t.Errorf("with %d contradictions: %d findings, %d told of, %v", n, found, told, err)
		}
	}
}

// The end of the context ends Verify at the next block or row.
//
// Proves S14.
func TestVerifyEndsWithItsContext(t *testing.T) {
	o := memOptions(written(t, leftStores(t, memOptions(nil))["closed"]))
	calls := 0
	if _, err := Verify(t.Context(), o, Verification{Progress: func(int64, int64) { calls++ }}); err != nil || calls < 10 {
		t.Fatalf("a whole run tells of %d blocks, %v", calls, err)
	}
	for stop := range calls + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		if stop == 0 {
			cancel()
		}
		n := 0
		_, err := Verify(ctx, o, Verification{Progress: func(int64, int64) {
			if n++; n == stop {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) || n > stop+1 {
			t.Errorf("cancelled after block %d it goes on to block %d, and returns %v", stop, n, err)
		}
	}
}

// An error tells that a store could not be verified, as that of OpenReadOnly.
func TestVerifyOfWhatIsNoStore(t *testing.T) {
	fails := func(o Options, sentinel error) {
		t.Helper()
		n, err := Verify(t.Context(), o, Verification{Found: func(f Finding) { t.Errorf("the finding is %+v", f) }})
		if n != 0 {
			t.Errorf("%d findings", n)
		}
		wantOneLine(t, err, sentinel)
	}
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	fails(o, ErrNoDirectory)
	s := open(t, o)
	fails(o, ErrLocked)
	checkAndClose(t, s)
	rewrite(t, fsys, formatFile, "holdfast store\nformat 99\n")
	fails(o, ErrFormat)
	fails(Options{}, nil)
}

// The witness file is compared if there is one, without being asked for.
//
// Proves S14.
func TestVerifyComparesTheWitness(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	o.Witness = true
	checkAndClose(t, open(t, o))
	o.Witness = false
	if all := verified(t, o); len(all) > 0 {
		t.Errorf("findings: %v", all)
	}
	rewrite(t, fsys, witnessFile, string(witnessSlotOf(1000)))
	if all := verified(t, o); !slices.Equal(filesOf(all), []string{witnessFile}) {
		t.Errorf("findings: %v", all)
	}
}

// Without a directory the rows of an engine are read alone.
func TestVerifyOfAnEngine(t *testing.T) {
	kept := memstore.New()
	s := open(t, Options{Engine: kept, Shards: 4})
	commit(t, s, func(b *Batch) { b.SetData(Object{Shard: 1, Number: 7}, "k", nil) })
	left := kept.Crash(0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if all := verified(t, Options{Engine: left, Shards: 4}); len(all) != 1 || !strings.Contains(all[0].Text, "object number 7") {
		t.Errorf("findings: %v", all)
	}
}

// readCounter notes the largest read of a table.
type readCounter struct {
	vfs.FS
	largest atomic.Int64
}

func (c *readCounter) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &countedFile{f, c}, nil
}

type countedFile struct {
	vfs.File
	c *readCounter
}

func (f *countedFile) ReadAt(p []byte, at int64) (int, error) {
	f.c.largest.Store(max(f.c.largest.Load(), int64(len(p))))
	return f.File.ReadAt(p, at)
}

func (f *countedFile) Read([]byte) (int, error) { return 0, os.ErrInvalid } // a table is read in blocks

// A table of many blocks is read one block at a time, so that Verify needs the memory of the
// largest block.
func TestVerifyReadsBlockByBlock(t *testing.T) {
	mem := vfs.NewMem()
	o := memOptions(mem)
	o.Pebble.MemTableBytes = 16 << 20
	s := open(t, o)
	obj := newObject(t, s, "c", "n")
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		commit(t, s, func(b *Batch) {
			for k := range 20 {
				value := make([]byte, 8<<10)
				for at := range value {
					value[at] = byte(rng.Uint32())
				}
				b.SetData(obj, fmt.Sprintf("%d/%d", i, k), value)
			}
		})
	}
	checkAndClose(t, s)
	counter := &readCounter{FS: mem}
	o.Pebble.FS = counter
	if all := verified(t, o); len(all) > 0 {
		t.Errorf("findings: %v", all)
	}
	const table, block = 1 << 20, 64 << 10
	size := int64(0)
	for _, name := range kindFiles(t, mem, "*.sst") {
		info, err := mem.Stat("store/" + name)
		if err != nil {
			t.Fatal(err)
		}
		size = max(size, info.Size())
	}
	if got := counter.largest.Load(); size < table || got == 0 || got > block {
		t.Errorf("of a table of %d bytes, %d bytes were read at once", size, got)
	}
}
