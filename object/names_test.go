package object_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// An Inspection is JSON with names in camel case, down to its ids and keys, and is
// decoded as it was. An id that was encoded with the names of its Go fields is decoded
// too.
func TestInspectionAsJSON(t *testing.T) {
	in := object.Inspection{ID: storage.ID{Class: "cart", Name: "bob"}, Exists: true, Keys: []object.KeyInfo{{Key: "total", SizeBytes: 3}}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":{"class":"cart","name":"bob"},"exists":true,"keys":[{"key":"total","sizeBytes":3}]}`
	if string(b) != want {
		t.Errorf("encoded %s, want %s", b, want)
	}
	for _, text := range []string{want, `{"id":{"Class":"cart","Name":"bob"},"exists":true,"keys":[{"Key":"total","SizeBytes":3}]}`} {
		var back object.Inspection
		if err := json.Unmarshal([]byte(text), &back); err != nil || back.ID != in.ID || len(back.Keys) != 1 || back.Keys[0].Key != "total" || back.Keys[0].SizeBytes != 3 {
			t.Errorf("decoded %+v, %v", back, err)
		}
	}
}

// Proves O12: Open returns the error of a job type about its definition unchanged, so
// that it names one package. That error comes before errors of the class.
func TestRejectedDefinition(t *testing.T) {
	mistake := errors.New("clock: invalid: no hands")
	for _, name := range []string{"clock", ""} {
		class := object.Define(name, func(context.Context, *object.State) (*int, error) { return new(int), nil })
		class.Reject(nil)
		class.Reject(mistake)
		_, err := object.Open(object.Options{Dir: t.TempDir()}, class)
		if !errors.Is(err, mistake) || err.Error() != mistake.Error() {
			t.Errorf("error %v", err)
		}
	}
}
