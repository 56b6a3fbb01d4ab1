package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// auditParams choose entries of the audit.
var auditParams = []param{
	{name: "day", help: "of this day of UTC, such as 2026-11-23; today if it is not there"},
	afterParam, limitParam,
	{name: "who", help: "only of the principal with this id or name"},
	{name: "verb", help: "only of this verb, such as delete"},
}

// auditRoutes are the routes of the audit.
func (s *Server) auditRoutes() []route {
	return []route{
		{method: "GET", pattern: "/v1/audit", access: admin, answer: auditPage{}, handle: (*exchange).listAudit, params: auditParams,
			help: "List the entries of the audit of a day in their order: verbs of operators and admins, sign-ins, refusals, recoveries. They are kept for 90 days. The outcome of a verb that goes on, or that an end of the process has cut off, is unknown."},
	}
}

// auditLine is one line of the list.
type auditLine struct {
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	auditEntry
}

// auditPage is a page of the list.
type auditPage struct {
	Day     string      `json:"day"`
	Entries []auditLine `json:"entries"`
	Next    string      `json:"next,omitempty"`
}

func (x *exchange) listAudit() error {
	page, err := x.auditPage()
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, page)
}

// auditPage returns the entries that the parameters choose.
func (x *exchange) auditPage() (page auditPage, err error) {
	page.Day = x.param("day")
	if page.Day == "" {
		page.Day = today(x.host)
	}
	if day, err := time.Parse(dayForm, page.Day); err != nil || day.Format(dayForm) != page.Day {
		return page, badRequest("the parameter day takes a day such as 2006-01-02")
	}
	limit, err := x.limit()
	if err != nil {
		return page, err
	}
	at, err := x.after()
	if err != nil {
		return page, err
	}
	after := uint64(0)
	if at != "" {
		if after, err = strconv.ParseUint(at, 10, 64); err != nil {
			return page, object.ErrBadCursor
		}
	}
	ctx, cancel, err := x.within()
	if err != nil {
		return page, err
	}
	defer cancel()
	r := auditReader{x: x, limit: limit, lines: []auditLine{}, open: map[string]int{}}
	if err := r.read(ctx, storage.ID{Class: auditClass, Name: page.Day}, after); err != nil {
		return page, err
	}
	page.Entries = r.lines
	if len(r.lines) == limit {
		page.Next = cursor(strconv.FormatUint(r.lines[limit-1].Seq, 10))
	}
	return page, nil
}

// auditReader reads a page of the audit.
type auditReader struct {
	x     *exchange
	limit int
	lines []auditLine
	open  map[string]int // the lines that have no outcome yet, by the id of the act
}

// read reads up to limit lines behind a number, and then goes on for the outcomes of their verbs to the end of the day's
// entries, because a verb over many takes as long as it needs.
func (r *auditReader) read(ctx context.Context, id storage.ID, after uint64) error {
	for {
		events, err := r.x.host.Events(ctx, id, after, object.MaxPage)
		if err != nil {
			return err
		}
		for _, e := range events {
			after = e.Seq
			if len(r.lines) == r.limit && len(r.open) == 0 {
				return nil
			}
			if err := r.add(e); err != nil {
				return fmt.Errorf("%s: event %d: %w", id, e.Seq, err)
			}
		}
		if len(events) < object.MaxPage {
			return nil
		}
	}
}

// add takes an event: a line, or the outcome of one.
func (r *auditReader) add(e object.Event) error {
	l := auditLine{Seq: e.Seq, At: e.At}
	if err := r.x.host.Codec().Decode(e.Data, &l.auditEntry); err != nil {
		return errors.Join(storage.ErrCorrupt, err)
	}
	if e.Kind == auditEnded {
		if i, ok := r.open[l.ID]; ok {
			begun := &r.lines[i]
			begun.Outcome, begun.Problem, begun.Count = l.Outcome, l.Problem, l.Count
			delete(r.open, l.ID)
		}
		return nil
	}
	who, verb := r.x.param("who"), r.x.param("verb")
	if len(r.lines) == r.limit || who != "" && who != l.Who && who != l.Name || verb != "" && verb != l.Verb {
		return nil
	}
	if e.Kind == auditBegun {
		l.Outcome = string(unknown)
		r.open[l.ID] = len(r.lines)
	}
	r.lines = append(r.lines, l)
	return nil
}
