package object_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// The compiler makes the generic code of each type that a package's types lead to, once for each package. The engine of
// Pebble has much of it, so the types of a host lead to none of Pebble's but those of its file systems and locks.
func TestHostLeadsToNoTypeOfPebble(t *testing.T) {
	const pebble = "github.com/cockroachdb/pebble/v2"
	free := func(r reflect.Type) bool {
		p := r.PkgPath()
		return !strings.HasPrefix(p, pebble) || strings.HasPrefix(p, pebble+"/vfs") || p == pebble && r.Name() == "Lock"
	}
	seen := map[reflect.Type]bool{}
	var follow func(r reflect.Type, path string)
	follow = func(r reflect.Type, path string) {
		if seen[r] {
			return
		}
		seen[r] = true
		if !free(r) {
			t.Errorf("%s is %s: hide it behind an interface", path, r)
			return
		}
		switch r.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			follow(r.Elem(), path)
		case reflect.Map:
			follow(r.Key(), path)
			follow(r.Elem(), path)
		case reflect.Struct:
			for i := range r.NumField() {
				follow(r.Field(i).Type, path+"."+r.Field(i).Name)
			}
		case reflect.Func:
			for i := range r.NumIn() {
				follow(r.In(i), path+"()")
			}
			for i := range r.NumOut() {
				follow(r.Out(i), path+"()")
			}
		}
		for i := range r.NumMethod() {
			follow(r.Method(i).Type, path+"."+r.Method(i).Name)
		}
	}
	follow(reflect.TypeFor[*object.Host](), "Host")
	follow(reflect.TypeFor[object.Options](), "Options")
	if len(seen) < 100 {
		t.Errorf("only %d types are followed", len(seen))
	}
}
