package object

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// checkShared tells a probe that wants to know of it that the object still holds
// memory of the argument or of the answer, which its caller may change at any moment.
func (a *activation) checkShared(method string, arg, answer any) {
	p, ok := a.hosted.host.seams.Probe.(seam.Sharing)
	if !ok || !p.WatchesSharing() {
		return
	}
	for _, half := range []struct {
		of string
		v  any
	}{{"argument", arg}, {"answer", answer}} {
		if at := sharedMemory(half.v, a.instance); at != "" {
			p.Shared(a.id.String(), fmt.Sprintf("the handler %s keeps memory of its %s in %s: copy it, because the caller has it too", method, half.of, at))
			return
		}
	}
}

// sharedMemory is the place in an instance, in words, that shares memory with v;
// empty if none is found.
func sharedMemory(v, instance any) string {
	given := walker{left: maxWalked, seen: make(map[walked]bool)}
	given.walk(reflect.ValueOf(v), "")
	if len(given.found) == 0 {
		return ""
	}
	kept := walker{left: maxWalked, seen: make(map[walked]bool), given: given.found}
	kept.walk(reflect.ValueOf(instance), "")
	return kept.shared
}

// maxWalked bounds the values that one look walks over: an instance may hold a large
// state, or a whole service.
const maxWalked = 10_000

// span is memory that can be changed, from first up to end.
type span struct{ first, end uintptr }

// walked is a value that a walk has been at.
type walked struct {
	at uintptr
	t  reflect.Type
}

// walker finds the memory that a value refers to and that can be changed through it:
// what pointers, slices and maps lead to. Strings, functions and channels are left
// out, and so is the runtime's own.
type walker struct {
	left   int
	seen   map[walked]bool
	found  []span
	given  []span // not nil: stop at memory that is in one of them
	shared string // where that was
}

// opaque is types whose memory is nobody's to change.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[State]():         true,
	reflect.TypeFor[Host]():          true,
	reflect.TypeFor[time.Location](): true,
}

func (w *walker) walk(v reflect.Value, at string) {
	if w.left--; w.left < 0 || w.shared != "" || !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !opaque[v.Type().Elem()] && w.enter(v, v.Type().Elem().Size(), at) {
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
			if !opaque[v.Type()] {
				w.walk(v.Field(i), at+"."+v.Type().Field(i).Name)
			}
		}
	}
}

// elements walks over those of a slice or an array that can lead to more memory.
func (w *walker) elements(v reflect.Value, at string) {
	switch v.Type().Elem().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Interface, reflect.Struct:
		for i := range v.Len() {
			w.walk(v.Index(i), at+"[…]")
		}
	}
}

// enter notes the memory that v refers to, and reports whether to go on into it.
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
