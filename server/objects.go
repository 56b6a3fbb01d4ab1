package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// objectRoutes are the routes of objects: lists, keys, why, wake and delete. Each route of one
// object is there twice: with the name in the path, and with the name in the query, for the names
// that a path or a proxy changes.
func (s *Server) objectRoutes() []route {
	all := []route{
		{method: "GET", pattern: "/v1/classes", access: viewer, answer: classList{}, handle: (*exchange).listClasses,
			help: "List the classes of the host, with the methods that can be called."},
		{method: "GET", pattern: "/v1/why", access: viewer, answer: why.Overview{}, handle: (*exchange).whyAll,
			help: "Tell why everything that is overdue, lost, failed, paused or stuck does not run, the worst first. Below the role reader errors are left out."},
		{method: "GET", pattern: "/v1/objects/{class}", access: viewer, answer: objectPage{}, handle: (*exchange).objects,
			params: []param{
				{name: "label", help: "only objects with this label, for example failed"},
				{name: "prefix", help: "only names that begin with it"},
				{name: "after", help: "next of the page before"},
				{name: "limit", kind: number, help: "at most so many objects, up to 1,000; default 100"},
				{name: "size", kind: flag, help: "1: with an estimate of the bytes on disk"},
			},
			help: "List the objects of a class in the order of their names."},
	}
	for _, one := range []struct {
		method, suffix string
		route
	}{
		{"GET", "", route{access: viewer, answer: object.Inspection{}, handle: (*exchange).inspect,
			help: "Show the stored state of an object without its values. Below the role reader errors and arguments are left out."}},
		{"DELETE", "", route{access: admin, handle: (*exchange).remove,
			params: []param{{name: "messages", kind: flag, help: "1: with the messages that wait for the object"}},
			help:   "Delete an object: its keys, alarm and marks. No user code runs. It is no error if the object does not exist."}},
		{"GET", "/keys", route{access: reader, answer: keyPage{}, handle: (*exchange).keys,
			params: []param{
				{name: "prefix", help: "only keys that begin with it"},
				{name: "after", help: "next of the page before"},
				{name: "limit", kind: number, help: "at most so many keys, up to 1,000; default 100"},
				{name: "maxBytes", kind: number, help: "at most so many bytes of keys and values, up to 16 MiB; default 1 MiB"},
			},
			help: "List the keys of an object and their values."}},
		{"GET", "/why", route{access: viewer, answer: why.Answer{}, handle: (*exchange).why,
			help: "Tell why the object does not run, or that it runs. Below the role reader errors are left out."}},
		{"POST", "/wake", route{access: operator, handle: (*exchange).wake,
			help: "Take the object out of memory if it is idle, and construct it again from its rows."}},
	} {
		one.route.method, one.route.single = one.method, true
		byPath, byQuery := one.route, one.route
		byPath.pattern = "/v1/objects/{class}/{name}" + one.suffix
		byQuery.pattern = "/v1/object" + one.suffix
		byQuery.params = append([]param{{name: "class", help: "of the object"}, {name: "name", help: "of the object"}}, one.params...)
		all = append(all, byPath, byQuery)
	}
	return all
}

// id returns the object that the path or the query names. It is a problem if no object can have
// the name, or if the prefix of the principal hides it.
func (x *exchange) id() (storage.ID, error) {
	id := storage.ID{Class: x.path("class"), Name: x.path("name")}
	if x.route.param("name") != nil {
		id = storage.ID{Class: x.param("class"), Name: x.param("name")}
	}
	if err := id.Validate(); err != nil {
		return id, fmt.Errorf("%w: %w", object.ErrBadName, err)
	}
	return id, x.sees(id.Name)
}

// plain is id for routes that serve neither jobs nor objects of the library. A class that the
// host does not have may be that of a job, so it is not served either.
func (x *exchange) plain() (storage.ID, error) {
	id, err := x.id()
	if err != nil {
		return id, err
	}
	return id, x.plainClass(id.Class)
}

// plainClass returns a problem unless a class is that of plain objects.
func (s *Server) plainClass(class string) error {
	if s.isPlain(class) {
		return nil
	}
	return &problem{Type: "unknown-class", Title: "The host has no such class of plain objects.", Status: http.StatusNotFound, Outcome: none,
		Detail: "objects of jobs have routes of their own"}
}

// isPlain reports whether the host has a class, and neither a job type nor the library owns it.
func (s *Server) isPlain(class string) bool {
	info, ok := s.classes[class]
	return ok && !info.Options.Internal && !system(class)
}

// classList is the answer of GET /v1/classes.
type classList struct {
	Classes []classInfo `json:"classes"`
}

// classInfo is a class of the host.
type classInfo struct {
	Name string `json:"name"`
	// Job says that a job type owns the objects, so that they are operated by the routes of jobs.
	Job     bool         `json:"job"`
	Alarms  bool         `json:"alarms"`  // the objects handle alarms
	Methods []methodInfo `json:"methods"` // those that can be called
}

// methodInfo is a method that can be called, with its types in Go.
type methodInfo struct {
	Name     string `json:"name"`
	Argument string `json:"argument"`
	Answer   string `json:"answer"`
}

func (x *exchange) listClasses() error { return x.json(http.StatusOK, x.classList()) }

func (x *exchange) classList() classList {
	list := classList{Classes: []classInfo{}}
	for _, c := range x.host.Classes() {
		if system(c.Name) {
			continue
		}
		info := classInfo{Name: c.Name, Job: c.Options.Internal, Alarms: c.Alarms, Methods: []methodInfo{}}
		for _, m := range c.Methods {
			if _, ok := x.exposed[c.Name][m.Name]; ok {
				info.Methods = append(info.Methods, methodInfo{m.Name, m.Argument.String(), m.Answer.String()})
			}
		}
		list.Classes = append(list.Classes, info)
	}
	return list
}

// objectPage is a page of objects. Next is the parameter after of the next page; it is not
// there after the last one.
type objectPage struct {
	Objects []object.ObjectInfo `json:"objects"`
	Next    string              `json:"next,omitempty"`
}

func (x *exchange) objects() error {
	answer, err := x.objectPage(x.path("class"), x.flag("size"))
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, answer)
}

// objectPage returns the objects of a class that the parameters label, prefix, after and limit choose.
func (x *exchange) objectPage(class string, sizes bool) (answer objectPage, err error) {
	limit, err := x.limit()
	if err != nil {
		return answer, err
	}
	after, err := x.after()
	if err != nil {
		return answer, err
	}
	if _, err := storage.NewLabel(x.param("label")); err != nil {
		return answer, badRequest("the parameter label: " + err.Error())
	}
	page, err := x.host.Objects(x.r.Context(), class, object.ObjectsOptions{
		Prefix: x.param("prefix"), Label: x.param("label"), After: after, Limit: limit, Sizes: sizes,
	})
	if err != nil {
		return answer, err
	}
	answer.Objects = append([]object.ObjectInfo{}, page...)
	if len(page) == limit {
		answer.Next = cursor(page[limit-1].ID.Name)
	}
	return answer, nil
}

// limit returns the parameter limit.
func (x *exchange) limit() (int, error) {
	n := x.rows()
	if n > object.MaxPage {
		return 0, badRequest(fmt.Sprintf("the limit is %d, at most %d are allowed", n, object.MaxPage))
	}
	if n == 0 {
		n = object.DefaultPage
	}
	return n, nil
}

// pageRows is how many rows of a list a page for a browser has without the parameter limit: a list is written anew whenever something in
// it changes, and a row costs about as much to write as to read.
const pageRows = 50

// rows is the parameter limit, or the default of a page; 0 is the default of the API.
func (x *exchange) rows() int {
	n := x.number("limit")
	if n == 0 && x.route.page {
		return pageRows
	}
	return n
}

// cursor hides where a page ends, so that clients do not depend on it.
func cursor(at string) string { return base64.RawURLEncoding.EncodeToString([]byte(at)) }

// after returns where the page before has ended.
func (x *exchange) after() (string, error) {
	at, err := base64.RawURLEncoding.DecodeString(x.param("after"))
	if err != nil {
		return "", object.ErrBadCursor
	}
	return string(at), nil
}

func (x *exchange) inspect() error {
	id, err := x.id()
	if err != nil {
		return err
	}
	in, err := x.inspection(x.r.Context(), id)
	if err != nil {
		return err
	}
	return x.told(in)
}

// inspection is the stored state of an object, without the names and keys that are not for the
// principal.
func (x *exchange) inspection(ctx context.Context, id storage.ID) (object.Inspection, error) {
	in, err := x.host.Inspect(ctx, id)
	if err != nil {
		return in, err
	}
	if !x.isPlain(id.Class) {
		in.Keys, in.NextKey, in.NextKeyBytes = nil, "", nil
	}
	for i := range in.DeadLetters {
		x.hideSender(&in.DeadLetters[i].From)
	}
	for i := range in.Messages {
		x.hideSender(&in.Messages[i].From)
	}
	return in, nil
}

// hideSender takes away the name of an object that the prefix of the principal hides.
func (x *exchange) hideSender(id *storage.ID) {
	if *id != (storage.ID{}) && !x.who.Sees(id.Name) {
		*id = storage.ID{Name: another}
	}
}

func (x *exchange) remove() error {
	var err error
	if x.flag("messages") {
		_, err = x.removed(object.WithMessages())
		err = inParts(err) // 1,000 messages with each commit
	} else {
		_, err = x.removed()
	}
	if err != nil {
		return err
	}
	return x.empty()
}

// removed deletes the object that the request names, and returns it.
func (x *exchange) removed(opts ...object.DeleteOption) (storage.ID, error) {
	id, err := x.plain()
	if err != nil {
		return id, err
	}
	ctx, cancel, err := x.bounded()
	if err != nil {
		return id, err
	}
	defer cancel()
	return id, x.audited(auditEntry{Verb: "delete", Class: id.Class, Object: id.Name}, func() error { return x.host.Delete(ctx, id, opts...) })
}

// keyPage is a page of keys.
type keyPage struct {
	Keys []keyInfo `json:"keys"`
	Next string    `json:"next,omitempty"`
}

// keyInfo is a key and its value. A key that is no UTF-8 is in KeyBytes, and a value that is no
// JSON in ValueBytes, both in base64.
type keyInfo struct {
	Key        string          `json:"key"`
	KeyBytes   []byte          `json:"keyBytes,omitempty"`
	SizeBytes  int             `json:"sizeBytes"`
	Value      json.RawMessage `json:"value,omitempty"`
	ValueBytes []byte          `json:"valueBytes,omitempty"`
}

// keyPage returns the keys of an object that the parameters prefix, after and limit choose, up to a number of
// bytes.
func (x *exchange) keyPage(id storage.ID, maxBytes int, values bool) (page object.KeyPage, err error) {
	limit, err := x.limit()
	if err != nil {
		return page, err
	}
	start, err := x.after()
	if err != nil {
		return page, err
	}
	return x.host.Keys(x.r.Context(), id, object.KeysOptions{Prefix: x.param("prefix"), Start: start, Limit: limit, MaxBytes: maxBytes, Values: values})
}

func (x *exchange) keys() error {
	id, err := x.plain()
	if err != nil {
		return err
	}
	most := x.number("maxBytes")
	if most > object.MaxPageBytes {
		return badRequest(fmt.Sprintf("maxBytes is %d, at most %d are allowed", most, object.MaxPageBytes))
	}
	page, err := x.keyPage(id, most, true)
	if err != nil {
		return err
	}
	answer := keyPage{Keys: []keyInfo{}}
	for _, k := range page.Keys {
		info := keyInfo{Key: k.Key, KeyBytes: k.KeyBytes, SizeBytes: k.SizeBytes}
		if json.Valid(k.Value) && utf8.Valid(k.Value) {
			info.Value = k.Value
		} else {
			info.ValueBytes = k.Value
		}
		answer.Keys = append(answer.Keys, info)
	}
	if page.Next != "" {
		answer.Next = cursor(page.Next)
	}
	return x.json(http.StatusOK, answer)
}

func (x *exchange) why() error {
	id, err := x.id()
	if err != nil {
		return err
	}
	a, err := why.Object(x.r.Context(), x.source, id)
	if err != nil {
		return err
	}
	return x.told(x.hide(a))
}

func (x *exchange) whyAll() error {
	ctx, cancel, err := x.within()
	if err != nil {
		return err
	}
	defer cancel()
	all, err := why.All(ctx, x.source)
	if err != nil {
		return err
	}
	return x.told(all)
}

func (x *exchange) wake() error {
	if _, err := x.woken(); err != nil {
		return err
	}
	return x.empty()
}

// woken wakes the object that the request names, and returns it.
func (x *exchange) woken() (storage.ID, error) {
	id, err := x.plain()
	if err != nil {
		return id, err
	}
	ctx, cancel, err := x.bounded()
	if err != nil {
		return id, err
	}
	defer cancel()
	return id, x.audited(auditEntry{Verb: "wake", Class: id.Class, Object: id.Name}, func() error { return x.host.Wake(ctx, id) })
}
