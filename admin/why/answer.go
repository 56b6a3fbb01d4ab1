package why

import (
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// Answer is why an object, a job or a task does not run now, or that it runs. Its JSON is for
// tools, and fields may be added to it.
type Answer struct {
	// ID is the object that the answer is about; zero: the whole store. An answer about a task
	// has its partition as ID, and its id, such as 0-17, as Task.
	ID   storage.ID `json:"id,omitzero"`
	Task string     `json:"task,omitempty"`

	Code Code `json:"code"`
	// Text is a sentence made of words of this package, numbers and times. No name, value or
	// error of a user stands in it, so it may be shown to those that may read none.
	Text string `json:"text"`
	// Name is the name that belongs to the code: of a method, a key, a queue, a signal, a step or
	// a child. It is a user's text.
	Name string `json:"name,omitempty"`
	// Error is the error, or the reason of a verb, that belongs to the code. It is a user's text.
	Error string `json:"error,omitempty"`
	// Since is when the reason began, Until when it ends at the latest, and Next when the object
	// goes on if nothing else happens. Zero means that this is unknown, or never.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Next  time.Time `json:"next,omitzero"`
	// Because are the answers for those that it waits for, at most 16 deep.
	Because []Answer `json:"because,omitempty"`
	// Also are the other reasons that hold, in the order of Codes. Only a headline has them.
	Also []Answer `json:"also,omitempty"`
	// Do says how to end the reason.
	Do []string `json:"do,omitempty"`
}

// Holds returns the codes of the answer: the headline and those of Also.
func (a Answer) Holds() []Code {
	codes := []Code{a.Code}
	for _, other := range a.Also {
		codes = append(codes, other.Code)
	}
	return codes
}

// answer applies the rules to the facts, for the headline. It is a pure function.
func (f *facts) answer() Answer {
	if f.unread {
		return withAlso(f.reasons(rules[:hostRules]))
	}
	return withAlso(f.reasons(rules))
}

// withAlso is the first answer with the others.
func withAlso(all []Answer) Answer {
	a := all[0]
	if len(all) > 1 {
		a.Also = all[1:]
	}
	return a
}

// linked is the answer for one that another waits for.
func (f *facts) linked() []Answer {
	if f == nil {
		return nil
	}
	return f.reasons(rules[hostRules:])[:1]
}

// reasons are the rules of the table that hold, or Unexplained if none does.
func (f *facts) reasons(table []rule) (all []Answer) {
	all = holding(table, f)
	if len(all) == 0 {
		all = []Answer{unexplained.about(f, Answer{Text: "No reason is known."})}
	}
	return all
}

// holding are the rules of a table that hold. The rules behind Unreadable ask for facts that are missing then.
func holding(table []rule, f *facts) (all []Answer) {
	for _, r := range table {
		if a, ok := r.holds(f); ok {
			all = append(all, r.about(f, a))
		}
		if r.code == Unreadable && f.damage != nil {
			break
		}
	}
	return all
}
