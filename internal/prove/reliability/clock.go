package main

import (
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// The suite times programs that it runs, by the clock of the machine.
var (
	seams = seam.Seams{}.WithDefaults()
	clock = seams.Clock
)

// since is the time that has passed since t, which came from clock.
func since(t time.Time) time.Duration { return clock.Now().Sub(t) }
