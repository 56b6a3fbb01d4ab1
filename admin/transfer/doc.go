// Package transfer carries one object from one store to another as a file of text lines.
//
//	err := transfer.Export(ctx, host, id, file, transfer.ExportOptions{})
//	...
//	id, err := transfer.Import(ctx, elsewhere, file, transfer.ImportOptions{Alarms: true})
//
// The file has all that is stored of the object: keys, marks, alarm, open execution, label, dead
// letters and events. It has nothing of its store: no shard, no number, no epoch. So exports of
// an object and of its import elsewhere are the same, but for the numbers of dead letters, which
// other rows name. FORMAT.md has the form of the lines.
//
// An object is exported from a host, or from a store that was opened for reading, and no user
// code runs. It is imported into a host, also if its class is not registered. Partitions of worker
// pools and objects of the library (holdfast.*) are refused, because other objects depend on them.
package transfer
