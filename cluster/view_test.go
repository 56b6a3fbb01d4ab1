package cluster_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// own are the rows of a view that stand in no record: shard ffff, kind 00, see FORMAT.md.
var own = map[string]bool{"\xff\xff\x00log": true, "\xff\xff\x00cluster": true, "\xff\xff\x00lost": true}

// replay reads the log from a position on into a store.
func replay(log shardlog.Log, from shardlog.Position, to engine.Engine) error {
	return log.Read(context.Background(), 0, from, func(r shardlog.Record) error {
		return shardlog.Batches(r.Payload, to.Apply)
	})
}

// viewOf copies the rows of a view on a disk into a store, and returns the position of the view.
func viewOf(disk vfs.FS, dir string, to engine.Engine) (at shardlog.Position, err error) {
	db, err := pebblestore.OpenReadOnly(dir, pebblestore.Options{FS: disk, CacheBytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = each(db, func(key, value []byte) error {
		if string(key) == "\xff\xff\x00log" {
			at = shardlog.Position(binary.BigEndian.Uint64(value))
		}
		var b storage.Batch
		b.Set(key, value)
		return to.Apply(b.Repr())
	})
	return at, err
}

// each calls f with each row of a store.
func each(s engine.Engine, f func(key, value []byte) error) (err error) {
	rows, err := s.NewIter(nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for ok := rows.First(); ok; ok = rows.Next() {
		value, err := rows.ValueAndErr()
		if err == nil {
			err = f(rows.Key(), value)
		}
		if err != nil {
			return err
		}
	}
	return rows.Error()
}

// differ names a row in which two stores differ, but for the rows of a view's own.
func differ(t *testing.T, got, want engine.Engine) string {
	t.Helper()
	rows := make(map[string][]byte)
	err := each(want, func(key, value []byte) error {
		rows[string(key)] = bytes.Clone(value)
		return nil
	})
	difference := ""
	err = errors.Join(err, each(got, func(key, value []byte) error {
		if has, ok := rows[string(key)]; !own[string(key)] && (!ok || !bytes.Equal(has, value)) {
			difference = fmt.Sprintf("row %x is %x, want %x", key, value, has)
		}
		delete(rows, string(key))
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for key := range rows {
		difference = fmt.Sprintf("row %x is missing", key)
	}
	return difference
}
