// Package move takes the store of one machine into a replicated log, and the store of a log back to one machine.
//
// Import makes the files of a directory the base of a fresh log. Machines restore it (package snapshot) and go on with the log. Export brings
// a view up to the end of its log, closes the log for good, and makes the view a store that opens alone:
//
//	o := move.Options{Snapshots: snapshot.Options{Directory: d, Blobs: b, Log: l}}
//	err = o.Import(ctx, "data", "shop")
//	err = o.Export(ctx, "data-again")
//
// Both may be cut off at any step and are called again then:
//
//   - There are never two stores that open: at each moment the directory or the log goes on, or neither until the call is made again.
//   - No acknowledged commit is lost on the way, and the store keeps its id and all rows. After an export it is 2^20 epochs ahead,
//     so that it gives out no number that the log has seen.
//   - Undo takes back an import as long as the log has not begun.
//
// # Costs
//
// Import reads all files twice and writes them to the blobs once; the store is closed meanwhile. Export reads the records that the view
// lacks. The log has no owner from its claim on, so its calls fail until the store is opened again.
//
// # Limits
//
// A log that has ended begins no more: an exported store goes into another log, such as one of another shard or schema. Undo is for the time
// after the process of the import has ended, because a call of that process which the engine has not received yet could begin the log later.
package move
