package dashboard

import "time"

// Bulk is the page that asks whether a verb over many letters is meant.
type Bulk struct {
	Do      string // replay or discard
	Matches int
	More    bool // there are more than that
	// Damaged is how many letters cannot be read, and LastError names the last of them.
	Damaged   int
	LastError string
	At        time.Time
	Token     string // of the count
	Run       Link   // of the form
	Back      Link
}

func (b Bulk) page() (name, title string) { return "bulk", b.Do + " dead letters" }

// BulkRun is the page of a verb over many jobs or letters that runs, or has ended.
type BulkRun struct {
	ID                              string
	State                           string // running, done, stopped or unreadable
	Do                              string // the verb
	Of                              string // jobs or dead letters
	Filter                          string // which of them
	Who                             string // the principal
	Matches, Done, Skipped, Refused int
	LastError                       string
	Counted, Began, Ended           time.Time
	Problem                         string // why it has ended early, or cannot be read
	Stop                            Link   // of the form that stops it
}

func (b BulkRun) page() (name, title string) { return "bulkrun", b.Do + " " + b.Of }

// BulkRuns is a page of the verbs over many that run, or have ended in the last seven days.
type BulkRuns struct {
	Running bool // only those that run
	Runs    []BulkRun
	Next    string // the parameter after of the next page; empty: this is the last
}

func (BulkRuns) page() (name, title string) { return "bulkruns", "Verbs over many" }
