package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// note is an object with any rows, an alarm that fails and a dead letter.
type note struct{ st *object.State }

func (n *note) Alarm(context.Context, object.AlarmInfo) error {
	return object.Permanent(errors.New("secret of an alarm"))
}

// pair is a row of a note. Its bytes are in base64, because JSON has no strings that are not UTF-8.
type pair struct{ Key, Value []byte }

// notes makes the class of notes; buried gets each dead letter.
func notes(buried chan<- object.DeadLetter) *object.Class[note] {
	class := object.Define("note", func(_ context.Context, st *object.State) (*note, error) { return &note{st}, nil },
		object.ClassOptions{OnDeadLetter: func(_ context.Context, d object.DeadLetter) { buried <- d }})
	object.Handle(class, "put", func(n *note, ctx context.Context, rows []pair) (int, error) {
		for _, r := range rows {
			if err := n.st.Storage().PutBytes(ctx, string(r.Key), r.Value); err != nil {
				return 0, err
			}
		}
		return len(rows), nil
	})
	object.Handle(class, "alarm", func(n *note, ctx context.Context, _ struct{}) (int, error) {
		return 0, n.st.SetAlarm(ctx, n.st.Now())
	})
	return class
}

// into decodes an answer of 200.
func into[T any](t *testing.T, a reply) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != 200 {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// hostile are names that a path, a log or a page may change.
var hostile = []string{
	"a", "a/b", "a?b#c", "a b", "a+b", "%41", "%2F", "ü", "\x00", "a\nb\r\x1b[31m", "<script>", "a\\b", "..a", "...", ";", "//", strings.Repeat("x", 1024),
}

// byQueryAlone are the names that no path has, because a multiplexer or a proxy changes them.
var byQueryAlone = []string{".", "..", "/"}

// A name goes whole through the path, the list and the query, and each route of one object by
// the query answers as the one by the path. The names ., .. and / go by the query alone.
func TestNames(t *testing.T) {
	class := notes(nil)
	f := start(t, func(c *Config) { c.Objects = []Exposed{Class(class, "put")} }, class)
	f.srv.config.Auth = people{"w": principal("note")}
	for _, name := range slices.Concat(byQueryAlone, hostile) {
		body, _ := json.Marshal(map[string]any{"class": "note", "name": name, "method": "put", "argument": []pair{{[]byte("k"), []byte("1")}}})
		if a := f.ask("w", "POST", "/v1/call", string(body)); a.status != 200 {
			t.Errorf("%q: the call answers %+v", name, a)
		}
		path := "/v1/objects/note/" + url.PathEscape(name)
		query := "?class=note&name=" + url.QueryEscape(name)
		refused := slices.Contains(byQueryAlone, name)
		for _, suffix := range []string{"", "/keys", "/why"} {
			byPath, byQuery := f.ask("w", "GET", path+suffix, ""), f.ask("w", "GET", "/v1/object"+suffix+query, "")
			if byQuery.status != 200 {
				t.Errorf("%q: %s answers %+v", name, suffix, byQuery)
			}
			if refused && byPath.status != 400 || !refused && suffix != "/why" && byPath.body != byQuery.body {
				t.Errorf("%q: %s by the path is %+v, by the query %+v", name, suffix, byPath, byQuery)
			}
		}
	}
	var listed []string
	for _, o := range into[objectPage](t, f.ask("w", "GET", "/v1/objects/note", "")).Objects {
		listed = append(listed, o.ID.Name)
	}
	for _, name := range slices.Concat(byQueryAlone, hostile) {
		found := false
		for _, l := range listed {
			found = found || l == name
		}
		if !found {
			t.Errorf("%q is not in the list", name)
		}
		query := "?class=note&name=" + url.QueryEscape(name)
		if a := f.ask("w", "POST", "/v1/object/wake"+query, ""); a.status != 204 || a.body != "" {
			t.Errorf("%q: wake: %+v", name, a)
		}
		if a := f.ask("w", "DELETE", "/v1/object"+query, ""); a.status != 204 {
			t.Errorf("%q: delete: %+v", name, a)
		}
	}
	if a := f.ask("w", "GET", "/v1/objects/note", ""); a.body != `{"objects":[]}`+"\n" {
		t.Errorf("after all were deleted: %s", a.body)
	}
	for _, path := range []string{"/v1/objects/note/%C0%AF", "/v1/objects/note/%FF/keys", "/v1/objects/no%2Fte/a", "/v1/objects/n%00/a", "/v1/object?class=note", "/v1/object?name=a", "/v1/object/why?class=note&name=", "/v1/objects/%FF"} {
		if a := f.ask("w", "GET", path, ""); a.status != 400 || a.problem(t).Type != "bad-name" {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// Lists come in pages, each with a cursor for the next one, and each bound has both sides.
func TestPages(t *testing.T) {
	class := notes(nil)
	f := start(t, func(c *Config) { c.Objects = []Exposed{Class(class)} }, class)
	f.srv.config.Auth = people{"w": principal("note")}
	rows := []pair{{[]byte("\xff"), []byte("1")}, {[]byte("json"), []byte(`{"a": 1}`)}, {[]byte("raw"), []byte("\xff")}}
	for i := range 5 {
		rows = append(rows, pair{[]byte(fmt.Sprint("k", i)), []byte("2")})
	}
	for i := range 7 {
		if _, err := f.host.CallBytes(t.Context(), "note", fmt.Sprint("n", i), "put", marshal(t, rows)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	path, pages := "/v1/objects/note?limit=3&prefix=n", 0
	for after := ""; ; pages++ {
		page := into[objectPage](t, f.ask("w", "GET", path+"&after="+after, ""))
		for _, o := range page.Objects {
			names = append(names, o.ID.Name)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "n0 n1 n2 n3 n4 n5 n6" || pages != 2 {
		t.Errorf("the pages have %s, %d of them before the last", got, pages)
	}
	got := map[string]keyInfo{}
	for after := ""; ; {
		page := into[keyPage](t, f.ask("w", "GET", "/v1/objects/note/n0/keys?limit=3&after="+after, ""))
		for _, k := range page.Keys {
			name := k.Key
			if k.KeyBytes != nil {
				name = string(k.KeyBytes)
			}
			got[name] = k
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(got) != len(rows) || string(got["json"].Value) != `{"a":1}` || string(got["raw"].ValueBytes) != "\xff" || got["raw"].Value != nil || string(got["\xff"].Value) != "1" {
		t.Errorf("the keys are %+v", got)
	}
	if page := into[keyPage](t, f.ask("w", "GET", "/v1/objects/note/n0/keys?prefix=k&maxBytes=1", "")); len(page.Keys) != 1 || page.Next == "" {
		t.Errorf("a page of one byte: %+v", page)
	}
	for path, status := range map[string]int{
		"/v1/objects/note?limit=1000": 200, "/v1/objects/note?limit=1001": 400, "/v1/objects/note?limit=0": 200, "/v1/objects/note?size=1": 200,
		"/v1/objects/note/n0/keys?limit=1000": 200, "/v1/objects/note/n0/keys?limit=1001": 400,
		"/v1/objects/note/n0/keys?maxBytes=16777216": 200, "/v1/objects/note/n0/keys?maxBytes=16777217": 400,
		"/v1/objects/note?after=!": 400, "/v1/objects/note/n0/keys?after=!": 400, "/v1/objects/note?after=bjA": 200,
	} {
		if a := f.ask("w", "GET", path, ""); a.status != status {
			t.Errorf("%s: %+v, want %d", path, a, status)
		}
	}
}

// Proves V6: errors and arguments of users are left out below the role reader.
func TestErrorsBelowReader(t *testing.T) {
	buried := make(chan object.DeadLetter, 1)
	class := notes(buried)
	f := start(t, nil, class)
	if _, err := f.host.CallBytes(t.Context(), "note", "a", "alarm", nil); err != nil {
		t.Fatal(err)
	}
	<-buried
	for _, path := range []string{"/v1/objects/note/a", "/v1/object?class=note&name=a", "/v1/objects/note/a/why"} {
		if a := f.ask("reader", "GET", path, ""); !strings.Contains(a.body, "secret of an alarm") {
			t.Errorf("V6: %s for a reader: %s", path, a.body)
		}
		if a := f.ask("viewer", "GET", path, ""); a.status != 200 || strings.Contains(a.body, "secret") {
			t.Errorf("V6: %s for a viewer: %s", path, a.body)
		}
	}
}

// Proves V6: why the messages to an object wait is told from the role reader on, in the answer and in the snapshot
// of a stream.
func TestPausedBelowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boxes := object.Define("box", func(_ context.Context, st *object.State) (*object.State, error) {
			if st.Name() == "broken" {
				return nil, errors.New(secret)
			}
			return st, nil
		})
		take := object.Handle(boxes, "take", func(*object.State, context.Context, int) (int, error) { return 0, nil })
		object.Handle(boxes, "give", func(st *object.State, ctx context.Context, to string) (int, error) {
			return 0, take.Send(ctx, st, to, 1)
		})
		host, err := object.Open(memory(), Definitions(boxes)...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = host.Shutdown(context.Background()) }()
		srv, err := New(host, Config{Auth: staff})
		if err != nil {
			t.Fatal(err)
		}
		s := &shop{fixture: &fixture{t: t, host: host, srv: srv}}
		if _, err := host.CallBytes(t.Context(), "box", "a", "give", []byte(`"broken"`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for who, told := range map[string]bool{"viewer": false, "reader": true} {
			st := &stream{exchange: &exchange{Server: srv, who: staff[who]}, of: object.TapOptions{Class: "box", Name: "broken"}}
			if err := st.snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			st.tap.Close()
			for _, text := range []string{s.direct(who, "GET", "/v1/objects/box/broken", "", 200), s.direct(who, "GET", "/v1/objects/box/broken/why", "", 200), st.frames.String()} {
				if strings.Contains(text, secret) != told {
					t.Errorf("V6: a %s gets %s", who, text)
				}
			}
		}
	})
}

// A label or a prefix that no object can have is the client's mistake, and each bound has both sides.
func TestBadLabels(t *testing.T) {
	class := notes(nil)
	f := start(t, nil, class)
	for query, status := range map[string]int{
		"label=" + strings.Repeat("x", 64): 200, "label=" + strings.Repeat("x", 65): 400, "label=%ff": 400, "label=a%00": 400, "label=": 200,
		"prefix=%ff": 400, "prefix=" + strings.Repeat("x", 1024): 200, "prefix=" + strings.Repeat("x", 1025): 400,
	} {
		if a := f.ask("viewer", "GET", "/v1/objects/note?"+query, ""); a.status != status {
			t.Errorf("%s: %d %s, want %d", query, a.status, a.body, status)
		}
	}
	if log := f.log.String(); log != "" {
		t.Errorf("the log has %s", log)
	}
}

// Proves V1: the generic routes change no job, and show no row of one. Classes are listed with the methods
// that Config names alone.
func TestJobsHaveTheirOwnRoutes(t *testing.T) {
	feeds := continuous.New(continuous.Config[string]{Name: "feed", Schedule: jobs.Every(time.Hour), StartLater: true,
		Run: func(context.Context, *continuous.Run[string]) error { return nil }})
	carts := cartClass(newGates())
	f := start(t, func(c *Config) { c.Objects = []Exposed{Class(carts, "add")} }, feeds, carts)
	if _, err := feeds.Start(t.Context(), f.host, "a", ""); err != nil {
		t.Fatal(err)
	}
	for _, class := range []string{"feed", "nothing", "holdfast.audit"} {
		for _, c := range []struct{ method, path string }{
			{"DELETE", "/v1/objects/" + class + "/a"}, {"DELETE", "/v1/object?name=a&class=" + class},
			{"GET", "/v1/objects/" + class + "/a/keys"}, {"GET", "/v1/object/keys?name=a&class=" + class},
			{"POST", "/v1/objects/" + class + "/a/wake"}, {"POST", "/v1/object/wake?name=a&class=" + class},
		} {
			if p := f.ask("admin", c.method, c.path, "").problem(t); p.Type != "unknown-class" || p.Status != 404 {
				t.Errorf("V1: %s %s: %+v", c.method, c.path, p)
			}
		}
	}
	if in := into[object.Inspection](t, f.ask("reader", "GET", "/v1/objects/feed/a", "")); !in.Exists || len(in.Keys) != 0 {
		t.Errorf("V1: a job is shown as %+v", in)
	}
	list := into[classList](t, f.ask("viewer", "GET", "/v1/classes", ""))
	want := classList{[]classInfo{{Name: "feed", Job: true, Alarms: true, Methods: []methodInfo{}}, {Name: "cart", Methods: []methodInfo{{"add", "int", "int"}}}}}
	if string(marshal(t, list)) != string(marshal(t, want)) {
		t.Errorf("V1: the classes are %+v", list)
	}
}

// Health is that of the host.
func TestDocuments(t *testing.T) {
	f := start(t, nil, cartClass(newGates()))
	if h := into[health](t, f.ask("viewer", "GET", "/v1/health", "")); !h.OK || h.Epoch == 0 || h.Failed != "" {
		t.Errorf("health: %+v", h)
	}
}

// New refuses each mistake in a Config and names its field.
func TestConfigMistakes(t *testing.T) {
	feeds := continuous.New(continuous.Config[string]{Name: "feed", Run: func(context.Context, *continuous.Run[string]) error { return nil }})
	strange := continuous.New(continuous.Config[string]{Name: "strange", Run: func(context.Context, *continuous.Run[string]) error { return nil }})
	carts, unknown := cartClass(newGates()), notes(nil)
	f := start(t, nil, feeds, carts)
	good := func() Config { return Config{Auth: everyone, Objects: []Exposed{Class(carts, "add")}} }
	if _, err := New(f.host, good()); err != nil {
		t.Fatal(err)
	}
	if _, err := New(nil, good()); err == nil {
		t.Error("New takes no host")
	}
	for field, change := range map[string]func(c *Config){
		"Config.Auth":           func(c *Config) { c.Auth = nil },
		"Config.MaxBodyBytes":   func(c *Config) { c.MaxBodyBytes = -1 },
		"Config.Timeout":        func(c *Config) { c.Timeout = -1 },
		"Config.HandlerTimeout": func(c *Config) { c.HandlerTimeout = -1 },
		"Config.CallsPerSecond": func(c *Config) { c.CallsPerSecond = -1 },
		"Config.Hosts":          func(c *Config) { c.Hosts = []string{""} },
		`no class "note"`:       func(c *Config) { c.Objects = []Exposed{Class(unknown)} },
		`"cart" twice`:          func(c *Config) { c.Objects = []Exposed{Class(carts), Class(carts)} },
		`no method "fly"`:       func(c *Config) { c.Objects = []Exposed{Class(carts, "fly")} },
		`"feed" is of a job`:    func(c *Config) { c.Objects = []Exposed{Class(feeds.Class)} },
		`no "strange"`:          func(c *Config) { c.Jobs = append(c.Jobs, strange) },
		`"feed" twice`:          func(c *Config) { c.Jobs = append(c.Jobs, feeds, feeds) },
		"Config.Jobs[0]":        func(c *Config) { c.Jobs = append(c.Jobs, nil) },
	} {
		c := good()
		change(&c)
		if _, err := New(f.host, c); err == nil || !strings.Contains(err.Error(), field) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Proves V4: the time of the header ends the wait for an object that a handler holds. Each route that may wait reads it.
func TestEndOfTheWaitForAnObject(t *testing.T) {
	g := newGates()
	class := cartClass(g)
	f := start(t, func(c *Config) {
		exposeCarts(class)(c)
		c.Auth = people{"u": {Role: auth.Admin, Grants: []auth.Grant{{Class: "cart"}}}}
	}, class)
	var wg sync.WaitGroup
	wg.Go(func() {
		f.ask("u", "POST", "/v1/objects/cart/a/call/hold", "1")
	})
	<-g.begun
	defer func() {
		close(g.release)
		<-g.ended
		wg.Wait()
	}()
	if p := f.ask("u", "POST", "/v1/objects/cart/a/wake", "", "Holdfast-Timeout", "10ms").problem(t); p.Status != 504 || p.Type != waitEnded || p.Outcome != unknown {
		t.Errorf("V4: the wake: %+v", p)
	}
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/v1/objects/cart/a/wake", ""},
		{"POST", "/v1/dead/replay", `{"class": "cart", "name": "a", "seq": 1}`},
		{"POST", "/v1/dead/discard", `{"class": "cart", "name": "a", "seq": 1}`},
		{"DELETE", "/v1/objects/cart/a?messages=1", ""},
	} {
		if p := f.ask("u", r.method, r.path, r.body, "Holdfast-Timeout", "0s").problem(t); p.Type != "bad-request" {
			t.Errorf("%s %s without a time: %+v", r.method, r.path, p)
		}
	}
}
