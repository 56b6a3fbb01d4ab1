package sharing

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

// runtime stands for a type with memory that users never change.
type runtime struct{ _ int }

var opaque = map[reflect.Type]bool{reflect.TypeFor[runtime](): true, reflect.TypeFor[time.Location](): true}

// place is Place with these types.
func place(v, instance any) string { return Place(v, instance, opaque) }

// keeper is an instance that may keep memory of others.
type keeper struct {
	Slice  []byte
	Array  [1]*int
	Map    map[string]*int
	Any    any
	Nested struct{ Of []*[]int }
	self   *keeper
	state  *runtime
	where  *time.Location
	Text   string
}

// Proves O3: memory that an instance shares with an argument is found and named, also
// behind pointers, maps, interfaces and arrays, and only if it can be changed.
func TestSharedMemory(t *testing.T) {
	n, list := new(int), []int{1}
	buffer := bytes.Repeat([]byte("x"), 10)
	looped := &keeper{Slice: buffer}
	looped.self = looped
	sameState, sameWhere := new(runtime), time.UTC
	for name, c := range map[string]struct {
		given    any
		instance any
		want     string
	}{
		"nothing":                   {nil, &keeper{}, ""},
		"a number":                  {7, &keeper{}, ""},
		"an empty slice":            {[]byte{}, &keeper{Slice: buffer[:0]}, ""},
		"other memory":              {[]byte("x"), &keeper{Slice: buffer}, ""},
		"a text":                    {"text", &keeper{Text: "text"}, ""},
		"a slice":                   {buffer, &keeper{Slice: buffer}, "Slice"},
		"its last byte":             {buffer[9:], &keeper{Slice: buffer}, "Slice"},
		"up to its first byte":      {buffer[:5], &keeper{Slice: buffer[4:]}, "Slice"},
		"the bytes before":          {buffer[:5], &keeper{Slice: buffer[5:]}, ""},
		"the bytes after":           {buffer[5:], &keeper{Slice: buffer[:5]}, ""},
		"in an array":               {n, &keeper{Array: [1]*int{n}}, "Array[…]"},
		"in a map":                  {n, &keeper{Map: map[string]*int{"": n}}, "Map[…]"},
		"a map":                     {map[string]*int{}, &keeper{}, ""},
		"in an interface":           {n, &keeper{Any: n}, "Any"},
		"deep within":               {list, &keeper{Nested: struct{ Of []*[]int }{[]*[]int{&list}}}, "Nested.Of[…]"},
		"given deep within":         {&keeper{Nested: struct{ Of []*[]int }{[]*[]int{&list}}}, &keeper{Any: list}, "Any"},
		"the instance itself":       {n, n, "itself"},
		"a circle":                  {buffer, &keeper{self: looped}, "self.Slice"},
		"a circle that is given":    {looped, &keeper{Slice: buffer}, "Slice"},
		"the runtime's own":         {&keeper{state: sameState, where: sameWhere}, &keeper{state: sameState, where: sameWhere}, ""},
		"values of the runtime":     {struct{ S *runtime }{sameState}, &struct{ S *runtime }{sameState}, ""},
		"the first of two":          {n, &keeper{Array: [1]*int{n}, Any: n}, "Array[…]"},
		"a nil pointer and nil map": {(*int)(nil), &keeper{}, ""},
	} {
		if got := place(c.given, c.instance); got != c.want {
			t.Errorf("%s: shared in %q, want %q", name, got, c.want)
		}
	}
	shared := map[string]*int{"": nil}
	if got := place(shared, &struct{ M map[string]*int }{shared}); got != "M" {
		t.Errorf("a map: shared in %q", got)
	}
	pair := [2]int{}
	if got := place(&pair[0], &struct{ P *int }{&pair[1]}); got != "" {
		t.Errorf("the number beside it: shared in %q", got)
	}
}

// The walk looks at exactly maxWalked values.
func TestSharedMemoryIsBounded(t *testing.T) {
	walks := func(n int) string { // the instance, its struct, the slice, and n pointers with a number each
		many := make([]*int, n)
		for i := range many {
			many[i] = new(int)
		}
		return place(many[n-1], &struct{ Many []*int }{many})
	}
	const before = 3 // the pointer, the struct and the slice
	fits := (maxWalked-before-1)/2 + 1
	if got := walks(fits); got != "Many[…]" {
		t.Errorf("%d pointers: %q", fits, got)
	}
	if got := walks(fits + 1); got != "" {
		t.Errorf("%d pointers: %q", fits+1, got)
	}
}
