package pebblestore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// CheckTable reads each block of one table, as Inspect does, and returns the first damage of it. A caller that reads
// all files anyway checks a table while the system has it in memory, and tells Inspect by Inspection.Checked. An error
// is that of ctx.
func CheckTable(ctx context.Context, dir Dir, name string) (damage, err error) {
	v := &inspector{ctx: ctx, dir: Dir{readOnlyFS{dir.FS}, dir.Path}}
	return v.table(name, 0)
}

// table checks a table of so many bytes, and returns the first damage of it. Its bytes count as
// checked afterwards. An error is that of the context.
func (v *inspector) table(name string, size int64) (damage, err error) {
	t := &table{inspector: v, name: name}
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	damage = t.blocks()
	if err := v.progress(size - t.read); err != nil {
		return nil, err
	}
	if damage != nil {
		damage = fmt.Errorf("%w: table %s: %w", engine.ErrCorrupt, v.dir.Join(name), damage)
	}
	return damage, nil
}

// table is a table that one goroutine checks.
type table struct {
	*inspector
	name string
	read int64 // bytes of its blocks
	buf  []byte
}

// blocks reads each block of a table and compares its checksum. It looks for no flipped bit, as
// Pebble does in time that grows with the square of the block's size.
func (t *table) blocks() (err error) {
	// Pebble may panic where a table of an old format, which has no checksum in its last
	// bytes, tells of blocks that cannot be.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be read: %v", r)
		}
	}()
	f, err := t.dir.FS.Open(t.dir.Join(t.name))
	if err != nil {
		return err
	}
	r, err := openTable(t.inspector, f)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Attributes.Has(sstable.AttributeBlobValues) {
		return errBlobs
	}
	layout, err := r.Layout()
	if err != nil {
		return err
	}
	sum := block.Checksummer{}
	sum.Init(r.BlockReader().ChecksumType())
	for _, b := range handles(layout) {
		if err := t.block(f, &sum, b); err != nil {
			return err
		}
	}
	return nil
}

// errBlobs refuses a table with values in files of their own. Pebble writes such files only
// where a program asks for them, which no version of this package does, so their blocks are
// not read here.
var errBlobs = errors.New("its values lie in files of their own, which no version of this program writes")

// openTable returns a reader that owns the file.
func openTable(v *inspector, f vfs.File) (*sstable.Reader, error) {
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	opts := &pebble.Options{}
	opts.EnsureDefaults()
	r, err := sstable.NewReader(v.ctx, readable, opts.MakeReaderOptions())
	if err != nil {
		_ = readable.Close() // nothing was written
		return nil, err
	}
	return r, nil
}

// handles are the places of all blocks of a table, in their order.
func handles(l *sstable.Layout) []block.Handle {
	all := slices.Concat(l.Index, l.ValueBlock, []block.Handle{
		l.TopIndex, l.RangeDel, l.RangeKey, l.ValueIndex, l.Properties, l.MetaIndex, l.BlobReferenceIndex,
	})
	for _, b := range l.Data {
		all = append(all, b.Handle)
	}
	for _, b := range l.Filter {
		all = append(all, b.Handle)
	}
	all = slices.DeleteFunc(all, func(h block.Handle) bool { return h.Length == 0 })
	slices.SortFunc(all, func(a, b block.Handle) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}

// block compares a block with the checksum behind it: one byte of its kind, and four of the sum.
func (t *table) block(f vfs.File, sum *block.Checksummer, h block.Handle) error {
	length := int(h.Length) + block.TrailerLen
	t.buf = slices.Grow(t.buf[:0], length)[:length]
	if _, err := f.ReadAt(t.buf, int64(h.Offset)); err != nil {
		return fmt.Errorf("read %d bytes at byte %d: %w", length, h.Offset, err)
	}
	content, trailer := t.buf[:h.Length], t.buf[h.Length:]
	if sum.Checksum(content, trailer[0]) != binary.LittleEndian.Uint32(trailer[1:]) {
		return fmt.Errorf("the block of %d bytes at byte %d differs from the bytes that were written", length, h.Offset)
	}
	t.read += int64(length)
	return t.progress(int64(length))
}
