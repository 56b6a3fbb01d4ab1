package storage

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// brokenFS fails to write files with a name that ends in one of broken, from the call of
// trip on.
type brokenFS struct {
	vfs.FS
	broken  []string
	tripped atomic.Bool
	failed  atomic.Int64 // failed calls
}

var errBroken = errors.New("the disk is broken")

func (b *brokenFS) trip() { b.tripped.Store(true) }

func (b *brokenFS) check(name string) error {
	if !b.tripped.Load() {
		return nil
	}
	for _, suffix := range b.broken {
		if strings.HasSuffix(name, suffix) {
			b.failed.Add(1)
			return errBroken
		}
	}
	return nil
}

func (b *brokenFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := b.check(name); err != nil {
		return nil, err
	}
	f, err := b.FS.Create(name, c)
	return brokenFile{f, b, name}, err
}

func (b *brokenFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := b.check(to); err != nil {
		return nil, err
	}
	f, err := b.FS.ReuseForWrite(from, to, c)
	return brokenFile{f, b, to}, err
}

type brokenFile struct {
	vfs.File
	fsys *brokenFS
	name string
}

func (f brokenFile) Write(p []byte) (int, error) {
	if err := f.fsys.check(f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// A commit is not acknowledged if its write to the log fails, nor is any after it. Proves
// O13's storage side.
func TestBrokenLog(t *testing.T) {
	disk := &brokenFS{FS: vfs.NewMem(), broken: []string{".log"}}
	s := open(t, memOptions(disk))
	commit(t, s, func(b *Batch) { b.SetMeta("k", []byte("1")) })
	disk.trip()
	for i := range 2 {
		var b Batch
		b.SetMeta("k", []byte("2"))
		ticket, err := s.Commit(&b)
		if err == nil {
			err = s.WaitDurable(ticket)
		}
		if !errors.Is(err, ErrStorage) || !errors.Is(err, errBroken) {
			t.Fatalf("O13: commit %d to a broken log: %v", i, err)
		}
	}
	wantDead(t, s, errBroken)
	if err := s.Close(); !errors.Is(err, errBroken) {
		t.Errorf("Close: %v", err)
	}
}

// Many callers meet a log that can no longer be written, small and large commits alike,
// while memtables are full. Each of them returns, and acknowledged commits survive the
// loss of power. Proves O13's storage side and S9 under load.
func TestBrokenLogUnderLoad(t *testing.T) {
	for _, broken := range []string{".log", ".sst"} {
		t.Run(broken, func(t *testing.T) {
			const callers = 32
			mem := vfs.NewCrashableMem()
			disk := &brokenFS{FS: mem, broken: []string{broken}}
			o := memOptions(disk)
			o.Pebble.MemTableBytes = 64 << 10
			s := open(t, o)

			var acked [callers]int
			var total atomic.Int64
			var done sync.WaitGroup
			for c := range callers {
				done.Go(func() {
					for i := 1; ; i++ {
						var b Batch
						b.SetMeta(fmt.Sprint(c), []byte(fmt.Sprint(i)))
						b.SetMeta(fmt.Sprint(c, " filler"), make([]byte, 100<<(i%10)))
						ticket, err := s.Commit(&b)
						if err == nil {
							err = s.WaitDurable(ticket)
						}
						if err != nil {
							if !errors.Is(err, ErrStorage) || !errors.Is(err, errBroken) {
								t.Errorf("caller %d: %v", c, err)
							}
							return
						}
						acked[c] = i
						if total.Add(1) == 500 {
							disk.trip()
						}
					}
				})
			}
			done.Wait()
			wantDead(t, s, errBroken)
			crashed := mem.CrashClone(vfs.CrashCloneCfg{})
			if err := s.Close(); !errors.Is(err, errBroken) {
				t.Errorf("Close: %v", err)
			}
			o.Pebble.FS = crashed
			s = open(t, o)
			for c := range callers {
				v, _, err := s.Meta(fmt.Sprint(c))
				var got int
				fmt.Sscan(string(v), &got)
				if err != nil || got < acked[c] {
					t.Errorf("caller %d: %d was acknowledged, %d survived, %v", c, acked[c], got, err)
				}
			}
			checkAndClose(t, s)
		})
	}
}

// On a disk that refuses tables, Close fails after 16 tries, and loses nothing.
func TestCloseOnADiskThatRefusesTables(t *testing.T) {
	const tries = 16 // in a row, after which the engine ends
	disk := &brokenFS{FS: vfs.NewMem(), broken: []string{".sst"}}
	s := open(t, memOptions(disk))
	commit(t, s, func(b *Batch) { b.SetMeta("k", []byte("v")) })
	disk.trip()
	if err := s.Close(); !errors.Is(err, errBroken) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Close on a disk that refuses tables: %v", err)
	}
	if n := disk.failed.Load(); n != tries {
		t.Errorf("Pebble tried %d times", n)
	}
	s = open(t, memOptions(disk.FS))
	if v, _, err := s.Meta("k"); string(v) != "v" || err != nil {
		t.Errorf("after it: %q, %v", v, err)
	}
	checkAndClose(t, s)
}

// Damage in a table is an error that names the file, and ends the store. Pebble reads
// tables in the background too: mostly our read finds the damage, sometimes Open.
func TestDamagedTableEndsTheStore(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	s := open(t, o)
	obj := newObject(t, s, "c", "n")
	commit(t, s, func(b *Batch) {
		for i := range 200 {
			b.SetData(obj, fmt.Sprint(i), make([]byte, 1000))
		}
	})
	checkAndClose(t, s)
	table := damageTable(t, fsys)
	damaged := func(err error) bool {
		return errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), table) && !strings.Contains(err.Error(), "\n")
	}

	s, err := Open(o)
	if err != nil {
		if !damaged(err) {
			t.Errorf("Open with damaged %s: %v", table, err)
		}
		return
	}
	it, err := s.ListData(nil, obj, "", "", false)
	if err == nil {
		for it.Next() {
		}
		err = it.Close()
	}
	if !damaged(err) || !errors.Is(err, ErrStorage) {
		t.Fatalf("reading damaged %s: %v", table, err)
	}
	<-s.Dead()
	if err := s.Close(); !damaged(err) {
		t.Errorf("Close: %v", err)
	}
}

// damageTable flips bits in the middle of the largest table of the store.
func damageTable(t *testing.T, fsys vfs.FS) (table string) {
	t.Helper()
	names, err := fsys.List("store")
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			data, err := dirOf(fsys).Read(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > len(text) {
				table, text = name, data
			}
		}
	}
	data := []byte(text)
	for i := len(data) / 4; i < len(data)/2; i++ {
		data[i] ^= 0x55
	}
	rewrite(t, fsys, table, string(data))
	return table
}
