package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// cart is the class of the tests: a handler that stores a key, tells an event, sets an alarm
// or opens an execution, as its argument says.
type cart struct{ st *object.State }

func (c *cart) Alarm(context.Context, object.AlarmInfo) error {
	return object.Permanent(errors.New("card refused"))
}

// order is the argument of put.
type order struct {
	Key, Value string
	Alarm      time.Duration
	Execution  bool
}

var carts, put = cartClass(object.ClassOptions{})

func cartClass(o object.ClassOptions) (*object.Class[cart], *object.Method[order, int]) {
	class := object.Define("cart", func(_ context.Context, st *object.State) (*cart, error) { return &cart{st}, nil }, o)
	return class, object.Handle(class, "put", func(c *cart, ctx context.Context, o order) (int, error) {
		err := errors.Join(c.st.Storage().Put(ctx, o.Key, o.Value), c.st.Emit(ctx, "put", o.Key))
		if o.Alarm != 0 {
			err = errors.Join(err, c.st.SetAlarm(ctx, c.st.Now().Add(o.Alarm)))
		}
		if o.Execution {
			err = errors.Join(err, c.st.Driver().OpenExecution(ctx, nil))
		}
		return 0, err
	})
}

// putRaw stores a key under itself.
var putRaw = object.Handle(carts, "putRaw", func(c *cart, ctx context.Context, key []byte) (int, error) {
	return 0, c.st.Storage().PutBytes(ctx, string(key), key)
})

// hostile is a name that would move a cursor, forge a row and break out of HTML.
const hostile = "../../jobs/pay/\x1b[2J\t<b>\n4711?"

// killed is the directory of a program that was killed: a copy of that of one that runs. Its
// store has objects in the class cart, of which alice has an open execution, bob an alarm that
// is due in an hour, and carol a dead letter.
func killed(t *testing.T) string {
	t.Helper()
	live, dir := filepath.Join(t.TempDir(), "live"), filepath.Join(t.TempDir(), "data")
	died := make(chan struct{})
	class, put := cartClass(object.ClassOptions{OnDeadLetter: func(context.Context, object.DeadLetter) { close(died) }})
	host, err := object.Open(object.Options{Dir: live}, class)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]order{
		"alice": {Key: "total", Value: "499", Execution: true, Alarm: time.Hour},
		"bob":   {Key: "total", Value: "1", Alarm: time.Hour},
		"carol": {Key: "total", Value: "2", Alarm: -time.Second},
		hostile: {Key: hostile, Value: hostile},
	} {
		if _, err := put.Call(t.Context(), host, name, o); err != nil {
			t.Fatal(err)
		}
	}
	<-died
	if err := os.CopyFS(dir, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// outcome is what a run of the command line has printed, and its code of exit.
type outcome struct {
	code      int
	out, errs string
}

// run runs the command line.
func run(t *testing.T, p Program, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), p, args, strings.NewReader(""), &out, &errs)
	return outcome{code, out.String(), errs.String()}
}

// must checks the code of exit and that the output has all texts.
func (o outcome) must(t *testing.T, code int, texts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit %d, want %d\n%s%s", o.code, code, o.out, o.errs)
	}
	for _, text := range texts {
		if !strings.Contains(o.out+o.errs, text) {
			t.Errorf("no %q in\n%s%s", text, o.out, o.errs)
		}
	}
}

// sum is a hash of all that a directory holds.
func sum(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n", path, len(data))
		h.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Each verb answers on the store of a killed program and changes no byte of it.
func TestVerbsOnADirectory(t *testing.T) {
	dir := killed(t)
	before := sum(t, dir)
	for _, c := range []struct {
		args  string
		code  int
		texts []string
	}{
		{"ls", Fine, []string{"CLASS", "cart", "4"}},
		{"ls cart", Fine, []string{"alice", "bob", "carol", `"../../jobs/pay/\x1b[2J\t<b>\n4711?"`}},
		{"ls cart --prefix b -o wide", Fine, []string{"bob", "SIZE"}},
		{"ls cart --limit 2", Fine, []string{"more: --after alice"}},
		{"ls nothing", Fine, []string{"no such objects of class nothing"}},
		{"inspect cart/alice --values", Fine, []string{"cart/alice", "open since", "total", `"499"`, "put"}},
		{"inspect cart/bob", Fine, []string{"alarm      due 2"}},
		{"inspect cart/nobody", Fine, []string{"cart/nobody does not exist"}},
		{"events cart/alice", Fine, []string{"put", `"total"`}},
		{"events cart/alice --after 999999999999999", Fine, []string{"no such events"}},
		{"dead ls", Fine, []string{"cart/carol", "alarm", "card refused"}},
		{"dead ls --kind message", Fine, []string{"no such dead letters"}},
		{"dead ls --since 1h --class cart --error card", Fine, []string{"cart/carol"}},
		{"recover", Found, []string{"did not end in order: 1 crash in a row", "1 object with an open execution", "cart/alice"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			o := run(t, Program{}, append([]string{"--dir", dir}, strings.Fields(c.args)...)...)
			o.must(t, c.code, c.texts...)
			if strings.ContainsAny(o.out, "\x1b\t") {
				t.Errorf("a raw control byte in %q", o.out)
			}
			asJSON := run(t, Program{}, append([]string{"--dir", dir, "-o", "json"}, strings.Fields(strings.Replace(c.args, "-o wide", "", 1))...)...)
			asJSON.must(t, c.code)
			if !json.Valid([]byte(asJSON.out)) {
				t.Errorf("not one JSON value: %s", asJSON.out)
			}
		})
	}
	if sum(t, dir) != before {
		t.Error("the verbs have changed the directory")
	}
}

// A wrong verb, flag or argument is one line and exit 2; a store that cannot be opened is one
// line and exit 3.
func TestMistakes(t *testing.T) {
	dir := killed(t)
	file := filepath.Join(dir, "..", "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	used := filepath.Join(t.TempDir(), "used")
	host, err := object.Open(object.Options{Dir: used}, carts)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Shutdown(t.Context())
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"fly"}, Usage, `unknown command "fly"`},
		{[]string{"ls", "--wings"}, Usage, "unknown flag: --wings"},
		{[]string{"ls"}, Usage, "--dir is missing"},
		{[]string{"--dir", dir, "ls", "a", "b"}, Usage, "accepts at most 1 arg"},
		{[]string{"--dir", dir, "ls", "--limit", "5"}, Usage, "write ls CLASS"},
		{[]string{"--dir", dir, "ls", "cart", "--limit", "1001"}, Usage, "between 1 and 1000"},
		{[]string{"--dir", dir, "ls", "cart", "--limit", "-1"}, Usage, "--limit is -1"},
		{[]string{"--dir", dir, "ls", "a\x00b"}, Usage, "NUL"},
		{[]string{"--dir", dir, "-o", "xml", "ls"}, Usage, `-o is "xml"`},
		{[]string{"--dir", dir, "inspect", "alice"}, Usage, "write CLASS/NAME"},
		{[]string{"--dir", dir, "inspect", "cart/"}, Usage, "name is empty"},
		{[]string{"--dir", dir, "events", "cart/a", "--limit", "0"}, Usage, "--limit is 0"},
		{[]string{"--dir", dir, "dead", "show", "cart/a", "x"}, Usage, "number of a dead letter"},
		{[]string{"--dir", dir, "dead", "show", "cart/a", "7"}, Usage, "no such dead letter"},
		{[]string{"--dir", dir, "dead", "ls", "--after", "zz"}, Usage, "--after"},
		{[]string{"--dir", dir, "dead", "ls", "--after", "00"}, Usage, "cursor"},
		{[]string{"--dir", dir, "dead", "ls", "--since", "soon"}, Usage, "24h"},
		{[]string{"--dir", filepath.Join(dir, "none"), "ls"}, Unopened, "no such directory"},
		{[]string{"--dir", file, "ls"}, Unopened, "is a file"},
		{[]string{"--dir", empty, "ls"}, Unopened, "not"},
		{[]string{"--dir", used, "ls"}, Unopened, fmt.Sprint(os.Getpid())},
		{[]string{"--dir", dir, "recover", "--repair"}, Refused, "knows no classes"},
	} {
		o := run(t, Program{}, c.args...)
		o.must(t, c.code, c.text)
		if strings.Count(o.errs, "\n") != 1 || o.out != "" {
			t.Errorf("%q: not one line: %q, %q", c.args, o.errs, o.out)
		}
	}
}

// verify finds nothing in a store that was killed, names a damaged file, and changes no byte of
// either.
func TestVerify(t *testing.T) {
	dir := killed(t)
	before := sum(t, dir)
	run(t, Program{}, "--dir", dir, "verify").must(t, Fine, "checked in", "nothing found")
	o := run(t, Program{}, "--dir", dir, "verify", "-o", "json")
	o.must(t, Fine)
	if o.out != "[]\n" || o.errs != "" {
		t.Errorf("as JSON: %q, %q", o.out, o.errs)
	}
	if sum(t, dir) != before {
		t.Error("verify has changed the directory")
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	manifest := manifests[len(manifests)-1]
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(manifest, data, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := sum(t, dir)
	run(t, Program{}, "--dir", dir, "verify").must(t, Found, filepath.Base(manifest), "1 finding")
	if sum(t, dir) != damaged {
		t.Error("verify has changed the damaged directory")
	}
	run(t, Program{}, "--dir", dir, "ls").must(t, Unopened, filepath.Base(manifest))
	run(t, Program{}, "--dir", filepath.Join(dir, "none"), "verify").must(t, Unopened, "none")
}

// Proves O15: keys and values that are no UTF-8 are whole in JSON, and so is the key at which the next
// page begins, in JSON and in a table. A key that is text has no bytes beside it.
func TestKeysThatAreNoText(t *testing.T) {
	keys := []string{"a\x80", "a\xff", "a\xff\x00b", "é"} // sorted
	dir := filepath.Join(t.TempDir(), "data")
	host, err := object.Open(object.Options{Dir: dir}, carts)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if _, err := putRaw.Call(t.Context(), host, "raw", []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for start := ""; ; {
		args := []string{"--dir", dir, "inspect", "cart/raw", "--values", "--limit", "1", "-o", "json"}
		if start != "" {
			args = append(args, "--start-bytes", start)
		}
		o := run(t, Program{}, args...)
		o.must(t, Fine)
		var in object.Inspection
		if err := json.Unmarshal([]byte(o.out), &in); err != nil || len(in.Keys) != 1 {
			t.Fatalf("%v: %s", err, o.out)
		}
		k := in.Keys[0]
		if !utf8.Valid(k.Value) || len(k.KeyBytes) > 0 {
			k.Key = string(k.KeyBytes)
		}
		if k.Key != string(k.Value) {
			t.Errorf("key %q, value %q", k.Key, k.Value)
		}
		got = append(got, k.Key)
		if in.NextKey == "" {
			break
		}
		if start = base64.StdEncoding.EncodeToString(in.NextKeyBytes); start == "" {
			start = base64.StdEncoding.EncodeToString([]byte(in.NextKey))
		}
	}
	if !slices.Equal(got, keys) {
		t.Errorf("the keys are %q, want %q", got, keys)
	}
	next := base64.StdEncoding.EncodeToString([]byte(keys[1]))
	run(t, Program{}, "--dir", dir, "inspect", "cart/raw", "--limit", "1").must(t, Fine, `"a\x80"`, "more: --start-bytes "+next)
	run(t, Program{}, "--dir", dir, "inspect", "cart/raw", "--limit", "1", "--start", "b").must(t, Fine, "é")
	run(t, Program{}, "--dir", dir, "inspect", "cart/raw", "--start", "b", "--start-bytes", next).must(t, Usage, "take one")
	run(t, Program{}, "--dir", dir, "inspect", "cart/raw", "--start-bytes", "?").must(t, Usage, "--start-bytes")
}

// Proves R6: verify and recover tell of a row that cannot be decoded, name its object and exit with
// 1; recover goes on behind it.
func TestUnreadableRow(t *testing.T) {
	dir := killed(t)
	store, err := storage.Open(storage.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	bob, err := store.Find(carts.ID("bob"))
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := store.Alarm(bob)
	if err != nil {
		t.Fatal(err)
	}
	row, err := alarm.DecodeRow(value)
	if err != nil {
		t.Fatal(err)
	}
	due := alarm.Nanos(row.Due)
	var b storage.Batch
	b.MoveAlarm(bob, &due, &due, []byte{0}, alarm.AppendIndex(nil, row.Gen, "cart", "bob"))
	if _, err := store.Commit(&b); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, Program{}, "--dir", dir, "verify").must(t, Found, "cart/bob", "the alarm row cannot be decoded", "1 finding")
	run(t, Program{}, "--dir", dir, "recover").must(t, Found, "cart/bob", "the alarm row cannot be decoded", "1 object with an open execution", "cart/alice")
}

// recover --repair of a program that knows the classes recovers, and ends in order.
func TestRepair(t *testing.T) {
	dir := killed(t)
	p := Program{Name: "shop", Definitions: []object.Definition{carts}}
	run(t, p, "--dir", dir, "recover", "--repair").must(t, Fine, "recovered 0")
	run(t, p, "--dir", dir, "recover").must(t, Found, "ended in order", "cart/alice") // cart closes no execution
	run(t, p, "--dir", filepath.Join(dir, "none"), "recover", "--repair").must(t, Unopened, "shop: ")
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the verb has made the directory: %v", err)
	}
}

// A value is printed as it is, quoted or in hexadecimal, and cut at a rune.
func TestValues(t *testing.T) {
	for stored, want := range map[string]string{
		`{"a": 1}`:                     `{"a": 1}`,
		"a\x1b[2Jb":                    `"a\x1b[2Jb"`,
		"\xff\x00":                     "ff00",
		strings.Repeat("é", 150):       strings.Repeat("é", 100) + " … 100 B more",
		"a" + strings.Repeat("é", 150): "a" + strings.Repeat("é", 99) + " … 101 B more",
		"":                             "",
	} {
		if got := value([]byte(stored)); got != want {
			t.Errorf("%q is printed as %s, want %s", stored, got, want)
		}
	}
}

// The help of each verb has its flags, and a verb without arguments helps.
func TestHelp(t *testing.T) {
	run(t, Program{Name: "shop"}).must(t, Fine, "shop [command]", "verify", "recover", "Exit codes")
	run(t, Program{}, "-h").must(t, Fine, "holdfast")
	run(t, Program{}, "ls", "-h").must(t, Fine, "--label", "--prefix")
	run(t, Program{}, "dead").must(t, Fine, "show")
}
