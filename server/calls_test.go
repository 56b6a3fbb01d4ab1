package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// cart is an object with methods that end in every way.
type cart struct {
	st *object.State
	n  int
}

// gates hold handlers until the test lets them go on, so that no test waits for time.
type gates struct {
	begun   chan string   // each handler that holds sends its object's name
	release chan struct{} // closed to let all go on
	ended   chan error    // the error of the context of each handler that held, at its end
}

// cartClass makes the class of carts. The methods that hold use g.
func cartClass(g *gates) *object.Class[cart] {
	class := object.Define("cart", func(ctx context.Context, st *object.State) (*cart, error) {
		if st.Name() == "broken" {
			return nil, errors.New("secret of the constructor")
		}
		c := &cart{st: st}
		_, err := st.Storage().GetInto(ctx, "n", &c.n)
		return c, err
	}, object.ClassOptions{MailboxLimit: 1})
	add := func(c *cart, ctx context.Context, n int) (int, error) {
		c.n += n
		return c.n, c.st.Storage().Put(ctx, "n", c.n)
	}
	object.Handle(class, "add", add)
	object.Handle(class, "get", func(c *cart, _ context.Context, _ struct{}) (int, error) { return c.n, nil })
	object.Handle(class, "hidden", add)
	object.Handle(class, "fail", func(c *cart, ctx context.Context, n int) (int, error) {
		_, err := add(c, ctx, n)
		return 0, errors.Join(err, errors.New("the cart is closed"))
	})
	object.Handle(class, "long", func(c *cart, ctx context.Context, n int) (int, error) {
		return 0, errors.New(strings.Repeat("ü", n))
	})
	object.Handle(class, "sync", func(c *cart, ctx context.Context, n int) (int, error) {
		_, err := add(c, ctx, n)
		return 0, errors.Join(err, c.st.Sync(ctx), errors.New("after the half"))
	})
	object.Handle(class, "panic", func(c *cart, ctx context.Context, n int) (int, error) {
		_, _ = add(c, ctx, n)
		panic("secret of the handler")
	})
	object.Handle(class, "float", func(c *cart, ctx context.Context, n int) (func(), error) {
		_, err := add(c, ctx, n)
		return nil, err // its type has no JSON
	})
	self := object.Handle(class, "self", func(c *cart, ctx context.Context, n int) (int, error) { return 0, nil })
	object.Handle(class, "circle", func(c *cart, ctx context.Context, n int) (int, error) {
		return self.Call(ctx, c.st, c.st.Name(), n)
	})
	object.Handle(class, "fill", func(c *cart, ctx context.Context, n int) (int, error) {
		return 0, c.st.Storage().PutBytes(ctx, "fill", make([]byte, n))
	})
	object.Handle(class, "hold", func(c *cart, ctx context.Context, n int) (int, error) {
		g.begun <- c.st.Name()
		<-g.release
		g.ended <- ctx.Err()
		return add(c, ctx, n)
	})
	return class
}

// exposeCarts exposes all methods but hidden.
func exposeCarts(class *object.Class[cart]) func(*Config) {
	return func(c *Config) {
		c.Objects = []Exposed{Class(class, "add", "get", "fail", "long", "sync", "panic", "float", "self", "circle", "fill", "hold")}
	}
}

func newGates() *gates {
	return &gates{make(chan string, 10), make(chan struct{}), make(chan error, 10)}
}

// call calls a method of a cart as the caller.
func (f *fixture) call(name, method, arg string, headers ...string) reply {
	f.t.Helper()
	return f.ask("caller", "POST", "/v1/objects/cart/"+name+"/call/"+method, arg, headers...)
}

// stored is the number that the store has for a cart, as JSON; empty if the cart does not exist.
func (f *fixture) stored(name string) string {
	f.t.Helper()
	page, err := f.host.Keys(context.Background(), storage.ID{Class: "cart", Name: name}, object.KeysOptions{Values: true})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(page.Keys) == 0 {
		return ""
	}
	return string(page.Keys[0].Value)
}

// Proves V2: the answer of a call is that of the method, and is durable.
func TestCall(t *testing.T) {
	class := cartClass(newGates())
	engine := memstore.New()
	f := startOn(t, object.Options{Storage: storage.Options{Engine: engine}}, exposeCarts(class), class)
	if a := f.call("a", "add", "5"); a.status != 200 || a.body != "5" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("V2: the call answers %+v", a)
	}
	if a := f.call("a", "get", ""); a.body != "5" || f.stored("a") != "5" {
		t.Errorf("V2: then it is %+v, the store has %s", a, f.stored("a"))
	}
	crashed, err := object.Open(object.Options{Storage: storage.Options{Engine: engine.Crash(0)}}, class)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = crashed.Shutdown(context.Background()) }()
	if b, err := crashed.CallBytes(t.Context(), "cart", "a", "get", nil); err != nil || string(b) != "5" {
		t.Errorf("V2: after a crash: %s, %v", b, err)
	}
	for body, want := range map[string]string{
		`{"class":"cart","name":"b","method":"add","argument":7}`:                                                                   "7",
		`{"class":"cart","name":"..","method":"add","argument":7}`:                                                                  "7",
		`{"class":"cart","name":"` + "\\u0000\\n" + `/","method":"add","argument":8}`:                                               "8",
		`{"class":"cart","name":"c","method":"add","argumentBytes":"` + base64.StdEncoding.EncodeToString([]byte("9")) + `"}`:       "9",
		`{"class":"cart","name":"c","method":"get"}`:                                                                                "",
		`{"class":"cart","name":"c","method":"add","argument":1,"argumentBytes":"MQ=="}`:                                            "!bad-request",
		`{"class":"cart","name":"c","method":"hidden","argument":1}`:                                                                "!unknown-method",
		`{"class":"cart","name":"","method":"add","argument":1}`:                                                                    "!bad-name",
		`{"class":"cart","name":"c","method":"add","argument":null}`:                                                                "",
		`{"class":"cart","name":"c","method":"add","arg":1}`:                                                                        "!bad-request",
		`{"class":"cart","name":"c","method":"add","argument":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`: "!bad-request",
	} {
		a := f.ask("caller", "POST", "/v1/call", body)
		if kind, bad := strings.CutPrefix(want, "!"); bad {
			if p := a.problem(t); p.Type != kind || p.Outcome != none {
				t.Errorf("%.80s: %+v, want %s", body, p, kind)
			}
		} else if a.status != 200 || want != "" && a.body != want {
			t.Errorf("%.80s: %+v, want %s", body, a, want)
		}
	}
}

// Proves V1: only methods that Config names can be called, with a grant. Proves V6: without one
// the answer is the same whether the object, the method or the class exists or not.
func TestOnlyExposedMethods(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, exposeCarts(class), class)
	f.call("acme%2F1", "add", "1")
	want := f.ask("caller", "POST", "/v1/objects/nothing/a/call/add", "1")
	if p := want.problem(t); want.status != 404 || p.Type != "unknown-method" {
		t.Fatalf("an unknown class: %+v", want)
	}
	for who, paths := range map[string][]string{
		"caller": {"cart/a/call/hidden", "cart/a/call/nothing"},
		"acme":   {"cart/other/call/add", "cart/acme%2F1/call/hidden", "cart/acme/call/add"},
		"admin":  {"cart/acme%2F1/call/add", "cart/a/call/add"},
		"nobody": {"cart/acme%2F1/call/add"},
	} {
		for _, path := range paths {
			if a := f.ask(who, "POST", "/v1/objects/"+path, "1"); a.status != 404 || a.body != want.body {
				t.Errorf("V1: %s calls %s: %+v", who, path, a)
			}
		}
	}
	if a := f.ask("acme", "POST", "/v1/objects/cart/acme%2F1/call/add", "1"); a.body != "2" {
		t.Errorf("a grant with a prefix: %+v", a)
	}
	if f.stored("a") != "" || f.stored("acme/1") != "2" {
		t.Errorf("V1: the store has %q and %q", f.stored("a"), f.stored("acme/1"))
	}
}

// Proves V4: each error tells its outcome, and the store agrees.
func TestOutcomes(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, exposeCarts(class), class)
	for _, c := range []struct {
		name, method, arg string
		status            int
		kind              string
		outcome           outcome
		retryable         bool
		stored            string
		says              string
	}{
		{"a", "add", "{", 400, "bad-argument", none, false, "", "unexpected end"},
		{"a", "add", strings.Repeat("[", 100_000), 400, "bad-argument", none, false, "", "depth"},
		{"a", "add", "", 400, "bad-argument", none, false, "", ""},
		{"%C0%AF", "add", "1", 400, "bad-name", none, false, "", "UTF-8"},
		{strings.Repeat("x", storage.MaxNameBytes+1), "add", "1", 400, "bad-name", none, false, "", "1025"},
		{"a", "fail", "1", 422, "handler-failed", none, false, "", "the cart is closed"},
		{"a", "long", "10000", 422, "handler-failed", none, false, "", "ü…"},
		{"b", "sync", "2", 422, "handler-failed", unknown, false, "2", "after the half"},
		{"a", "panic", "1", 500, "panic", none, false, "", ""},
		{"c", "float", "3", 422, "handler-failed", unknown, false, "3", "json"},
		{"a", "circle", "1", 409, "deadlock", none, false, "", "deadlock"},
		{"broken", "add", "1", 500, "constructor-failed", none, true, "", ""},
	} {
		a := f.call(c.name, c.method, c.arg)
		p := a.problem(t)
		if a.status != c.status || p.Type != c.kind || p.Outcome != c.outcome || p.Retryable != c.retryable || !strings.Contains(p.Detail, c.says) || len(p.Detail) > maxDetailBytes+3 {
			t.Errorf("V4: %s of %.10s: %+v, want %+v", c.method, c.name, p, c)
		}
		if c.kind != "bad-name" && f.stored(c.name) != c.stored {
			t.Errorf("V4: after %s the store has %q, want %q", c.method, f.stored(c.name), c.stored)
		}
		if strings.Contains(a.body, "secret") || strings.Contains(a.body, ".go:") {
			t.Errorf("V4: %s tells %s", c.method, a.body)
		}
	}
	if log := f.log.String(); !strings.Contains(log, "secret of the handler") || !strings.Contains(log, "secret of the constructor") {
		t.Errorf("the log lacks a cause: %s", log)
	}
}

// Proves V6: the problem of a deadlock names the objects of the circle to those alone who may know all names.
func TestDeadlockNamesNoOthers(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, exposeCarts(class), class)
	call := auth.Grant{Class: "cart"}
	own := auth.Grant{Class: "cart", Prefix: "acme/"}
	f.srv.config.Auth = people{
		"all": {Grants: []auth.Grant{call}}, "viewer": {Role: auth.Viewer, Grants: []auth.Grant{own}},
		"own": {Grants: []auth.Grant{own}}, "below": {Role: auth.Admin, Prefix: "acme/", Grants: []auth.Grant{call}},
	}
	for who, named := range map[string]bool{"all": true, "viewer": true, "own": false, "below": false} {
		p := f.ask(who, "POST", "/v1/objects/cart/acme%2Fa/call/circle", "1").problem(t)
		if p.Type != deadlock || strings.Contains(p.Detail, "cart/acme/a") != named || !named && p.Detail != "" {
			t.Errorf("%s: %+v", who, p)
		}
	}
}

// Names that differ stay different, so a body whose decoder would change them is refused.
func TestNamesInBodies(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, exposeCarts(class), class)
	for body, status := range map[string]int{
		`{"class":"cart","name":"\ud83d\ude00","method":"add","argument":1}`: 200, `{"class":"cart","name":"\ufffd","method":"add","argument":1}`: 200,
		`{"class":"cart","name":"\ud800","method":"add","argument":1}`: 400, `{"class":"cart","name":"\udfff","method":"add","argument":1}`: 400,
		"{\"class\":\"cart\",\"name\":\"\xff\",\"method\":\"add\",\"argument\":1}": 400,
	} {
		if a := f.ask("caller", "POST", "/v1/call", body); a.status != status {
			t.Errorf("%s: %d %s, want %d", body, a.status, a.body, status)
		}
	}
	if got := f.stored("\uFFFD"); got != "1" {
		t.Errorf("the object \uFFFD has %s", got)
	}
}

// Proves V4, V5: the end of the wait, by the header or because the client has gone, ends no
// handler; a call that still waits for its turn never runs.
func TestEndOfTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { endOfTheWait(t, false) })
}

// Proves V4, V5: so it is also if the handler has the goroutine of the request.
func TestEndOfTheWaitInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { endOfTheWait(t, true) })
}

// endOfTheWait has handlers run on goroutines of the host, or, of objects in memory, on those of the requests.
func endOfTheWait(t *testing.T, inMemory bool) {
	g := newGates()
	class := cartClass(g)
	f := start(t, exposeCarts(class), class)
	for _, name := range []string{"a", "b", "c"} {
		if inMemory {
			f.call(name, "get", "")
		}
	}
	p := f.leaveHold("a")
	if p.Type != "outcome-unknown" || p.Status != 504 || p.Outcome != unknown || p.Retryable {
		t.Errorf("V4: a wait that ended: %+v", p)
	}
	<-g.begun
	if p := f.call("a", "add", "1", "Holdfast-Timeout", "10ms").problem(t); p.Type != "timeout" || p.Status != 504 || p.Outcome != none || !p.Retryable {
		t.Errorf("V4: a wait that ended in the mailbox: %+v", p)
	}
	if p := f.leaveHold("b", "Idempotency-Key", "k"); p.Outcome != unknown || !p.Retryable {
		t.Errorf("V4: a wait with a key that ended: %+v", p)
	}
	<-g.begun
	ctx, leave := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		r := f.request("caller", "POST", "/v1/objects/cart/c/call/hold").WithContext(ctx)
		r.Body, r.ContentLength = http.NoBody, 0
		r.Body = readCloser{strings.NewReader("1")}
		r.ContentLength = 1
		if _, err := f.web.Client().Do(r); !errors.Is(err, context.Canceled) {
			t.Errorf("the client that left got %v", err)
		}
	})
	<-g.begun
	leave()
	wg.Wait()
	close(g.release)
	for range 3 {
		if err := <-g.ended; err != nil {
			t.Errorf("V5: the context of a handler ended with %v", err)
		}
	}
	if a := f.call("b", "hold", "1", "Idempotency-Key", "k"); a.status != 200 || a.body != "1" {
		t.Errorf("V4: the repeat with the key: %+v", a)
	}
	for _, name := range []string{"a", "b", "c"} {
		if a := f.call(name, "get", ""); a.body != "1" || f.stored(name) != "1" {
			t.Errorf("V4: %s is %s, the store has %s", name, a.body, f.stored(name))
		}
	}
}

// leaveHold calls hold, and leaves after its wait.
func (f *fixture) leaveHold(name string, headers ...string) problem {
	f.t.Helper()
	began := time.Now()
	p := f.call(name, "hold", "1", append(headers, "Holdfast-Timeout", "10ms")...).problem(f.t)
	if took := time.Since(began); took != 10*time.Millisecond {
		f.t.Errorf("V4: the wait took %v", took)
	}
	return p
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// The header Holdfast-Timeout takes a duration up to that of Config, and Idempotency-Key up to
// 512 bytes.
func TestCallHeaders(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, func(c *Config) { exposeCarts(class)(c); c.Timeout = time.Minute }, class)
	for value, status := range map[string]int{
		"1m": 200, "60s": 200, "1s": 200, "60000000001ns": 400, "61s": 400, "0": 400, "-1s": 400, "": 400, "soon": 400, "5": 400,
	} {
		if a := f.call("a", "get", "", "Holdfast-Timeout", value); a.status != status {
			t.Errorf("Holdfast-Timeout %q: %+v, want %d", value, a, status)
		}
	}
	for n, status := range map[int]int{0: 400, 1: 200, 512: 200, 513: 400} {
		if a := f.call("a", "get", "", "Idempotency-Key", strings.Repeat("k", n)); a.status != status {
			t.Errorf("Idempotency-Key of %d bytes: %+v, want %d", n, a, status)
		}
	}
	if a := f.call("a", "get", "", "Holdfast-Timeout", "1s", "Holdfast-Timeout", "1s"); a.status != 400 {
		t.Errorf("two timeouts: %+v", a)
	}
}

// Proves V3: a repeat under one Idempotency-Key gets the first answer, by either route, and is refused with another
// argument; an error is no answer; and two principals never share a key.
func TestIdempotencyKey(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, func(c *Config) {
		exposeCarts(class)(c)
		c.Auth = people{"u": {Grants: []auth.Grant{{Class: "cart"}}}, "u1": {Grants: []auth.Grant{{Class: "cart"}}}}
	}, class)
	call := func(who, method, arg, key string) reply {
		return f.ask(who, "POST", "/v1/objects/cart/a/call/"+method, arg, "Idempotency-Key", key)
	}
	for _, c := range []struct{ who, arg, key, want string }{
		{"u", "1", "1k", "1"}, {"u", "1", "1k", "1"}, {"u", " 1\n", "1k", "1"},
		{"u1", "1", "k", "2"}, {"u", "1", "k", "3"}, {"u1", "1", "k", "2"},
	} {
		if a := call(c.who, "add", c.arg, c.key); a.body != c.want {
			t.Errorf("V3: %+v answers %s", c, a.body)
		}
	}
	for _, body := range []string{`"argument": 1`, `"argumentBytes": "MQ=="`} {
		if a := f.ask("u", "POST", "/v1/call", `{"class": "cart", "name": "a", "method": "add", `+body+`}`, "Idempotency-Key", "1k"); a.status != 200 || a.body != "1" {
			t.Errorf("V3: the repeat with %s in the body: %+v", body, a)
		}
	}
	another := []reply{
		call("u", "add", "100", "1k"),
		f.ask("u", "POST", "/v1/call", `{"class": "cart", "name": "a", "method": "add", "argument": 100}`, "Idempotency-Key", "1k"),
	}
	for _, a := range another {
		if p := a.problem(t); a.status != 422 || p.Type != "key-reused" || p.Outcome != none || p.Retryable || p.Detail != "" {
			t.Errorf("V3: another argument under the key: %+v", p)
		}
	}
	for range 2 {
		if p := call("u", "fail", "1", "f").problem(t); p.Type != "handler-failed" {
			t.Errorf("V3: an error was kept: %+v", p)
		}
	}
	if f.stored("a") != "3" {
		t.Errorf("V3: the store has %s", f.stored("a"))
	}
}

// Proves V3: no id and key of one principal give the stored key of another, however both are made.
func TestStoredKeys(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"", "a", "ab", "a\x00", "\x00", "a/b", "1:a", strings.Repeat("a", 256), "http/", "\x00\x00\x00\x00\x00\x00\x00\x01a"} {
		for _, key := range []string{"b", "ab", "a", "\x00b", "b/ab", "1:ab", "\x00\x00\x00\x00\x00\x00\x00\x01ab"} {
			at := fmt.Sprintf("%q %q", id, key)
			k := storedKey(id, key)
			if seen[k] != "" || len(k) != len(storedKey("", "")) {
				t.Errorf("V3: %s and %s share the key %s", seen[k], at, k)
			}
			seen[k] = at
		}
	}
}

// Proves V4: an object with a full mailbox refuses, and nothing of the call is left.
func TestOverload(t *testing.T) {
	g := newGates()
	class := cartClass(g)
	f := start(t, exposeCarts(class), class)
	var wg sync.WaitGroup
	wg.Go(func() {
		if a := f.call("a", "hold", "1"); a.body != "1" {
			t.Errorf("the first: %+v", a)
		}
	})
	<-g.begun
	wg.Go(func() {
		if a := f.call("a", "add", "1"); a.body != "2" {
			t.Errorf("the second: %+v", a)
		}
	})
	for f.waiting("a") == 0 {
	}
	a := f.call("a", "add", "10")
	if p := a.problem(t); a.status != 429 || p.Type != "overloaded" || p.Outcome != none || !p.Retryable || a.header.Get("Retry-After") != "1" {
		t.Errorf("V4: the third: %+v", p)
	}
	close(g.release)
	wg.Wait()
	if f.stored("a") != "2" {
		t.Errorf("V4: the store has %s", f.stored("a"))
	}
}

// waiting is how many calls wait for a cart.
func (f *fixture) waiting(name string) int {
	e, err := f.host.Explain(context.Background(), storage.ID{Class: "cart", Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	return e.Mailbox.Calls
}

// Proves V4: a full disk refuses a turn that writes, and leaves nothing; one that reads runs.
func TestNoSpace(t *testing.T) {
	disk := fulldisk.New()
	class := cartClass(newGates())
	f := startOn(t, object.Options{Dir: "data", Storage: storage.Options{MinFreeBytes: 50 << 20, Pebble: pebblestore.Options{FS: disk}}}, exposeCarts(class), class)
	if a := f.call("a", "add", "1"); a.body != "1" {
		t.Fatalf("with space: %+v", a)
	}
	disk.SetFull(true)
	for range 5 { // the store looks at the space once in 4 MiB of commits
		if a := f.call("filler", "fill", "1048576"); a.status != 200 && a.problem(t).Type != "no-space" {
			t.Fatalf("V4: a turn that writes much: %+v", a)
		}
	}
	a := f.call("a", "add", "1")
	if p := a.problem(t); a.status != 507 || p.Type != "no-space" || p.Outcome != none || !p.Retryable {
		t.Errorf("V4: without space: %+v", p)
	}
	if a := f.call("a", "get", ""); a.body != "1" {
		t.Errorf("a read without space: %+v", a)
	}
	if a := f.ask("viewer", "GET", "/v1/health", ""); !strings.Contains(a.body, `"ok":false`) || !strings.Contains(a.body, "noSpace") {
		t.Errorf("health without space: %+v", a)
	}
	disk.SetFull(false)
	if a := f.call("a", "add", "1"); a.body != "2" {
		t.Errorf("V4: with space again: %+v", a)
	}
}

// Proves V4: a store that fails answers 503 with an unknown outcome, and so do all calls after it.
func TestFailingStore(t *testing.T) {
	class := cartClass(newGates())
	probe := failing.At(0)
	f := startOn(t, object.Options{Storage: storage.Options{Engine: probe.Engine(memstore.New())}}, exposeCarts(class), class)
	f.call("a", "add", "1")
	before := int(probe.Count())
	f.call("a", "add", "1")
	after := int(probe.Count())
	for n := before + 1; n <= after; n++ {
		disk := failing.At(n)
		f := startOn(t, object.Options{Storage: storage.Options{Engine: disk.Engine(memstore.New())}}, exposeCarts(class), class)
		f.call("a", "add", "1")
		a := f.call("a", "add", "1")
		if !disk.Failed() {
			continue // the operations before have come in another number
		}
		if a.status == 200 {
			continue // it failed beside the call
		}
		if p := a.problem(t); a.status != 503 || p.Type != "storage-failed" || p.Outcome != unknown || p.Retryable || strings.Contains(a.body, "on purpose") {
			t.Errorf("V4: %v: %+v", disk, p)
		}
		if p := f.call("a", "get", "").problem(t); p.Status != 503 {
			t.Errorf("V4: %v: a later call: %+v", disk, p)
		}
	}
}

// Proves V4: a host that has shut down answers 503, and nothing of the call is left.
func TestShutdown(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, exposeCarts(class), class)
	if err := f.host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := f.call("a", "add", "1")
	if p := a.problem(t); a.status != 503 || p.Type != "shutting-down" || p.Outcome != none || !p.Retryable || a.header.Get("Retry-After") != "1" {
		t.Errorf("V4: after Shutdown: %+v", p)
	}
	if a := f.ask("viewer", "GET", "/v1/health", ""); a.status != 200 || !strings.Contains(a.body, `"ok":false`) {
		t.Errorf("health after Shutdown: %+v", a)
	}
}

// A client that closes its connection while it sends the body leaves no call.
func TestClientLeavesInTheBody(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, exposeCarts(class), class)
	conn, err := net.Dial("tcp", f.web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/objects/cart/a/call/add HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer caller\r\nContent-Length: 5\r\n\r\n1")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || a.StatusCode != 400 {
		t.Errorf("half a body: %+v, %v", a, err)
	}
	conn.Close()
	if f.stored("a") != "" {
		t.Errorf("half a body was stored: %s", f.stored("a"))
	}
}
