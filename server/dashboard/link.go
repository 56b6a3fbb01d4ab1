package dashboard

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"regexp"
	"slices"
)

// Link is the address of a page, seen from any other page: all are in one folder. Names of
// users are parameters and never parts of the path, so that a name such as ../x stays a name.
type Link struct {
	Route string // as in the table of the server, for example "objects"
	Query url.Values
}

// String returns the address, for example "objects?class=cart".
func (l Link) String() string {
	if len(l.Query) == 0 {
		return l.Route
	}
	return l.Route + "?" + l.Query.Encode()
}

// route is the form of Link.Route: a name, or a name in a folder.
var route = regexp.MustCompile(`^[a-z]+(/[a-z0-9.-]+)?$`)

// With returns the address with other parameters, which are pairs of a name and a value. A value that is the
// empty text takes the parameter away.
func (l Link) With(pairs ...any) (Link, error) {
	if len(pairs)%2 != 0 {
		return l, fmt.Errorf("dashboard: link %s has a parameter without a value", l.Route)
	}
	l.Query = maps.Clone(l.Query)
	for pair := range slices.Chunk(pairs, 2) {
		name, ok := pair[0].(string)
		if !ok {
			return l, fmt.Errorf("dashboard: link %s has a parameter with the name %v", l.Route, pair[0])
		}
		value := fmt.Sprint(pair[1])
		if value == "" {
			l.Query.Del(name)
			continue
		}
		if l.Query == nil {
			l.Query = url.Values{}
		}
		l.Query.Set(name, value)
	}
	return l, nil
}

// link is the function of templates that makes all addresses. to is a Link, or the name of a
// route; pairs are as those of Link.With.
func link(to any, pairs ...any) (template.URL, error) {
	l, ok := to.(Link)
	if !ok {
		l = Link{Route: fmt.Sprint(to)}
	}
	if !route.MatchString(l.Route) {
		return "", fmt.Errorf("dashboard: link to %q, which is no route", l.Route)
	}
	if a, ok := assets[l.Route]; ok {
		pairs = append(slices.Clone(pairs), "v", a.Version)
	}
	l, err := l.With(pairs...)
	return template.URL(l.String()), err
}
