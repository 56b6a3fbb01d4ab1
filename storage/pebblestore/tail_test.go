package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// killed is the file system and newest log of a killed process. The process wrote batches
// of valueBytes each, and synced all of them, one after the other.
func killed(t *testing.T, batches, valueBytes int) (fs *vfs.MemFS, path string) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	e, err := Open("db", Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	for i := range batches {
		value := make([]byte, valueBytes)
		_, _ = random.Read(value) // never fails
		var b pebble.Batch
		if err := errors.Join(b.Set([]byte("n"), []byte{byte(i)}, nil), b.Set([]byte("value"), value, nil), e.Apply(b.Repr()), e.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	fs = mem.CrashClone(vfs.CrashCloneCfg{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	path, _, err = newestLog(fs, "db")
	if err != nil {
		t.Fatal(err)
	}
	return fs, path
}

// reopened is the number of the last batch that the database holds.
func reopened(t *testing.T, fs vfs.FS) (last int, err error) {
	t.Helper()
	e, err := Open("db", Options{FS: fs, MustExist: true})
	if err != nil {
		return 0, err
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	n, closer, err := e.Get([]byte("n"))
	if err == engine.ErrNotFound {
		return -1, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	last = int(n[0])
	return last, closer.Close()
}

// damagedLog is the file system with bit 0 of the byte at of the file path flipped.
func damagedLog(t *testing.T, fs *vfs.MemFS, path string, at int) *vfs.MemFS {
	t.Helper()
	fs = fs.CrashClone(vfs.CrashCloneCfg{})
	log, err := readFile(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := []byte(log)
	damaged[at] ^= 1
	if err := (Dir{fs, "db"}).Write(fs.PathBase(path), string(damaged)); err != nil {
		t.Fatal(err)
	}
	return fs
}

// For batches of any size, damage of the newest log loses no more than the last sync.
// Damage of the last sync looks like a torn end, with which the store has to open. Proves
// S9.
func TestDamageOfTheNewestLog(t *testing.T) {
	const commits, flips = 20, 40
	for _, valueBytes := range []int{10, 1 << 10, 100 << 10} {
		t.Run(fmt.Sprint(valueBytes), func(t *testing.T) {
			fs, path := killed(t, commits, valueBytes)
			whole := readTail(t, fs, path)
			for i := range flips {
				at := int(whole.end) * i / flips
				last, err := reopened(t, damagedLog(t, fs, path, at))
				torn := at > int(whole.end)-valueBytes
				switch {
				case err == nil && last < commits-2:
					t.Errorf("byte %d of %d: silently lost the commits after %d of %d", at, whole.end, last, commits-1)
				case err != nil && torn:
					t.Errorf("byte %d of %d is of the last sync: %v", at, whole.end, err)
				case err != nil && (!errors.Is(err, engine.ErrCorrupt) || !strings.Contains(err.Error(), path)):
					t.Errorf("byte %d of %d: %v", at, whole.end, err)
				}
			}
		})
	}
}

func readTail(t *testing.T, fs vfs.FS, path string) tail {
	t.Helper()
	text, err := readFile(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(strings.TrimSuffix(fs.PathBase(path), ".log"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	found := tail{number: binary.LittleEndian.AppendUint32(nil, uint32(number))}
	if err := found.read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return found
}

// The record of a sync counts at any place in the log, also across the end of a block.
func TestTailFindsEachSync(t *testing.T) {
	const commits, valueBytes = 4, 20_000
	fs, path := killed(t, 1, valueBytes)
	beforeSync := int(readTail(t, fs, path).end) - chunkHeader - syncRecord
	for inFirst := range syncRecord + 2 {
		fs, path := killed(t, commits, valueBytes+logBlock-chunkHeader-inFirst-beforeSync)
		log := readTail(t, fs, path)
		if log.syncsBefore < commits || log.syncsAfter != 0 {
			t.Errorf("%d bytes of a sync before the end of the block: %d syncs, and %d after the end", inFirst, log.syncsBefore, log.syncsAfter)
		}
		text, err := readFile(fs, path)
		if err != nil {
			t.Fatal(err)
		}
		across := text[logBlock+6] == lastChunk && int(text[logBlock+4]) == syncRecord-inFirst
		if want := inFirst < syncRecord; across != want {
			t.Fatalf("%d bytes of a sync before the end of the block: across: %v, want %v", inFirst, across, want)
		}
	}
}

// The syncs behind damage of any length count.
func TestTailBehindZeroedSectors(t *testing.T) {
	fs, path := killed(t, 40, 3000)
	text, err := readFile(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	whole := readTail(t, fs, path)
	for _, from := range []int{0, 512, logBlock - 512, logBlock, logBlock + 512, 2*logBlock - 1024} {
		zeroed := []byte(text)
		clear(zeroed[from : from+1024])
		found := tail{number: whole.number}
		if err := found.read(bytes.NewReader(zeroed)); err != nil {
			t.Fatal(err)
		}
		lost := whole.syncsBefore - found.syncsBefore - found.syncsAfter
		if !found.torn || int(found.end) > from || found.syncsAfter < 2 || lost > 2 {
			t.Errorf("zeros from %d: whole to %d, %d syncs before and %d after, of %d", from, found.end, found.syncsBefore, found.syncsAfter, whole.syncsBefore)
		}
	}
}

// A read of any log ends.
func FuzzTail(f *testing.F) {
	number := []byte{28, 0, 0, 0}
	f.Add([]byte("\xd7\x9a\x0f\x21\x0e\x00\x09\x1c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00"), uint16(0))
	f.Add(bytes.Repeat(number, 16), uint16(logBlock-30))
	f.Fuzz(func(t *testing.T, log []byte, zeros uint16) {
		log = append(make([]byte, zeros), log...)
		found := tail{number: number}
		if err := found.read(bytes.NewReader(log)); err != nil {
			t.Fatal(err)
		}
		if found.end > int64(len(log)) || found.syncsAfter > 0 && !found.torn {
			t.Errorf("%+v of %d bytes", found, len(log))
		}
	})
}
