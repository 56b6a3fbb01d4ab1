package storage

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// The id of a store is a row of its own, so that it is in each copy of the files. A copy that
// is made a store of its own by Adopt gets another.
const (
	idRow   = "id"
	idBytes = 16
)

// ID is the random id of the store in hexadecimal: 32 digits. A checkpoint has that of its
// source, and a store that Adopt has made has its own. It is empty for a store over
// Options.Engine, and for one that was not opened since there are ids.
func (s *Store) ID() string { return s.id }

// Dir is the directory of the store without symbolic links; empty with Options.Engine.
func (s *Store) Dir() string { return s.dir.Path }

// Dormant reports whether the store is a restored copy that has not been woken by Wake. A host
// over it runs nothing by itself.
func (s *Store) Dormant() bool { return s.dormant }

// readID reads the id, if the store has one.
func (s *Store) readID() error {
	value, ok, err := s.get(metaKey(idRow))
	if err != nil || !ok {
		return err
	}
	if len(value) != idBytes {
		return s.fail(fmt.Errorf("%w: id row %x", ErrCorrupt, value))
	}
	s.id = hex.EncodeToString(value)
	return nil
}

// giveID gives the store an id with b.
func (s *Store) giveID(b *Batch) {
	id := binary.BigEndian.AppendUint64(nil, s.seams.Rand.Uint64())
	id = binary.BigEndian.AppendUint64(id, s.seams.Rand.Uint64())
	b.SetMeta(idRow, id)
	s.id = hex.EncodeToString(id)
}

// FormatFile is the name of the file without which no directory is a store. A copy of a store
// gets it last: see Adopt.
const FormatFile = formatFile

// Adopt makes the files of a copied store in o.Dir, all but FormatFile, a store of its own that
// is dormant; format is the content of that file. The store gets a new id, and its next epoch is
// 2^20 ahead, so no number, token or sequence number that the source has given out since the copy
// was made is given out again. All else is as the copy has it.
//
// FormatFile is written last: a directory in which Adopt was cut off or has failed is no store,
// and must be removed. The errors are those of Open; it wraps ErrNotStore if the directory has
// a format file.
func Adopt(o Options, format string) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	made, err := parseFormat(format)
	dir := o.Pebble.Dir(o.Dir)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrFormat, dir.Join(formatFile), err)
	case !made.known():
		return errVersion(dir.Join(formatFile), made.version)
	case made.move != Move{}:
		return made.move.refused(dir)
	}
	return locked(o, func(dir pebblestore.Dir, lock *pebblestore.Lock) error {
		switch _, err := dir.FS.Stat(dir.Join(formatFile)); {
		case err == nil:
			return fmt.Errorf("%w: %s is a store already", ErrNotStore, dir.Path)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("storage: %w", err)
		}
		if err := adopt(o, dir, lock, made); err != nil {
			return err
		}
		made.version, made.dormant = FormatVersion, true
		if err := dir.Write(formatFile, made.text()); err != nil {
			return fmt.Errorf("storage: %w", err)
		}
		return syncDir(dir)
	})
}

// locked calls do with the directory of o, which it locks meanwhile.
func locked(o Options, do func(pebblestore.Dir, *pebblestore.Lock) error) error {
	dir, lock, err := lockStore(o)
	if err != nil {
		return err
	}
	return errors.Join(do(dir, lock), lock.Close())
}

// lockStore finds the directory of o and locks it.
func lockStore(o Options) (pebblestore.Dir, *pebblestore.Lock, error) {
	dir := o.Pebble.Dir(o.Dir)
	if _, err := dir.FS.Stat(dir.Path); errors.Is(err, fs.ErrNotExist) {
		return dir, nil, fmt.Errorf("%w: %s: name the directory of a store", ErrNoDirectory, o.Dir)
	}
	dir, err := dir.Real()
	if err != nil {
		return dir, nil, fmt.Errorf("storage: %w", err)
	}
	lock, err := awaitLock(o, dir, dir.Lock)
	return dir, lock, err
}

// # The order of Adopt
//
//  1. The directory is locked. It has no format file, so neither Open nor a reader takes it.
//  2. One batch writes the new id and the epoch row, with all epochs up to raisedEpochs behind the
//     last one taken. It is synced, and the witness with it.
//  3. The format file is written with the line dormant. From here on the directory is a store.
//
// So no crash leaves a store that would go on with the epochs of its source.

// adopt writes the id and the epoch of a copy, durably.
func adopt(o Options, dir pebblestore.Dir, lock *pebblestore.Lock, made format) (err error) {
	s, err := openUncounted(o, dir, lock, made)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.Abandon()) }() // which has the same error if the store has failed
	if err := s.readEpoch(); err != nil {
		return notOpened(dir, err)
	}
	b := new(Batch)
	if err := RaiseEpoch(s.engine, b); err != nil {
		return s.fail(err)
	}
	s.giveID(b)
	return s.applyDurably(b)
}

// openUncounted opens a store without an opening that counts, to change rows of its own; with its witness file, if it has one. The
// caller has the lock, and abandons the store.
func openUncounted(o Options, dir pebblestore.Dir, lock *pebblestore.Lock, made format) (*Store, error) {
	p := o.Pebble
	p.Lock, p.MustExist, p.NoCompactions = lock, true, true // the next Open compacts
	db, err := pebblestore.Open(dir.Path, p)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	s := newStore(o, db, made.shards)
	s.dir, s.files = dir, db
	if _, err := dir.FS.Stat(dir.Join(witnessFile)); err == nil {
		if s.witness, err = openWitness(dir, s); err != nil {
			return nil, errors.Join(notOpened(dir, err), s.Abandon())
		}
	}
	return s, nil
}

// Wake takes the dormant mark from the store in o.Dir: the next host that opens it recovers what
// was running, fires alarms and delivers messages. It changes nothing if the store is not
// dormant, and after a crash the store is one or the other. It returns ErrLocked while a program
// has the store open, and the errors of OpenReadOnly.
func Wake(o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	return locked(o, func(dir pebblestore.Dir, _ *pebblestore.Lock) error {
		f, err := madeFormat(dir, o.Shards)
		if err != nil || !f.dormant {
			return err
		}
		f.dormant = false
		return changeFormat(dir, f)
	})
}
