package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// shelf is a server with notes, jobs and a pool.
func shelf(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	class := notes(make(chan object.DeadLetter, 100))
	prints := workerpool.New(workerpool.Config[string, int]{Name: "print", Partitions: 1})
	return start(t, func(c *Config) {
		c.Objects, c.Jobs = []Exposed{Class(class)}, []verbs.Described{prints}
		if change != nil {
			change(c)
		}
	}, class, prints)
}

// note puts rows into a note.
func (f *fixture) note(name string, rows ...pair) {
	f.t.Helper()
	if _, err := f.host.CallBytes(f.t.Context(), "note", name, "put", marshal(f.t, rows)); err != nil {
		f.t.Fatal(err)
	}
}

// exported is the file of an object by HTTP.
func (f *fixture) exported(name string) string {
	f.t.Helper()
	a := f.ask("admin", "GET", "/v1/object/export?class=note&name="+url.QueryEscape(name), "")
	if a.status != 200 || a.header.Get("Content-Type") != linesType {
		f.t.Fatalf("V23: export of %q: %d %v %s", name, a.status, a.header, a.body)
	}
	return a.body
}

// keysOf are the keys of a note, one after another.
func (f *fixture) keysOf(name string) (all string) {
	f.t.Helper()
	page, err := f.host.Keys(f.t.Context(), storage.ID{Class: "note", Name: name}, object.KeysOptions{Values: true})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, k := range page.Keys {
		all += fmt.Sprintf("%q=%q ", k.Key, k.Value)
	}
	return all
}

// Proves V23: an export over HTTP is that of package transfer, an import of it elsewhere gives the same file again, and an
// object that exists is replaced only if it is asked for. The audit has each import.
func TestExportAndImport(t *testing.T) {
	here, there := shelf(t, nil), shelf(t, nil)
	for _, name := range slices.Concat(byQueryAlone, hostile) {
		here.note(name, pair{[]byte("text"), []byte("ü\n")}, pair{[]byte("raw\xff"), []byte{0, 1, 0xfe}})
		file := here.exported(name)
		var want bytes.Buffer
		if err := transfer.Export(t.Context(), here.host, storage.ID{Class: "note", Name: name}, &want, transfer.ExportOptions{}); err != nil || file != want.String() {
			t.Fatalf("V23: %q: %v: %s, want %s", name, err, file, want.String())
		}
		if !slices.Contains(byQueryAlone, name) {
			if a := here.ask("admin", "GET", "/v1/objects/note/"+url.PathEscape(name)+"/export", ""); a.body != file {
				t.Errorf("V23: by the path: %q: %d %s", name, a.status, a.body)
			}
		}
		a := there.ask("admin", "POST", "/v1/import", file)
		if a.status != 201 || a.body != string(marshal(t, importedObject{"note", name}))+"\n" {
			t.Fatalf("V23: import of %q: %d %s", name, a.status, a.body)
		}
		if again := there.exported(name); again != file {
			t.Errorf("V23: %q is %s, want %s", name, again, file)
		}
	}
	here.note("a", pair{[]byte("text"), []byte("new")})
	file := here.exported("a")
	if a := there.ask("admin", "POST", "/v1/import", file); a.status != 409 || a.problem(t).Type != "exists" || a.problem(t).Outcome != none || !strings.Contains(a.problem(t).Detail, "line 1 ") {
		t.Errorf("V23: over another: %d %s", a.status, a.body)
	}
	if a := there.ask("admin", "POST", "/v1/import?replace=1", file); a.status != 201 || there.exported("a") != file {
		t.Errorf("V23: in place of another: %d %s", a.status, a.body)
	}
	entries := into[auditPage](t, there.ask("admin", "GET", "/v1/audit?verb=import&limit=1000", "")).Entries
	got := briefs(entries[len(entries)-3:])
	if want := []string{"admin import note/" + strings.Repeat("x", 1024) + " done", "admin import note/a none: exists", "admin import note/a done"}; !slices.Equal(got, want) {
		t.Errorf("V20: %q", got)
	}
}

// Proves V23: an alarm comes along only if it is asked for.
func TestImportOfAnAlarm(t *testing.T) {
	f := shelf(t, nil)
	const head = `{"object":{"format":1,"class":"note","name":"n","codec":"json","counts":{"alarms":1,"executions":0,"letters":0,"events":0,"keys":0,"marks":0}}}` + "\n" +
		`{"alarm":{"due":"2100-01-01T00:00:00Z","scheduled":"2100-01-01T00:00:00Z"}}` + "\n"
	if a := f.ask("admin", "POST", "/v1/import?alarms=1", summed(head)); a.status != 201 {
		t.Fatalf("V23: %d %s", a.status, a.body)
	}
	id := storage.ID{Class: "note", Name: "n"}
	if in, err := f.host.Inspect(t.Context(), id); err != nil || in.Alarm == nil || in.Alarm.Due.Year() != 2100 {
		t.Errorf("V23: with the alarm: %+v, %v", in.Alarm, err)
	}
	with := strings.Replace(head, `"keys":0`, `"keys":1`, 1) + `{"key":"k","value":"1"}` + "\n"
	if a := f.ask("admin", "POST", "/v1/import?replace=1", summed(with)); a.status != 201 {
		t.Fatalf("V23: %d %s", a.status, a.body)
	}
	if in, err := f.host.Inspect(t.Context(), id); err != nil || in.Alarm != nil {
		t.Errorf("V23: without it: %+v, %v", in.Alarm, err)
	}
}

// Proves V23, V1: a file that no export has written, of a job, of the library or of a class that the host does not have, is
// refused with the outcome none, and nothing is stored.
func TestImportIsRefused(t *testing.T) {
	f := shelf(t, nil)
	f.note("n", pair{[]byte("k"), []byte("1")})
	file := f.exported("n")
	if a := f.ask("admin", "DELETE", "/v1/objects/note/n", ""); a.status != 204 {
		t.Fatal(a.body)
	}
	renamed := func(class, name string) string {
		head, rest, _ := strings.Cut(file, "\n")
		head = strings.Replace(head, `"class":"note","name":"n"`, `"class":`+class+`,"name":`+name, 1)
		rest, _, _ = strings.Cut(rest, `{"sha256"`)
		return summed(head + "\n" + rest)
	}
	for _, c := range []struct {
		name, file string
		status     int
		kind       string
	}{
		{"empty", "", 400, "bad-file"},
		{"no JSON", "hello", 400, "bad-file"},
		{"null", "null\n" + file, 400, "bad-file"},
		{"no first line", file[strings.Index(file, "\n")+1:], 400, "bad-file"},
		{"an endless first line", `{"object":{"class":"` + strings.Repeat("x", maxHeaderBytes), 400, "bad-file"},
		{"without its end", file[:len(file)-5], 400, "bad-file"},
		{"another byte", strings.Replace(file, `"1"`, `"2"`, 1), 400, "bad-file"},
		{"more behind its end", file + "x", 400, "bad-file"},
		{"two names", strings.Replace(file, `"name":"n"`, `"name":"n","name":"m"`, 1), 400, "bad-file"},
		{"two classes, of which the host has the second", strings.Replace(file, `"class":"note"`, `"class":"print","class":"note"`, 1), 400, "bad-file"},
		{"two headers", `{"object":{"class":"note","name":"n"},"object":{"class":"print","name":"0"}}` + file[strings.Index(file, "\n"):], 404, "unknown-class"},
		{"of a pool", renamed(`"print"`, `"0"`), 404, "unknown-class"},
		{"of the library", renamed(`"holdfast.audit"`, `"2026-01-01"`), 404, "unknown-class"},
		{"of no class", renamed(`"gone"`, `"n"`), 404, "unknown-class"},
		{"without a name", renamed(`"note"`, `""`), 400, "bad-name"},
		{"a long name", renamed(`"note"`, `"`+strings.Repeat("x", 1025)+`"`), 400, "bad-name"},
		{"of another codec", summed(strings.Replace(file[:strings.Index(file, `{"sha256"`)], `"codec":"json"`, `"codec":"gob"`, 1)), 422, "refused"},
	} {
		a := f.ask("admin", "POST", "/v1/import", c.file)
		if p := a.problem(t); a.status != c.status || p.Type != c.kind || p.Outcome != none {
			t.Errorf("V23: %s: %+v", c.name, p)
		}
	}
	if got := f.keysOf("n"); got != "" {
		t.Errorf("V23: it has stored %s", got)
	}
	if a := f.ask("admin", "POST", "/v1/import", file); a.status != 201 {
		t.Errorf("V23: the file itself: %d %s", a.status, a.body)
	}
}

// summed is the lines of a file with the last one.
func summed(lines string) string {
	return lines + fmt.Sprintf("{\"sha256\":\"%x\"}\n", sha256.Sum256([]byte(lines)))
}

// Proves V23, V1: an object that is not there, and one of a job, have no export, and one with messages that wait has one
// only without them.
func TestExportIsRefused(t *testing.T) {
	class := notes(nil)
	put := object.Handle(class, "touch", func(n *note, ctx context.Context, _ struct{}) (int, error) { return 0, nil })
	send := object.Handle(class, "send", func(n *note, ctx context.Context, _ struct{}) (int, error) {
		return 0, put.Send(ctx, n.st, "to", struct{}{}, object.After(time.Hour))
	})
	s := openShop(t, memory(), nil)
	f := start(t, func(c *Config) { c.Objects = []Exposed{Class(class)} }, class)
	f.note("to", pair{[]byte("k"), []byte("1")})
	if _, err := send.Call(t.Context(), f.host, "from", struct{}{}); err != nil {
		t.Fatal(err)
	}
	if a := f.ask("admin", "GET", "/v1/objects/note/to/export", ""); a.status != 409 || a.problem(t).Type != "messages-wait" {
		t.Errorf("V23: with a message: %d %s", a.status, a.body)
	}
	a := f.ask("admin", "GET", "/v1/objects/note/to/export?leaveMessages=1", "")
	if a.status != 200 || !strings.Contains(a.body, `"messages":1`) {
		t.Fatalf("V23: without its message: %d %s", a.status, a.body)
	}
	if b := f.ask("admin", "POST", "/v1/import?replace=1", a.body); b.status != 409 || b.problem(t).Type != "messages-wait" {
		t.Errorf("V23: import: %d %s", b.status, b.body)
	}
	if b := f.ask("admin", "POST", "/v1/import?replace=1&leaveMessages=1", a.body); b.status != 201 {
		t.Errorf("V23: import without: %d %s", b.status, b.body)
	}
	if a := f.ask("admin", "GET", "/v1/objects/note/nothing/export", ""); a.status != 404 || a.problem(t).Type != "not-found" {
		t.Errorf("V23: of nothing: %d %s", a.status, a.body)
	}
	s.fill()
	for _, at := range []string{"report/a", "print/0", "holdfast.audit/2026-01-01", "gone/x"} {
		if a := s.ask("admin", "GET", "/v1/objects/"+at+"/export", ""); a.status != 404 || a.problem(t).Type != "unknown-class" {
			t.Errorf("V1: %s: %d %s", at, a.status, a.body)
		}
	}
}

// Proves V5, V23: the file of an import has its bound, and few exports and imports are under way.
func TestBoundsOfTransfers(t *testing.T) {
	f := shelf(t, nil)
	f.note("n", pair{[]byte("k"), []byte("1")})
	file := f.exported("n")
	for limit, want := range map[int64]int{int64(len(file)): 201, int64(len(file) - 1): 413} {
		g := shelf(t, func(c *Config) { c.MaxImportBytes = limit })
		r := g.request("admin", "POST", "/v1/import")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(file)), -1 // without its length
		if a := g.do(r); a.status != want {
			t.Errorf("V5: %d bytes of %d: %d %s", limit, len(file), a.status, a.body)
		}
		if a := g.ask("admin", "POST", "/v1/import?replace=1", file); a.status != want {
			t.Errorf("V5: %d bytes of %d that are told: %d %s", limit, len(file), a.status, a.body)
		}
	}
	if a := f.ask("admin", "POST", "/v1/import", file, "Content-Encoding", "gzip"); a.status != 415 {
		t.Errorf("V5: compressed: %d", a.status)
	}
	var leave []func()
	for range maxTransfers {
		l, err := f.srv.transfers.enter()
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	for method, path := range map[string]string{"GET": "/v1/objects/note/n/export", "POST": "/v1/import?replace=1"} {
		if a := f.ask("admin", method, path, file); a.status != 429 || a.problem(t).Type != "too-many-transfers" || a.header.Get("Retry-After") == "" {
			t.Errorf("V5: one more: %d %s", a.status, a.body)
		}
	}
	leave[0]()
	if a := f.ask("admin", "POST", "/v1/import?replace=1", file); a.status != 201 {
		t.Errorf("V5: with room again: %d %s", a.status, a.body)
	}
	leave[1]()
}

// Proves V5, V23: a client that doesn't take an export in time is cut off, so that it has no whole file.
func TestSlowClientOfAnExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := shelf(t, nil)
		for i := range 16 {
			f.note("large", pair{fmt.Appendf(nil, "k%d", i), bytes.Repeat([]byte("x"), 1<<20)})
		}
		whole := f.exported("large")
		a, err := f.web.Client().Do(f.request("admin", "GET", "/v1/objects/note/large/export"))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		exports := func() int {
			f.srv.transfers.mu.Lock()
			defer f.srv.transfers.mu.Unlock()
			return f.srv.transfers.n
		}
		time.Sleep(f.srv.limits.answerTime - 1)
		settled(t, "V23: the client has not had its time", func() bool { return exports() == 1 })
		time.Sleep(time.Minute)
		settled(t, "V23: the client holds the export", func() bool { return exports() == 0 })
		part, err := io.ReadAll(a.Body)
		if err == nil || len(part) >= len(whole) || !strings.HasPrefix(whole, string(part)) {
			t.Errorf("V23: a client that does not read has %d bytes of %d: %v", len(part), len(whole), err)
		}
	})
}
