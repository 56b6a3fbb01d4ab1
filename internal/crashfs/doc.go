// Package crashfs is a file system in memory that loses power. An FS sees each
// operation that changes a file; Capture remembers a moment between two of them; and
// Image makes the files that a power failure at that moment leaves. All synced bytes
// are in it, and none, all or a torn part of the others; a seed chooses the part, the
// same one each time.
//
// Names are kept or lost together, as on a file system with a journal. On one
// without, each name goes its own way, which is Scatter.
//
// vfs.MemFS.CrashClone with a percentage between 0 and 100 is not fit for that, because
// the kept part depends on the order of a map.
package crashfs
