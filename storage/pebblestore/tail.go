package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Pebble drops the records after a damaged place in the newest log, as the torn end of
// a crash, unless a later block says that the log was synced beyond. The blocks say
// too little: up to version 2.1.7 at least, Pebble leaves out each part of a block
// that was written when the block was full, which is most of a log under load, and it
// never counts damage in the block itself.
//
// But a sync is one record of no content (Store.Sync), and begins after the
// one before has returned. So two of them behind a damaged place show that all
// before the first was synced, and was not torn: the writes of the last sync are all
// that damage can still cut off.

// checkTail returns engine.ErrCorrupt if the newest log in dir is damaged before the
// bytes that its last sync wrote. A log that was finished has a sum, which tells of all damage.
func checkTail(fsys vfs.FS, dir string, sums *sums) error {
	path, number, err := newestLog(fsys, dir)
	if err != nil {
		return err
	}
	if path == "" || sums.covers(fsys.PathBase(path)) {
		return nil
	}
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	t := tail{number: binary.LittleEndian.AppendUint32(nil, uint32(number))}
	if err := errors.Join(t.read(f), f.Close()); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if t.syncsAfter >= 2 {
		return fmt.Errorf("%w: %s is damaged at byte %d, in bytes that were synced before the last sync", engine.ErrCorrupt, path, t.end)
	}
	return nil
}

// newestLog returns the path and number of the log with the greatest number, or "".
func newestLog(fsys vfs.FS, dir string) (path string, number uint64, err error) {
	names, err := fsys.List(dir)
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, ".log")
		if n, err := strconv.ParseUint(digits, 10, 64); ok && err == nil && n >= number {
			path, number = fsys.PathJoin(dir, name), n
		}
	}
	return path, number, err
}

// The format of a log, which is described in Pebble's package record: blocks that
// are full of chunks, each of them a record or part of one. Bytes of a chunk:
// checksum 4, length of the content 2, kind 1, number of the log 4, synced 8,
// content. Older kinds of chunks are in the first log of a database alone.
const (
	logBlock       = 32 << 10
	chunkHeader    = 19
	chunkNumber    = 7 // where the number of the log is
	leastRemainder = 7 // Pebble does not look at fewer bytes at the end of a block
)

// Kinds of chunks.
const (
	wholeChunk = iota + 9
	firstChunk
	middleChunk
	lastChunk
)

// syncRecord is the length of the record of a sync: a batch of an empty LogData,
// which ends with its kind and a length of zero.
const syncRecord = 14

// tail reads a log and finds its end, and syncs behind its end.
type tail struct {
	number []byte // of the log, as chunks have it

	end         int64 // of the chunks that follow one another from the beginning
	torn        bool  // something else follows
	syncsBefore int   // syncs before the end
	syncsAfter  int   // and after it

	record []byte // the beginning of the present record, up to syncRecord bytes
	known  bool   // the record is no longer than that, and its beginning was read
}

func (t *tail) read(log io.Reader) error {
	buf := make([]byte, logBlock)
	for at := int64(0); ; at += logBlock {
		n, err := io.ReadFull(log, buf)
		t.block(at, buf[:n])
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return nil
		default:
			return err
		}
	}
}

// block reads the chunks of the block at byte at of the log. After bytes that are no
// chunk it goes on with the next one, which it knows by the number of the log.
func (t *tail) block(at int64, b []byte) {
	for p := 0; p+leastRemainder <= len(b); {
		kind, content, ok := t.chunk(b[p:])
		if ok {
			t.add(kind, content)
			p += chunkHeader + len(content)
			if !t.torn {
				t.end = at + int64(p)
			}
			continue
		}
		if len(b)-p < chunkHeader && isZero(b[p:]) {
			return // no room for a chunk
		}
		t.torn, t.known = true, false
		from := min(p+1+chunkNumber, len(b))
		next := bytes.Index(b[from:], t.number)
		if next < 0 {
			return
		}
		p = from + next - chunkNumber
	}
}

// chunk reads the chunk at the beginning of b, if there is one.
func (t *tail) chunk(b []byte) (kind byte, content []byte, ok bool) {
	if len(b) < chunkHeader {
		return 0, nil, false
	}
	kind = b[6]
	end := chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if kind < wholeChunk || kind > lastChunk || end > len(b) || !bytes.Equal(b[chunkNumber:chunkNumber+len(t.number)], t.number) {
		return 0, nil, false
	}
	sum := crc32.Checksum(b[6:end], castagnoli)
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 { // as Pebble masks it
		return 0, nil, false
	}
	return kind, b[chunkHeader:end], true
}

// add counts the record that ends with the chunk, if it is that of a sync.
func (t *tail) add(kind byte, content []byte) {
	if kind == wholeChunk || kind == firstChunk {
		t.record, t.known = t.record[:0], true
	}
	t.known = t.known && len(t.record)+len(content) <= syncRecord
	if t.known {
		t.record = append(t.record, content...)
	}
	if kind != wholeChunk && kind != lastChunk || !t.isSync() {
		return
	}
	if t.torn {
		t.syncsAfter++
	} else {
		t.syncsBefore++
	}
}

func (t *tail) isSync() bool {
	return t.known && len(t.record) == syncRecord && bytes.HasSuffix(t.record, []byte{byte(pebble.InternalKeyKindLogData), 0})
}

func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
