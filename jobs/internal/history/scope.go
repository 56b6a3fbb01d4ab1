package history

import (
	"fmt"
	"slices"
)

// Scopes divides entries into those of each scope, in order.
func Scopes(entries []Entry) map[string][]Entry {
	scopes := make(map[string][]Entry)
	for _, e := range entries {
		scopes[e.Scope] = append(scopes[e.Scope], e)
	}
	return scopes
}

// Reader reads the entries of one scope in order. One goroutine at a time uses it.
type Reader struct {
	Path    string
	entries []Entry
	read    int // entries that were read, or passed over
	patches []string
}

// NewReader returns a Reader of entries, which are those of the scope at path.
func NewReader(path string, entries []Entry) Reader { return Reader{Path: path, entries: entries} }

// Peek returns the next entry, or nil at the end. It passes over patches that the code does
// not ask for any more, and over the entry Undo.
func (r *Reader) Peek() *Entry {
	for ; r.read < len(r.entries); r.read++ {
		switch e := &r.entries[r.read]; e.Kind {
		case Patch:
			r.patches = append(r.patches, e.Name)
		case Undo:
		default:
			return e
		}
	}
	return nil
}

// Next returns the next entry, which must be of one of the kinds and have the name, and
// reads it. It is nil at the end of the history. The error is a *Divergence, and then
// nothing is read.
func (r *Reader) Next(name string, kinds ...Kind) (*Entry, error) {
	e := r.Peek()
	if e == nil {
		return nil, nil
	}
	if e.Name != name || !slices.Contains(kinds, e.Kind) {
		return nil, &Divergence{Scope: r.Path, Place: r.read + 1, Recorded: Operation(e.Kind, e.Name), Asked: Operation(kinds[0], name), name: name, recorded: e.Name}
	}
	r.patches = nil
	r.read++
	return e, nil
}

// More reports whether entries follow, patches among them.
func (r *Reader) More() bool { return r.read < len(r.entries) || len(r.patches) > 0 }

// Patched reports whether the change is recorded at this place of the history. atEnd is
// true if nothing is recorded from here on, so that the code may record it.
func (r *Reader) Patched(change string) (recorded, atEnd bool) {
	atEnd = r.Peek() == nil
	if i := slices.Index(r.patches, change); i >= 0 {
		r.patches = slices.Delete(r.patches, i, i+1)
		return true, false
	}
	return false, atEnd
}

// Last is the entry that was read last, or an entry Undo that was passed over last, or nil.
func (r *Reader) Last() *Entry {
	for i := r.read - 1; i >= 0; i-- {
		if r.entries[i].Kind != Patch {
			return &r.entries[i]
		}
	}
	return nil
}

// Left returns the divergence of code that has ended before its history, or nil.
func (r *Reader) Left() error {
	e := r.Peek()
	if e == nil {
		return nil
	}
	return &Divergence{Scope: r.Path, Place: r.read + 1, Recorded: Operation(e.Kind, e.Name)}
}

// Divergence tells where code does not follow its history.
type Divergence struct {
	Scope    string // its path
	Place    int    // of the entry in the scope, from 1
	Recorded string // the entry, for example: step "charge"
	Asked    string // operation of the code; empty: it ended

	name, recorded string // of the operation, and of the entry
}

func (d *Divergence) Error() string {
	asked := "the code asked for " + d.Asked
	if d.Asked == "" {
		asked = "the code ended before it"
	}
	text := fmt.Sprintf("the code does not follow the history: entry %d of %s is %s, %s.", d.Place, ScopeName(d.Scope), d.Recorded, asked)
	renamed := fmt.Sprintf("f %q was renamed, give it back its name.", d.recorded)
	switch {
	case d.name != "" && d.recorded != "":
		return fmt.Sprintf("%s If %q is new, guard it with workflow.Patched(ctx, \"…\"); i%s", text, d.name, renamed)
	case d.name != "":
		return fmt.Sprintf("%s If %q is new, guard it with workflow.Patched(ctx, \"…\").", text, d.name)
	case d.recorded != "":
		return text + " I" + renamed
	}
	return text
}
