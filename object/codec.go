package object

import "encoding/json"

// Codec turns values into bytes and back. Its methods may be called from any
// task. The encoding must not depend on anything but the value.
type Codec interface {
	Encode(v any) ([]byte, error)
	// Decode sets the value that v points to.
	Decode(b []byte, v any) error
}

// JSON is the default codec: encoding/json.
type JSON struct{}

// Encode returns the JSON of v.
func (JSON) Encode(v any) ([]byte, error) { return json.Marshal(v) }

// Decode parses the JSON in b into *v.
func (JSON) Decode(b []byte, v any) error { return json.Unmarshal(b, v) }
