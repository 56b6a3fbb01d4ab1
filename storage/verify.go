package storage

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// MaxFindings is how many findings Verify tells of at most.
const MaxFindings = 1000

// A Finding is one thing that is wrong with a store.
type Finding struct {
	File   string // the name of the damaged or missing file in the directory; empty for a row
	Object ID     // the object of a row that contradicts another; zero if it is not known
	Text   string // one line that says it
}

// Verification is how Verify tells of its work.
type Verification struct {
	// Found is called with each finding, up to MaxFindings of them, by the goroutine of the caller: first those of
	// the files, in their order, or else those of the rows, shard by shard. Default: not called.
	Found func(Finding)
	// Progress is called with the bytes of the files that have been checked and those of all
	// files, after each block, by one goroutine after another. The rows are read after the files, without a call.
	// Default: not called.
	Progress func(doneBytes, totalBytes int64)
	// Checked spares the reading of a table: see pebblestore.Inspection. Default: each is read.
	Checked func(table string) (damage error, ok bool)
}

// Verify checks the store in o.Dir as a whole and changes no byte of the directory, also if its
// program was killed. It reads the format file, logs and manifest against their sums, the end
// of the newest log, each block of each table against its checksum, and the witness file if
// there is one; and then each row against the others (Store.Check). It goes on after a finding
// and returns how many there are. If a file is damaged the rows are not read, because the same
// damage would show again in them. Damage within the bytes of the last sync looks like the torn
// end of a crash, and only a witness file tells of it.
//
// After MaxFindings it ends with ErrManyFindings. Other errors tell that the store could not be
// checked: that of ctx, and those of OpenReadOnly but for a damaged or missing file, which is a
// finding. A view of a log (Options.Over) is refused with ErrMovedStore: it holds nothing that the log does not have, so
// one with damage is removed, and made again from the log. Several tables, and then the rows of several shards, are read at a time: as
// many as there are processors. The memory is that of a reader, and for each processor that of the largest block and of about 100 bytes for each
// object of a shard. With o.Engine there are no files, and the rows are read alone.
func Verify(ctx context.Context, o Options, to Verification) (findings int, err error) {
	v := &verifier{ctx: ctx, to: to}
	if o.Engine != nil {
		s, err := OpenReadOnly(o)
		if err != nil {
			return 0, err
		}
		err = errors.Join(v.rows(s), s.Close())
		return v.findings, err
	}
	if o, err = o.withDefaults(); err != nil {
		return 0, err
	}
	if err := v.dir(o); err != nil {
		return v.findings, advisedReader(o.Dir, err)
	}
	return v.findings, nil
}

// # The order of Verify
//
//  1. The directory is locked for a reader, so that no program changes it meanwhile.
//  2. The format file is read. Without one nothing tells the number of shards, but the other files
//     can still be checked.
//  3. pebblestore.Inspect reads the files: first the manifest, because it tells which tables are in
//     use; then the logs, the tables block by block and several at a time, and at last the logs as
//     Open replays them.
//  4. If all files are whole, the store, which step 3 has opened, is compared with its witness.
//  5. Each row is compared with those that it belongs to, in several shards at a time.
//
// A damaged file ends the work after step 3, because each row in it would be one more finding.

// verifier is a Verify under way.
type verifier struct {
	ctx      context.Context
	to       Verification
	findings int
}

// found tells of a finding, or returns ErrManyFindings.
func (v *verifier) found(f Finding) error {
	if v.findings == MaxFindings {
		return ErrManyFindings
	}
	v.findings++
	if v.to.Found != nil {
		v.to.Found(f)
	}
	return nil
}

// dir verifies the store in a directory.
func (v *verifier) dir(o Options) error {
	dir, lock, err := lockReader(o)
	if err != nil {
		return err
	}
	return errors.Join(v.locked(o, dir), lock.Close())
}

// locked verifies the store in a directory that is locked for a reader: format, files, rows.
func (v *verifier) locked(o Options, dir pebblestore.Dir) error {
	made, err := v.format(o, dir)
	if err != nil {
		return err
	}
	o.Pebble.CacheBytes = min(cmp.Or(o.Pebble.CacheBytes, scanCacheBytes), scanCacheBytes)
	db, err := pebblestore.InspectAndOpen(v.ctx, dir.Path, o.Pebble, pebblestore.Inspection{
		Found:    func(file, text string) error { return v.found(Finding{File: file, Text: text}) },
		Progress: v.to.Progress,
		Checked:  v.to.Checked,
		Seams:    o.Seams,
	})
	if err != nil || db == nil {
		return err
	}
	if v.findings > 0 { // in the format file
		return db.Close()
	}
	s, err := newReader(o, db, made.shards)
	if err == nil {
		err = v.witness(dir, s)
	}
	if err == nil {
		err = v.rows(s)
	}
	if errors.Is(err, ErrCorrupt) { // a row of the store itself, or a file damaged meanwhile
		err = v.found(Finding{Text: err.Error()})
		_ = s.Abandon() // it has failed, and the finding says why
		return err
	}
	return errors.Join(err, s.Close())
}

// scanCacheBytes is enough cache for a store of which each block is read once. In one that is larger, a third more time
// goes into memory that is new.
const scanCacheBytes = 8 << 20

// rows checks each row against the others.
func (v *verifier) rows(s *Store) error {
	return s.checkShardsAtOnce(v.ctx, func(id ID, err error) error {
		return v.found(Finding{Object: id, Text: err.Error()})
	})
}

// format reads the format file. One that is damaged or missing is a finding.
func (v *verifier) format(o Options, dir pebblestore.Dir) (format, error) {
	made, err := madeFormat(dir, o.Shards)
	if errors.Is(err, ErrCorrupt) || errors.As(err, new(*unreadable)) {
		return made, v.found(Finding{File: formatFile, Text: err.Error()})
	}
	return made, err
}

// witness compares the database with the witness file, if there is one.
func (v *verifier) witness(dir pebblestore.Dir, s *Store) error {
	_, err := compareWitness(dir, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ErrAckedDataLost):
		return v.found(Finding{File: witnessFile, Text: err.Error()})
	}
	return err
}
