package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves J15: a value of another version is read by Migrate alone, and one of the same
// version by the codec alone. One that cannot be read is zero, also where the codec has
// read a part of it.
func TestReader(t *testing.T) {
	migrate := func(from string, raw []byte) ([]int, error) {
		if from == "bad" {
			return []int{1}, errors.New("not " + string(raw))
		}
		return []int{len(from), len(raw)}, nil
	}
	for _, c := range []struct {
		migrate           func(string, []byte) ([]int, error)
		from, now, raw    string
		want              []int
		failed, migration bool
	}{
		{migrate, "2", "2", "[3]", []int{3}, false, false},
		{migrate, "one", "2", "[3]", []int{3, 3}, false, true},
		{migrate, "", "2", "", []int{0, 0}, false, true},
		{nil, "1", "2", "[3]", []int{3}, false, false},
		{nil, "1", "2", `[3,"x"]`, nil, true, false},
		{migrate, "2", "2", `[3,"x"]`, nil, true, false},
		{migrate, "bad", "2", "[3]", nil, true, true},
	} {
		r := Reader[[]int]{Version: c.now, Migrate: c.migrate, Field: "Migrate"}
		got := []int{99}
		bad := r.Read(object.JSON{}, c.from, []byte(c.raw), &got)
		if fmt.Sprint(got) != fmt.Sprint(c.want) || (bad != nil) != c.failed || bad != nil && bad.Migrated != c.migration {
			t.Errorf("%+v: read %v, %v", c, got, bad)
		}
	}
}

// Proves J15: a panic of Migrate is an error with its stack, but for that of a process
// which is killed. Migrate may change the bytes that it gets.
func TestMigrateThatPanics(t *testing.T) {
	killed := false
	r := Reader[int]{Version: "2", Migrate: func(from string, raw []byte) (int, error) {
		clear(raw)
		if killed {
			panic(seam.Killed{})
		}
		panic("ouch")
	}}
	raw, v := []byte("7"), 1
	bad := r.Read(object.JSON{}, "1", raw, &v)
	var p *seam.PanicError
	if bad == nil || !errors.As(bad, &p) || p.Value != "ouch" || !strings.Contains(string(p.Stack), "reader_test.go") || v != 0 || !bytes.Equal(raw, []byte("7")) {
		t.Errorf("error %v, value %d, bytes %q", bad, v, raw)
	}
	killed = true
	defer func() {
		if _, ok := recover().(seam.Killed); !ok {
			t.Error("the end of a process was taken for an error")
		}
	}()
	r.Read(object.JSON{}, "1", raw, &v)
}

// Proves J15: the text of an error names the way out, and is stored whole, also if the
// cause has a long one.
func TestDecodeErrorText(t *testing.T) {
	cause := errors.New(strings.Repeat("x", 10*MaxTextBytes))
	id := storage.ID{Class: "counter", Name: strings.Repeat("n", 200)}
	version := strings.Repeat("v", MaxVersionBytes)
	for _, e := range []*jobs.DecodeError{
		{Stored: version, Version: "new" + version[3:], Err: cause, Field: "Migrate"},
		{Stored: version, Version: "new" + version[3:], Err: cause, Field: "Migrate", Migrated: true},
		{Stored: version, Version: version, Err: cause, Field: "Migrate"},
	} {
		text := e.Of(id, "state").Error()
		for _, part := range []string{id.String() + ": state, ", version, e.Version, "xxx: ", "Config.Migrate", ", or go back to "} {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in %q", part, text)
			}
		}
		if Shorten(text) != text || !errors.Is(e, cause) {
			t.Errorf("a text of %d bytes is cut, or its cause is lost: %q", len(text), text)
		}
	}
}

// A value of the same version costs no more than its codec.
func TestReaderAllocatesNothing(t *testing.T) {
	r, raw, v := Reader[int]{Version: "2"}, []byte("7"), 0
	if n := testing.AllocsPerRun(100, func() { r.Read(idle{}, "2", raw, &v) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// idle is a Codec that does nothing.
type idle struct{}

func (idle) Encode(any) ([]byte, error) { return nil, nil }
func (idle) Decode([]byte, any) error   { return nil }
