package dashboard

import "github.com/holdfast-dev/holdfast/object"

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
