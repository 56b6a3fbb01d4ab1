package server

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// access is the right that a route asks of its principal.
type access uint8

const (
	open     access = iota // nothing: anyone may
	viewer                 // the role, or one above
	reader                 //
	operator               //
	admin                  //
	granted                // a Grant; the handler checks it, because it depends on the request
	tabled                 // the role of the verb in the table of the job type; the handler checks it
)

// role returns the role that a route needs, and whether it needs one.
func (a access) role() (auth.Role, bool) {
	switch a {
	case viewer:
		return auth.Viewer, true
	case reader:
		return auth.Reader, true
	case operator:
		return auth.Operator, true
	case admin:
		return auth.Admin, true
	}
	return auth.None, false
}

// route is one row of the table: the multiplexer, the matrix of the authorisation test and
// the OpenAPI document are made of it.
type route struct {
	method  string // of HTTP
	pattern string // of http.ServeMux, without the method
	access  access
	// single says that the route is of one object, or of one job, which its path names: a
	// principal with a Prefix gets 404 on all others.
	single bool
	// page says that the route is for a browser: its answer is HTML, and so are its problems. It is
	// no part of the API, so the OpenAPI document leaves it out.
	page    bool
	params  []param
	headers []param // that the handler reads; the OpenAPI document lists them
	request any     // the zero value of the body, in JSON; nil: none; raw{}: the codec's bytes
	answer  any     // as request
	help    string
	handle  func(x *exchange) error
	meter   *atomic.Pointer[meter] // of the status that the newest answer had; set by Server.handle
}

// streams reports whether the answer goes on for as long as the client wants.
func (rt *route) streams() bool {
	_, ok := rt.answer.(eventStream)
	return ok
}

// param is a parameter of the query.
type param struct {
	name, help string
	kind       paramKind
}

type paramKind uint8

const (
	text paramKind = iota
	number
	flag // 1 or 0
)

// raw stands for a body of bytes in the codec of the host.
type raw struct{}

// routes returns the table.
func (s *Server) routes() []route {
	var all []route
	for _, group := range [][]route{
		s.healthRoutes(), s.documentRoutes(), s.objectRoutes(), s.callRoutes(), s.jobRoutes(), s.poolRoutes(), s.deadRoutes(), s.auditRoutes(), s.backupRoutes(), s.transferRoutes(), s.webhookRoutes(), s.signRoutes(), s.eventRoutes(), s.pageRoutes(),
	} {
		all = append(all, group...)
	}
	return all
}
