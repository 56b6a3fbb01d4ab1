package main

import (
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// The programs are real ones, so the clock is that of the machine.
var seams = seam.Seams{}.WithDefaults()

// since is the time that has passed since t, which came from the clock.
func since(t time.Time) time.Duration { return seams.Clock.Now().Sub(t) }
