package verbs

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// shapeDepth bounds the depth of a shape, because types may hold themselves.
const shapeDepth = 4

// shapeOf shows the form of the JSON of a type, for example {"reason": "text", "until": "time"}.
// It is empty for None.
func shapeOf(t reflect.Type) string {
	if t == reflect.TypeFor[None]() {
		return ""
	}
	return shape(t, shapeDepth)
}

var (
	timeType = reflect.TypeFor[time.Time]()
	jsonType = reflect.TypeFor[json.Marshaler]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
)

// shape shows the form of a type down to a depth.
func shape(t reflect.Type, depth int) string {
	switch {
	case t == timeType:
		return `"2006-01-02T15:04:05Z"`
	case t.Implements(jsonType), depth == 0:
		return "…"
	case t.Implements(textType):
		return `"text"`
	}
	switch t.Kind() {
	case reflect.Bool:
		return "false"
	case reflect.String:
		return `"text"`
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Pointer {
			depth-- // a type may be a pointer to itself
		}
		return shape(t.Elem(), depth)
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return `"base64"`
		}
		return "[" + shape(t.Elem(), depth-1) + "]"
	case reflect.Map:
		return `{"key": ` + shape(t.Elem(), depth-1) + "}"
	case reflect.Struct:
		return "{" + strings.Join(fields(t, depth), ", ") + "}"
	case reflect.Interface:
		return "…"
	}
	return "0"
}

// fields shows the fields of a struct as package encoding/json names them.
func fields(t reflect.Type, depth int) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name == "-":
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct && depth > 1:
			out = append(out, fields(embedded, depth-1)...)
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			out = append(out, `"`+name+`": `+shape(f.Type, depth-1))
		}
	}
	return out
}
