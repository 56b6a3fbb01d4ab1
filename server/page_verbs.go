package server

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// signalVerb and cancelVerb are the verbs of programs, by their role, that people use too.
const (
	signalVerb = "signal"
	cancelVerb = "cancel"
)

// verbPages are the pages that ask, and the forms that run a verb: of a job, and of a pool or one of its tasks.
func (s *Server) verbPages() []route {
	verb := param{name: "verb", help: "the verb"}
	ofPool, ofTask := param{name: "pool", help: "the pool"}, param{name: "task", help: "the id of the task; empty: the whole pool"}
	given := param{name: "given", help: "what the first field of the form holds"}
	return []route{
		ofOne(shows("ask", tabled, (*exchange).askJob, ofClass, ofName, verb, given)),
		ofOne(acts("do", tabled, (*exchange).doJobForm, ofClass, ofName, verb)),
		shows("askpool", tabled, (*exchange).askPool, ofPool, ofTask, verb, given),
		acts("dopool", tabled, (*exchange).doPoolForm, ofPool, ofTask, verb),
	}
}

// onPage reports whether a verb is for people: those of programs and the one that waits for the end of all tasks are
// not.
func onPage(d verbs.Description) bool {
	return d.Name != drainVerb && (d.Role != verbs.Call || d.Name == signalVerb || d.Name == cancelVerb)
}

// buttons are the verbs of a table that the principal may use, of a whole definition or of one job or task.
func (x *exchange) buttons(t *verbs.Table, whole bool, id string, do, ask dashboard.Link) (all []dashboard.Verb) {
	for _, d := range t.Verbs() {
		if d.Whole != whole || !onPage(d) || x.may(d, t.Class(), id) != nil {
			continue
		}
		v := dashboard.Verb{Name: d.Name, Help: d.Help, Ask: verbLink(ask, d.Name)}
		if d.Effect == verbs.Harmless && d.Argument == "" {
			v.Do = verbLink(do, d.Name)
		}
		all = append(all, v)
	}
	return all
}

// verbLink is a link with a verb.
func verbLink(l dashboard.Link, verb string) dashboard.Link {
	query := url.Values{"verb": {verb}}
	for name, values := range l.Query {
		query[name] = values
	}
	return dashboard.Link{Route: l.Route, Query: query}
}

// jobLink and taskLink are links of the pages of verbs.
func jobLink(route string, id storage.ID) dashboard.Link {
	return dashboard.Link{Route: route, Query: url.Values{"class": {id.Class}, "name": {id.Name}}}
}

func taskLink(route, pool, task string) dashboard.Link {
	query := url.Values{"pool": {pool}}
	if task != "" {
		query.Set("task", task)
	}
	return dashboard.Link{Route: route, Query: query}
}

func (x *exchange) jobVerbs(t *verbs.Table, id storage.ID) []dashboard.Verb {
	return x.buttons(t, false, id.Name, jobLink("do", id), jobLink("ask", id))
}

// poolVerbs are the verbs of a pool, or of one of its tasks.
func (x *exchange) poolVerbs(t *verbs.Table, task string) []dashboard.Verb {
	return x.buttons(t, task == "", task, taskLink("dopool", t.Class(), task), taskLink("askpool", t.Class(), task))
}

func (x *exchange) askJob() error {
	id := storage.ID{Class: x.param("class"), Name: x.param("name")}
	return x.ask(false, id.Class, id.Name, dashboard.Ask{
		Of: dashboard.Name(id.Class) + "/" + dashboard.Name(id.Name), Back: jobLink("job", id), Do: jobLink("do", id),
	})
}

func (x *exchange) askPool() error {
	pool, task := x.param("pool"), x.param("task")
	p := dashboard.Ask{Of: "pool " + dashboard.Name(pool), Back: taskLink("pool", pool, ""), Do: taskLink("dopool", pool, task)}
	if task != "" {
		p.Of, p.Back = "task "+dashboard.Name(task)+" of "+p.Of, taskLink("task", pool, task)
	}
	return x.ask(true, pool, task, p)
}

// ask shows the form of a verb that the principal may use.
func (x *exchange) ask(pool bool, class, id string, p dashboard.Ask) error {
	t, d, err := x.find((*verbs.Table).Verbs, x.param("verb"), pool, class, id)
	if err != nil {
		return err
	}
	if !onPage(d) || pool && d.Whole != (id == "") {
		return badRequest("the verb has no page: use the API")
	}
	p.Verb, p.Help, p.Final = d.Name, d.Help, d.Effect == verbs.Final
	p.Do, p.Fields = verbLink(p.Do, d.Name), fieldsOf(d)
	if d.Name == signalVerb && t.Kind() == workflowKind {
		p.Key = rand.Text()
	}
	if p.Key != "" {
		p.Fields = slices.DeleteFunc(p.Fields, func(f dashboard.Field) bool { return f.Name == argField+".key" })
	}
	if len(p.Fields) > 0 {
		p.Fields[0].Value = x.param("given")
	}
	return x.page(p)
}

// argField is the name of the field with a whole argument. That of one field of an argument has it and a dot before.
const argField = "arg"

// fieldsOf are the fields of the form of a verb: one for each field of the argument, or one with the whole argument
// in JSON.
func fieldsOf(d verbs.Description) []dashboard.Field {
	if d.Argument == "" {
		return nil
	}
	whole := []dashboard.Field{{Name: argField, Label: "Argument in JSON", JSON: true, Form: d.Argument}}
	dec := json.NewDecoder(strings.NewReader(strings.ReplaceAll(d.Argument, "…", "null")))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return whole
	}
	var fields []dashboard.Field
	for dec.More() {
		name, err := dec.Token()
		var form json.RawMessage
		if err == nil {
			err = dec.Decode(&form)
		}
		if err != nil {
			return whole
		}
		f := dashboard.Field{Name: argField + "." + name.(string), Label: name.(string), Form: string(form)}
		if f.JSON = form[0] != '"'; f.JSON {
			f.Label += " in JSON"
		}
		f.Form = strings.Trim(f.Form, `"`)
		fields = append(fields, f)
	}
	return fields
}

// argument makes the argument of a verb of the fields of its form. A field that is empty is left out.
func argument(d verbs.Description, form url.Values) ([]byte, error) {
	arg := map[string]json.RawMessage{}
	for _, f := range fieldsOf(d) {
		text := form.Get(f.Name)
		raw := []byte(text)
		switch {
		case text == "":
			continue
		case !utf8.ValidString(text):
			return nil, badRequest("the field " + f.Label + " is no UTF-8")
		case !f.JSON:
			raw, _ = json.Marshal(text) // a string always encodes
		case !json.Valid(raw):
			return nil, badRequest("the field " + f.Label + " is no JSON")
		}
		if f.Name == argField {
			return bytes.TrimSpace(raw), unchanged(raw)
		}
		if err := unchanged(raw); err != nil {
			return nil, err
		}
		arg[strings.TrimPrefix(f.Name, argField+".")] = raw
	}
	if len(arg) == 0 && d.Optional {
		return nil, nil
	}
	return json.Marshal(arg)
}

func (x *exchange) doJobForm() error {
	id := storage.ID{Class: x.param("class"), Name: x.param("name")}
	if err := x.doForm(false, id.Class, id.Name); err != nil {
		return err
	}
	return x.seeJob(id)
}

func (x *exchange) doPoolForm() error {
	pool, task := x.param("pool"), x.param("task")
	if err := x.doForm(true, pool, task); err != nil {
		return err
	}
	if task != "" {
		return x.goTo(taskLink("task", pool, task).String())
	}
	return x.goTo(taskLink("pool", pool, "").String())
}

// doForm runs the verb of a form as the API runs it. The body is read when all else is known.
func (x *exchange) doForm(pool bool, class, id string) error {
	t, d, err := x.find((*verbs.Table).Verbs, x.param("verb"), pool, class, id)
	if err != nil {
		return err
	}
	var arg []byte
	if d.Argument != "" {
		form, err := x.form(x.config.MaxBodyBytes)
		if err != nil {
			return err
		}
		if arg, err = argument(d, form); err != nil {
			return err
		}
	}
	_, err = x.do(t, d, id, arg)
	return err
}
