package debounce

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
)

var errNegative = errors.New("negative")

type (
	plain     struct{ n int }
	byValue   struct{ n int }
	byPointer struct{ n int }
)

func (v byValue) Validate() error { return negative(v.n) }

func (v *byPointer) Validate() error {
	v.n *= 10
	return negative(v.n)
}

func negative(n int) error {
	if n < 0 {
		return errNegative
	}
	return nil
}

// Proves J4 for events: Validate is called with a receiver of any kind, and an event is
// stored as Validate leaves it.
func TestEventsAreValidated(t *testing.T) {
	if v, err := valid(plain{-1}); v.n != -1 || err != nil {
		t.Errorf("an event without Validate: %v, %v", v, err)
	}
	if v, err := valid(byPointer{1}); v.n != 10 || err != nil {
		t.Errorf("an event that changes itself: %v, %v", v, err)
	}
	if v, err := valid(&byPointer{1}); v.n != 10 || err != nil {
		t.Errorf("a pointer with an event that changes itself: %v, %v", v, err)
	}
	if _, err := valid(byValue{1}); err != nil {
		t.Errorf("a good event: %v", err)
	}
	for what, err := range map[string]error{
		"value":     second(valid(byValue{-1})),
		"pointer":   second(valid(byPointer{-1})),
		"reference": second(valid(&byPointer{-1})),
		"interface": second(valid[validator](byValue{-1})),
	} {
		if !errors.Is(err, jobs.ErrInvalid) || !errors.Is(err, errNegative) {
			t.Errorf("a bad event by %s: %v", what, err)
		}
	}
}

func second[E any](_ E, err error) error { return err }
