package workload

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/bench/internal/raw"
)

// bottom is the level where ingested tables end up in an empty database.
const bottom = 6

// tableOptions are those with which Pebble writes tables of the bottom level.
func tableOptions() sstable.WriterOptions {
	o := raw.Options(vfs.Default)
	o.EnsureDefaults()
	return o.MakeWriterOptions(bottom, pebble.FormatNewest.MaxTableFormat())
}
