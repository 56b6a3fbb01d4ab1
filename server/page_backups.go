package server

import (
	"time"

	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// backupPages are the page of the backups, and the form that begins one.
func (s *Server) backupPages() []route {
	return []route{
		shows("backups", admin, (*exchange).showBackups, backupParams...),
		acts("backup", admin, (*exchange).backupForm),
	}
}

// showBackups shows the snapshots. The browser asks again each second while a backup is under way, also without script.
func (x *exchange) showBackups() error {
	list, err := x.backupPage()
	if err != nil {
		return err
	}
	p := dashboard.Backups{Running: shownRun(list.Running), Last: shownRun(list.Last), Newest: list.Newest, Damaged: list.Damaged, Next: list.Next}
	for _, s := range list.Snapshots {
		p.Snapshots = append(p.Snapshots, dashboard.Snapshot{
			Name: s.Name, Begun: s.Begun, Verified: s.Verified, Files: s.Files, Bytes: uint64(s.Bytes), Unverified: s.Unverified, Other: s.Other,
		})
	}
	if p.Running != nil {
		x.w.Header().Set("Refresh", "1")
	}
	return x.page(p)
}

// shownRun is a backup for the page; nil if there is none.
func shownRun(run *backupRun) *dashboard.BackupRun {
	if run == nil {
		return nil
	}
	who := run.Name
	if who == "" {
		who = run.Who
	}
	return &dashboard.BackupRun{
		Who: who, Began: run.Began, Ended: run.Ended, State: string(run.State), Snapshot: run.Snapshot,
		Took: time.Duration(run.Seconds * float64(time.Second)), Error: run.Error, Findings: run.Findings,
	}
}

func (x *exchange) backupForm() error {
	if _, err := x.newBackup(); err != nil {
		return err
	}
	return x.see("backups")
}
