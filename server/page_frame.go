package server

import (
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// firstPage is the page that a browser gets without asking for another.
const firstPage = "overview"

// framePages are the pages that are of no subject: sign-in, assets, the search box.
func (s *Server) framePages() []route {
	back := param{name: "back", help: "the page to go on with"}
	return []route{
		{method: "GET", pattern: "/ui", page: true, access: open, handle: func(x *exchange) error { return x.goTo("ui/" + firstPage) }},
		{method: "GET", pattern: ui + "{$}", page: true, access: open, handle: func(x *exchange) error { return x.goTo(firstPage) }},
		shows("signin", open, func(x *exchange) error { return x.page(dashboard.SignIn{Back: x.local(x.param("back"))}) }, back),
		acts("signin", open, (*exchange).signInForm),
		acts("signout", open, (*exchange).signOutForm),
		{method: "GET", pattern: ui + "asset/{file}", page: true, access: open, handle: (*exchange).asset,
			params: []param{{name: "v", help: "the version, so that a browser may keep the file"}}},
		ofOne(shows("go", viewer, (*exchange).jump, param{name: "q", help: "class/name"},
			param{name: "class", help: "of the object"}, param{name: "name", help: "of the object"}, param{name: "task", help: "of the partition of a pool, by its id"})),
		shows("filter", open, (*exchange).filterForm, append([]param{{name: "of", help: "the page to filter"}}, filters...)...),
		{method: "GET", pattern: ui + "live", page: true, access: viewer, answer: eventStream{}, handle: (*exchange).liveStream},
		shows("{page}", viewer, func(*exchange) error { return notFound() }),
	}
}

// asset answers with a file of the pages. One that is asked for by its version never changes.
func (x *exchange) asset() error {
	a, ok := dashboard.FindAsset(x.path("file"))
	if !ok {
		return notFound()
	}
	keep := "no-cache"
	if x.param("v") == a.Version {
		keep = "max-age=31536000, immutable"
	}
	x.w.Header().Set("Cache-Control", keep)
	return x.answer(http.StatusOK, a.Kind, a.Body)
}

// signInForm takes the token of the form, and goes on to the page that the browser wanted.
func (x *exchange) signInForm() error {
	s, ok := x.config.Auth.(signer)
	if !ok {
		return noSignIn()
	}
	form, err := x.form(signBody)
	if err != nil {
		return err
	}
	back := x.local(form.Get("back"))
	who, cookie, err := s.SignIn(x.r, form.Get("token"), x.overTLS())
	if err != nil {
		x.noteRefusal(err)
		return x.signInFailed(back, err)
	}
	x.signed(who, "sign in")
	http.SetCookie(x.w, cookie)
	return x.goTo(back)
}

// signInFailed shows the form again.
func (x *exchange) signInFailed(back string, err error) error {
	p := problemOf(err)
	b, err := x.html(dashboard.SignIn{Back: back, Error: p.Title}, "")
	if err != nil {
		return err
	}
	x.answering()
	p.send(x.w, "text/html; charset=utf-8", b)
	return nil
}

// signOutForm ends the session.
func (x *exchange) signOutForm() error {
	s, ok := x.config.Auth.(signer)
	if !ok {
		return noSignIn()
	}
	x.signsOut()
	http.SetCookie(x.w, s.SignOut(x.overTLS()))
	return x.see("signin")
}

// form reads the body of a form, of at most so many bytes. Its errors do not repeat the body.
func (x *exchange) form(limit int64) (url.Values, error) {
	if kind, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || kind != formType {
		return nil, &problem{Type: "bad-content-type", Title: "The body must be a form.", Status: http.StatusUnsupportedMediaType, Outcome: none}
	}
	b, err := x.bodyUpTo(limit)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, badRequest("the form cannot be parsed")
	}
	return form, nil
}

// jump goes to the page of an object: of class and name, or of the two with a slash between in q.
func (x *exchange) jump() error {
	id := storage.ID{Class: x.param("class"), Name: x.param("name")}
	if q := x.param("q"); q != "" {
		var ok bool
		if id.Class, id.Name, ok = strings.Cut(strings.TrimSpace(q), "/"); !ok {
			return badRequest("write class/name, for example order/4711")
		}
	}
	if err := x.sees(id.Name); err != nil {
		return err
	}
	return x.goTo(x.pageOf(id, x.param("task")).String())
}

// filters are the fields of the forms that filter a list.
var filters = []param{
	{name: "prefix", help: "only names that begin with it"}, {name: "label", help: "only those with this label"},
	{name: "class", help: "only those of this class"}, {name: "kind", help: "only those of this kind"},
	{name: "status", help: "only tasks in this state"}, {name: "queue", help: "only tasks of this queue"}, {name: "key", help: "only tasks with this key"},
	{name: "day", help: "only entries of this day"}, {name: "who", help: "only entries of this principal"}, {name: "verb", help: "only entries of this verb"},
	{name: "error", help: "only letters with an error that begins with it"}, {name: "reason", help: "only letters with a reason that begins with it"},
}

// filterForm goes to the page that a form filters, with its fields as parameters. The page travels as an encoded
// address, because a browser would change a name with a line break in a field of its own.
func (x *exchange) filterForm() error {
	route, query, _ := strings.Cut(x.local(x.param("of")), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return badRequest("of is no address of a page")
	}
	to := dashboard.Link{Route: route, Query: values}
	for _, f := range filters {
		if x.query.Has(f.name) {
			if to, err = to.With(f.name, x.param(f.name)); err != nil {
				return err
			}
		}
	}
	return x.goTo(to.String())
}
