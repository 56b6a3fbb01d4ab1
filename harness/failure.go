package harness

import (
	"errors"
	"fmt"
	"strings"
)

// Failure is a broken promise, and how to see it again.
type Failure struct {
	Problem  string // what is wrong
	Promise  string // its number and sentence, if the checker names one
	Plan     string // what Replay takes
	Timeline string // the points of the run, with its crashes
	State    string // what was stored at the end
}

// Error is the whole report.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Problem)
	if f.Promise != "" {
		fmt.Fprintf(&b, "\npromise  %s", f.Promise)
	}
	fmt.Fprintf(&b, "\nreplay   harness.Replay(t, scenario, %q)", f.Plan)
	if f.Timeline != "" {
		fmt.Fprintf(&b, "\npoints\n%s", f.Timeline)
	}
	if f.State != "" {
		fmt.Fprintf(&b, "stored\n%s", f.State)
	}
	return b.String()
}

// stop is the panic value that ends a scenario.
type stop struct{}

// fail keeps the first problem of a run.
func (s *Sim) fail(promise, format string, args ...any) {
	if s.problem == nil {
		s.problem = &Failure{Problem: fmt.Sprintf(format, args...), Promise: promise, Plan: s.plan.String()}
		s.timeline.note(s.elapsed(), "FAILED: "+s.problem.Problem)
	}
}

func (s *Sim) report(name, promise string, err error) {
	if err != nil {
		s.fail(promise, "%s: %v", name, err)
	}
}

// abort ends the scenario with what made the simulation impossible.
func (s *Sim) abort(err error) {
	if s.problem == nil {
		s.fail("", "%v", err)
	}
	panic(stop{})
}

// Errorf marks the run as failed and goes on. Handlers and clients may call it.
func (s *Sim) Errorf(format string, args ...any) { s.fail("", format, args...) }

// Fatalf ends the run as failed. Handlers and clients may call it.
func (s *Sim) Fatalf(format string, args ...any) {
	s.fail("", format, args...)
	if s.m.InTask() {
		s.m.Abort(errStopped)
	}
	panic(stop{})
}

// FailNow ends the run as failed.
func (s *Sim) FailNow() { s.Fatalf("FailNow") }

// Logf adds a line to the timeline that a failure prints.
func (s *Sim) Logf(format string, args ...any) {
	s.timeline.note(s.elapsed(), fmt.Sprintf(format, args...))
}

// Helper does nothing; assertion libraries call it.
func (s *Sim) Helper() {}

var errStopped = errors.New("the run was ended by Fatalf")
