package seam

import "time"

// wall is the machine's clock; timers run on its monotonic part.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func (wall) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
