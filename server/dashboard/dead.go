package dashboard

import (
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Dead is a page of dead letters.
type Dead struct {
	Class, Name, Kind, Reason, Error string // the filters
	Kinds                            []string
	Texts                            bool // the principal may see errors and reasons, and filter by them
	Letters                          []object.DeadLetter
	Next                             string // the parameter after of the next page; empty: this is the last
	Damaged                          bool   // the page ends before a letter that cannot be read
	LastError                        string // names that letter
	Verbs                            []Verb // over all letters that match
}

func (Dead) page() (name, title string) { return "dead", "Dead letters" }

// Letter is the page of a dead letter.
type Letter struct {
	object.DeadLetter
	Work  Link // the page of the work, or of its object
	Verbs []Verb
}

func (l Letter) page() (name, title string) {
	return "letter", "Dead letter of " + Name(l.ID.Class) + "/" + Name(l.ID.Name)
}

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

// BulkRun is the page of a verb over many letters that runs, or has ended.
type BulkRun struct {
	Do                              string
	Matches, Done, Skipped, Refused int
	LastError                       string
	Ended                           bool
	Problem                         string // why it has ended early
	Stop                            Link   // of the form that stops it
}

func (b BulkRun) page() (name, title string) { return "bulkrun", b.Do + " dead letters" }
