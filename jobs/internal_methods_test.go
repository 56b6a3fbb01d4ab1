package jobs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O19: no method of any job type is called by its name, not even one that only looks. So
// a generic call of terminate does not end a job.
func TestMethodsOfJobsAreInternal(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := newSendable()
		s.Host(j.pool, j.clock, j.heap, j.trip, breaker.New(breaker.Config{Name: "fuse"}))
		_, err := j.clock.Start(s.Context(), s, "a", parcelA)
		s.OK(err)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			methods := 0
			for _, c := range h.Classes() {
				for _, m := range c.Methods {
					methods++
					_, err := h.CallBytes(ctx, c.Name, "a", m.Name, nil)
					s.Always("the call is refused", errors.Is(err, object.ErrInternalMethod), c.Name, m.Name, err)
				}
			}
			s.Always("all types have methods", methods > 40, methods)
			return nil
		}))
		_, err = j.clock.Status(s.Context(), s, "a")
		s.OK(err) // the job is still there
	})
}
