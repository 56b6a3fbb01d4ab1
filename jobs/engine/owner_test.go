package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// Case 43. Proves A2: the alarm of a job belongs to the job. Each other that would set it is
// refused at once: timers, the object by hand, a second engine.
func TestAlarmOfAJobHasOneOwner(t *testing.T) {
	fire := func(context.Context, timers.Timer) error { return nil }
	k := newErrandKind(&errandKind{})
	r := newRigKind(&rigKind{})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(k, r)
		for name, fn := range map[string]func(ctx context.Context, e *errand) error{
			"timers": func(ctx context.Context, e *errand) error {
				_, err := timers.Attach(ctx, e.st, timers.Options{}, fire)
				return err
			},
			"SetAlarm":    func(ctx context.Context, e *errand) error { return e.st.SetAlarm(ctx, e.st.Now()) },
			"DeleteAlarm": func(ctx context.Context, e *errand) error { return e.st.DeleteAlarm(ctx) },
			"a second job": func(ctx context.Context, e *errand) error {
				_, err := engine.NewJob(ctx, e.st, engine.JobOptions{}, nil)
				return err
			},
		} {
			k.fn = fn
			_, err := k.act.Call(s.Context(), s, "e", 0)
			if !errors.Is(err, object.ErrAlarmOwned) || !strings.Contains(err.Error(), "errand/e") || !strings.Contains(err.Error(), "the job of the object") {
				s.Errorf("%s: %v", name, err)
			}
		}
		r.fn = func(ctx context.Context, x *rig) error {
			_, err := engine.Attach(ctx, x.st, engine.Options{}, x)
			return err
		}
		if _, err := r.call.Call(s.Context(), s, "r", 0); !errors.Is(err, object.ErrAlarmOwned) {
			s.Errorf("a second engine: %v", err)
		}
	})
}
