package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// witness is a file beside the database that tells how many syncs have been
// acknowledged. Each sync stores its number in the database first and in the witness
// after; an acknowledgement waits for both. A database that is behind its witness has
// lost acknowledged commits, for example because damage within the last sync looks like
// the torn end of a crash (S9).
type witness struct {
	file pebblestore.File
	n    uint64 // the last number written; the leader of the pipeline owns it
}

// The witness file holds two slots of 16 bytes (number, check sum, zero), which
// are written in turn, so that a torn write leaves the one before.
const (
	witnessFile = "WITNESS"
	witnessSlot = 16
	witnessRow  = "witness"
)

// openWitness opens or makes the witness file and compares the database with it. A
// file that is missing is made anew, because an operator who accepts a loss moves the
// old one away.
func openWitness(dir pebblestore.Dir, s *Store) (*witness, error) {
	stored, err := compareWitness(dir, s)
	if errors.Is(err, fs.ErrNotExist) {
		// A torn file holds no whole slot, and then no number.
		if err = dir.Write(witnessFile, string(make([]byte, 2*witnessSlot))); err == nil {
			err = dir.Sync()
		}
		if err != nil {
			err = fmt.Errorf("make %s: %w", witnessFile, err)
		}
	}
	if err != nil {
		return nil, err
	}
	f, err := dir.Update(witnessFile)
	if err != nil {
		return nil, err
	}
	return &witness{file: f, n: stored}, nil
}

// compareWitness compares the database with the witness file and returns the number of the
// last sync that the database holds. It changes nothing. The error wraps fs.ErrNotExist if
// there is no such file.
func compareWitness(dir pebblestore.Dir, s *Store) (stored uint64, err error) {
	if stored, err = s.witnessed(); err != nil {
		return 0, err
	}
	text, err := dir.Read(witnessFile)
	if err != nil {
		return stored, fmt.Errorf("read %s: %w", witnessFile, err)
	}
	if seen := readWitness([]byte(text)); seen > stored {
		return 0, fmt.Errorf("%w: %s: %s tells of sync %d, the database ends at %d", ErrAckedDataLost, dir.Path, witnessFile, seen, stored)
	}
	return stored, nil
}

// witnessed is the number of the last sync that the database holds.
func (s *Store) witnessed() (uint64, error) {
	value, ok, err := s.Meta(witnessRow)
	if err != nil || !ok {
		return 0, err
	}
	r := row.Read(value)
	n := r.Uint()
	if r.Required(); !r.OK() {
		return 0, s.fail(fmt.Errorf("%w: witness row %x", ErrCorrupt, value))
	}
	return n, nil
}

// readWitness returns the greatest number of a slot that is whole, and 0 without one.
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

// before puts the number of the coming sync in the database, so that the sync makes it
// durable together with the commits that it covers.
func (w *witness) before(e engine.Engine) error {
	var b Batch
	b.SetMeta(witnessRow, row.Writer(nil).Uint(w.n+1))
	return e.Apply(b.Repr())
}

// witnessSlotOf is the slot for sync n: the number, its checksum, and zeros.
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

// syncWitnessed syncs the engine, and with a witness stores the number of the sync
// before and after. A crash in between leaves the database ahead, which is no loss.
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

// closeWitness closes the witness file, if there is one.
func (s *Store) closeWitness() error {
	if s.witness == nil {
		return nil
	}
	return s.witness.file.Close()
}
