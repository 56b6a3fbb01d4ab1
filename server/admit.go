package server

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// admit checks the parts of a request that need no route and no principal.
func (x *exchange) admit() error {
	if p := x.peer(); p != nil {
		if err := p.check(); err != nil {
			return err
		}
	} else if !x.config.answers(x.r.Host) {
		return &problem{Type: "foreign-host", Title: "The server does not answer for this Host.", Status: http.StatusMisdirectedRequest, Outcome: none}
	}
	if err := x.origins.Check(x.r); err != nil {
		return &problem{Type: "cross-origin", Title: "The request comes from a page of another site.", Status: http.StatusForbidden, Outcome: none}
	}
	for _, name := range [...]string{"Authorization", "Idempotency-Key", "Holdfast-Timeout", "Content-Type"} {
		if len(x.r.Header[name]) > 1 {
			return badRequest("the header " + name + " is there more than once")
		}
	}
	return checkPath(x.r.URL)
}

// answers reports whether the server answers requests with a Host header.
func (c *Config) answers(host string) bool {
	if c.Hosts != nil {
		return slices.ContainsFunc(c.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1"
}

// checkPath refuses paths that a multiplexer or a proxy changes: the routes by query take any
// name.
func checkPath(u *url.URL) error {
	whole := u.EscapedPath()
	path, ok := strings.CutPrefix(whole, "/")
	if !ok {
		return badRequest("the path does not begin with a slash")
	}
	if path == "" || whole == ui {
		return nil
	}
	for segment := range strings.SplitSeq(path, "/") {
		name, err := url.PathUnescape(segment)
		if err != nil || name == "" || name == "." || name == ".." || name == "/" {
			return &problem{Type: "bad-path", Title: "The path has a part that is empty, ., .. or an encoded /.", Status: http.StatusBadRequest, Outcome: none,
				Detail: "use the route that takes class and name as parameters of the query"}
		}
	}
	return nil
}

// unrouted returns the problem of a request that the multiplexer has no route for. The
// multiplexer has set the header Allow if the path has a route with another method.
func (x *exchange) unrouted() error {
	h := x.w.Header()
	h.Del("Location")
	if x.begun.status == http.StatusMethodNotAllowed {
		return &problem{Type: "bad-method", Title: "The path does not take this method.", Status: http.StatusMethodNotAllowed, Outcome: none,
			Detail: "use " + h.Get("Allow")}
	}
	return &problem{Type: "unknown-path", Title: "There is no such path.", Status: http.StatusNotFound, Outcome: none}
}

// errNoID is the error of an Authenticator that would have all principals share one id.
var errNoID = errors.New("server: Config.Auth has returned a Principal without an ID: set one for each principal, because keys of calls, rates and bounds of streams belong to it")

// authorize finds the principal and checks its role and its rate. Nothing has been read of the
// host or the body before.
func (x *exchange) authorize() error {
	if x.route.access == open {
		return nil
	}
	who, err := x.principal()
	if err != nil {
		return err
	}
	if who.ID == "" {
		return errNoID
	}
	x.who = who
	if err := x.allowed(); err != nil {
		return err
	}
	return x.rates.take(who.ID)
}

// allowed checks the role of the principal.
func (x *exchange) allowed() error {
	if need, ok := x.route.access.role(); ok {
		if err := x.needs(need); err != nil {
			return err
		}
		if x.who.Prefix != "" && !x.route.single {
			return refuses(notFound())
		}
	}
	return nil
}

// stillMay reports whether the principal of the request still has the role of the route. It gets the rights that it has
// now.
func (x *exchange) stillMay() bool {
	who, err := x.principal()
	if err != nil || who.ID != x.who.ID {
		return false
	}
	x.who = who
	return x.allowed() == nil
}

// needs returns a problem 403 if the principal's role is below one.
func (x *exchange) needs(role auth.Role) error {
	if x.who.Role < role {
		return &problem{Type: "forbidden", Title: "The role of the principal does not allow it.", Status: http.StatusForbidden, Outcome: none,
			Detail: "it needs the role " + role.String()}
	}
	return nil
}

// seesAll reports whether the principal may know the names of all objects and jobs.
func (x *exchange) seesAll() bool { return x.who.Role >= auth.Viewer && x.who.Prefix == "" }

// callsAll reports whether a grant of the principal is not limited to names.
func (x *exchange) callsAll() bool {
	return x.who.Prefix == "" && slices.ContainsFunc(x.who.Grants, func(g auth.Grant) bool { return g.Prefix == "" })
}

// sees returns a problem 404 if the principal's prefix hides the object, or the job, with a name.
func (x *exchange) sees(name string) error {
	if !x.who.Sees(name) {
		return refuses(notFound())
	}
	return nil
}
