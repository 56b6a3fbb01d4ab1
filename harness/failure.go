package harness

import (
	"errors"
	"fmt"
	"strings"
)

// Failure is a broken promise, and all that one needs to see why it broke. Its
// text is at most 92 columns wide, but for the line to replay it with.
type Failure struct {
	Problem  string // in one sentence, such as: alice is not paid
	Detail   string // more lines about it, if there are any
	Promise  string // that is broken: a number of docs/CONTRACT.md and its sentence, or the test's own words
	Timeline string // the points of the run around its crashes and at its end
	Warnings string // calls before a commit, which may be its cause; see NoCallBeforeCommit
	State    string // the stored rows before the last crash, right after it, and at the end
	Schedule string // the text for Replay
	Options  string // those of the test, in words: Replay needs the same
}

// Error is the whole report.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(wrap(f.Problem, reportWidth) + "\n")
	if f.Detail != "" {
		b.WriteString(indent(f.Detail, "  ") + "\n")
	}
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n%s\n%s\n", title, strings.TrimRight(text, "\n"))
		}
	}
	section("PROMISE", indent(wrap(f.Promise, reportWidth-2), "  "))
	section("WARNING", indent(wrap(f.Warnings, reportWidth-2), "  "))
	section("TIMELINE", f.Timeline)
	section("STORED", f.State)
	section("REPLAY", fmt.Sprintf("  harness.Replay(t, scenario, %q)\n%s", f.Schedule, indent(wrap(f.Options, reportWidth-2), "  ")))
	return strings.TrimRight(b.String(), "\n")
}

// stop is the panic value that ends a scenario.
type stop struct{}

// fail keeps the first problem of a run: the first line of the text, which is one
// sentence, and the lines after it as its detail.
func (s *Sim) fail(promise, format string, args ...any) {
	if s.problem != nil {
		return
	}
	problem, detail, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	s.problem = &Failure{Problem: problem, Detail: detail, Promise: promise, Schedule: s.schedule.String()}
	s.timeline.fail(s.elapsed(), problem)
}

// report makes the error of a check the problem of the run.
func (s *Sim) report(name, promise string, err error) {
	if err == nil || s.problem != nil {
		return
	}
	if promise == "" {
		promise = fmt.Sprintf("the test's own: %s", name)
	}
	if c, ok := errors.AsType[concerning](err); ok {
		s.concerned = c.object
	}
	s.fail(promise, "%s: %v", name, err)
}

// complete adds the points and the stored rows of the run to its problem.
func (s *Sim) complete(f *Failure) {
	f.Schedule = s.schedule.String()
	f.Options = s.cfg.words()
	f.Timeline = s.timeline.excerpt()
	f.State = s.stored()
	if !s.cfg.callCheck {
		f.Warnings = s.callsBefore.text()
	}
}

// abort ends the scenario with the error that made the simulation impossible.
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

// Logf adds a line to the timeline that a failure prints. Handlers and clients may
// call it.
func (s *Sim) Logf(format string, args ...any) {
	s.timeline.log(s.elapsed(), fmt.Sprintf(format, args...))
}

// Helper does nothing; assertion libraries call it.
func (s *Sim) Helper() {}

var errStopped = errors.New("the run was ended by Fatalf")
