package object_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O19: Classes lists the classes in the order of Open, their options with defaults and
// their methods by name, with the types of argument and answer.
func TestClasses(t *testing.T) {
	f := newFixture(t, object.ClassOptions{MailboxLimit: 7})
	adder := object.Define("adder", func(context.Context, *object.State) (*int, error) { return new(int), nil }, object.ClassOptions{Internal: true})
	object.Handle(adder, "sum", func(_ *int, _ context.Context, a []int) (int64, error) { return 0, nil })
	object.Handle(adder, "add", func(_ *int, _ context.Context, a int) (string, error) { return "", nil }, object.Sent(func(int) string { return "sent" }))
	f.open(adder)
	defer f.close()
	list := f.host.Classes()
	if len(list) != 2 {
		t.Fatalf("O19: %d classes are listed, want 2", len(list))
	}
	things, adders := list[0], list[1]
	if things.Name != "thing" || !things.Alarms || things.Options.Internal || things.Options.MailboxLimit != 7 || things.Options.MailboxAge != 30*time.Second {
		t.Errorf("O19: things are listed as %+v", things)
	}
	if adders.Name != "adder" || adders.Alarms || !adders.Options.Internal || adders.Options.MailboxLimit != 1024 {
		t.Errorf("O19: adders are listed as %+v", adders)
	}
	want := []object.MethodInfo{
		{Name: "add", Argument: reflect.TypeFor[int](), Answer: reflect.TypeFor[string](), Sent: true},
		{Name: "sum", Argument: reflect.TypeFor[[]int](), Answer: reflect.TypeFor[int64]()},
	}
	if !reflect.DeepEqual(adders.Methods, want) {
		t.Errorf("O19: the methods are listed as %+v, want %+v", adders.Methods, want)
	}
}

// Proves O19: a method of an internal class is not called by the host by its name, and is called
// by its class, if the host has that very class. Nothing of a refused call runs.
func TestInternalMethods(t *testing.T) {
	f, ctx := newFixture(t), context.Background()
	define := func() (*object.Class[int], *object.Method[int, int]) {
		c := object.Define("counter", func(context.Context, *object.State) (*int, error) { return new(int), nil }, object.ClassOptions{Internal: true})
		return c, object.Handle(c, "add", func(n *int, _ context.Context, more int) (int, error) { *n += more; return *n, nil })
	}
	counters, add := define()
	other, _ := define()
	f.open(counters)
	defer f.close()
	if _, err := f.host.CallBytes(ctx, "counter", "a", "add", []byte("1")); !errors.Is(err, object.ErrInternalMethod) || err.Error() != `counter/a: object: the method belongs to a job type, which has a verb for it: "add"` {
		t.Errorf("O19: a call by name: %v", err)
	}
	if _, err := f.host.CallBytes(ctx, "counter", "a", "other", nil); !errors.Is(err, object.ErrUnknownMethod) {
		t.Errorf("O19: a method that does not exist: %v", err)
	}
	if got, err := counters.CallBytes(ctx, f.host, "a", "add", []byte("2")); err != nil || string(got) != "2" {
		t.Errorf("O19: the class calls its method: %s, %v", got, err)
	}
	if got, err := add.Call(ctx, f.host, "a", 3); err != nil || got != 5 {
		t.Errorf("O19: the method itself: %d, %v", got, err)
	}
	if _, err := other.CallBytes(ctx, f.host, "a", "add", []byte("4")); !errors.Is(err, object.ErrUnknownClass) {
		t.Errorf("O19: a class of the same name that the host does not have: %v", err)
	}
	if _, err := counters.CallBytes(ctx, f.host, "", "add", []byte("4")); !errors.Is(err, object.ErrBadName) {
		t.Errorf("O19: an empty name: %v", err)
	}
}

// Proves O20: an argument that the codec cannot decode is no error of the handler, which does
// not run. The error of the codec is there too, also if the type of the argument panics.
func TestBadArgument(t *testing.T) {
	f, ctx, ran := newFixture(t), context.Background(), false
	adder := object.Define("adder", func(context.Context, *object.State) (*int, error) { return new(int), nil })
	object.Handle(adder, "add", func(_ *int, _ context.Context, a int) (int, error) { ran = true; return a, nil })
	object.Handle(adder, "take", func(_ *int, _ context.Context, _ explosive) (int, error) { ran = true; return 0, nil })
	f.open(adder)
	defer f.close()
	if _, err := f.host.CallBytes(ctx, "adder", "x", "take", []byte("{}")); !errors.Is(err, object.ErrBadArgument) || !strings.Contains(err.Error(), "of take: panic: at its end") {
		t.Errorf("O20: a decoder that panics is the error %v", err)
	}
	_, err := f.host.CallBytes(ctx, "adder", "x", "add", []byte("{"))
	if syntax := new(json.SyntaxError); !errors.Is(err, object.ErrBadArgument) || !errors.As(err, &syntax) || object.Retryable(err) {
		t.Errorf("O20: a bad argument is the error %v", err)
	}
	if want := "adder/x: object: cannot decode the argument of add: unexpected end of JSON input"; err == nil || err.Error() != want {
		t.Errorf("O20: got %v\nwant %s", err, want)
	}
	if x, err := f.host.Explain(ctx, adder.ID("x")); ran || x.Live || err != nil {
		t.Error("O20: a call with a bad argument has run something")
	}
}

// explosive panics when it is decoded.
type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("at its end") }
