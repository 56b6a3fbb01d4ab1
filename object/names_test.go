package object_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// An Inspection has names in camel case as JSON, down to its ids and keys, and is
// decoded as it was; an id that was encoded with the names of its fields is decoded too.
func TestInspectionAsJSON(t *testing.T) {
	in := object.Inspection{ID: storage.ID{Class: "cart", Name: "bob"}, Exists: true, Keys: []object.Item{{Key: "total", Value: []byte("499")}}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":{"class":"cart","name":"bob"},"exists":true,"keys":[{"key":"total","value":"NDk5"}]}`
	if string(b) != want {
		t.Errorf("encoded %s, want %s", b, want)
	}
	for _, text := range []string{want, `{"id":{"Class":"cart","Name":"bob"},"exists":true,"keys":[{"Key":"total","Value":"NDk5"}]}`} {
		var back object.Inspection
		if err := json.Unmarshal([]byte(text), &back); err != nil || back.ID != in.ID || len(back.Keys) != 1 || back.Keys[0].Key != "total" || string(back.Keys[0].Value) != "499" {
			t.Errorf("decoded %+v, %v", back, err)
		}
	}
}

// Proves O12: the error of a job type against its definition is the error of Open as it
// is, so that it names one package; it comes before that of the class.
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
