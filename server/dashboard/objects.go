package dashboard

import (
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Classes is the page of all classes.
type Classes struct{ Classes []Class }

// Class is one class with how many of its objects have each label.
type Class struct {
	Name     string
	Job      bool // a job type owns the objects
	Alarms   bool
	Labels   []LabelCount
	Complete bool // false while the objects are being counted
}

// LabelCount is how many objects have a label.
type LabelCount struct {
	Label string
	Count int
}

func (Classes) page() (name, title string) { return "classes", "Classes" }

// Objects is a page of the objects of a class.
type Objects struct {
	Class         Class
	Label, Prefix string // the filters
	Objects       []object.ObjectInfo
	Next          string // the parameter after of the next page; empty: this is the last
}

func (o Objects) page() (name, title string) { return "objects", Name(o.Class.Name) }

// Object is the page of one object.
type Object struct {
	ID    storage.ID
	State object.Inspection // without Keys
	Why   why.Answer
	// Turns are the turns under way, that which holds the object first and then those that are lent out, the oldest first;
	// MoreTurns says that there are more. Mailbox is how many wait.
	Turns     []Turn
	MoreTurns bool
	Mailbox   object.Mailbox
	// Plain says that neither a job type nor the library owns the object, so that its keys are
	// shown.
	Plain bool
	// Keys is a page of the keys without their values; MoreKeys says that there are more, which the principal may not
	// list.
	Keys     []object.KeyInfo
	MoreKeys bool
	Prefix   string // the filter of Keys
	Next     string // the parameter after of the next page of keys
	Values   bool   // the principal may see the values
	// Wake and Delete say that the principal may do so.
	Wake, Delete bool
}

// Turn is a turn of an object that is under way. A name that the principal may not see is a word in its place.
type Turn struct {
	object.TurnState
	Lent bool
}

func (o Object) page() (name, title string) {
	return "object", Name(o.ID.Class) + "/" + Name(o.ID.Name)
}

// Value is the page of one value of an object.
type Value struct {
	ID        storage.ID
	Key       string
	SizeBytes int
	Large     bool   // it was not read, because that was not asked for; the fields below are empty then
	Fold      *Fold  // if the value is JSON that can be folded
	JSON      string // if it is other JSON
	Hex       string // a dump of the value if it is none
}

func (v Value) page() (name, title string) { return "value", Name(v.Key) }

// Delete is the page that asks whether an object is to be deleted.
type Delete struct{ ID storage.ID }

func (d Delete) page() (name, title string) {
	return "delete", "Delete " + Name(d.ID.Class) + "/" + Name(d.ID.Name) + "?"
}
