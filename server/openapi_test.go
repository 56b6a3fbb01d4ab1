package server

import (
	"bytes"
	"encoding"
	"encoding/json"
	options "flag" // the package has a flag of its own
	"fmt"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = options.Bool("update", false, "write openapi.json anew")

// The document that the server serves is that of its routes. After a change of the routes run
//
//	go test ./server -run TestOpenAPI -update
//
// and tell of the change in CHANGELOG.md.
func TestOpenAPI(t *testing.T) {
	f := start(t, nil)
	doc := &document{schemas: map[string]any{}}
	want, err := json.MarshalIndent(doc.of(f.srv.routes()), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(openAPI, want) {
		t.Error("openapi.json is not that of the routes: run go test ./server -run TestOpenAPI -update")
	}
	if a := f.ask("viewer", "GET", "/openapi.json", ""); a.body != string(openAPI) || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("the server answers %v", a.header)
	}
}

// jsonObject is an object of JSON.
type jsonObject = map[string]any

// document makes the OpenAPI document of the routes.
type document struct {
	schemas jsonObject // by name
}

func (d *document) of(routes []route) jsonObject {
	paths := map[string]jsonObject{}
	for _, rt := range routes {
		if rt.page {
			continue
		}
		if paths[rt.pattern] == nil {
			paths[rt.pattern] = jsonObject{}
		}
		paths[rt.pattern][strings.ToLower(rt.method)] = d.operation(rt)
	}
	d.ref(reflect.TypeFor[problem]())
	return jsonObject{
		"openapi": "3.1.0",
		"info": jsonObject{
			"title": "Holdfast", "version": "1",
			"description": "Clients ignore fields that they do not know: version 1 only grows.",
		},
		"paths":    paths,
		"security": []any{jsonObject{"token": []any{}}},
		"components": jsonObject{
			"schemas":         d.schemas,
			"securitySchemes": jsonObject{"token": jsonObject{"type": "http", "scheme": "bearer"}},
		},
	}
}

// needs has a word for each access.
var needs = map[access]string{open: "nothing", viewer: "viewer", reader: "reader", operator: "operator", admin: "admin", granted: "a grant", tabled: "by the verb or the view"}

var braces = regexp.MustCompile(`\{([^}]*)\}`)

func (d *document) operation(rt route) jsonObject {
	params := []any{}
	for _, m := range braces.FindAllStringSubmatch(rt.pattern, -1) {
		params = append(params, jsonObject{"name": m[1], "in": "path", "required": true, "schema": jsonObject{"type": "string"}})
	}
	for _, p := range rt.headers {
		params = append(params, jsonObject{"name": p.name, "in": "header", "description": p.help, "schema": jsonObject{"type": "string"}})
	}
	for _, p := range rt.params {
		schema := [...]jsonObject{text: {"type": "string"}, number: {"type": "integer", "minimum": 0}, flag: {"enum": []string{"0", "1"}}}[p.kind]
		params = append(params, jsonObject{"name": p.name, "in": "query", "description": p.help, "schema": schema})
	}
	failure := jsonObject{"description": "a problem of RFC 9457", "content": jsonObject{"application/problem+json": jsonObject{"schema": d.ref(reflect.TypeFor[problem]())}}}
	op := jsonObject{
		"summary": rt.help, "x-needs": needs[rt.access],
		"responses": jsonObject{"default": failure, "2XX": d.content("the answer", rt.answer)},
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if rt.request != nil {
		op["requestBody"] = d.content("", rt.request)
	}
	if rt.access == open {
		op["security"] = []any{}
	}
	return op
}

// content describes a body.
func (d *document) content(what string, zero any) jsonObject {
	out := jsonObject{}
	if what != "" {
		out["description"] = what
	}
	switch zero.(type) {
	case nil:
	case raw:
		out["content"] = jsonObject{"*/*": jsonObject{}}
	case eventStream:
		out["content"] = jsonObject{"text/event-stream": jsonObject{"schema": jsonObject{
			"type": "string", "description": "frames snapshot, event, reset and bye; the data of an event is " + d.ref(reflect.TypeFor[streamed]())["$ref"].(string),
		}}}
	default:
		out["content"] = jsonObject{"application/json": jsonObject{"schema": d.schema(reflect.TypeOf(zero))}}
	}
	return out
}

// ref returns a reference to the schema of a struct, and makes the schema.
func (d *document) ref(t reflect.Type) jsonObject {
	name := regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(t.Name(), "_")
	if pkg := path.Base(t.PkgPath()); pkg != "server" {
		name = pkg + "." + name
	}
	if d.schemas[name] == nil {
		properties, required := jsonObject{}, []string{}
		schema := jsonObject{"type": "object", "properties": properties}
		d.schemas[name] = schema // first, because a type may hold itself
		required = d.fields(t, properties, required)
		if len(required) > 0 {
			schema["required"] = required
		}
	}
	return jsonObject{"$ref": "#/components/schemas/" + name}
}

// fields adds the fields of a struct as package encoding/json names them, and returns those that
// are always there.
func (d *document) fields(t reflect.Type, properties jsonObject, required []string) []string {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			required = d.fields(f.Type, properties, required)
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		properties[name] = d.schema(f.Type)
		if !strings.Contains(rest, "omit") && !slices.Contains(blank, name) {
			required = append(required, name)
		}
	}
	return required
}

// schema describes a type.
func (d *document) schema(t reflect.Type) jsonObject {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return jsonObject{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return jsonObject{}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return jsonObject{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return jsonObject{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Struct:
		if t.Name() != "" {
			return d.ref(t)
		}
		properties := jsonObject{}
		d.fields(t, properties, nil)
		return jsonObject{"type": "object", "properties": properties}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return jsonObject{"type": "string", "contentEncoding": "base64"}
		}
		return jsonObject{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return jsonObject{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.String:
		return jsonObject{"type": "string"}
	case reflect.Bool:
		return jsonObject{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return jsonObject{"type": "number"}
	case reflect.Interface:
		return jsonObject{}
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return jsonObject{"type": "integer"}
	}
	panic(fmt.Sprint("no schema for ", t))
}
