// Package pglog keeps shard logs in PostgreSQL, version 15 or newer, with their directory and their blobs. It is a module of its own, so that the library does not depend on a driver.
//
//	pglog.Init(ctx, options)           // once: the tables
//	log, err := pglog.Open(ctx, options)
//	defer log.Close()
//
// # Guarantees
//
//   - Append returns nil once the record is on the disks of the primary and of the synchronous standby that
//     synchronous_standby_names asks for. With Options.SingleMachine it is on the disk of the primary alone.
//   - One statement appends, and the row of the shard is its lock and its fence: it goes on from the newest term, the last position and the
//     last chain, or it stores nothing. A record is acknowledged by shard, term and position.
//   - Head is an update that waits for the standby as an append does. So all that a head tells survives the loss of the primary.
//   - Each statement that acknowledges sets synchronous_commit for itself and returns the settings that it ran with: synchronous_commit, fsync,
//     full_page_writes and synchronous_standby_names. If one has changed since Open, or if PostgreSQL warns during the statement, which is how it tells of a
//     wait for the standby that was cancelled, the outcome is unknown, and Options.Log is told once a minute.
//   - Open refuses a server with settings that can lose a record, and names the option that allows it.
//   - Calls that change a shard in the directory are as durable as an append, under the same checks, and so is the number of a new
//     incarnation. Beats and blobs alone commit with synchronous_commit = off. The registration of a snapshot makes its blobs durable, because
//     they are before it in PostgreSQL's log.
//   - A beat takes no lock of a shard, so a node beats while an append waits for the standby.
//   - A collection and a registration take the row of the shard, as an append does. A blob is there from the moment at which all its parts are, and never
//     in part, also over a crash in the midst of Put.
//
// # Limits
//
//   - The records that were in flight when synchronous_standby_names was emptied, at most one statement a lane, may be acknowledged
//     without a standby, because PostgreSQL lets them go in silence.
//   - A fail-over to a standby that lacks acknowledged records loses them. Position and chain show it at the next append. With
//     ANY k of n standbys, a promote must look at n-k+1 of them and take the one that is ahead. Patroni needs synchronous_mode_strict,
//     because otherwise it empties the names when the standby goes.
//   - A host name of the DSN that has several addresses is one host: after a time-out the next host is asked first, and not the next
//     address.
//   - A payload, a manifest, and the records of one Recover have at most 256 MiB. Payloads and blobs are stored as they are, without
//     compression.
//   - The id of a node and the name of a blob have at most 1,000 bytes and are valid UTF-8.
//   - Blobs are for stores of up to 1 GB, because more has not been measured.
//   - Truncate deletes rows, and vacuum makes their space usable again. A transaction elsewhere in the database that stays open, such as a
//     dump, an abandoned replication slot, or hot_standby_feedback, keeps dead rows, and appends become slower: beside 100,000 appends of 32 shards the row
//     of a shard was found in 548 pages and not in 2, and an append took ten times as long. Health tells of it.
//
// # Operation
//
// Init needs the right to create a schema. The role of Open needs usage of the schema and of its sequence incarnation, select on its table
// cluster, and select, insert, update and delete on shard, log, node, snapshot, blob and part. All nodes should use one role, because a claim then sees and may end the session of a client that was stopped in the midst of a
// statement and holds the row of the shard; otherwise the role needs pg_monitor and pg_signal_backend.
//
//   - Two nodes, PostgreSQL with a synchronous standby by name: no option.
//   - Services that replicate their storage (RDS, Cloud SQL, Aurora, Azure, Neon): Options.ReplicatedStorage. Neon has fsync off by design.
//   - Development: Options.SingleMachine.
//   - The standby is down: nothing is acknowledged, heads neither, until it is back or the operator names another. Beats go on.
//   - PostgreSQL fails over: Options.Log is told the system identifier and the timeline of both servers once a connection leads to
//     another server than the one before.
//   - The disk is full (SQLSTATE 53100): shardlog.ErrNoSpace, and the same append succeeds once there is room.
//   - A table or a right is missing (classes 22, 23 and 42): shardlog.ErrRefused. Every other error leaves the outcome unknown.
//
// A synchronous_standby_names with * in any place counts as one that takes any client, also inside a quoted name.
//
// # Connections
//
// A log has Options.Lanes connections for appends, one for Head and Claim, one for Beat, Look and Forget, and one for all other calls, each
// opened when it is first needed. application_name tells the node and the purpose: holdfast/NODE/append, holdfast/NODE/head,
// holdfast/NODE/beat, holdfast/NODE/read. They go to PostgreSQL
// itself; Open refuses a pooler. A connection goes to the first host of the DSN that takes writes. After a time-out
// the next host is asked first, because an old primary that was cut off takes connections too.
//
// All appends that wait at the same time share a statement, one record of each shard, up to 256 records or 4 MiB. The heads that
// callers wait for share one too.
package pglog
