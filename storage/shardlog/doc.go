// Package shardlog keeps a store in a replicated log, so that it survives the loss of its machine.
//
// A Log is an ordered list of records that one owner at a time can append to, in an engine that users run
// already, such as PostgreSQL (package pglog, a module of its own). An Engine is a storage engine over a Log: each
// commit goes into the local database, which is a view of the log, and with the others of its round into the next record. The
// commit is durable when the log has acknowledged that record.
//
//   - The newest of the processes that open a store over one log owns it. The log itself fences the others: no append of an
//     older term succeeds. No clock decides anything.
//   - A barrier keeps a batch that the log has not acknowledged off the local disk. So the disk of a process that was replaced
//     holds the log up to a position, perhaps parts of later records, and nothing else.
//   - The reader of a log trusts nothing: each record follows from the one before, by position, term and chain.
//   - A log that has lost acknowledged records is noticed by its owner, and by each view: by its position, and by a file beside it that
//     tells of the newest record of which a table may have a part. With Options.Directory the shard is in quarantine then, and with
//     Options.RescueDir the records that the log lacks are in a file, so that an operator can put them back. A checkpoint has no such file.
//   - A process can wait for its turn with an open view that follows the log: see Options.Turn.
//
// Two interfaces beside Log are for several processes that watch over one store. Directory keeps the rows of nodes, the snapshots of a
// log, and its losses; Blobs keeps the files of snapshots. Package memlog implements all three.
//
//   - Each node beats and looks at the beats of the others. Silence counts these looks, and tells which nodes may be replaced. A wrong
//     answer costs a term and no data.
//   - A snapshot is registered by the owner of the newest term alone, and only if all its blobs are there. The log is truncated behind
//     it, and a process with an older view, or none, begins with it.
//   - A log that lacks acknowledged records is put into quarantine, where no process owns it, until an operator puts the records
//     back or accepts the loss. A loss that is found too late is noted in Look.Late and bars nothing.
package shardlog
