package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// blank are the fields of answers with text of users that is no name: errors and stacks of handlers,
// reasons of verbs, values. Below reader they are left out, at any depth.
var blank = []string{
	"lastError", "error", "decodeError", "lastStack", "stack", "stopReason", "cancelReason", "reason", "note", "paused",
	"result", "raw", "arg", "data",
}

// told answers with a value in JSON as the role of the principal may see it. All answers of the routes of
// jobs, pools and dead letters that do not need the role reader go through it.
func (x *exchange) told(v any) error {
	shown, err := x.visible(v)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, shown)
}

// visible returns the part of a value of JSON that the role of the principal may see.
func (x *exchange) visible(v any) (any, error) {
	if x.who.Role >= auth.Reader {
		return v, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // counters may be greater than a float64 tells exactly
	var all any
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	return blanked(all), nil
}

// blanked leaves the fields of blank out of a value of JSON, in place.
func blanked(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = blanked(v[i])
		}
	case map[string]any:
		for name := range v {
			if slices.Contains(blank, name) {
				delete(v, name)
				continue
			}
			v[name] = blanked(v[name])
		}
	}
	return v
}

// another stands for an object that the principal's prefix hides.
const another = "(another object)"

// hide leaves the names of objects that the principal's prefix hides out of an answer of why.
func (x *exchange) hide(a why.Answer) why.Answer {
	if x.who.Prefix == "" {
		return a
	}
	if !x.who.Sees(a.ID.Name) {
		a.ID.Class, a.ID.Name, a.Task, a.Name, a.Error = "", another, "", "", ""
	}
	switch a.Code { // those with an object as the name
	case why.DeadlockRefused, why.TurnWaits, why.WaitsForChild:
		if _, name, _ := strings.Cut(a.Name, "/"); !x.who.Sees(name) {
			a.Name, a.Error = another, ""
		}
	}
	if a.Code == why.DeadlockRefused {
		a.Error = "" // it names all objects of the circle
	}
	a.Because, a.Also = x.hideAll(a.Because), x.hideAll(a.Also)
	return a
}

func (x *exchange) hideAll(all []why.Answer) []why.Answer {
	out := slices.Clone(all)
	for i := range out {
		out[i] = x.hide(out[i])
	}
	return out
}
