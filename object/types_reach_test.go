package object_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// The compiler makes the generic code of each type that a package's types lead to, once for each package: a package that
// uses a Host compiled 330 functions of maps and listeners. So the types of a host lead to no generic type with methods but
// small ones of the standard library, and, because its engine has much generic code, to none of Pebble's types but those of
// its file systems and locks.
func TestHostLeadsToNoGenericCode(t *testing.T) {
	const pebble = "github.com/cockroachdb/pebble/v2"
	free := func(r reflect.Type) bool {
		p := r.PkgPath()
		return !strings.HasPrefix(p, pebble) || strings.HasPrefix(p, pebble+"/vfs") || p == pebble && r.Name() == "Lock"
	}
	small := func(r reflect.Type) bool {
		return !strings.Contains(r.Name(), "[") || reflect.PointerTo(r).NumMethod() == 0 || slices.Contains([]string{"sync/atomic", "unique", "iter"}, r.PkgPath())
	}
	seen := map[reflect.Type]bool{}
	var follow func(r reflect.Type, path string)
	follow = func(r reflect.Type, path string) {
		if seen[r] {
			return
		}
		seen[r] = true
		if !small(r) {
			t.Errorf("%s is %s, which has generic code: hold it as any, as Host.taps", path, r)
			return
		}
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
