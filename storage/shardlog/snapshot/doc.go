// Package snapshot copies the view of a log into blobs, makes views from such copies, and cuts the log off behind them.
//
// A log that only grows takes all space, and a process with an empty view would read all of it. So the owner takes a snapshot now and
// then, and removes the records that the second newest one has:
//
//	o := snapshot.Options{Directory: d, Blobs: b, Log: l}
//	_, err = o.Take(ctx, store, term, dir+".snapshot")
//	err = o.Trim(ctx, term)
//
// A process with a view that is too old (shardlog.ErrTruncated), damaged or absent calls Restore, and opens its store then.
//
//   - A snapshot and the records behind it are equal to the log. It has each commit that was acknowledged before Take began,
//     because the view is flushed first, and perhaps parts of later records.
//   - Tables never change, so a blob is named by the SHA-256 of its content, and Take uploads those alone that are not there.
//   - A log is cut off behind the second newest snapshot only, once its blobs were read back and compared. So a
//     snapshot that turns out to be damaged leaves another one, and Restore takes that.
//   - A replaced owner registers, truncates and collects nothing: each of the calls is made under its term.
//   - A crash at any step leaves the registered snapshots whole, and a directory under Restore is a view or no store at all.
//
// # Costs
//
// Take links the tables of the view, reads each file once for its hash, and once more for the upload if its blob is new. A file that
// was compacted is new, so uploads are several times the bytes of the log. Verify and Restore read all blobs of a snapshot. Memory is
// that of one part (shardlog.PartBytes).
//
// # Limits
//
// The owner makes one call of Take or Trim after another, because Trim may collect a blob that a Take beside it has found there. One snapshot
// of a log is taken at a time. shardlog.Log.Truncate has no term: Trim looks at the term right before the call, and a process that is stopped
// between the two and goes on later still removes only records that two registered snapshots had.
package snapshot
