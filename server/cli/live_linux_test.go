package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/internal/socket"
)

// liveShop is the shop of jobsIn behind a server, with a socket in its directory.
type liveShop struct {
	t     *testing.T
	dir   string
	addr  string // of TCP
	token map[string]string
	host  *object.Host
	end   func()
}

// serveShop opens a directory of jobsIn and serves it.
func serveShop(t *testing.T, dir string) *liveShop {
	t.Helper()
	p, _, _ := shop(true)
	s := &liveShop{t: t, dir: dir, token: map[string]string{}}
	tokens, err := auth.Tokens(filepath.Join(t.TempDir(), "tokens.json"), auth.Options{Create: true})
	must(t, err)
	for name, token := range map[string]auth.Token{
		"viewer": {Role: auth.Viewer}, "operator": {Role: auth.Operator}, "caller": {Grants: []auth.Grant{{Class: "thumbs"}, {Class: "cart"}}},
	} {
		token.Name = name
		_, text, err := tokens.Add(token)
		must(t, err)
		s.token[name] = text
	}
	s.host, err = object.Open(object.Options{Dir: dir}, server.Definitions(p.Definitions...)...)
	must(t, err)
	at := make(chan []net.Addr, 1)
	var types []verbs.Described
	for _, d := range p.Definitions {
		if d, ok := d.(verbs.Described); ok {
			types = append(types, d)
		}
	}
	srv, err := server.New(s.host, server.Config{Auth: tokens, Jobs: types, Objects: []server.Exposed{server.Class(carts, "put")}, Listening: func(a []net.Addr) { at <- a }, ShutdownTimeout: 24 * time.Hour})
	must(t, err)
	ctx, end := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- srv.Serve(ctx, "127.0.0.1:0", "unix:"+socket.Of(dir)) }()
	select {
	case a := <-at:
		s.addr = "http://" + a[0].String()
	case err := <-over:
		t.Fatal(err)
	}
	ended := false
	s.end = func() {
		if end(); !ended {
			ended = true
			must(t, <-over, tokens.Close())
		}
	}
	t.Cleanup(s.end)
	return s
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// run runs a verb on the server, by the socket in the directory.
func (s *liveShop) run(args ...string) outcome {
	s.t.Helper()
	return run(s.t, Program{}, append([]string{"--dir", s.dir}, args...)...)
}

// words runs a verb of which no argument has a space.
func (s *liveShop) words(line string) outcome {
	s.t.Helper()
	return s.run(strings.Fields(line)...)
}

// Proves V17: the verbs that look print the same of a server as of its directory after its end, of which
// standard error says that it is one.
func TestSameOfServerAndDirectory(t *testing.T) {
	s := serveShop(t, jobsIn(t))
	_, err := put.Call(t.Context(), s.host, hostile, order{Key: hostile, Value: hostile})
	must(t, err)
	_, err = putRaw.Call(t.Context(), s.host, "raw", []byte("a\xff"))
	must(t, err)
	var letter struct {
		Letters []struct{ Seq json.Number }
	}
	must(t, json.Unmarshal([]byte(s.words("-o json dead ls").out), &letter))
	lines := [][]string{
		{"inspect", "cart/" + hostile, "--values"}, {"events", "cart/" + hostile}, {"-o", "json", "events", "cart/" + hostile},
		{"dead", "show", "thumbs/0", letter.Letters[0].Seq.String()},
		{"-o", "json", "dead", "show", "thumbs/0", letter.Letters[0].Seq.String()},
	}
	for _, line := range []string{
		"ls cart", "ls cart --limit 1", "ls cart --prefix al", "ls report --label failed", "ls nothing", "ls cart --after alice",
		"jobs ls", "jobs ls --limit 1", "jobs ls report --label failed", "-o json jobs ls", "jobs view status report/daily", "jobs view state report/daily",
		"tasks ls thumbs", "tasks ls thumbs --state dead,running", "tasks ls thumbs --queue mail --key anna", "-o json tasks ls thumbs --limit 2",
		"inspect cart/alice", "inspect cart/raw --values", "inspect cart/raw --prefix a --limit 1", "inspect cart/none",
		"events cart/alice", "events cart/alice --limit 1", "events cart/none",
		"dead ls", "dead ls --kind task --error torn --since 1h", "dead ls --reason none", "-o json dead ls",
		"why report/daily", "why cart/none",
	} {
		lines = append(lines, strings.Fields(line))
	}
	live := make([]outcome, len(lines))
	for i, line := range lines {
		live[i] = s.run(line...)
		if live[i].code != Fine || live[i].errs != "" {
			t.Errorf("%q: exit %d, %s", line, live[i].code, live[i].errs)
		}
	}
	s.end()
	for i, line := range lines {
		cold := s.run(line...)
		if line[0] == "why" { // a directory has the reason that nothing has it open
			cold.must(t, Fine, "not-open")
			live[i].must(t, Fine)
			continue
		}
		if cold.code != Fine || cold.errs != "holdfast: no server answers for "+shown(s.dir)+": this is its directory, read as it is\n" {
			t.Errorf("%q of the directory: exit %d, %s", line, cold.code, cold.errs)
		}
		if live[i].out != cold.out || strings.ContainsAny(cold.out, "\x1b\t") {
			t.Errorf("%q of the server:\n%s\nof the directory:\n%s", line, live[i].out, cold.out)
		}
	}
}

// Proves V17: verbs, calls, views and waits reach the server by the socket of the directory; each refusal has its code of
// exit, and a repeat with one key adds nothing.
func TestVerbsOnAServer(t *testing.T) {
	s := serveShop(t, jobsIn(t))
	for _, c := range []struct {
		args  string
		code  int
		texts []string
	}{
		{"ls", Fine, []string{"cart", "report  3", "thumbs"}},
		{"jobs verbs", Fine, []string{"do start", "report/ID", "operator", "view state", "do enqueue"}},
		{"jobs verbs nothing", Fine, []string{"the server defines no such job type"}},
		{"why task thumbs/0-2", Fine, []string{"pool-paused", "resume"}},
		{"why", Found, []string{"report/weekly", "ended"}},
		{"why thumbs", Usage, []string{"is no object"}},
		{"jobs do resume report/weekly", Fine, []string{"done"}},
		{"jobs do resume report/none", Refused, []string{"no such job"}},
		{"jobs do fly report/weekly", Usage, []string{`has no "fly"`}},
		{"jobs do fly nothing/x", Usage, []string{"no such job type"}},
		{`jobs do stop report/weekly {"reason":"enough"}`, Fine, []string{"done"}},
		{"jobs do stop report/weekly", Refused, []string{"The status of the job does not allow it"}},
		{"inspect report/weekly", Fine, []string{"newest events", "stopped"}},
		{"jobs view status report/weekly", Fine, []string{`"stopReason":"enough"`}},
		{"jobs view stats thumbs", Fine, []string{`"submitted":3`}},
		{"jobs view phases thumbs/0-1", Usage, []string{"stats of a pool"}},
		{"tasks cancel thumbs/0-2", Fine, []string{`"cancelled"`}},
		{"jobs do resume thumbs", Fine, []string{"done"}},
		{"tasks enqueue thumbs 21 --key bob --idempotent once", Fine, []string{`"id":"0-4"`}},
		{"tasks enqueue thumbs 21 --key bob --idempotent once", Fine, []string{`"repeated":true`}},
		{"jobs do enqueue thumbs {\"in\":2} --key twice", Fine, []string{`"id":"0-5"`}},
		{"jobs do enqueue thumbs {\"in\":2} --key twice", Fine, []string{`"repeated":true`}},
		{"tasks wait thumbs/0-4", Fine, []string{"42\n"}},
		{"jobs view wait thumbs/0-4", Fine, []string{"42\n"}},
		{"tasks wait thumbs/0-1", Refused, []string{`task is dead: "torn"`}},
		{"tasks wait thumbs/0-2", Refused, []string{"cancelled"}},
		{"tasks enqueue thumbs true", Usage, []string{"the argument is"}},
		{`call cart/bob put {"Key":"a","Value":"1"} --key k`, Fine, []string{"0\n"}},
		{`call cart/bob put {"Key":"a","Value":"1"} --key k`, Fine, []string{"0\n"}},
		{`call cart/bob put {"Key":"a","Value":"2"} --key k`, Refused, []string{"Idempotency-Key"}},
		{"call cart/bob put 7", Usage, []string{"argument"}},
		{"call cart/bob putRaw \"\"", Refused, []string{"no such method"}},
		{"call cart/bob put {", Usage, []string{"not JSON"}},
		{"events cart/bob", Fine, []string{"put", `"a"`}},
		{"events report/weekly --limit 2", Fine, []string{"created"}},
		{"recover", Fine, []string{"recovered 0"}},
		{"ls a\x00b", Usage, []string{"NUL"}},
		{"dead show cart/bob 7", Usage, []string{"no such dead letter"}},
		{"dead ls --after zz", Usage, []string{"cursor"}},
		{"--sock x ls --limit 5", Usage, []string{"write ls CLASS"}},
		{"verify", Unopened, []string{"pid", socket.Of("")[1:]}},
		{"recover --repair", Refused, []string{"knows no classes"}},
	} {
		o := s.words(c.args)
		o.must(t, c.code, c.texts...)
		if c.code > Found && (strings.Count(o.errs, "\n") != 1 || o.out != "") {
			t.Errorf("%s: not one line: %q, %q", c.args, o.errs, o.out)
		}
	}
	events, err := s.host.Events(t.Context(), carts.ID("bob"), 0, 10)
	if err != nil || len(events) != 1 {
		t.Errorf("the repeat of a call with its key has run the method: %v, %v", events, err)
	}
}

// Proves V17: verbs over many tell the count, and act with --yes, or when the person at the terminal says yes, alone.
func TestConfirmation(t *testing.T) {
	s := serveShop(t, jobsIn(t))
	asked := func(said string, args string) outcome {
		var out, errs bytes.Buffer
		r := &session{program: Program{Name: "holdfast"}, in: strings.NewReader(said), out: &out, errs: &errs, asks: true}
		code := r.execute(t.Context(), append([]string{"--dir", s.dir}, strings.Fields(args)...))
		return outcome{code, out.String(), errs.String()}
	}
	s.words("dead replay").must(t, Refused, "give --yes to act on 1 dead letter")
	for _, said := range []string{"", "no\n", "y\n", "\n"} {
		asked(said, "dead replay").must(t, Refused, "act on 1 dead letter", "Write yes", "nothing was changed")
	}
	s.words("dead ls").must(t, Fine, "thumbs/0")
	asked("yes\n", "dead replay --error torn").must(t, Fine, "1 dead letter: 1 done, 0 skipped, 0 refused")
	s.words("dead ls").must(t, Fine, "no such dead letters")
	s.words("jobs all fly report --label failed --yes").must(t, Usage, `has no "fly"`)
	s.words(`jobs all stop report {"why":1} --label failed --yes`).must(t, Refused, "0 done, 0 skipped, 1 refused", "the last:")
	s.words("-o json jobs all resume report --label failed --yes").must(t, Fine, `"matches": 1`, `"done": 1`)
	s.words("jobs ls --label failed").must(t, Fine, "no such jobs")
	s.words("dead discard --yes").must(t, Fine, "0 dead letters: 0 done")
	s.words("dead discard --yes --open").must(t, Refused, "knows no classes")
	s.words("bulk ls").must(t, Fine, "replay", "resume", "done")
	s.words("bulk ls --running").must(t, Fine, "no such runs")
	s.words("bulk ls --limit 1").must(t, Fine, "more: --after")
	s.words("bulk stop none").must(t, Refused, "no such thing")
	s.words("bulk stop").must(t, Usage, "arg")
}

// Proves V17, V21: a verb over many whose server ends, or cannot be reached any more, tells how far it was, that the run
// goes on at the server, and how to end it.
func TestARunThatGoesOn(t *testing.T) {
	const lines = `{"done": 0, "id": "r1"}` + "\n" + `{"done": 2, "id": "r1"}` + "\n"
	for end, text := range map[string]string{
		"": "has not told the end", `{"done": 2, "problem": {"type": "shutting-down", "title": "The host is shutting down.", "status": 503}, "id": "r1"}` + "\n": "shutting down",
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ":count") {
				_, _ = io.WriteString(w, `{"matches": 7, "token": "t"}`) // the client tells of an error
				return
			}
			_, _ = io.WriteString(w, lines+end)
		}))
		t.Cleanup(web.Close)
		o := run(t, Program{}, "--addr", web.URL, "dead", "replay", "--yes")
		o.must(t, Unopened, "7 dead letters: 2 done", "the run goes on at the server", "bulk stop r1", text)
	}
}

// Proves V17: over TCP the token is that of the environment or of a file, and the rights are the token's. A
// token is no flag, and does not leave this machine in the open.
func TestTokens(t *testing.T) {
	s := serveShop(t, jobsIn(t))
	at := func(args string) outcome {
		return run(t, Program{}, append([]string{"--addr", s.addr}, strings.Fields(args)...)...)
	}
	at("jobs ls").must(t, Refused, "no credentials")
	t.Setenv(tokenVariable, s.token["viewer"])
	o := at("jobs ls")
	o.must(t, Fine, "report/weekly")
	if strings.Contains(o.out, "no paper") {
		t.Error("a viewer sees an error")
	}
	at("inspect cart/alice").must(t, Fine, "total")
	at("inspect cart/alice --values").must(t, Refused, "role reader")
	at("jobs do resume report/weekly").must(t, Refused, "role operator")
	at("call cart/alice put").must(t, Refused, "no such method")
	at("recover").must(t, Fine, "recovered 0")
	t.Setenv(tokenVariable, "holdfast_wrong")
	at("jobs ls").must(t, Refused, "wrong, revoked or too old")
	t.Setenv(tokenVariable, s.token["caller"])
	at("tasks enqueue thumbs 3").must(t, Fine, `"id"`)
	at("jobs ls").must(t, Refused, "role viewer")
	file := filepath.Join(t.TempDir(), "token")
	run(t, Program{}, "--addr", s.addr, "--token-file", file, "ls").must(t, Unopened, "no such file")
	must(t, os.WriteFile(file, []byte(s.token["operator"]+"\n"), 0o600))
	run(t, Program{}, "--addr", s.addr, "--token-file", file, "jobs", "do", "resume", "report/weekly").must(t, Fine, "done")
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--addr", "http://192.0.2.1:7070", "ls"}, Usage, "in the open"},
		{[]string{"--addr", "127.0.0.1:7070", "ls"}, Usage, "no address of a server"},
		{[]string{"--addr", s.addr, "--sock", "x", "ls"}, Usage, "take one"},
		{[]string{"--sock", "x", "--token-file", file, "ls"}, Usage, "is for --addr"},
		{[]string{"--addr", s.addr, "verify"}, Usage, "of a directory"},
		{[]string{"--addr", s.addr, "jobs", "do", "resume", "thumbs", "--open"}, Refused, "knows no classes"},
		{[]string{"--sock", filepath.Join(s.dir, "none.sock"), "ls"}, Unopened, "cannot reach the server"},
		{[]string{"--dir", filepath.Join(s.dir, "none"), "call", "cart/a", "put"}, Refused, "needs a server"},
		{[]string{"call", "cart/a", "put"}, Usage, "--dir is missing"},
	} {
		o := run(t, Program{}, c.args...)
		o.must(t, c.code, c.text)
		if strings.Count(o.errs, "\n") != 1 || strings.Contains(o.errs, s.token["caller"]) {
			t.Errorf("%q: %q", c.args, o.errs)
		}
	}
}

// Proves V17: events -f shows stored events and then those that happen, of objects and of jobs, and ends
// in order when it is interrupted.
func TestFollow(t *testing.T) {
	s := serveShop(t, jobsIn(t))
	for id, change := range map[string]func() error{
		"cart/alice": func() error {
			_, err := put.Call(t.Context(), s.host, "alice", order{Key: hostile, Value: "2"})
			return err
		},
		"report/daily": func() error {
			o := s.words("jobs do pause report/daily")
			if o.code != Fine {
				return errors.New(o.errs)
			}
			o = s.words("jobs do resume report/daily")
			if o.code != Fine {
				return errors.New(o.errs)
			}
			return nil
		},
	} {
		ctx, end := context.WithCancel(t.Context())
		r, w := io.Pipe()
		var errs bytes.Buffer
		over := make(chan int, 1)
		go func() {
			over <- Run(ctx, Program{}, []string{"--dir", s.dir, "events", id, "-f"}, strings.NewReader(""), w, &errs)
			_ = w.Close() // it never fails
		}()
		wait := regexp.MustCompile(`"../../jobs/pay/\\x1b\[2J|"\.\./\.\./jobs|paused|resumed`)
		// A stream of a job begins with the next event, so changes go on until one has come.
		stop, changed := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-stop:
					changed <- nil
					return
				default:
				}
				if err := change(); err != nil {
					changed <- err
					return
				}
			}
		}()
		text := ""
		for buf := make([]byte, 4096); !wait.MatchString(text); {
			n, err := r.Read(buf)
			if text += string(buf[:n]); err != nil {
				t.Fatalf("%s: %v after %q, %s", id, err, text, &errs)
			}
		}
		close(stop)
		end()
		go func() { _, _ = io.Copy(io.Discard, r) }() // the rest
		if code := <-over; code != Interrupted || errs.String() != "holdfast: interrupted\n" {
			t.Errorf("%s: exit %d, %q", id, code, &errs)
		}
		must(t, <-changed)
		if strings.ContainsAny(text, "\x1b\t") {
			t.Errorf("a raw control byte in %q", text)
		}
	}
	s.end()
	s.words("events cart/alice -f").must(t, Refused, "needs a server")
}
