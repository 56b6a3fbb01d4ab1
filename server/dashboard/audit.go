package dashboard

import "time"

// Audit is a page of the audit of a day.
type Audit struct {
	Day, Who, Verb string // the filters; Day is never empty
	Lines          []AuditLine
	Next           string // the parameter after of the next page; empty: this is the last
}

func (a Audit) page() (name, title string) { return "audit", "Audit of " + a.Day }

// AuditLine is an entry of the audit.
type AuditLine struct {
	At              time.Time
	Who, Name, From string // id and name of the principal, and its address
	Verb            string
	Class, Object   string // the target, if the entry has one
	Part            string // a task, or the number of a dead letter
	Detail          string // filter, route or recoveries
	DryRun          bool
	Count           int
	Outcome         string
	Problem         string
}
