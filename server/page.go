package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// ui is the folder of the pages. All are in one folder, and names of users are in the query, so that each
// link is right below any prefix at which the server is mounted.
const ui = "/ui/"

// pageRoutes are the routes of the pages, of the forms on them, and of their assets.
func (s *Server) pageRoutes() []route {
	var all []route
	for _, group := range [][]route{s.framePages(), s.overviewPages(), s.objectPages(), s.jobPages(), s.verbPages(), s.poolPages(), s.deadPages(), s.bulkPages(), s.auditPages(), s.backupPages(), s.webhookPages()} {
		all = append(all, group...)
	}
	return all
}

// shows is the route of a page. Each takes the parameter part, by which a browser asks for one part anew.
func shows(name string, need access, handle func(*exchange) error, params ...param) route {
	return route{method: "GET", pattern: ui + name, page: true, access: need, handle: handle,
		params: append([]param{{name: "part", help: "only this part of the page"}}, params...)}
}

// acts is the route of a form.
func acts(name string, need access, handle func(*exchange) error, params ...param) route {
	return route{method: "POST", pattern: ui + name, page: true, access: need, handle: handle, params: params}
}

// ofOne marks a route as that of one object or job, which its parameters name.
func ofOne(rt route) route {
	rt.single = true
	return rt
}

// page answers with a page.
func (x *exchange) page(p dashboard.Page) error {
	b, err := x.html(p, x.query.Get("part"))
	if errors.Is(err, dashboard.ErrNoPart) {
		return badRequest("the page has no such part")
	}
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, "text/html; charset=utf-8", b)
}

// html writes a page, or one part of it, and sets the headers of one.
func (x *exchange) html(p dashboard.Page, part string) ([]byte, error) {
	_, signs := x.config.Auth.(signer)
	frame := dashboard.Frame{
		Now: time.Now(), Self: x.self(), Part: part, Lists: x.seesAll(), SignOut: signs && x.who.ID != "", Bulk: x.can(auth.Operator) && x.seesAll(),
		Audit: x.audits(), Backups: x.backups != nil && x.audits(), Webhooks: x.config.Webhooks != nil && x.audits(),
	}
	if x.who.ID != "" {
		frame.Who, frame.Role = x.who.Name, x.who.Role.String()
	}
	var b bytes.Buffer
	err := dashboard.Write(&b, frame, p)
	x.w.Header().Set("Content-Security-Policy", dashboard.CSP)
	return b.Bytes(), err
}

// self is the address of the page with its filters.
func (x *exchange) self() dashboard.Link {
	query := url.Values{}
	for name, values := range x.query {
		if name != "part" {
			query[name] = values
		}
	}
	return dashboard.Link{Route: strings.TrimPrefix(x.route.pattern, ui), Query: query}
}

// shown returns a value as the role of the principal may see it, for a page: it leaves out the same fields as told.
func shown[T any](x *exchange, v T) (out T, err error) {
	if x.who.Role >= auth.Reader {
		return v, nil
	}
	seen, err := x.visible(v)
	if err != nil {
		return out, err
	}
	raw, err := json.Marshal(seen)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return out, fmt.Errorf("page: %w", err)
	}
	return out, nil
}

// can reports whether the principal has a role.
func (x *exchange) can(role auth.Role) bool { return x.needs(role) == nil }

// see sends the browser to another page, after a form for example. The address is seen from the folder of the
// pages, as all links are.
func (x *exchange) see(route string, pairs ...any) error {
	to, err := dashboard.Link{Route: route}.With(pairs...)
	if err != nil {
		return err
	}
	return x.goTo(to.String())
}

// goTo is see with an address. It leaves the address as it is, because http.Redirect would make it one of the
// server without the prefix at which it is mounted.
func (x *exchange) goTo(address string) error {
	x.w.Header().Set("Location", address)
	x.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// failPage answers with a problem as a page. A browser that is to sign in first gets the form, which leads back;
// the script of a page, which only asks for a part, gets the problem.
func (x *exchange) failPage(p *problem) {
	if _, ok := x.config.Auth.(signer); ok && p.Status == http.StatusUnauthorized && x.r.Header.Get("HX-Request") == "" {
		back := ""
		if x.r.Method == http.MethodGet {
			back = x.address()
		}
		if err := x.see("signin", "back", back); err == nil {
			return
		}
	}
	b, err := x.html(dashboard.Problem{Type: p.Type, Title: p.Title, Detail: p.Detail, Status: p.Status, Unknown: p.Outcome == unknown}, "")
	w := x.w.(*response)
	w.status = p.Status
	if err != nil {
		x.logError(err)
		p.write(w.ResponseWriter)
		return
	}
	p.send(w.ResponseWriter, "text/html; charset=utf-8", b)
}

// address is that of the page as the browser has asked for it. The query may not have been parsed yet.
func (x *exchange) address() string {
	query := x.r.URL.Query()
	query.Del("part")
	return dashboard.Link{Route: strings.TrimPrefix(x.route.pattern, ui), Query: query}.String()
}

// local returns an address to go back to if it is that of a page, and else the first page. So a sign-in never leads
// to another site, nor to a form.
func (s *Server) local(address string) string {
	route, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	for _, rt := range s.pageRoutes() {
		if err == nil && rt.method == http.MethodGet && rt.access != open && !rt.streams() && rt.pattern == ui+route && !strings.Contains(route, "{") {
			return dashboard.Link{Route: route, Query: values}.String()
		}
	}
	return firstPage
}
