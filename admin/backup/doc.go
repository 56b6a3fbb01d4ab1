// Package backup keeps copies of stores in a repository, checks them, and makes stores of them
// again.
//
// A repository is a directory. Files of equal content are kept once, and tables of a store never
// change, so each backup after the first adds new tables alone. Nothing is compressed, because
// tables are compressed already.
//
//   - A snapshot holds every commit that was acknowledged before Create began (B2).
//   - Making one never changes the outcome of a commit: a failure is an error of Create (B3).
//   - A snapshot counts as a backup once Verify has read all of it again and found nothing (B1).
//     Snapshot.Verified tells when.
//   - A restored store is dormant, with an id of its own and numbers that its source has not given
//     out. storage.Wake wakes it.
//
// # The directory
//
//	HOLDFAST-REPOSITORY          "holdfast repository\nformat 1\n"
//	LOCK                         held by Create, Remove and Clean, shared by Verify and Restore
//	blobs/<SHA-256>              the content of a file
//	blobs/copy.new               a file that Create copies; one of a Create that was cut off is written over, and Clean removes it
//	snapshots/<name>.json        {"snapshot":{…},"sha256":"…"}: the files of a store, by their content
//	snapshots/<name>.verified    when Verify found nothing, and the SHA-256 of the snapshot's file
//	scratch/                     a store that Verify puts together
//
// # The order of steps
//
// Each file is written under another name, synced and renamed, and its directory is synced. A blob
// is durable before a snapshot names it, and a snapshot is gone, durably, before its blobs go. So
// a crash leaves blobs that nothing names at most, and Clean removes those.
//
// A repository is not trusted: names in it are checked before they are used as names of files,
// and each byte is compared with its hash when it is read.
package backup
