package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// witness is a file beside the database that tells how many syncs have been
// acknowledged. Each sync stores its number in the database first and in the
// witness after; an acknowledgement waits for both. A database that is behind
// its witness has lost what was acknowledged, as when damage of what the last sync
// wrote looks like the torn end of a crash (S9).
type witness struct {
	file vfs.File
	n    uint64 // the last number written; the leader of the pipeline owns it
}

// The witness file holds two slots of 16 bytes (number, check sum, zero), which
// are written in turn, so that a torn write leaves the one before.
const (
	witnessFile = "WITNESS"
	witnessSlot = 16
	witnessRow  = "witness"
)

// openWitness opens or makes the witness file and compares the database with it.
func openWitness(o Options, s *Store) (*witness, error) {
	path := o.Pebble.FS.PathJoin(o.Dir, witnessFile)
	stored, err := s.witnessed()
	if err != nil {
		return nil, err
	}
	text, err := readFile(o.Pebble.FS, path)
	if isNotExist(err) {
		// A torn one holds no whole slot, which tells of nothing.
		if err := writeFile(o.Pebble.FS, path, string(make([]byte, 2*witnessSlot))); err != nil {
			return nil, fmt.Errorf("storage: make %s: %w", path, err)
		}
		if err := syncDir(o.Pebble.FS, o.Dir); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if seen := readWitness([]byte(text)); seen > stored {
		return nil, fmt.Errorf("%w: %s: %s tells of sync %d, the database ends at %d", ErrAckedDataLost, o.Dir, witnessFile, seen, stored)
	}
	f, err := o.Pebble.FS.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return &witness{file: f, n: stored}, nil
}

// witnessed is the number of the last sync that the database holds.
func (s *Store) witnessed() (uint64, error) {
	value, ok, err := s.Meta(witnessRow)
	if err != nil || !ok {
		return 0, err
	}
	n, w := binary.Uvarint(value)
	if w <= 0 {
		return 0, s.fail(fmt.Errorf("%w: witness row %x", ErrCorrupt, value))
	}
	return n, nil
}

// readWitness returns the greatest number of a slot that is whole.
func readWitness(b []byte) (n uint64) {
	for len(b) >= witnessSlot {
		v := binary.BigEndian.Uint64(b)
		if crc32.ChecksumIEEE(b[:8]) == binary.BigEndian.Uint32(b[8:]) {
			n = max(n, v)
		}
		b = b[witnessSlot:]
	}
	return n
}

// before puts the number of the coming sync in the database.
func (w *witness) before(e Engine) error {
	var b Batch
	b.SetMeta(witnessRow, binary.AppendUvarint(nil, w.n+1))
	return e.Apply(b.Repr())
}

// witnessSlotOf is the slot that tells of sync n.
func witnessSlotOf(n uint64) []byte {
	slot := binary.BigEndian.AppendUint64(nil, n)
	slot = binary.BigEndian.AppendUint32(slot, crc32.ChecksumIEEE(slot))
	return append(slot, make([]byte, witnessSlot-len(slot))...)
}

// after puts the number of the sync that has just ended in the file.
func (w *witness) after() error {
	w.n++
	if _, err := w.file.WriteAt(witnessSlotOf(w.n), int64(w.n%2)*witnessSlot); err != nil {
		return fmt.Errorf("write %s: %w", witnessFile, err)
	}
	if err := w.file.SyncData(); err != nil {
		return fmt.Errorf("sync %s: %w", witnessFile, err)
	}
	return nil
}

// syncWitnessed syncs the engine between the two.
func (s *Store) syncWitnessed() error {
	if s.witness == nil {
		return s.engine.Sync()
	}
	if err := s.witness.before(s.engine); err != nil {
		return err
	}
	if err := s.engine.Sync(); err != nil {
		return err
	}
	return s.witness.after()
}

func (s *Store) closeWitness() error {
	if s.witness == nil {
		return nil
	}
	return s.witness.file.Close()
}
