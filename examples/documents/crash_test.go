package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// grove is a tree of three packages, whose terms are in both of two shards.
var grove = treeOf(map[string]string{
	"a/a.go": "// Oak elm oak.\npackage a\n",
	"b/b.go": "// Ash oak birch.\npackage b\n",
	"c/c.go": "// Elm alder.\npackage c\n",
	"c/d.go": "// Alder maple.\npackage c\n",
})

// small is a run of two children and two shards.
var small = request{Group: 2, Shards: 2}

// counting is a scenario in which a run of the program counts the grove.
func counting(s *harness.Sim) { countingWith(s, newProgram(grove, 2)) }

func countingWith(s *harness.Sim, p *program) {
	s.Host(p.definitions()...)
	s.OK(s.Retry(func() error {
		_, err := p.runs.Start(s.Context(), s, "run", small)
		return err
	}))
	s.Advance(time.Minute)
	s.Finally("the totals are those of a plain loop", func() error { return countedAs(s, p) })
}

// countedAs compares a run and each row of its shards with a plain loop.
func countedAs(s *harness.Sim, p *program) error {
	got, err := p.runs.Wait(s.Context(), s, "run")
	if err != nil {
		return err
	}
	want, terms, err := p.plain(s.Context(), 0)
	if err != nil {
		return err
	}
	stored, err := p.stored(s.Context(), s, "run", small.Shards)
	if err != nil {
		return err
	}
	if d := differences(got, want, stored, terms); len(d) > 0 {
		return errors.New(strings.Join(d, "; "))
	}
	return nil
}

// promises are the checks of each scenario, beside the totals.
var promises = []harness.Option{
	harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, harness.NoLostMessage,
}

// Each term is counted once, at whichever point the process is killed.
func TestCountsOnceAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, counting, append(promises, crashes.Budget(300))...) // more than the points of one crash
}

// repeating is the same scenario with children that call the shards in a step, instead of
// sending them messages in an Atomic.
func repeating(s *harness.Sim) {
	p := newProgram(grove, 2)
	p.groups = workflow.New[group, sums]("group", workflow.Config{})
	p.groups.Func(func(ctx *workflow.Context, g group) (sums, error) {
		return workflow.Step(ctx, "all", func(ctx context.Context) (sums, error) {
			all := newReading()
			for _, dir := range g.Packages {
				r, err := readPackage(ctx, p.tree, dir)
				if err != nil {
					return sums{}, err
				}
				all.add(r)
			}
			return all.Sums, p.send(ctx, s, g, all.Terms)
		})
	})
	countingWith(s, p)
}

// A step runs again if the process dies before its entry is stored. The harness finds the
// crash after which a group is counted twice.
func TestStepThatCallsTheShardsIsFound(t *testing.T) {
	harness.Run(t, repeating, promises...) // it does not show without a crash
	_, err := harness.Explore(repeating, append(promises, harness.Budget(300))...)
	if err == nil || !strings.Contains(err.Error(), "plain loop") {
		t.Errorf("the crashes end with %v", err)
	}
}

// slowDisk is a tree of which a file takes a while.
type slowDisk struct {
	fstest.MapFS
	s     *harness.Sim
	takes *time.Duration
}

func (d slowDisk) ReadFile(path string) ([]byte, error) {
	d.s.Sleep(*d.takes)
	return d.MapFS.ReadFile(path)
}

// Kills from outside are no fault of a run, so that it goes on after any number of them,
// also if it made no progress between.
func TestRunIsKilledAgainAndAgain(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		takes := time.Hour
		p := newProgram(slowDisk{grove, s, &takes}, 2)
		s.Host(p.definitions()...)
		_, err := p.runs.Start(s.Context(), s, "run", request{Group: 3, Shards: 2})
		s.OK(err)
		// A run that was charged is held back for twice the life of the process before. Then
		// it is tried alone, and a kill is charged to it again.
		for life := 2 * time.Second; life < 10*time.Minute; life = 2*life + 2*time.Second {
			s.Advance(life)
			s.Crash(harness.Kill)
			s.Restart()
		}
		takes = 0
		s.Advance(2 * time.Hour)
		s.OK(countedAs(s, p))
	}, promises...)
}

// A run that has ended is not begun anew, however late, because it would add to the rows of
// its shards.
func TestRunIsKept(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := newProgram(grove, 2)
		s.Host(p.definitions()...)
		for range 3 {
			_, err := p.runs.Start(s.Context(), s, "run", small)
			s.OK(err)
			s.Advance(200 * 24 * time.Hour)
			s.OK(countedAs(s, p))
		}
	}, promises...)
}
