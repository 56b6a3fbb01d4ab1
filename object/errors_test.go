package object_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O12: an error names the object and the package once, whatever it is the cause of, and
// matches all that it wraps (Case JB10).
func TestErrorsHaveOnePrefix(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.handleConstruct(func(context.Context, *thing) error { panic("ouch") })
	for range 2 { // the second is refused without a further try
		_, err := f.call("a", func(*thing, context.Context) (any, error) { return nil, nil })
		if !errors.Is(err, object.ErrConstructor) || !errors.Is(err, object.ErrPanic) ||
			err.Error() != "thing/a: object: constructor failed: handler panicked: ouch" {
			t.Errorf("error %q", err)
		}
	}
	other := object.Define("other", func(context.Context, *object.State) (*int, error) { return new(int), nil })
	get := object.Handle(other, "get", func(*int, context.Context, int) (int, error) { return 0, nil })
	_, err := get.Call(context.Background(), f.host, "a", 0)
	if !errors.Is(err, object.ErrUnknownClass) || !strings.HasSuffix(err.Error(), "pass it to object.Open") {
		t.Errorf("error %q", err)
	}
}
