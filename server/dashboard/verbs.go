package dashboard

// Verb is a verb that the principal may use.
type Verb struct {
	Name, Help string
	// Do is the address of the form that runs it at once; without a Route: it asks first.
	Do  Link
	Ask Link // the page that asks
}

// Ask is the page that asks for the argument of a verb, or whether it is meant.
type Ask struct {
	Verb, Help string
	Of         string // the name of the job, task or letter that it acts on
	Back       Link   // the page of that
	Do         Link
	Fields     []Field
	Final      bool   // it cannot be undone
	Key        string // of the form, so that a second press of its button does nothing; empty: there is none
}

func (a Ask) page() (name, title string) { return "ask", a.Verb + " " + a.Of }

// Field is a field of a form.
type Field struct {
	Name, Label string
	JSON        bool   // it takes JSON; else text
	Form        string // an example
	Value       string // the text that it begins with
}
