package engine

import (
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/seam"
)

// SnoozeDelay returns the wait of an error that jobs.Snooze made, or that wraps one; ok
// is false if there is none.
func SnoozeDelay(err error) (d time.Duration, ok bool) {
	var s interface{ SnoozeDelay() time.Duration }
	if !errors.As(err, &s) {
		return 0, false
	}
	return s.SnoozeDelay(), true
}

// snoozeOf returns the wait that an execution has asked for with its error. One
// that panicked, or used up its time, has failed, also if its error wraps
// a snooze.
func snoozeOf(err error) (d time.Duration, ok bool) {
	var p *seam.PanicError
	if errors.As(err, &p) || errors.Is(err, jobs.ErrTimeout) {
		return 0, false
	}
	return SnoozeDelay(err)
}
