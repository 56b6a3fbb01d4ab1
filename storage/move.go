package storage

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// # The move of a store into a log
//
// The files of a store of one machine become the base of a log. From then on the log is the
// store, and the directory is an old copy, which must never be opened again: its commits would
// stand in no record. So the format file has a mark, and Open refuses a marked directory:
//
//	none ←→ moving to CLUSTER → moved to CLUSTER
//
//  1. Leave locks the directory, and closes its store in order, so that all rows are in tables.
//  2. The caller copies the files, marks the directory as moving, begins the log with the copy, and marks the directory as moved.
//
// Between the two marks it is open whether the log has begun. No program can open the store then, and
// the move goes on or is taken back. For example, a machine that loses power there has a
// directory that says how to go on. The files under a mark never change.

// Lines of the format file with a mark, before the name of the cluster.
const (
	movingLine = "moving "
	movedLine  = "moved "
)

// maxClusterBytes bounds the name of a cluster in a mark.
const maxClusterBytes = 200

// Move is the mark of a store that leaves its directory for the log of a cluster. The zero Move
// is no mark.
type Move struct {
	Cluster string // its name
	Done    bool   // the log has begun: there is no way back
}

// refused is the error of all that would open a marked directory.
func (m Move) refused(dir pebblestore.Dir) error {
	if m.Done {
		return fmt.Errorf("%w: the store in %s has moved to cluster %s (holdfast cluster import): open it there", ErrMovedStore, dir.Path, m.Cluster)
	}
	return fmt.Errorf("%w: the store in %s is moving to cluster %s: run holdfast cluster import %s again, or take the move back with --undo",
		ErrMovedStore, dir.Path, m.Cluster, dir.Path)
}

// Validate returns an error if the name of the cluster cannot stand in a format file: it must
// have 1 to 200 bytes and no control characters.
func (m Move) Validate() error {
	bad := func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError }
	if m.Cluster == "" || len(m.Cluster) > maxClusterBytes || strings.ContainsFunc(m.Cluster, bad) {
		return fmt.Errorf("storage: the name of a cluster is %q: it must have 1 to %d bytes, and no control characters", m.Cluster, maxClusterBytes)
	}
	return nil
}

// Leaving is a closed store that leaves its directory, which is locked until Close. It is for one
// goroutine.
type Leaving struct {
	dir  pebblestore.Dir
	lock *pebblestore.Lock
	made format
	id   string
}

// Leave locks the directory of a store of one machine for its move into a log. A store without a
// mark is opened and closed in order, so that no row is in Pebble's log; that counts as no
// opening, and Previous stays. The caller calls Close. The errors are those of Open; a marked
// directory is none, and a view is ErrMovedStore.
func Leave(o Options) (*Leaving, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	dir, lock, err := lockStore(o)
	if err != nil {
		return nil, err
	}
	l := &Leaving{dir: dir, lock: lock}
	if err := l.begin(o); err != nil {
		return nil, errors.Join(advised(o.Dir, err), lock.Close())
	}
	return l, nil
}

// begin reads the format file and the id, and closes the store in order if it has no mark.
func (l *Leaving) begin(o Options) (err error) {
	l.made, err = findFormat(l.dir, o.Shards)
	if err != nil || l.made.move == (Move{}) {
		if l.made, err = madeFormat(l.dir, o.Shards); err != nil {
			return err
		}
		if err := l.settle(o); err != nil {
			return err
		}
	}
	db, err := pebblestore.OpenReadOnly(l.dir.Path, o.Pebble)
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	s := newStore(o, db, l.made.shards)
	err = s.readID()
	l.id = s.id
	return errors.Join(err, db.Close())
}

// settle opens the database and closes it in order. A store from before there were ids gets one.
func (l *Leaving) settle(o Options) error {
	s, err := openUncounted(o, l.dir, l.lock, l.made)
	if err != nil {
		return err
	}
	err = s.readID()
	if err == nil && s.id == "" {
		b := new(Batch)
		s.giveID(b)
		err = s.applyDurably(b)
	}
	if err == nil {
		err = s.files.Flush() // Close leaves this to the next opening if the disk is full, and a view does not read the log
	}
	if err := errors.Join(err, s.Abandon()); err != nil {
		return notOpened(l.dir, err)
	}
	return nil
}

// Dir is the directory without symbolic links.
func (l *Leaving) Dir() string { return l.dir.Path }

// ID is the id of the store, see Store.ID.
func (l *Leaving) ID() string { return l.id }

// Move is the mark of the directory.
func (l *Leaving) Move() Move { return l.made.move }

// ViewFormat is the content of the format file of a view with these files.
func (l *Leaving) ViewFormat() string {
	return format{version: FormatVersion, shards: l.made.shards, dormant: l.made.dormant, view: true}.text()
}

// Mark gives the directory the mark m, durably; the zero Move takes it off. It returns
// ErrMovedStore, and changes nothing, for a step that the move does not have: to another cluster,
// back from a move that is done, or to one that is done from no mark.
func (l *Leaving) Mark(m Move) error {
	has := l.made.move
	if m == has {
		return nil
	}
	if m != (Move{}) {
		if err := m.Validate(); err != nil {
			return err
		}
	}
	if has.Done || has.Cluster == "" && m.Done || has.Cluster != "" && m.Cluster != "" && m.Cluster != has.Cluster {
		if has == (Move{}) {
			return fmt.Errorf("%w: the store in %s is not moving yet", ErrMovedStore, l.dir.Path)
		}
		return has.refused(l.dir)
	}
	made := l.made
	made.move = m
	if err := changeFormat(l.dir, made); err != nil {
		return err
	}
	made.version = FormatVersion
	l.made = made
	return nil
}

// Close unlocks the directory.
func (l *Leaving) Close() error { return l.lock.Close() }
