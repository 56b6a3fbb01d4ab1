package history

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// The bytes of two entries. FORMAT.md shows the same; a difference is a new format version.
func TestLayout(t *testing.T) {
	document, err := os.ReadFile("../../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, 1000).UTC()
	for _, e := range []Entry{
		{Kind: Step, Name: "charge", At: at, Value: []byte("499")},
		{Kind: Try, Flags: Failed, Scope: "ship[3]/", Name: "charge", At: at, Until: at.Add(1000), Attempt: 2, Err: "no", Value: []byte{0xd0, 0x0f}},
	} {
		raw := e.Append(nil)
		if line := "| " + e.Kind.String() + " | `" + hex.EncodeToString(raw) + "` |\n"; !strings.Contains(string(document), line) {
			t.Errorf("FORMAT.md does not have the line\n%s", line)
		}
		back, err := Decode(7, raw)
		if e.Seq = 7; err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("decoded %+v, %v, want %+v", back, err, e)
		}
	}
}

// The table of kinds in FORMAT.md has each kind with its number.
func TestKindsOfTheFormat(t *testing.T) {
	document, err := os.ReadFile("../../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for k := Step; k <= First; k++ {
		if row := "| " + hex.EncodeToString([]byte{byte(k)}) + " " + k.String() + " | "; !strings.Contains(string(document), row) {
			t.Errorf("FORMAT.md has no row that begins with %q", row)
		}
	}
	if got := Kind(200).String(); got != "kind 200" {
		t.Errorf("an unknown kind is called %q", got)
	}
}

// An entry that is cut, or has a version, a kind or a flag that is not known, is damage.
func TestDamagedEntries(t *testing.T) {
	e := Entry{Kind: Step, Name: "charge", Scope: "a[0]/", At: time.Unix(0, 1000), Err: "no"}
	whole := e.Append(nil)
	bad := map[string][]byte{"nothing": nil}
	for n := range whole {
		bad[fmt.Sprint("cut at ", n)] = whole[:n]
	}
	change := func(name string, at int, to byte) {
		b := append([]byte(nil), whole...)
		b[at] = to
		bad[name] = b
	}
	change("version 2", 0, 2)
	change("kind 0", 1, 0)
	change("kind 18", 1, 18)
	change("flag 64", 2, 64)
	for name, b := range bad {
		if got, err := Decode(0, b); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: %+v, %v, want ErrCorrupt", name, got, err)
		}
	}
}
