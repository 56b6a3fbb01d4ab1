// Package raw is the reference for Holdfast: bare Pebble with the options of package
// storage, doing the same rows and syncs with nothing around them.
package raw

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// quiet is a logger that says nothing and does not go on after a fatal error.
type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(f) }

// Options are those that package storage gives Pebble; a test compares them.
func Options(fs vfs.FS) *pebble.Options {
	o := &pebble.Options{
		FS: fs, Logger: quiet{},
		CacheSize: 256 << 20, MemTableSize: 64 << 20,
		FormatMajorVersion:    pebble.FormatNewest,
		L0StopWritesThreshold: 24,
	}
	o.Experimental.TombstoneDenseCompactionThreshold = -1
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// Open opens the database in dir and makes it if it is absent. Like storage it
// closes and opens a new one once more.
func Open(dir string, fs vfs.FS) (*pebble.DB, error) {
	desc, err := pebble.Peek(dir, fs)
	if err != nil || !desc.Exists {
		db, err := pebble.Open(dir, Options(fs))
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	return pebble.Open(dir, Options(fs))
}
