package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Previous tells how the process ended that had the store open before.
type Previous struct {
	Epoch    uint64    // 0: the store is new
	Clean    bool      // it closed the store in order
	OpenedAt time.Time // when it opened the store
	Crashes  uint64    // how many processes in a row ended without closing, up to and with it
	// CrashedEpoch is the newest opening, up to and with it, that did not end in
	// order. Zero: none.
	CrashedEpoch uint64

	through uint64 // the last epoch of the numbers that it may have used
}

// Epoch is the number of this opening of the store, and durable before Open
// returned. It is one more than the last, or more if that one made 4 billion
// object numbers or sequence numbers. After OpenReadOnly it is the number that the next
// Open takes.
func (s *Store) Epoch() uint64 { return s.epoch }

// OpenedAt is when this opening of the store began.
func (s *Store) OpenedAt() time.Time { return s.openedAt }

// Previous tells how the opening before this one ended.
func (s *Store) Previous() Previous { return s.previous }

// beginEpoch reads how the store was left and makes the number of this opening
// durable, so that no two openings ever share one. Then it removes the objects that were not
// stored to their end.
func (s *Store) beginEpoch() error {
	if err := s.readEpoch(); err != nil {
		return err
	}
	if s.epoch > lastEpoch {
		return s.fail(errNumbers)
	}
	b := s.epochRow(false, s.crashes, s.through.Load())
	if err := s.beginFeed(b); err != nil {
		return err
	}
	if s.id == "" && s.dir.FS != nil {
		s.giveID(b)
	}
	if err := s.applyDurably(b); err != nil {
		return err
	}
	return s.dropUnfinished()
}

// readEpoch reads how the store was left and takes the next number for this opening, which
// is stored by beginEpoch alone.
func (s *Store) readEpoch() error {
	value, ok, err := s.get(metaKey("epoch"))
	if err != nil {
		return err
	}
	if ok {
		if s.previous, err = decodeEpoch(value); err != nil {
			return s.fail(err)
		}
	}
	if err := s.readID(); err != nil {
		return err
	}
	s.epoch = s.previous.through + 1
	s.seqs.Store(s.epoch << blockBits)
	s.numbers.Store(s.epoch << blockBits)
	s.through.Store(s.epoch)
	s.crashes = 1
	if !s.previous.Clean && s.previous.Epoch > 0 {
		s.crashes, s.previous.CrashedEpoch = s.previous.Crashes+1, s.previous.Epoch
	}
	s.openedAt = s.seams.Clock.Now()
	return nil
}

// applyDurably applies a batch of the store itself without a look at the free space, and waits until it is durable.
func (s *Store) applyDurably(b *Batch) error {
	t, err := s.apply(b)
	if err != nil {
		return err
	}
	return s.WaitDurable(t)
}

// Versions of the epoch row. The second has one field more, through, and is only
// written when an opening has used numbers of later epochs: a program that does
// not know the field must not open the store then.
const (
	epochRowVersion     = 1
	epochRowWithThrough = 2
)

// raisedEpochs is how many epochs RaiseEpoch skips. The store that is left behind would need a million
// openings to come so far, and 4,095 copies of copies fit into the epochs that there are.
const raisedEpochs = 1 << 20

// RaiseEpoch puts the epoch row of the database e into b, with 2^20 more epochs taken: the next opening gives out no object number,
// sequence number or token that another store gives out after the two have parted. It serves a restored copy, a view that becomes a store
// of its own, and a log that has lost records. Previous stays as it is. It returns an error, and leaves b alone, if the row cannot be read
// or that many epochs are not left. It may be called from any goroutine, but not beside an opening of the store.
func RaiseEpoch(e engine.Engine, b *Batch) error {
	var was Previous
	value, closer, err := e.Get(metaKey("epoch"))
	switch {
	case err == nil:
		was, err = decodeEpoch(value)
		err = errors.Join(err, closer.Close())
	case errors.Is(err, ErrNotFound): // no opening yet
		err = nil
	}
	if err != nil {
		return fmt.Errorf("storage: raise the epoch: %w", err)
	}
	if was.through += raisedEpochs; was.through > lastEpoch {
		return fmt.Errorf("storage: raise the epoch: %w", errNumbers)
	}
	b.Set(metaKey("epoch"), was.encode())
	return nil
}

// Era grows by two with each RaiseEpoch, and by one with each half a million openings. So that of a restored copy is greater than that of its
// source, for as long as the source is not opened half a million times more.
func (s *Store) Era() uint64 { return s.epoch / (raisedEpochs / 2) }

// epochRow is a batch with the row that tells of this opening.
func (s *Store) epochRow(clean bool, crashes, through uint64) *Batch {
	b := new(Batch)
	b.Set(metaKey("epoch"), Previous{
		Epoch: s.epoch, Clean: clean, OpenedAt: s.openedAt, Crashes: crashes, CrashedEpoch: s.previous.CrashedEpoch, through: through,
	}.encode())
	return b
}

// encode returns the value of the epoch row that decodeEpoch reads.
func (p Previous) encode() []byte {
	w := row.Writer{epochRowVersion, 0}
	if p.Clean {
		w[1] = 1
	}
	w = w.Uint(p.Epoch)
	w = w.Uint(p.Crashes)
	w = w.Int(p.OpenedAt.UnixNano())
	w = w.Uint(p.CrashedEpoch)
	if p.through > p.Epoch {
		w[0] = epochRowWithThrough
		w = w.Uint(p.through)
	}
	return w
}

// decodeEpoch reads the epoch row. CrashedEpoch is zero if the writer did not have it.
func decodeEpoch(v []byte) (p Previous, err error) {
	r := row.Read(v)
	version := r.Byte()
	p.Clean = r.Byte() == 1
	p.Epoch, p.Crashes = r.Uint(), r.Uint()
	p.OpenedAt = time.Unix(0, r.Int())
	r.Required()
	p.CrashedEpoch, p.through = r.Uint(), p.Epoch
	switch version {
	case epochRowVersion:
	case epochRowWithThrough:
		if p.through = r.Uint(); p.through <= p.Epoch {
			r.Fail()
		}
	default:
		r.Fail()
	}
	if !r.OK() || p.through > lastEpoch {
		return Previous{}, fmt.Errorf("%w: epoch row %x", ErrCorrupt, v)
	}
	return p, nil
}
