package server

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// auditPages are the pages of the audit.
func (s *Server) auditPages() []route {
	return []route{shows("audit", admin, (*exchange).showAudit, auditParams...)}
}

func (x *exchange) showAudit() error {
	list, err := x.auditPage()
	if err != nil {
		return err
	}
	p := dashboard.Audit{Day: list.Day, Who: x.param("who"), Verb: x.param("verb"), Next: list.Next}
	for _, l := range list.Entries {
		p.Lines = append(p.Lines, dashboard.AuditLine{
			At: l.At, Who: l.Who, Name: l.Name, From: l.From, Verb: l.Verb, Class: l.Class, Object: l.Object, Part: l.Part,
			Detail: l.detail(), DryRun: l.DryRun, Count: l.Count, Outcome: l.Outcome, Problem: l.Problem,
		})
	}
	return x.page(p)
}

// detail is the filter, the route or the recoveries of an entry.
func (e auditEntry) detail() string {
	parts := []string{}
	if e.Filter != nil {
		parts = append(parts, string(e.Filter))
	}
	if e.Route != "" {
		parts = append(parts, e.Route)
	}
	for _, r := range e.Recoveries {
		parts = append(parts, fmt.Sprintf("%s: %d after %s, then %s", r.Class, r.Count, r.Cause, r.Action))
	}
	for what, ids := range e.tokens() {
		if len(ids) > 0 {
			parts = append(parts, what+" "+strings.Join(ids, ", "))
		}
	}
	return strings.Join(append(parts, e.Recovered...), "; ")
}
