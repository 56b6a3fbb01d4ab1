package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
)

// content is what a file holds and when it was changed, without a file system.
type content struct {
	stamp stamp
	text  string
}

// visit does what a run does, up to the waiting: it compares the files, enqueues
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

// counted checks what the scenario leaves behind.
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

// Each file is counted once, whatever the point at which the process is killed.
func TestCountsOnceAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, indexing, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned,
		harness.Budget(600)) // each plan is a long one
}
