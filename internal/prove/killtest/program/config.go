// Package program is a small program on Holdfast that the parent process kills:
// counters, timers with alarms, continuous jobs, debounce jobs and a worker pool, under
// many callers at once. It writes its calls with their answers, and the effects of its
// works, as lines of package judge to its standard output.
package program

import (
	"encoding/json"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
)

// Config has the settings of one life of the program; the parent writes it as JSON to
// standard input.
type Config struct {
	Dir     string
	Seed    uint64
	FirstOp uint64       // number of the first call
	Repeat  []judge.Line // calls of earlier lives to make again
	// Finish makes a life without new work that runs until nothing is left to do.
	Finish bool
	// FullAfter, if not zero, is when after the open the disk seems to become full,
	// and FullFor for how long; zero is for ever. If FullAfter is negative, it is
	// full before the open.
	FullAfter, FullFor time.Duration
	// LimitAfter is when no file may become longer than LimitBytes any more, if
	// that is not zero.
	LimitAfter time.Duration
	LimitBytes uint64
}

// Exit codes of the program.
const (
	ExitOK       = 0 // shut down in order, after SIGTERM or when nothing was left to do
	ExitFailed   = 3 // the store has failed, or could not be opened
	ExitShutdown = 4 // the end was not in order
)

// ReadConfig reads the JSON of the parent.
func ReadConfig(r io.Reader) (c Config, err error) {
	return c, json.NewDecoder(r).Decode(&c)
}
