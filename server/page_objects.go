package server

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// objectPages are the pages of classes and objects.
func (s *Server) objectPages() []route {
	class, name := param{name: "class", help: "of the object"}, param{name: "name", help: "of the object"}
	return []route{
		shows("classes", viewer, (*exchange).classesPage),
		shows("objects", viewer, (*exchange).objectsPage, classParam, param{name: "label", help: "only objects with this label"}, prefixParam, afterParam, limitParam),
		ofOne(shows("object", viewer, (*exchange).objectPageOf, class, name, param{name: "prefix", help: "only keys that begin with it"}, afterParam, limitParam)),
		ofOne(shows("value", reader, (*exchange).valuePage, class, name, param{name: "key", help: "of the value"},
			param{name: "all", kind: flag, help: "1: also a large value"})),
		ofOne(acts("wake", operator, (*exchange).wakeForm, class, name)),
		ofOne(shows("delete", admin, (*exchange).deletePage, class, name)),
		ofOne(acts("delete", admin, (*exchange).deleteForm, class, name)),
	}
}

func (x *exchange) classesPage() error {
	var p dashboard.Classes
	for _, c := range x.classList().Classes {
		p.Classes = append(p.Classes, x.labelled(dashboard.Class{Name: c.Name, Job: c.Job, Alarms: c.Alarms}))
	}
	return x.page(p)
}

// labelled returns a class with the counts of its labels.
func (x *exchange) labelled(c dashboard.Class) dashboard.Class {
	counts, complete := x.host.Labels(c.Name)
	c.Complete = complete
	for label, n := range counts {
		c.Labels = append(c.Labels, dashboard.LabelCount{Label: label, Count: n})
	}
	slices.SortFunc(c.Labels, func(a, b dashboard.LabelCount) int { return cmp.Compare(a.Label, b.Label) })
	return c
}

func (x *exchange) objectsPage() error {
	class := x.param("class")
	list, err := x.objectPage(class, false)
	if err != nil {
		return err
	}
	c := dashboard.Class{Name: class, Complete: true} // a class of an earlier program has no counts
	if _, ok := x.classes[class]; ok {
		c = x.labelled(c)
	}
	return x.page(dashboard.Objects{Class: c, Label: x.param("label"), Prefix: x.param("prefix"), Objects: list.Objects, Next: list.Next})
}

func (x *exchange) objectPageOf() error {
	id, err := x.id()
	if err != nil {
		return err
	}
	p := dashboard.Object{ID: id, Plain: x.isPlain(id.Class), Prefix: x.param("prefix"), Values: x.can(auth.Reader)}
	p.Wake, p.Delete = p.Plain && x.can(auth.Operator), p.Plain && x.can(auth.Admin)
	in, err := x.inspection(x.r.Context(), id)
	if err != nil {
		return err
	}
	if p.State, err = shown(x, in); err != nil {
		return err
	}
	if err := x.turnsOf(&p); err != nil {
		return err
	}
	a, err := why.Object(x.r.Context(), x.source, id)
	if err != nil {
		return err
	}
	if p.Why, err = shown(x, x.hide(a)); err != nil {
		return err
	}
	if p.Plain {
		if err := x.keysOf(&p, in); err != nil {
			return err
		}
	}
	return x.page(p)
}

// turnsOf fills in the turns of an object and the calls that wait for it, as the host knows them at this moment. Of
// another object a principal with a prefix sees no name.
func (x *exchange) turnsOf(p *dashboard.Object) error {
	e, err := x.host.Explain(x.r.Context(), p.ID)
	if err != nil {
		return err
	}
	if e.Turn != nil {
		p.Turns = append(p.Turns, dashboard.Turn{TurnState: *e.Turn})
	}
	for _, t := range e.Lent {
		p.Turns = append(p.Turns, dashboard.Turn{TurnState: t, Lent: true})
	}
	for i := range p.Turns {
		t := &p.Turns[i]
		x.hideSender(&t.Caller)
		t.WaitsFor = slices.Clone(t.WaitsFor)
		for j := range t.WaitsFor {
			x.hideSender(&t.WaitsFor[j])
		}
	}
	p.Mailbox, p.MoreTurns = e.Mailbox, e.LentTurns > len(e.Lent)
	return nil
}

// keysOf fills in the keys of an object: a page of all for a reader, and else those of the inspection alone, as the API
// shows them.
func (x *exchange) keysOf(p *dashboard.Object, in object.Inspection) error {
	if !p.Values {
		if p.Prefix != "" || x.param("after") != "" {
			return x.needs(auth.Reader)
		}
		p.Keys, p.MoreKeys = in.Keys, in.NextKey != "" || in.NextKeyBytes != nil
		return nil
	}
	keys, err := x.keyPage(p.ID, 0, false)
	if err != nil {
		return err
	}
	p.Keys = keys.Keys
	if keys.Next != "" {
		p.Next = cursor(keys.Next)
	}
	return nil
}

// largeValue is the size from which on a page shows a value only if all is asked for.
const largeValue = 256 << 10

func (x *exchange) valuePage() error {
	id, err := x.plain()
	if err != nil {
		return err
	}
	key := x.param("key")
	k, err := x.keyOf(id, key, false)
	if err != nil {
		return err
	}
	v := dashboard.Value{ID: id, Key: key, SizeBytes: k.SizeBytes}
	if v.Large = k.SizeBytes >= largeValue && !x.flag("all"); v.Large {
		return x.page(v)
	}
	if k, err = x.keyOf(id, key, true); err != nil {
		return err
	}
	v.SizeBytes = k.SizeBytes
	switch raw := k.Value; {
	case !json.Valid(raw) || !utf8.Valid(raw):
		v.Hex = hex.Dump(raw)
	default:
		if v.Fold = dashboard.Folded(raw); v.Fold == nil {
			v.JSON, _ = indented(raw) // it is valid
		}
	}
	return x.page(v)
}

// keyOf reads one key of an object, with its value or without.
func (x *exchange) keyOf(id storage.ID, key string, value bool) (k object.KeyInfo, err error) {
	page, err := x.host.Keys(x.r.Context(), id, object.KeysOptions{Prefix: key, Start: key, Limit: 1, Values: value})
	if err != nil {
		return k, err
	}
	if len(page.Keys) == 0 || page.Keys[0].Key != key && string(page.Keys[0].KeyBytes) != key {
		return k, &problem{Type: "unknown-key", Title: "The object has no such key.", Status: http.StatusNotFound, Outcome: none}
	}
	return page.Keys[0], nil
}

func (x *exchange) wakeForm() error {
	id, err := x.woken()
	if err != nil {
		return err
	}
	return x.goTo(x.pageOf(id, "").String())
}

func (x *exchange) deletePage() error {
	id, err := x.plain()
	if err != nil {
		return err
	}
	return x.page(dashboard.Delete{ID: id})
}

func (x *exchange) deleteForm() error {
	id, err := x.removed()
	if err != nil {
		return err
	}
	return x.goTo(x.pageOf(id, "").String())
}
