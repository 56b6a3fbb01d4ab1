// Package storagetest proves a store at the level of file-system operations:
//
//   - Crash cuts the power before each operation that changes a file, and keeps
//     none, all, or a torn part of the unsynced bytes.
//   - Errors lets operations fail, once or for ever, in process; ErrorsInChild
//     does it in processes of their own, which may end as they like.
//   - Damage flips bits of the files, cuts them off and removes them.
//
// After each of these the store is opened again. Every acknowledged commit must
// be there, none may be torn, the survivors must be a prefix of the order of
// commits, the store must pass its own check, work on, and be there again at the
// next opening. Damage may also be reported, with an error that names the file.
//
// All of it runs one workload of numbered commits. The state after each number
// is known; so "a prefix, whole" means equality with the state of some number.
//
// Any store can be tested that is opened by an [Opener]: one test for each of the
// functions, and nothing else in the one that calls ErrorsInChild. How much is
// tried is up to Options.Points; other seeds of Options.Seed try other sizes and
// torn parts. Flags set the extent of a run of this package's own tests:
//
//	go test ./storage/storagetest -v -args -crashes 6200 -errors 520 -children 64 -damages 10200
//
// Its last line is the figures as one JSON object.
package storagetest

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
)

// An Opener opens the store under test in a directory of fsys, and makes it if
// it is absent. It should choose small memtables, so that a short workload
// flushes and compacts.
type Opener func(fsys vfs.FS, dir string) (*storage.Store, error)

// dir is where the store under test lies; its parent is made by the opener too.
const dir = "data/store"
