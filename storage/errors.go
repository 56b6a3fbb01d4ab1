package storage

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Errors of opening a store.
var (
	// ErrLocked is returned by Open when another store is open on the directory;
	// the error names the process that holds it.
	ErrLocked = pebblestore.ErrLocked
	// ErrFormat is returned by Open when the directory was written in a format
	// that this version does not read, or with another number of shards.
	ErrFormat = errors.New("storage: format does not fit")
	// ErrNoDirectory is returned by OpenReadOnly and Verify when there is no such directory;
	// Open makes it.
	ErrNoDirectory = errors.New("storage: no such directory")
	// ErrMovedStore is returned by Open without Options.Over, by OpenReadOnly and by Verify for a view of a log, because the
	// view may lack what the log has; by Open with Options.Over for a store of its own; and by all of them for a directory whose store
	// has gone into a cluster, or is on its way there (Leave). The error names the cluster.
	ErrMovedStore = errors.New("storage: the directory and the log do not belong together")
	// ErrRestoring is wrapped, beside ErrNotStore, for a directory in which ReplaceView has not ended: it is to be called again.
	ErrRestoring = errors.New("the restore of a view has not ended")
	// ErrNotStore is returned by Open when the directory is not empty and was
	// not made by Holdfast, or is no directory.
	ErrNotStore = errors.New("storage: not a store")
)

// ErrManyFindings is returned by Verify when there are more than MaxFindings findings: it
// told of so many, and did not look at the rest.
var ErrManyFindings = errors.New("storage: verify: too many findings: the rest was not looked at")

// Errors of using a store.
var (
	// ErrStorage is wrapped by every error after which the store is dead. A
	// commit that was not yet reported durable may or may not have survived.
	ErrStorage = errors.New("storage failed")
	// ErrCorrupt is wrapped when the files hold bytes that were never written so;
	// beside ErrStorage, if the store was open.
	ErrCorrupt = engine.ErrCorrupt
	// ErrAckedDataLost is returned by Open with Options.Witness when the store
	// lacks commits that were reported durable.
	ErrAckedDataLost = errors.New("storage: acknowledged data is lost")
	// ErrNoSpace is returned by Commit when free space is below the floor.
	// Nothing was changed; the same commit may be tried again.
	ErrNoSpace = errors.New("storage: no space left")
	// ErrUnconfirmed is returned by WaitFollowed and WaitSeen over a log that does not answer. The commit may become durable, or be lost.
	ErrUnconfirmed = errors.New("storage: the log has not answered, so the outcome is unknown")
	// ErrReadOnly is returned by Commit and by every other change of a store that
	// OpenReadOnly has opened. Nothing was changed, and the store can still be read.
	ErrReadOnly = pebblestore.ErrReadOnly
	// ErrClosed is wrapped, beside ErrStorage, after Close.
	ErrClosed = errors.New("storage: closed")
	// ErrBadCursor refuses a cursor that no list has made.
	ErrBadCursor = errors.New("storage: not a cursor of this list")
	// ErrNotFound is the answer of an engine for an absent key.
	ErrNotFound = engine.ErrNotFound
)

// fatalError is the error that ended a store. It matches ErrStorage and its cause.
type fatalError struct{ cause error }

func (e *fatalError) Error() string   { return fmt.Sprintf("%v: %v", ErrStorage, e.cause) }
func (e *fatalError) Unwrap() []error { return []error{ErrStorage, e.cause} }
