// Package sharing finds memory that two values share, for a simulation that reports
// handlers which keep the memory of their callers. For example, a handler stores its
// argument, a slice, in its instance; its caller may then change the instance from
// another goroutine. Place returns the field, such as "items" or "orders[…].lines".
package sharing

import (
	"cmp"
	"reflect"
	"strings"
)

// Place returns the place in instance, in words, that shares memory with v; empty if none
// is found. It does not look into the types of opaque, because users never change their
// memory. It reads both values by reflection, so no other goroutine may change them
// meanwhile.
func Place(v, instance any, opaque map[reflect.Type]bool) string {
	given := walker{left: maxWalked, opaque: opaque, seen: make(map[walked]bool)}
	given.walk(reflect.ValueOf(v), "")
	if len(given.found) == 0 {
		return ""
	}
	kept := walker{left: maxWalked, opaque: opaque, seen: make(map[walked]bool), given: given.found}
	kept.walk(reflect.ValueOf(instance), "")
	return kept.shared
}

// maxWalked bounds the values that one look walks over: an instance may hold a large
// state, or a whole service.
const maxWalked = 10_000

// span is memory that can be changed: the addresses from first up to end, without end.
type span struct{ first, end uintptr }

// walked is a value that a walk has visited, so that a cycle of pointers ends.
type walked struct {
	at uintptr
	t  reflect.Type
}

// walker finds the memory that a value refers to and that can be changed through it: the
// memory behind pointers, slices and maps. Strings, functions and channels are left
// out, and so are the opaque types. Place walks twice: first over v, which collects
// spans, and then over the instance, which compares its memory with them.
type walker struct {
	left   int                   // values that may still be visited
	opaque map[reflect.Type]bool // types that are not looked into
	seen   map[walked]bool
	found  []span // the memory of all visited values
	given  []span // not nil: stop at memory that is in one of them
	shared string // the place of that memory; empty: none yet
}

// walk visits a value and all values that it refers to. at is its place in words, for
// example ".orders[…].lines".
func (w *walker) walk(v reflect.Value, at string) {
	if w.left--; w.left < 0 || w.shared != "" || !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !w.opaque[v.Type().Elem()] && w.enter(v, v.Type().Elem().Size(), at) {
			w.walk(v.Elem(), at)
		}
	case reflect.Slice:
		if w.enter(v, v.Type().Elem().Size()*uintptr(v.Len()), at) {
			w.elements(v, at)
		}
	case reflect.Array:
		w.elements(v, at)
	case reflect.Map:
		if !v.IsNil() && w.enter(v, 1, at) {
			for it := v.MapRange(); it.Next(); {
				w.walk(it.Value(), at+"[…]")
			}
		}
	case reflect.Interface:
		w.walk(v.Elem(), at)
	case reflect.Struct:
		for i := range v.NumField() {
			if !w.opaque[v.Type()] {
				w.walk(v.Field(i), at+"."+v.Type().Field(i).Name)
			}
		}
	}
}

// elements walks over the elements of a slice or an array, if their type can refer to
// memory. Bytes and numbers cannot, so a large buffer costs one step.
func (w *walker) elements(v reflect.Value, at string) {
	switch v.Type().Elem().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Interface, reflect.Struct:
		for i := range v.Len() {
			w.walk(v.Index(i), at+"[…]")
		}
	}
}

// enter notes the memory that v refers to, and reports whether the walk goes on into it:
// not for empty memory, not a second time, and not if it is shared, because the place is
// known then.
func (w *walker) enter(v reflect.Value, size uintptr, at string) bool {
	first := v.Pointer()
	p := walked{first, v.Type()}
	if size == 0 || w.seen[p] {
		return false
	}
	w.seen[p] = true
	w.found = append(w.found, span{first, first + size})
	for _, g := range w.given {
		if first < g.end && g.first < first+size {
			w.shared = cmp.Or(strings.TrimPrefix(at, "."), "itself")
			return false
		}
	}
	return true
}
