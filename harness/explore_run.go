package harness

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/object"
)

// outcome is how a run ended.
type outcome struct {
	hits      []hit // where a schedule may crash; valid until the runner's next run
	crashedAt []int // places in hits of the schedule's crashes
	struckAt  []int // hits passed before each of the schedule's faults
	chances   []chance
	faults    map[faultKind]int // that struck
	problem   *Failure
	sometimes map[string]bool
	calls     callsBefore
	crashes   int
	virtual   time.Duration
	defs      []object.Definition // hosted at last
}

// last is how many hits came before the last crash, or fault, of the schedule.
func (o outcome) last(isFault bool) int {
	at := o.crashedAt
	if isFault {
		at = o.struckAt
	}
	return at[len(at)-1]
}

// runner runs schedules of one scenario, one after another.
type runner struct {
	cfg      *Config
	scenario Scenario
	crew     machine.Crew
	timeline timeline
	running  schedule

	runs int // so far

	random     chooser // instead of schedules; nil: schedules rule
	passPanics bool    // the scenario's panics are its caller's
}

// carefulRuns is how many runs look at each call whether it comes from a goroutine
// that the simulation does not know, which takes longer.
const carefulRuns = 2

// run runs the scenario once with the schedule.
func (r *runner) run(p schedule) outcome {
	r.running = p
	r.timeline.reset()
	s := newSim(r.cfg, p, &r.crew, &r.timeline, r.runs < carefulRuns)
	s.random = r.random
	defer s.close()
	r.play(s)
	r.runs++
	if err := r.crew.Intruder(); err != nil && s.problem == nil {
		s.fail("", "%v", err)
	}
	if s.problem == nil && s.next < len(p.crashes) {
		s.fail("", "the run does not come to the crash of its schedule at %s: either the code or the scenario has changed, or it does not do the same each time%s",
			p.crashes[s.next].at, unsteady(s.defs))
	}
	if f, ok := s.missing(); ok && s.problem == nil {
		s.fail("", "the run does not come to the fault %s of its schedule: either the code or the scenario has changed, or it does not do the same each time%s", f, unsteady(s.defs))
	}
	if s.problem != nil {
		s.complete(s.problem)
	}
	return outcome{
		hits: s.timeline.candidates(), crashedAt: s.crashedAt, problem: s.problem, sometimes: s.sometimes, calls: s.callsBefore,
		crashes: s.crashes, virtual: s.elapsed(), struckAt: s.struckAt, chances: s.timeline.chances, faults: s.struck,
		defs: s.defs,
	}
}

// play runs the scenario and lets it settle. A panic that ends it early becomes the
// problem of the run.
func (r *runner) play(s *Sim) {
	defer func() {
		switch v := recover().(type) {
		case nil, stop:
		default:
			if r.passPanics {
				panic(v)
			}
			s.fail("", "the scenario panicked: %v\n%s", v, debug.Stack())
		}
	}()
	s.AllowFaults(s.cfg.faults)
	r.scenario(s)
	s.settle()
}

var errExited = errors.New("harness: the scenario ended its goroutine")

// guard runs f where a task that blocks for ever cannot block the caller, and
// returns an error if one does. A panic of f is the caller's.
func (r *runner) guard(f func()) error {
	done := make(chan struct{})
	var thrown any
	err := errExited
	go func() {
		defer close(done)
		defer func() {
			if thrown = recover(); thrown != nil {
				err = nil
			}
		}()
		r.crew.Lead(f)
		r.crew.Close()
		err = nil
	}()
	if stuck := r.crew.Watch(r.cfg.watchdog, done); stuck != nil {
		return stuck
	}
	if thrown != nil {
		panic(thrown)
	}
	return err
}

// wrap makes a Failure of an error that ended a run from outside.
func (r *runner) wrap(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Problem: fmt.Sprint(err), Schedule: r.running.String()}
}
