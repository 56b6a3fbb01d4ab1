package cli

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/server/auth"
)

var tokenLine = regexp.MustCompile(`^holdfast_([a-z2-7]{16})_[0-9a-f]{64}\n$`)

// golden replaces the parts of an output that differ in each run.
func golden(out string) string {
	out = regexp.MustCompile(`holdfast_[a-z2-7]{16}_[0-9a-f]{64}`).ReplaceAllString(out, "TOKEN")
	out = regexp.MustCompile(`\b[a-z2-7]{16}\b`).ReplaceAllString(out, "ID")
	out = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`).ReplaceAllString(out, "TIME")
	return regexp.MustCompile(`  +`).ReplaceAllString(out, "  ")
}

// A token is added, accepted by a server, listed and revoked. Only the token is on standard output, so
// that a script can keep it; no other output has it.
func TestTokenVerbs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	add := func(args ...string) (id, text string) {
		t.Helper()
		o := run(t, Program{}, append([]string{"token", "add", "--file", file}, args...)...)
		o.must(t, Fine)
		m := tokenLine.FindStringSubmatch(o.out)
		if m == nil {
			t.Fatalf("the output is %q", o.out)
		}
		if want := "token ID (" + shown(args[1]) + ") is in " + file + "; it is printed this once:\n"; golden(o.errs) != want {
			t.Errorf("the note is %q, want %q", golden(o.errs), want)
		}
		return m[1], strings.TrimSpace(o.out)
	}
	_, board := add("--name", "board", "--role", "viewer")
	worker, workerText := add("--name", "worker of acme", "--call", "cart/acme/:add,get", "--call", "orders", "--expires", "90d")
	add("--name", "acme", "--role", "operator", "--prefix", "acme/", "--call", "orders", "--call", "cart/other/")

	tokens, err := auth.Tokens(file, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	who := func(text string) (auth.Principal, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		return tokens.Authenticate(r)
	}
	if p, err := who(board); err != nil || p.Role != auth.Viewer || p.Name != "board" || len(p.Grants) != 0 {
		t.Errorf("board is %+v, %v", p, err)
	}
	if p, err := who(workerText); err != nil || p.Role != auth.None || !p.MayCall("cart", "acme/1", "get") || p.MayCall("cart", "acme/1", "clear") || !p.MayCall("orders", "1", "start") {
		t.Errorf("worker is %+v, %v", p, err)
	}
	if err := tokens.Close(); err != nil { // stores the last uses
		t.Fatal(err)
	}

	o := run(t, Program{}, "token", "ls", "--file", file)
	o.must(t, Fine)
	want := []string{
		`ID  NAME  ROLE  PREFIX  CALLS  CREATED  EXPIRES  LAST USE`,
		`ID  "worker of acme"  none  -  cart/acme/:add,get orders  TIME  TIME  TIME`,
		`ID  acme  operator  acme/  orders/acme/ cart/other/  TIME  never  -`,
		`ID  board  viewer  -  -  TIME  never  TIME`,
	}
	got := strings.Split(strings.TrimSpace(golden(o.out)), "\n")
	if slices.Sort(got[1:]); !slices.Equal(got, want) { // those of one second are in the order of their ids
		t.Errorf("the list is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var list []auth.Token
	asJSON := run(t, Program{}, "token", "ls", "--file", file, "-o", "json")
	if err := json.Unmarshal([]byte(asJSON.out), &list); err != nil || len(list) != 3 || strings.Contains(asJSON.out, "sha256") {
		t.Errorf("the list as JSON: %v\n%s", err, asJSON.out)
	}
	i := slices.IndexFunc(list, func(t auth.Token) bool { return t.ID == worker })
	if ends := list[i].Expires.Sub(list[i].Created); ends.Round(time.Hour) != 90*24*time.Hour {
		t.Errorf("--expires 90d is %v", ends)
	}

	o = run(t, Program{}, "token", "revoke", "--file", file, worker)
	o.must(t, Fine)
	if golden(o.out) != "revoked ID (\"worker of acme\")\n" || o.errs != "" {
		t.Errorf("revoke: %q, %q", o.out, o.errs)
	}
	o = run(t, Program{}, "token", "revoke", "--file", file, worker)
	o.must(t, Usage, "there is no such token", worker)
	if tokens, err = auth.Tokens(file, auth.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := who(workerText); err == nil {
		t.Error("the revoked token is accepted")
	}
}

// As JSON, add prints the row and the token, and revoke the row that it has removed.
func TestTokenVerbsAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	o := run(t, Program{}, "token", "add", "--file", file, "--name", "ci", "--role", "admin", "--expires", "2099-01-01T00:00:00Z", "-o", "json")
	o.must(t, Fine)
	var added struct {
		auth.Token
		Text string `json:"token"`
	}
	if err := json.Unmarshal([]byte(o.out), &added); err != nil || added.Name != "ci" || added.Role != auth.Admin || !tokenLine.MatchString(added.Text+"\n") ||
		!added.Expires.Equal(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)) || o.errs != "" {
		t.Errorf("%v, %q: %s", err, o.errs, o.out)
	}
	o = run(t, Program{}, "token", "revoke", "--file", file, added.ID, "-o", "json")
	o.must(t, Fine)
	var removed auth.Token
	if err := json.Unmarshal([]byte(o.out), &removed); err != nil || removed.ID != added.ID || removed.Name != "ci" {
		t.Errorf("%v: %s", err, o.out)
	}
	run(t, Program{}, "token", "ls", "--file", file).must(t, Fine, "the file has no tokens")
	if o := run(t, Program{}, "token", "ls", "--file", file, "-o", "json"); o.out != "[]\n" {
		t.Errorf("no tokens as JSON: %q", o.out)
	}
}

// A wrong flag is one line and exit 2, a file that cannot be read exit 3; neither makes a file or changes one.
func TestTokenMistakes(t *testing.T) {
	dir := t.TempDir()
	absent, open, broken := filepath.Join(dir, "absent"), filepath.Join(dir, "open"), filepath.Join(dir, "broken")
	for path, content := range map[string]string{open: `{"version":1,"tokens":[]}`, broken: `{"version":1,`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	before := sum(t, dir)
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"token ls", Usage, "--file is missing"},
		{"token fly --file " + absent, Usage, "unknown"},
		{"token add --name ci --role viewer", Usage, "--file is missing"},
		{"token add --name ci --file " + absent, Usage, "--role and --call"},
		{"token add --role viewer --file " + absent, Usage, "the name must have"},
		{"token add --name ci --role root --file " + absent, Usage, `no role "root"`},
		{"token add --name ci --role viewer --prefix acme --file " + absent, Usage, `bad token "ci": the prefix "acme" does not end in "/"`},
		{"token add --name ci --call cart/acme --file " + absent, Usage, `the prefix "acme" of the grant for class cart does not end`},
		{"token add --name ci --call /acme/ --file " + absent, Usage, `a grant is for class ""`},
		{"token add --name ci --call cart: --file " + absent, Usage, "an empty name"},
		{"token add --name ci --call cart --separator= --file " + absent, Usage, "--separator is empty"},
		{"token add --name ci --role viewer --expires 0d --file " + absent, Usage, `--expires is "0d"`},
		{"token add --name ci --role viewer --expires -1h --file " + absent, Usage, "--expires"},
		{"token add --name ci --role viewer --expires soon --file " + absent, Usage, "--expires"},
		{"token add --name ci --role viewer --expires 2020-01-01T00:00:00Z --file " + absent, Usage, "not in the future"},
		{"token revoke --file " + absent, Usage, "accepts 1 arg"},
		{"token ls --file " + absent, Unopened, "does not exist"},
		{"token revoke x --file " + absent, Unopened, "does not exist"},
		{"token ls --file " + open, Unopened, "make it 0600"},
		{"token ls --file " + broken, Unopened, "ends before its JSON does"},
		{"token add --name ci --role viewer --file " + broken, Unopened, "ends before its JSON does"},
		{"token add --name ci --role viewer --file " + filepath.Join(absent, "x"), Unopened, "no such file or directory"},
	} {
		o := run(t, Program{}, strings.Fields(c.args)...)
		o.must(t, c.code, c.text)
		if strings.Count(o.errs, "\n") != 1 || o.out != "" {
			t.Errorf("%q: not one line: %q, %q", c.args, o.errs, o.out)
		}
	}
	if sum(t, dir) != before {
		t.Error("a mistake has changed a file")
	}
}

// The help names the value that each flag takes.
func TestTokenHelp(t *testing.T) {
	run(t, Program{}, "token").must(t, Fine, "add", "ls", "revoke", "--file")
	run(t, Program{}, "token", "add", "-h").must(t, Fine, "--role", "--prefix", "--call", "CLASS[/PREFIX][:NAME,...]", "--expires", "90d", "once")
	run(t, Program{}, "token", "revoke", "-h").must(t, Fine, "ID", "within 5 s")
}

// The parts of --call are told apart also if a prefix has colons or the separator is another.
func TestCalls(t *testing.T) {
	for _, c := range []struct {
		call, prefix, separator string
		want                    auth.Grant
	}{
		{"cart", "", "/", auth.Grant{Class: "cart"}},
		{"cart:add", "", "/", auth.Grant{Class: "cart", Names: []string{"add"}}},
		{"cart/acme/", "", "/", auth.Grant{Class: "cart", Prefix: "acme/"}},
		{"cart/acme/:add,get", "", "/", auth.Grant{Class: "cart", Prefix: "acme/", Names: []string{"add", "get"}}},
		{"cart/a:b/", "", "/", auth.Grant{Class: "cart", Prefix: "a:b/"}},
		{"cart/a:b/:add", "", "/", auth.Grant{Class: "cart", Prefix: "a:b/", Names: []string{"add"}}},
		{"cart/a:b.", "", ".", auth.Grant{Class: "cart", Prefix: "a:b."}},
		{"cart/acme:", "", ":", auth.Grant{Class: "cart", Prefix: "acme:"}},
		{"cart/acme::add", "", ":", auth.Grant{Class: "cart", Prefix: "acme:", Names: []string{"add"}}},
		{"cart/eu/acme/", "", "/", auth.Grant{Class: "cart", Prefix: "eu/acme/"}},
		{"cart", "acme/", "/", auth.Grant{Class: "cart", Prefix: "acme/"}},
		{"cart:add", "acme/", "/", auth.Grant{Class: "cart", Prefix: "acme/", Names: []string{"add"}}},
		{"cart/other/", "acme/", "/", auth.Grant{Class: "cart", Prefix: "other/"}},
	} {
		got := grantOf(c.call, c.prefix, c.separator)
		if got.Class != c.want.Class || got.Prefix != c.want.Prefix || !slices.Equal(got.Names, c.want.Names) {
			t.Errorf("--call %s is %+v, want %+v", c.call, got, c.want)
		}
	}
}
