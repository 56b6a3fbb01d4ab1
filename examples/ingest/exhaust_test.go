package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
)

// content is the bytes of a file and its time of change, without a file system.
type content struct {
	stamp stamp
	text  string
}

// visit does the same as a run, up to the waiting: it compares the files, enqueues
// tasks, and starts the continuous job.
func visit(s *harness.Sim, p *program, contents map[string]content, order []string) {
	s.OK(s.Retry(func() error {
		f := p.feeder(s, func() error { return nil })
		for _, path := range order {
			if err := f.compare(s.Context(), path, path, contents[path].stamp); err != nil {
				return err
			}
		}
		if err := f.send(s.Context()); err != nil {
			return err
		}
		_, err := walked.Call(s.Context(), s, theLedger, walk{Packages: f.all(nil), Work: true})
		return err
	}))
	s.OK(s.Retry(func() error {
		_, err := p.watch.Start(s.Context(), s, theLedger, 0)
		return err
	}))
}

// indexing is a scenario in which one file is read, then changed, and another goes.
func indexing(s *harness.Sim) {
	contents := map[string]content{
		"p/a.go": {stamp{true, 1, 1}, "package p\n\nimport \"fmt\"\n"},
		"p/b.go": {stamp{true, 2, 1}, "package p\n"},
	}
	p := newProgram(source{root: "/"}, 2, func(err error) { s.Errorf("%v", err) })
	p.measure = func(path string) (*measure, stamp, error) {
		c, ok := contents[path[1:]]
		if !ok {
			return nil, stamp{}, nil
		}
		m := measureText([]byte(c.text))
		return &m, c.stamp, nil
	}
	s.Host(p.definitions()...)
	order := []string{"p/a.go", "p/b.go"}
	visit(s, p, contents, order)
	s.Advance(10 * time.Second)
	contents["p/a.go"] = content{stamp{true, 1, 2}, "package p\n\nimport \"os\"\n\n"}
	delete(contents, "p/b.go")
	visit(s, p, contents, order)
	s.Advance(30 * time.Second)
	s.Finally("each file is counted once", func() error { return counted(s, p) })
}

// counted checks the totals after the scenario.
func counted(s *harness.Sim, p *program) error {
	t, err := read.Call(s.Context(), s, "p", struct{}{})
	if want := (sums{Files: 1, Bytes: 24, Lines: 4}); err != nil || t.Sums != want || t.Imports["os"] != 1 || t.Imports["fmt"] != 0 {
		return fmt.Errorf("the totals are %+v, %v", t, err)
	}
	b, err := bookOf.Call(s.Context(), s, theLedger, struct{}{})
	if err != nil {
		return err
	}
	status, err := p.watch.Status(s.Context(), s, theLedger)
	if b.Current && (b.Finished.IsZero() || !errors.Is(err, jobs.ErrNotFound)) {
		return fmt.Errorf("the book is %+v, the continuous job %+v, %v", b, status, err)
	}
	return nil
}

// Each file is counted once, at whichever point the process is killed.
func TestCountsOnceAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, indexing, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned,
		crashes.Budget(600)) // each plan is a long one
}

// A run that is repeated after a crash may see that all is done when it did not the
// first time. Its last snapshot counts, and it has one in the history.
func TestRepeatedRunAfterACrashReplacesItsSnapshot(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(ledgers)
		for _, p := range []progress{
			{"run 1", snapshot{Left: 2}},
			{"run 2", snapshot{Left: 1}},
			{"run 2", snapshot{Done: true}},
		} {
			s.OK(s.Retry(func() error {
				_, err := note.Call(s.Context(), s, theLedger, p)
				return err
			}))
		}
		s.Finally("the store is finished", func() error {
			b, err := bookOf.Call(s.Context(), s, theLedger, struct{}{})
			if err != nil {
				return err
			}
			h, err := historyOf.Call(s.Context(), s, theLedger, 10)
			if err != nil || b.Finished.IsZero() || len(h) != 2 || h[0].Left != 2 || !h[1].Done {
				return fmt.Errorf("the book is %+v, the history %+v, %v", b, h, err)
			}
			return nil
		})
	}, harness.NoLostAck)
}
