package row_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/row"
)

// point is a row of two fields that each writer stores and one that came later.
type point struct {
	number uint64
	name   string
	since  int64
}

func appendPoint(dst []byte, p point) []byte {
	w := row.Writer(dst)
	w = w.Byte(1)
	w = w.Uint(p.number)
	w = w.Text(p.name)
	if p.since != 0 {
		w = w.Int(p.since)
	}
	return w
}

func decodePoint(b []byte) (p point, ok bool) {
	r := row.Read(b)
	version := r.Byte()
	p.number, p.name = r.Uint(), r.Text()
	r.Required()
	p.since = r.Int()
	return p, r.OK() && version == 1
}

// A row that was written is read, and each shorter one is damaged or, where only the
// last field is missing, has zero there.
func Example() {
	whole := appendPoint(nil, point{number: 300, name: "ab", since: -200})
	for n := range len(whole) + 1 {
		fmt.Println(n)
		fmt.Println(decodePoint(whole[:n]))
	}
	// Output:
	// 0
	// {0  0} false
	// 1
	// {0  0} false
	// 2
	// {0  0} false
	// 3
	// {300  0} false
	// 4
	// {300  0} false
	// 5
	// {300  0} false
	// 6
	// {300 ab 0} true
	// 7
	// {300 ab 0} false
	// 8
	// {300 ab -200} true
}

// The greatest numbers come back, and one of more than 64 bits is damage.
func TestNumbers(t *testing.T) {
	var w row.Writer
	w = w.Uint(math.MaxUint64)
	w = w.Int(math.MinInt64)
	w = w.Int(math.MaxInt64)
	r := row.Read(w)
	if u, low, high := r.Uint(), r.Int(), r.Int(); u != math.MaxUint64 || low != math.MinInt64 || high != math.MaxInt64 || !r.OK() || r.Len() != 0 {
		t.Errorf("%d, %d, %d, whole %v, %d bytes left", u, low, high, r.OK(), r.Len())
	}
	for _, more := range [][]byte{bytes.Repeat([]byte{0xff}, 11), append(bytes.Repeat([]byte{0x80}, 9), 2)} {
		r := row.Read(more)
		if v := r.Uint(); v != 0 || r.OK() {
			t.Errorf("%x is read as %d", more, v)
		}
		r = row.Read(more)
		if v := r.Int(); v != 0 || r.OK() {
			t.Errorf("%x is read as %d", more, v)
		}
	}
}

// After damage nothing is read, and the row stays damaged.
func TestNothingIsReadAfterDamage(t *testing.T) {
	r := row.Read([]byte{1, 2, 3})
	r.Fail()
	if b, u, i, v, rest := r.Byte(), r.Uint(), r.Int(), r.Bytes(), r.Rest(); b != 0 || u != 0 || i != 0 || v != nil || rest != nil {
		t.Errorf("%d, %d, %d, %x, %x", b, u, i, v, rest)
	}
	if r.End(); r.OK() {
		t.Error("the row is whole again")
	}
}

// Required and End each refuse their own kind of length.
func TestLengths(t *testing.T) {
	for _, c := range []struct {
		text          string
		required, end bool
		ok            bool
	}{
		{"", false, true, true},
		{"", true, false, false},
		{"\x05", true, true, true},
		{"\x05more", true, false, true},
		{"\x05more", true, true, false},
	} {
		r := row.Read([]byte(c.text))
		r.Byte()
		if c.required {
			r.Required()
		}
		if c.end {
			r.End()
		}
		if r.OK() != c.ok {
			t.Errorf("%+v: whole %v", c, r.OK())
		}
	}
	r := row.Read([]byte("\x01ab"))
	if v, rest := r.Bytes(), r.Rest(); string(v) != "a" || cap(v) != 1 || string(rest) != "b" || r.Len() != 0 {
		t.Errorf("%q of %d, and %q", v, cap(v), rest)
	}
}

// A Writer over a slice with enough capacity allocates nothing.
func TestNoAllocation(t *testing.T) {
	room := make([]byte, 0, 64)
	value := []byte("value")
	n := testing.AllocsPerRun(100, func() {
		w := row.Writer(room[:0])
		w = w.Byte(1)
		w = w.Uint(1 << 40)
		w = w.Int(-1)
		w = w.Bytes(value)
		w = w.Text("text")
		r := row.Read(w)
		r.Byte()
		r.Uint()
		r.Int()
		if string(r.Bytes()) != "value" || string(r.Bytes()) != "text" || !r.OK() {
			t.Error("the row is not read as it was written")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
