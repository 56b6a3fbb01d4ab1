package dashboard

import (
	"net/url"

	"github.com/holdfast-dev/holdfast/object"
)

// navItem is one entry of the navigation.
type navItem struct {
	Route, Text string
	Current     bool // it leads to this page
}

func item(v view, route, text string) navItem { return navItem{route, text, v.Self.Route == route} }

// listEnd tells how a page of a list ends.
type listEnd struct {
	Rows  int // how many there are on the page
	Self  Link
	Next  string // the parameter after of the next page; empty: there is none
	Later bool   // this page is not the first
}

func pager(self Link, next string, rows int) listEnd {
	return listEnd{rows, self, next, self.Query.Has("after")}
}

// rawKey returns the bytes of a key.
func rawKey(k object.KeyInfo) string {
	if k.KeyBytes != nil {
		return string(k.KeyBytes)
	}
	return k.Key
}

// Topic names the subject of a part of a page: all objects of a class if name is empty, or one. A page is live by the
// topics that the server tells it. It has no character that HTML changes.
func Topic(class, name string) string {
	if name == "" {
		return url.QueryEscape(class)
	}
	return url.QueryEscape(class) + "/" + url.QueryEscape(name)
}
