package harness

import (
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Failed replays a schedule and returns its failure, or nil.
func Failed(scenario Scenario, text string, opts ...Option) *Failure {
	p, err := parseSchedule(text)
	if err != nil {
		panic(err)
	}
	r := &runner{cfg: newConfig(opts), scenario: scenario}
	var out outcome
	if err := r.guard(func() { out = r.run(p) }); err != nil {
		panic(err)
	}
	return out.problem
}

// Trace replays a schedule and returns the points that the run passed.
func Trace(scenario Scenario, schedule string, opts ...Option) string {
	p, err := parseSchedule(schedule)
	if err != nil {
		panic(err)
	}
	var text string
	r := &runner{cfg: newConfig(opts), scenario: func(s *Sim) {
		s.Finally("trace", func() error { text = s.timeline.text() + s.dump(); return nil })
		scenario(s)
	}}
	var out outcome
	if err := r.guard(func() { out = r.run(p) }); err != nil {
		panic(err)
	}
	if out.problem != nil {
		return out.problem.Error()
	}
	return text
}

// TornDisk is a disk that loses the first of the unsynced commits that a crash
// should leave.
func TornDisk(c *Config) {
	c.newDisk = func() disk { return &tornDisk{newPebbleDisk().(*pebbleDisk)} }
}

type tornDisk struct{ *pebbleDisk }

func (d *tornDisk) crash(keep int) {
	d.pebbleDisk.crash(keep)
	if len(d.again) > 1 {
		d.again = d.again[1:]
	}
}

// Watchdog sets how long a task may wait without a step, while no goroutine has
// anything to do, before the run fails and names the task. The default is ten seconds.
func Watchdog(d time.Duration) Option { return func(c *Config) { c.watchdog = d } }

// The checks of effects, for a log that a test has made.
var (
	NoDoubleEffectIn     = noDoubleEffect
	AtMostOncePerCrashIn = atMostOncePerCrash
)

// Passed is how often a run has passed a point so far.
func (s *Sim) Passed(name, object string) int {
	return s.timeline.counts[seam.Point{Name: name, Object: object}]
}

// Steps is how often a task has run until it yielded.
func (s *Sim) Steps() int { return s.m.Steps() }

// LinearizableWithin is LinearizableIn with another limit of the steps for each object.
func LinearizableWithin[S, I, O any](h *History, model func(S, I) (S, O), steps int64) error {
	return linearizableIn(h, model, steps)
}
