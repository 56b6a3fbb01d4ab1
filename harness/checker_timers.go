package harness

import (
	"github.com/holdfast-dev/holdfast/object/timers"
	"github.com/holdfast-dev/holdfast/storage"
)

// EarliestTimer checks, in each state that a crash leaves, the timers of package timers: each
// has one name and each name one timer, and the alarm of their object is at the time of the
// earliest of them, unless the alarm waits for another attempt (T4).
func EarliestTimer(c *Config) {
	checker(check{
		name:    "EarliestTimer",
		promise: promiseTimers.String(),
		stored: func(_ *Sim, view *storedState) error {
			return eachObject(view, func(o storage.Object) error {
				if err := timers.Examine(view, o); err != nil {
					return concerning{err, o.ID.String()}
				}
				return nil
			})
		},
	})(c)
}
