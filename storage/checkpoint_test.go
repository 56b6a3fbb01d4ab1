package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// lastNumber is the number that the store holds.
func lastNumber(t *testing.T, s *Store) int {
	t.Helper()
	v, _, err := s.Meta("n")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(string(v)) // 0 before the first
	return n
}

// numbered is commit n.
func numbered(n int) (b Batch) {
	b.SetMeta("n", []byte(strconv.Itoa(n)))
	b.SetMeta(fmt.Sprint("filler", n%7), make([]byte, 9000))
	return b
}

func commitNumber(t *testing.T, s *Store, n int) {
	t.Helper()
	commit(t, s, func(b *Batch) { *b = numbered(n) })
}

// otherDevice refuses hard links, as the operating system does between two disks.
func otherDevice(fsys vfs.FS) vfs.FS {
	return errorfs.Wrap(fsys, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpLink {
			return &fs.PathError{Op: "link", Path: op.Path, Err: syscall.EXDEV}
		}
		return nil
	}))
}

// Copies that are made beside a writer, on the same disk and on another, are stores that hold each
// commit that was acknowledged before. The live store and its sums are not touched.
//
// Case ST22. Proves S15.
func TestCheckpointsBesideAWriter(t *testing.T) {
	for name, device := range map[string]func(vfs.FS) vfs.FS{
		"same disk":  func(fsys vfs.FS) vfs.FS { return fsys },
		"other disk": otherDevice,
	} {
		for _, witness := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " witness ", witness), func(t *testing.T) {
				mem := vfs.NewMem()
				o := memOptions(device(mem))
				o.Witness, o.Pebble.MemTableBytes = witness, 64<<10
				s := open(t, o)
				var acked atomic.Int64
				stop, stopped := make(chan struct{}), make(chan struct{})
				end := sync.OnceFunc(func() { close(stop); <-stopped })
				defer end()
				go func() {
					defer close(stopped)
					for n := 1; s.Err() == nil; n++ {
						select {
						case <-stop:
							return
						default:
						}
						b := numbered(n)
						if ticket, err := s.Commit(&b); err != nil || s.WaitDurable(ticket) != nil {
							t.Errorf("commit %d: %v", n, err)
							return
						}
						acked.Store(int64(n))
					}
				}()
				before := make(map[string]int)
				for i := range 4 {
					for int(acked.Load()) < 15*(i+1) {
						if err := s.WaitSeen(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					to := fmt.Sprint("copies/", i)
					before[to] = int(acked.Load())
					if err := s.Checkpoint(t.Context(), to); err != nil {
						t.Fatal(err)
					}
				}
				end()
				last := int(acked.Load())
				checkAndClose(t, s)
				if all := verified(t, o); len(all) > 0 {
					t.Errorf("findings in the live store: %v", all)
				}
				s = open(t, o)
				if n := lastNumber(t, s); n != last {
					t.Errorf("the live store ends with %d, want %d", n, last)
				}
				checkAndClose(t, s)
				for to, least := range before {
					c := o
					c.Dir = to
					if all := verified(t, c); len(all) > 0 {
						t.Errorf("findings in %s: %v", to, all)
					}
					s := open(t, c)
					if n := lastNumber(t, s); n < least || n > last {
						t.Errorf("%s holds %d, before it was %d, and at the end %d", to, n, least, last)
					}
					commitNumber(t, s, last+1)
					checkAndClose(t, s)
				}
			})
		}
	}
}

// A witness file of a copy tells of a loss at the first Open of the copy.
//
// Proves S15.
func TestCheckpointHasAWitness(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	o.Witness = true
	s := open(t, o)
	for n := range 3 {
		commitNumber(t, s, n+1)
	}
	if err := s.Checkpoint(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	synced := s.witness.n
	checkAndClose(t, s)
	o.Dir = "copy"
	text, err := o.Pebble.Dir("copy").Read(witnessFile)
	if got := readWitness([]byte(text)); err != nil || got != synced || got == 0 {
		t.Errorf("the witness of the copy tells of sync %d, that of the store of %d, %v", got, synced, err)
	}
	checkAndClose(t, open(t, o))
}

// A failure of the copy, at any operation outside of the store, is the error of the checkpoint
// alone: nothing of the copy is left, and the store takes commits.
//
// Case ST22. Proves S15.
func TestFailedCheckpointLeavesTheStore(t *testing.T) {
	failed := 0
	for at := 0; ; at++ {
		mem := vfs.NewMem()
		ops, done := 0, false
		trip := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !strings.HasPrefix(op.Path, "copy") || op.Kind.ReadOrWrite() == errorfs.OpIsRead || op.Kind == errorfs.OpRemoveAll || op.Kind == errorfs.OpFileClose {
				return nil
			}
			if ops++; ops-1 == at {
				done = true
				return syscall.ENOSPC
			}
			return nil
		}))
		o := memOptions(trip)
		s := open(t, o)
		commitNumber(t, s, 1)
		err := s.Checkpoint(t.Context(), "copy")
		commitNumber(t, s, 2)
		checkAndClose(t, s)
		if !done {
			if err != nil {
				t.Errorf("without a failure: %v", err)
			}
			break
		}
		failed++
		if errors.Is(err, ErrStorage) || !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
			t.Errorf("failure %d: %v", at, err)
		}
		if _, err := mem.Stat("copy"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("failure %d leaves the copy: %v", at, err)
		}
	}
	if failed < 15 {
		t.Errorf("%d operations", failed)
	}
}

// The context of a checkpoint ends, or the store is closed, at each operation of the copy, on another
// disk. Either the copy is whole, or nothing is left of it. Few operations follow, none of which
// writes a table.
//
// Proves S15.
func TestCheckpointEnds(t *testing.T) {
	enough := errors.New("enough")
	for name, c := range map[string]struct {
		end  func(s *Store, cancel context.CancelCauseFunc) // must return
		want error
	}{
		"context": {func(_ *Store, cancel context.CancelCauseFunc) { cancel(enough) }, enough},
		"close": {func(s *Store, _ context.CancelCauseFunc) {
			go s.Close() // waits for the checkpoint
			<-s.Dead()
		}, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			ended, whole := 0, 0
			for at := 0; ; at++ {
				mem := vfs.NewMem()
				ctx, cancel := context.WithCancelCause(t.Context())
				var s *Store
				ops, after := 0, 0
				o := memOptions(otherDevice(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if !strings.HasPrefix(op.Path, "copy") || op.Kind.ReadOrWrite() == errorfs.OpIsRead || op.Kind == errorfs.OpRemoveAll || op.Kind == errorfs.OpFileClose {
						return nil
					}
					ops++
					switch {
					case ops-1 == at:
						c.end(s, cancel)
					case ops-1 > at:
						after++
					}
					return nil
				}))))
				o.Witness, o.Pebble.MemTableBytes = true, 64<<10 // for several tables
				s = open(t, o)
				for n := range 40 {
					commitNumber(t, s, n+1)
				}
				err := s.Checkpoint(ctx, "copy")
				cancel(nil)
				if err := s.Close(); err != nil {
					t.Errorf("%d: close: %v", at, err)
				}
				if err != nil {
					ended++
					if _, stat := mem.Stat("copy"); !errors.Is(err, c.want) || !errors.Is(stat, fs.ErrNotExist) {
						t.Errorf("%d: %v, and the copy is left: %v", at, err, stat)
					}
				} else {
					o.Dir = "copy"
					if all := verified(t, o); len(all) > 0 {
						t.Errorf("%d: findings in the copy: %v", at, all)
					}
					whole++
				}
				if after > 8 { // syncs and small files: the marker of the manifest, the lock file, the sums
					t.Errorf("%d: %d operations follow", at, after)
				}
				if ops <= at {
					break
				}
			}
			if ended < 35 || whole == 0 {
				t.Errorf("the checkpoint has ended early %d times, and was whole %d times", ended, whole)
			}
		})
	}
}

// The pace of a checkpoint is asked for each byte of the files that are written, before it is written, and its error leaves no copy.
// Tables that are linked are not counted.
//
// Proves S15.
func TestCheckpointPaced(t *testing.T) {
	mem := vfs.NewMem()
	o := memOptions(mem)
	o.Pebble.MemTableBytes = 64 << 10 // for several tables
	s := open(t, o)
	defer s.Abandon()
	for n := range 40 {
		commitNumber(t, s, n+1)
	}
	log := 0 // bytes of the newest log in the copy
	size := func() (bytes int) {
		names, err := mem.List("copy")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, name := range names {
			info, err := mem.Stat("copy/" + name)
			if err != nil {
				t.Fatal(err)
			}
			switch filepath.Ext(name) {
			case ".sst":
				continue
			case ".log":
				log = int(info.Size())
			}
			bytes += int(info.Size())
		}
		return bytes
	}
	paced, calls := 0, 0
	err := s.CheckpointPaced(t.Context(), "copy", func(bytes int) error {
		if calls++; bytes <= 0 || size() > paced {
			t.Errorf("call %d: %d bytes, and the copy has %d bytes of %d that were paced", calls, bytes, size(), paced)
		}
		paced += bytes
		return nil
	})
	// The newest log is written twice. The format file and the sums are small, and not paced.
	const smallBytes = 1 << 10
	if all := size() + log; err != nil || log < 4*smallBytes || paced < all-smallBytes || paced > 2*all {
		t.Errorf("%d bytes were paced, and the copy has %d, its log %d of them, %v", paced, size(), log, err)
	}
	enough := errors.New("enough")
	for at := 0; ; at++ {
		n := 0
		err := s.CheckpointPaced(t.Context(), "ended", func(int) error {
			if n++; n > at {
				return enough
			}
			return nil
		})
		if n <= at {
			if err != nil || at < 4 {
				t.Errorf("after %d calls: %v", n, err)
			}
			break
		}
		if _, stat := mem.Stat("ended"); !errors.Is(err, enough) || n != at+1 || !errors.Is(stat, fs.ErrNotExist) {
			t.Errorf("call %d: %v, after %d calls, and the copy is left: %v", at, err, n, stat)
		}
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// The power fails at each operation of a checkpoint. The store has each acknowledged commit, and the
// copy is whole or refused.
//
// Case ST22. Proves S15.
func TestCrashInACheckpoint(t *testing.T) {
	fsys := crashfs.New(vfs.NewCrashableMem(), nil)
	o := memOptions(fsys)
	s := open(t, o)
	commitNumber(t, s, 1)
	var moments []crashfs.Moment
	fsys.SetBefore(func(crashfs.Op) error {
		moments = append(moments, fsys.Capture())
		return nil
	})
	if err := s.Checkpoint(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	moments = append(moments, fsys.Capture())
	fsys.SetBefore(nil)
	checkAndClose(t, s)
	whole := 0
	for i, m := range moments {
		for _, keep := range []crashfs.Keep{crashfs.KeepNone, crashfs.KeepAll, 1} {
			image, err := m.Image(keep)
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"store", "copy"} {
				o := memOptions(image)
				o.Dir = dir
				s, err := OpenReadOnly(o)
				if err != nil {
					if dir == "store" {
						t.Errorf("crash %d of %d: %v", i, len(moments), err)
					}
					continue
				}
				if n := lastNumber(t, s); n != 1 {
					t.Errorf("crash %d of %d: %s ends with %d", i, len(moments), dir, n)
				}
				if err := errors.Join(s.Check(), s.Close()); err != nil {
					t.Error(err)
				}
				if dir == "copy" {
					whole++
				}
			}
		}
	}
	if len(moments) < 20 || whole == 0 || whole > len(moments)/2 {
		t.Errorf("%d crashes, the copy is whole after %d", len(moments), whole)
	}
}

// Checkpoint refuses a directory that is not new, one within the store, and stores without files.
func TestCheckpointRefusesItsTarget(t *testing.T) {
	mem := vfs.NewMem()
	o := memOptions(mem)
	s := open(t, o)
	commitNumber(t, s, 1)
	if err := mem.MkdirAll("there", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"there", "store", "store/copy", "store/a/b"} {
		err := s.Checkpoint(t.Context(), to)
		wantOneLine(t, err, ErrBadTarget, to)
		if s.Err() != nil {
			t.Fatalf("%s: the store has ended: %v", to, s.Err())
		}
	}
	checkAndClose(t, s)
	if err := s.Checkpoint(t.Context(), "later"); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	s = openReader(t, o)
	if err := s.Checkpoint(t.Context(), "later"); err != ErrReadOnly {
		t.Errorf("of a reader: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s = open(t, Options{Engine: memstore.New()})
	wantOneLine(t, s.Checkpoint(t.Context(), "later"), nil, "keeps no files")
	checkAndClose(t, s)
}

// A copy never takes more space than is asked for before it begins, also while its log is there twice.
//
// Proves S15.
func TestCheckpointTakesTheSpaceItAsksFor(t *testing.T) {
	mem := vfs.NewMem()
	o := memOptions(mem)
	o.Pebble.MemTableBytes = 4 << 20 // one log has all
	s := open(t, o)
	defer s.Abandon()
	for n := range 40 {
		commitNumber(t, s, n+1)
	}
	needed, err := s.dir.CopyBytes(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	copied, greatest := pebblestore.Dir{FS: mem, Path: "copy"}, 0
	err = s.CheckpointPaced(t.Context(), copied.Path, func(bytes int) error {
		names, err := copied.List()
		for _, name := range names {
			info, failed := mem.Stat(copied.Join(name))
			if failed != nil {
				return failed
			}
			bytes += int(info.Size())
		}
		greatest = max(greatest, bytes)
		return err
	})
	if err != nil || greatest > int(needed) || greatest < int(needed)/2 {
		t.Errorf("the copy takes %d bytes, of %d that were asked for: %v", greatest, needed, err)
	}
}

// A copy that would leave less free space than the floor is refused before a byte is written, on the
// disk of this machine. One byte less of a floor than that, and it is made.
//
// Proves S15.
func TestCheckpointKeepsTheFloor(t *testing.T) {
	parent := t.TempDir()
	s := open(t, Options{Dir: filepath.Join(parent, "store")})
	defer checkAndClose(t, s)
	commitNumber(t, s, 1)
	free, err := s.dir.FreeBytes()
	if err != nil {
		t.Fatal(err)
	}
	s.space.floor = free + 1<<40
	to := filepath.Join(parent, "copy")
	wantOneLine(t, s.Checkpoint(t.Context(), to), ErrNoSpace, to)
	s.space.floor = 0
	if err := s.Checkpoint(t.Context(), to); err != nil {
		t.Error(err)
	}
	checkAndClose(t, open(t, Options{Dir: to}))
}
