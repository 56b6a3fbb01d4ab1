package fail_test

import (
	"errors"
	"io"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
)

func TestCaught(t *testing.T) {
	prepare := func(given error) (n int, err error) {
		defer fail.Caught(&err)
		n = fail.Must(1, nil)
		fail.On(given)
		return fail.Must(2, given), nil
	}
	if n, err := prepare(nil); n != 2 || err != nil {
		t.Errorf("without an error: %d, %v", n, err)
	}
	if n, err := prepare(io.EOF); n != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("with io.EOF: %d, %v", n, err)
	}
}

// Caught leaves other panics alone.
func TestOtherPanics(t *testing.T) {
	defer func() {
		if p := recover(); p != "other" {
			t.Errorf("recovered %v", p)
		}
	}()
	var err error
	defer fail.Caught(&err)
	panic("other")
}
