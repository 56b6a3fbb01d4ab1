package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/object"
)

// backupParams choose a page of snapshots.
var backupParams = []param{afterParam, limitParam}

// backupRoutes are the routes of backups of the whole store.
func (s *Server) backupRoutes() []route {
	return []route{
		{method: "GET", pattern: "/v1/backups", access: admin, answer: backupPage{}, handle: (*exchange).listBackups, params: backupParams,
			help: "List the snapshots of the repository, the newest first, with the time at which each was verified or why it does not count as a backup; the backup that is under way, and the newest that has ended in this process."},
		{method: "POST", pattern: "/v1/backups", access: admin, answer: backupRun{}, handle: (*exchange).beginBackup,
			help: "Begin a backup of the store, and answer with 202 at once: GET tells how far it is and how it has ended. One runs at a time, and another is refused with 409."},
	}
}

// backupPage is a page of the list of snapshots.
type backupPage struct {
	Running *backupRun `json:"running,omitempty"` // the one that is under way
	Last    *backupRun `json:"last,omitempty"`    // the newest that has ended in this process
	// Newest is when the newest backup of the store was begun that is verified. It is not there if there is none.
	Newest    time.Time        `json:"newest,omitzero"`
	Snapshots []listedSnapshot `json:"snapshots"`
	Damaged   string           `json:"damaged,omitempty"` // the files of snapshots that cannot be read
	Next      string           `json:"next,omitempty"`
}

// listedSnapshot is a snapshot of the repository.
type listedSnapshot struct {
	backup.Snapshot
	// Other says that it is of another store, so it is no backup of this one.
	Other bool `json:"other,omitempty"`
	// Unverified says why it does not count as a backup. It is empty if it was verified.
	Unverified string `json:"unverified,omitempty"`
}

// backupRun is a backup that this process has begun.
type backupRun struct {
	ID    string      `json:"id"` // of its entry in the audit
	Who   string      `json:"who"`
	Name  string      `json:"name,omitempty"`
	Began time.Time   `json:"began"`
	State backupState `json:"state"`
	// Snapshot and Bytes are its name and size in the repository, from the state verifying on. Bytes are those of all
	// files, of which the repository has most from earlier ones.
	Snapshot string    `json:"snapshot,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Ended    time.Time `json:"ended,omitzero"`
	Seconds  float64   `json:"seconds,omitempty"` // from its begin to its end
	Error    string    `json:"error,omitempty"`   // why it has failed
	Findings []string  `json:"findings,omitempty"`
}

// backupState is how far a backup is.
type backupState string

const (
	copying   backupState = "copying"
	verifying backupState = "verifying"
	verified  backupState = "verified"
	failed    backupState = "failed"
)

// noBackups is the problem of a server without a repository.
func noBackups() *problem {
	return &problem{Type: "no-backups", Title: "The server makes no backups.", Status: http.StatusNotFound, Outcome: none,
		Detail: "set Config.Backups to a repository"}
}

func (x *exchange) listBackups() error {
	page, err := x.backupPage()
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, page)
}

// backupPage returns the snapshots that the parameters after and limit choose.
func (x *exchange) backupPage() (page backupPage, err error) {
	if x.backups == nil {
		return page, noBackups()
	}
	limit, err := x.limit()
	if err != nil {
		return page, err
	}
	before, err := x.after()
	if err != nil {
		return page, err
	}
	ctx, cancel, err := x.within()
	if err != nil {
		return page, err
	}
	defer cancel()
	seen, err := x.backups.read(ctx)
	if err != nil {
		return page, err
	}
	page.Running, page.Last = x.backups.runs()
	page.Snapshots = []listedSnapshot{}
	if newest := seen.newest(x.backups.store.ID()); newest != nil {
		page.Newest = newest.Begun
	}
	if seen.err != nil {
		page.Damaged = seen.err.Error()
	}
	for _, s := range slices.Backward(seen.list) {
		if before != "" && s.Name >= before {
			continue
		}
		if len(page.Snapshots) == limit {
			page.Next = cursor(page.Snapshots[limit-1].Name)
			break
		}
		page.Snapshots = append(page.Snapshots, x.backups.listed(s, page.Running))
	}
	return page, nil
}

func (x *exchange) beginBackup() error {
	run, err := x.newBackup()
	if err != nil {
		return err
	}
	return x.json(http.StatusAccepted, run)
}

// newBackup begins a backup, once its entry in the audit is durable.
func (x *exchange) newBackup() (run backupRun, err error) {
	if x.backups == nil {
		return run, noBackups()
	}
	if x.serving.ending.Err() != nil {
		return run, object.ErrShutdown
	}
	audit, err := x.beginAudit(auditEntry{Verb: "backup"})
	if err != nil {
		return run, err
	}
	run = backupRun{ID: audit.id, Who: x.who.ID, Name: x.who.Name, Began: x.host.Seams().Clock.Now().UTC(), State: copying}
	if err := x.backups.begin(run); err != nil {
		audit.end(err, 0)
		return run, err
	}
	b := x.backups // x is over when its handler returns
	x.spawn(func() { b.run(audit) })
	return run, nil
}

// backupRunning is the problem of a second backup.
func backupRunning(run *backupRun) *problem {
	return &problem{Type: "backup-running", Title: "A backup is under way.", Status: http.StatusConflict, Outcome: none,
		Detail: fmt.Sprintf("it is %s, which %s began at %s", run.ID, run.Who, run.Began.Format(time.RFC3339))}
}
