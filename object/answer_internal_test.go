package object

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Proves O16: an argument that needs no decoder is written as a decoder and an encoder write it.
func TestPlainJSON(t *testing.T) {
	for _, arg := range []string{
		"1", " 1\n", "-0", "1.0", "1E5", "123456789012345678901234567890", "true", "\tfalse ", "null",
		`"a"`, ` "\u0061<" `, `{"b":1,"a":[2.0, {}]}`, "[ ]",
	} {
		d := json.NewDecoder(bytes.NewReader([]byte(arg)))
		d.UseNumber()
		var value any
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(value)
		if got := plainJSON([]byte(arg)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q is written as %q, want %q, %v", arg, got, want, err)
		}
	}
	for _, arg := range []string{"", " ", "1 2", "{", "\x00"} {
		if got := plainJSON([]byte(arg)); string(got) != arg {
			t.Errorf("%q, which is no JSON, becomes %q", arg, got)
		}
	}
}
