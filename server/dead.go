package server

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

// letterKinds are the kinds of the dead letters of the library.
var letterKinds = []string{object.DeadAlarm, object.DeadMessage, workerpool.DeadTask, timers.DeadTimer, workflow.DeadRun}

// bulkFilters are the parameters of the filter of dead letters, and deadParams those of their list.
var (
	bulkFilters = []param{
		classParam, {name: "name", help: "only of the object with this name in class"},
		{name: "kind", help: "only of this kind: " + strings.Join(letterKinds, ", ")},
		{name: "reason", help: "only those with a reason that begins with it; it needs the role reader"},
		{name: "error", help: "only those with a last error that begins with it; it needs the role reader"},
		{name: "since", help: "only those that died at this time or later, as RFC 3339 has it"},
		{name: "before", help: "only those that died before this time"},
	}
	deadParams = append(slices.Clone(bulkFilters), afterParam, limitParam)
)

// deadRoutes are the routes of dead letters and recoveries.
func (s *Server) deadRoutes() []route {
	const show = "Show one dead letter; below reader as in the list."
	return []route{
		{method: "GET", pattern: "/v1/dead", access: viewer, answer: letterPage{}, handle: (*exchange).listDead,
			params: deadParams,
			help:   "List dead letters; below reader without reasons, errors, stacks, arguments and data. A page ends before a letter that cannot be read, which it counts as damaged, and next goes on behind it."},
		{method: "GET", pattern: "/v1/dead/{class}/{name}/{seq}", access: viewer, answer: letter{}, handle: (*exchange).showDead,
			help: show},
		{method: "GET", pattern: "/v1/letter", access: viewer, answer: letter{}, handle: (*exchange).showDead,
			params: []param{{name: "class", help: "of the object"}, {name: "name", help: "of the object"}, {name: "seq", help: "the number of the letter"}},
			help:   show},
		{method: "POST", pattern: "/v1/dead/replay", access: operator, request: oneLetter{}, handle: (*exchange).replayDead,
			help: "Make the work of one dead letter due again, with all its attempts. An alarm that its object has set meanwhile stays, and the answer is 409, unless replace is true."},
		{method: "POST", pattern: "/v1/dead/discard", access: operator, request: oneLetter{}, handle: (*exchange).discardDead,
			help: "Give the work of one dead letter up for good; the run of a workflow is terminated."},
		{method: "GET", pattern: "/v1/recoveries", access: viewer, answer: recoveries{}, handle: (*exchange).listRecoveries,
			params: []param{{name: "lines", kind: flag, help: "1: with the newest lines; it needs the role reader"}, limitParam},
			help:   "Count the recoveries since the host was opened, by cause and class."},
	}
}

// letter is a dead letter with its object and its number, which the stored form has in its key.
type letter struct {
	ID  storage.ID `json:"id"`
	Seq uint64     `json:"seq"`
	object.DeadLetter
}

// letterPage is a page of dead letters.
type letterPage struct {
	Letters []letter `json:"letters"`
	Next    string   `json:"next,omitempty"`
	// Damaged is 1 if the page ends before a letter that cannot be read: LastError names it, and Next goes on behind it.
	Damaged   int    `json:"damaged,omitempty"`
	LastError string `json:"lastError,omitempty"`
}

// deadFilter chooses dead letters.
type deadFilter struct {
	Class  string    `json:"class,omitempty"`
	Name   string    `json:"name,omitempty"`
	Kind   string    `json:"kind,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Error  string    `json:"error,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Before time.Time `json:"before,omitzero"`
}

// options are the options of the filter, or the first mistake in it.
func (f *deadFilter) options() (object.DeadLettersOptions, error) {
	o := object.DeadLettersOptions{Class: f.Class, Name: f.Name, Kind: f.Kind, Reason: f.Reason, Error: f.Error, DiedSince: f.Since, DiedBefore: f.Before}
	switch {
	case f.Name != "" && f.Class == "":
		return o, badRequest("there is a name without a class")
	case !f.Before.IsZero() && !f.Since.Before(f.Before):
		return o, badRequest("since must be an earlier time than before")
	}
	return o, nil
}

func (x *exchange) listDead() error {
	page, err := x.letters()
	if err != nil {
		return err
	}
	return x.told(page)
}

// filter is the filter of dead letters of the parameters of bulkFilters.
func (x *exchange) filter() (o object.DeadLettersOptions, err error) {
	f := deadFilter{Class: x.param("class"), Name: x.param("name"), Kind: x.param("kind"), Reason: x.param("reason"), Error: x.param("error")}
	if f.Reason != "" || f.Error != "" { // else a viewer could find out a text letter by letter
		if err := x.needs(auth.Reader); err != nil {
			return o, err
		}
	}
	if f.Since, err = x.time("since"); err != nil {
		return o, err
	}
	if f.Before, err = x.time("before"); err != nil {
		return o, err
	}
	return f.options()
}

// letters returns the dead letters that the parameters of deadParams choose.
func (x *exchange) letters() (page letterPage, err error) {
	o, err := x.filter()
	if err != nil {
		return page, err
	}
	if o.After, err = base64.RawURLEncoding.DecodeString(x.param("after")); err != nil {
		return page, object.ErrBadCursor
	}
	if o.Limit, err = x.limit(); err != nil {
		return page, err
	}
	found, damaged, err := x.deadLetters(o)
	if err != nil {
		return page, err
	}
	page = letterPage{Letters: []letter{}, Next: base64.RawURLEncoding.EncodeToString(found.Next)}
	if damaged != nil {
		page.Damaged, page.LastError = 1, damaged.Error()
	}
	for _, d := range found.Letters {
		page.Letters = append(page.Letters, letter{d.ID, d.Seq, d})
	}
	return page, nil
}

// deadLetters is a page of dead letters, and the error of a letter that cannot be read, before which the page ends.
func (x *exchange) deadLetters(o object.DeadLettersOptions) (page object.DeadLetterPage, damaged, err error) {
	page, err = x.host.DeadLetters(x.r.Context(), o)
	if errors.Is(err, storage.ErrCorrupt) && len(page.Next) > 0 {
		damaged, err = err, nil
	}
	return page, damaged, err
}

// time returns a parameter that is a time; zero if it is not there.
func (x *exchange) time(name string) (time.Time, error) {
	s := x.param(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, badRequest("the parameter " + name + " takes a time such as 2006-01-02T15:04:05Z")
	}
	return t, nil
}

func (x *exchange) showDead() error {
	id, text := x.target("class", "name"), x.path("seq")
	if x.route.param("seq") != nil {
		id, text = storage.ID{Class: x.param("class"), Name: x.param("name")}, x.param("seq")
	}
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return notFound()
	}
	d, err := x.host.DeadLetter(x.r.Context(), id, seq)
	if err != nil {
		return err
	}
	return x.told(letter{d.ID, d.Seq, d})
}

// oneLetter names a dead letter.
type oneLetter struct {
	Class string `json:"class"`
	Name  string `json:"name"`
	Seq   uint64 `json:"seq"`
	// Replace lets a replayed alarm take the place of the one that its object has set meanwhile.
	Replace bool `json:"replace,omitempty"`
}

func (x *exchange) replayDead() error {
	var l oneLetter
	if err := x.decode(&l); err != nil {
		return err
	}
	return x.taken(x.take(l, true))
}

// The verbs of dead letters.
const (
	replayVerb  = "replay"
	discardVerb = "discard"
)

// take replays or discards a letter.
func (x *exchange) take(l oneLetter, replay bool) error {
	ctx, cancel, err := x.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	id := storage.ID{Class: l.Class, Name: l.Name}
	e := auditEntry{Verb: discardVerb, Class: id.Class, Object: id.Name, Part: strconv.FormatUint(l.Seq, 10)}
	if replay {
		e.Verb = replayVerb
	}
	return x.audited(e, func() error {
		if replay {
			return x.operations.admin.ReplayDead(ctx, id, l.Seq, l.Replace)
		}
		return x.operations.admin.DiscardDead(ctx, id, l.Seq)
	})
}

func (x *exchange) discardDead() error {
	var l oneLetter
	if err := x.decode(&l); err != nil {
		return err
	}
	if l.Replace {
		return badRequest("replace is of a replay")
	}
	return x.taken(x.take(l, false))
}

// taken answers after a replay or a discard.
func (x *exchange) taken(err error) error {
	if err != nil {
		return err
	}
	return x.empty()
}

// recoveries is the answer about recoveries.
type recoveries struct {
	Total  int               `json:"total"`
	Groups []recoveryGroup   `json:"groups"` // of the lines that the host keeps
	Lines  []object.Recovery `json:"lines,omitempty"`
}

// recoveryGroup counts recoveries with one cause in one class.
type recoveryGroup struct {
	Class string `json:"class"`
	Cause string `json:"cause"`
	Count int    `json:"count"`
}

func (x *exchange) listRecoveries() error {
	limit, err := x.limit()
	if err != nil {
		return err
	}
	lines := x.flag("lines")
	if lines {
		if err := x.needs(auth.Reader); err != nil {
			return err
		}
	}
	report := recovery.Recovered(x.host)
	answer := recoveries{Total: report.Total, Groups: grouped(report.Lines)}
	if lines {
		answer.Lines = report.Lines[max(len(report.Lines)-limit, 0):]
	}
	return x.json(http.StatusOK, answer)
}

// grouped counts lines by class and cause, the most first.
func grouped(lines []object.Recovery) []recoveryGroup {
	counts := make(map[recoveryGroup]int)
	for _, l := range lines {
		counts[recoveryGroup{Class: l.ID.Class, Cause: l.Cause}]++
	}
	groups := make([]recoveryGroup, 0, len(counts))
	for g, n := range counts {
		g.Count = n
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b recoveryGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Cause, b.Cause))
	})
	return groups
}
