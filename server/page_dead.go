package server

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// deadPages are the pages of dead letters.
func (s *Server) deadPages() []route {
	seq := param{name: "seq", help: "the number of the letter"}
	replace := param{name: "replace", kind: flag, help: "1: a replayed alarm takes the place of the one that its object has set meanwhile"}
	return []route{
		shows("dead", viewer, (*exchange).deadPage, deadParams...),
		shows("letter", viewer, (*exchange).letterPage, ofClass, ofName, seq),
		shows("replay", operator, (*exchange).replayPage, ofClass, ofName, seq),
		acts("replay", operator, (*exchange).replayForm, ofClass, ofName, seq, replace),
		shows("discard", operator, (*exchange).discardPage, ofClass, ofName, seq),
		acts("discard", operator, (*exchange).discardForm, ofClass, ofName, seq),
	}
}

func (x *exchange) deadPage() error {
	list, err := x.letters()
	if err != nil {
		return err
	}
	if list, err = shown(x, list); err != nil {
		return err
	}
	p := dashboard.Dead{
		Class: x.param("class"), Name: x.param("name"), Kind: x.param("kind"), Reason: x.param("reason"), Error: x.param("error"),
		Kinds: kindsWith(x.param("kind")), Texts: x.can(auth.Reader), Next: list.Next, Damaged: list.Damaged > 0, LastError: list.LastError,
	}
	for _, l := range list.Letters {
		p.Letters = append(p.Letters, l.whole())
	}
	if x.can(auth.Operator) {
		query := url.Values{}
		for _, name := range bulkFilters {
			if value := x.param(name.name); value != "" {
				query.Set(name.name, value)
			}
		}
		for _, do := range []string{"replay", "discard"} {
			query.Set("do", do)
			to, err := dashboard.Link{Route: "bulk", Query: query}.With() // a copy
			if err != nil {
				return err
			}
			p.Verbs = append(p.Verbs, dashboard.Verb{Name: do, Help: "count the letters that match, and " + do + " them", Ask: to})
		}
	}
	return x.page(p)
}

// kindsWith are the kinds to choose from: those of the library, and that of the filter, which may be of a job type of
// the user.
func kindsWith(kind string) []string {
	if kind == "" || slices.Contains(letterKinds, kind) {
		return letterKinds
	}
	return append(slices.Clone(letterKinds), kind)
}

// whole is the letter with its object and number in it.
func (l letter) whole() object.DeadLetter {
	d := l.DeadLetter
	d.ID, d.Seq = l.ID, l.Seq
	return d
}

// letterOf is the letter that the parameters name.
func (x *exchange) letterOf() (storage.ID, uint64, error) {
	id, err := x.id()
	if err != nil {
		return id, 0, err
	}
	seq, err := strconv.ParseUint(x.param("seq"), 10, 64)
	if err != nil {
		return id, 0, notFound()
	}
	return id, seq, nil
}

func letterLink(route string, id storage.ID, seq uint64) dashboard.Link {
	return dashboard.Link{Route: route, Query: url.Values{"class": {id.Class}, "name": {id.Name}, "seq": {strconv.FormatUint(seq, 10)}}}
}

func (x *exchange) letterPage() error {
	id, seq, err := x.letterOf()
	if err != nil {
		return err
	}
	d, err := x.host.DeadLetter(x.r.Context(), id, seq)
	if err != nil {
		return err
	}
	seen, err := shown(x, letter{d.ID, d.Seq, d})
	if err != nil {
		return err
	}
	p := dashboard.Letter{DeadLetter: seen.whole(), Work: x.pageOf(id, taskOf(d))}
	if x.can(auth.Operator) {
		p.Verbs = append(p.Verbs, dashboard.Verb{Name: "replay", Help: "make the work due again, with all its attempts", Do: letterLink("replay", id, seq)})
		if d.Kind == object.DeadAlarm {
			p.Verbs = append(p.Verbs, dashboard.Verb{Name: inPlace, Help: "make the work due again, also if the object has set another alarm", Ask: letterLink("replay", id, seq)})
		}
		p.Verbs = append(p.Verbs, dashboard.Verb{Name: "discard", Help: "give the work up for good", Ask: letterLink("discard", id, seq)})
	}
	return x.page(p)
}

// taskOf is the id of the task that a letter is of; empty if it is of none.
func taskOf(d object.DeadLetter) string {
	var data struct {
		Task workerpool.TaskID `json:"task"`
	}
	if d.Kind != workerpool.DeadTask || json.Unmarshal(d.Data, &data) != nil {
		return ""
	}
	return data.Task.String()
}

// inPlace is the replay that takes the place of an alarm.
const inPlace = "replay in place of its alarm"

// replayPage asks whether a replay may take the place of the alarm that the object has set meanwhile.
func (x *exchange) replayPage() error {
	return x.askLetter("replay", dashboard.Ask{Verb: inPlace, Help: "make the work of one dead letter due again; an alarm that its object has set meanwhile is lost"}, "replace", "1")
}

// askLetter asks about the letter that the parameters name, before a verb that cannot be undone. The form leads to a
// route with the pairs of Link.With.
func (x *exchange) askLetter(route string, p dashboard.Ask, pairs ...any) error {
	id, seq, err := x.letterOf()
	if err != nil {
		return err
	}
	if _, err := x.host.DeadLetter(x.r.Context(), id, seq); err != nil {
		return err
	}
	p.Final, p.Of = true, "dead letter "+strconv.FormatUint(seq, 10)+" of "+dashboard.Name(id.Class)+"/"+dashboard.Name(id.Name)
	p.Back = letterLink("letter", id, seq)
	if p.Do, err = letterLink(route, id, seq).With(pairs...); err != nil {
		return err
	}
	return x.page(p)
}

func (x *exchange) replayForm() error {
	id, seq, err := x.letterOf()
	if err != nil {
		return err
	}
	return x.takeLetter(id, oneLetter{id.Class, id.Name, seq, x.flag("replace")}, true)
}

func (x *exchange) discardPage() error {
	return x.askLetter("discard", dashboard.Ask{Verb: "discard", Help: "give the work of one dead letter up for good; the run of a workflow is terminated"})
}

func (x *exchange) discardForm() error {
	id, seq, err := x.letterOf()
	if err != nil {
		return err
	}
	return x.takeLetter(id, oneLetter{Class: id.Class, Name: id.Name, Seq: seq}, false)
}

// takeLetter replays or discards a letter, and goes to those that are left of its class.
func (x *exchange) takeLetter(id storage.ID, l oneLetter, replay bool) error {
	if err := x.take(l, replay); err != nil {
		return err
	}
	return x.see("dead", "class", id.Class)
}
