package workflow

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs/internal/standin"
)

// standIn returns the function that a test has given in the place of fn, or fn. A host of
// production has no probe, and so no such functions.
func standIn[F any](s *stretch, name string, fn F) F {
	if s.seams.Probe == nil {
		return fn
	}
	switch f := standin.For(s.seams.Probe, name).(type) {
	case nil:
	case F:
		return f
	default:
		s.stuck(fmt.Errorf("%w: step %q is a %T, and its stand-in a %T", ErrMisuse, name, fn, f))
	}
	return fn
}
