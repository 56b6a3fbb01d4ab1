package verbs

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// loop is a type of pointers to itself.
type loop *loop

// Bytes have the form in which package encoding/json writes them: text for a slice, and numbers
// for an array.
func TestShapeOfBytes(t *testing.T) {
	type digest struct {
		Sum [2]byte
		Raw []byte
	}
	if got, want := shapeOf(reflect.TypeFor[digest]()), `{"Sum": [0], "Raw": "base64"}`; got != want {
		t.Errorf("the shape is %s, want %s", got, want)
	}
	raw, err := json.Marshal(digest{Raw: []byte("a")})
	if err != nil || !strings.HasPrefix(string(raw), `{"Sum":[0,0],"Raw":"`) {
		t.Errorf("encoding/json writes %s, %v", raw, err)
	}
}

// The shape of a type that holds itself ends, also if it does so by pointers alone.
func TestShapeOfPointers(t *testing.T) {
	if got := shapeOf(reflect.TypeFor[**int]()); got != "0" {
		t.Errorf("the shape of a pointer to a pointer is %s", got)
	}
	if got := shapeOf(reflect.TypeFor[loop]()); got != "…" {
		t.Errorf("the shape of a type of pointers to itself is %s", got)
	}
}
