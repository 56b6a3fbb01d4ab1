package main

import "github.com/holdfast-dev/holdfast/seam"

// The tests that are timed are real programs, so the clock is that of the machine.
var seams = seam.Seams{}.WithDefaults()
