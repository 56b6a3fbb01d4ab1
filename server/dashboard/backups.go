package dashboard

import "time"

// Backups is a page of the snapshots in the repository of the server.
type Backups struct {
	Running, Last *BackupRun // under way, and the newest that has ended; nil: there is none
	Newest        time.Time  // when the newest verified backup of the store was begun
	Snapshots     []Snapshot // the newest first
	Damaged       string     // the files that cannot be read
	Next          string     // the parameter after of the next page; empty: this is the last
}

func (Backups) page() (name, title string) { return "backups", "Backups" }

// BackupRun is a backup that this process has begun.
type BackupRun struct {
	Who          string
	Began, Ended time.Time
	State        string // copying, verifying, verified or failed
	Snapshot     string // its name, if it was made
	Took         time.Duration
	Error        string
	Findings     []string
}

// Snapshot is one snapshot of the repository.
type Snapshot struct {
	Name            string
	Begun, Verified time.Time
	Files           int
	Bytes           uint64
	Unverified      string // why it does not count as a backup
	Other           bool   // it is of another store
}
