package main

import "github.com/holdfast-dev/holdfast/seam"

// The programs are real ones, so the clock is that of the machine.
var seams = seam.Seams{}.WithDefaults()
