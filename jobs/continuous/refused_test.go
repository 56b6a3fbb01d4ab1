package continuous_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// counter is a job that the tests of this file make.
type counter = continuous.Job[tally]

// refusal is one or two turns of a job. The test refuses each of their writes, one after
// the other.
type refusal struct {
	config  continuous.Config[tally]
	prepare func(s *harness.Sim, j *counter) // comes before the turn
	slow    bool                             // the runs of prepare never end, so that the restart finds one open
	call    func(s *harness.Sim, j *counter) error
	run     error                                // the result of a run once prepare is over
	end     func(run *continuous.Run[tally])     // how it ends the job, if it does
	hook    func(x *jobs.Exhaustion) (err error) // nil: there is none
	step    int                                  // of the limit, in bytes; 0: least
}

// errRefusedRun, and the state of a run that succeeds, are long, so that the end of an
// execution writes more than its recovery before it, and can be refused alone.
var errRefusedRun = errors.New(strings.Repeat("no luck ", 100))

var twice = continuous.Config[tally]{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}}

// refusals are the turns of a continuous job: those of calls, and those that the
// first 300 ms after an open bring.
var refusals = map[string]refusal{
	"start":                  {call: startIt},
	"start paused":           {config: continuous.Config[tally]{StartPaused: true}, call: startIt},
	"start later":            {config: continuous.Config[tally]{StartLater: true}, call: startIt},
	"trigger":                {prepare: started, call: triggerIt},
	"trigger of a retry":     {prepare: started, run: errRefusedRun, call: triggerIt, config: twice},
	"trigger of an open run": {prepare: started, slow: true, call: triggerIt},
	"pause":                  {prepare: started, call: pauseIt},
	"pause of an open run":   {prepare: started, slow: true, call: pauseIt},
	"resume":                 {prepare: then(started, pauseIt), call: resumeIt},
	"resume of an open run":  {prepare: then(started, pauseIt), slow: true, call: resumeIt},
	"stop":                   {prepare: started, call: stopIt},
	"stop of an open run":    {prepare: started, slow: true, call: stopIt},
	"resume of a stopped":    {prepare: then(started, stopIt), call: resumeIt},
	"terminate":              {prepare: started, call: terminateIt},
	"terminate an open run":  {prepare: started, slow: true, call: terminateIt},
	"success":                {prepare: started, slow: true},
	"success, then paused":   {prepare: then(started, pauseIt), slow: true},
	"stops itself":           {prepare: started, slow: true, end: func(run *continuous.Run[tally]) { run.Stop("enough") }},
	"terminates itself":      {prepare: started, slow: true, end: func(run *continuous.Run[tally]) { run.Terminate("enough") }},
	"terminates, unsaid":     {prepare: started, slow: true, end: func(run *continuous.Run[tally]) { run.Terminate("") }, step: 8},
	"failure":                {prepare: started, slow: true, run: errRefusedRun, config: twice},
	"snooze":                 {prepare: started, slow: true, run: jobs.Snooze(time.Minute)},
	"given up":               {prepare: started, slow: true, run: errRefusedRun},
	"given up and failed":    {prepare: started, slow: true, run: errRefusedRun, config: continuous.Config[tally]{Exhausted: jobs.Fail}},
	"given up and purged":    {prepare: started, slow: true, run: errRefusedRun, config: continuous.Config[tally]{Exhausted: jobs.Purge}},
	"hook":                   {prepare: started, slow: true, run: errRefusedRun, hook: hookDone},
	"hook that fails":        {prepare: started, slow: true, run: errRefusedRun, hook: hookFails},
	"hook, then purged":      {prepare: started, slow: true, run: errRefusedRun, hook: hookDone, config: continuous.Config[tally]{Exhausted: jobs.Purge}},
}

func started(s *harness.Sim, j *counter) { start(s, j, "a") }

func then(prepare func(*harness.Sim, *counter), call func(*harness.Sim, *counter) error) func(*harness.Sim, *counter) {
	return func(s *harness.Sim, j *counter) {
		prepare(s, j)
		s.OK(call(s, j))
	}
}

func startIt(s *harness.Sim, j *counter) error {
	_, err := j.Start(s.Context(), s, "a", tally{Trace: strings.Repeat(" ", 100)})
	return err
}
func triggerIt(s *harness.Sim, j *counter) error   { return j.Trigger(s.Context(), s, "a") }
func pauseIt(s *harness.Sim, j *counter) error     { return j.Pause(s.Context(), s, "a") }
func resumeIt(s *harness.Sim, j *counter) error    { return j.Resume(s.Context(), s, "a") }
func stopIt(s *harness.Sim, j *counter) error      { return j.Stop(s.Context(), s, "a", "enough") }
func terminateIt(s *harness.Sim, j *counter) error { return j.Terminate(s.Context(), s, "a", "enough") }

func hookDone(*jobs.Exhaustion) error  { return nil }
func hookFails(*jobs.Exhaustion) error { return errRefusedRun }

// rowsOf is all that is stored of a job, its alarm apart, and its events.
func rowsOf(s *harness.Sim, id storage.ID) string {
	var b strings.Builder
	view := s.Store()
	o, err := view.Find(id)
	if err != nil {
		s.Fatalf("find: %v", err)
	}
	if o.Number != 0 {
		it, err := view.ListData(nil, o, "", "", false)
		if err != nil {
			s.Fatalf("list: %v", err)
		}
		for it.Next() {
			fmt.Fprintf(&b, "%s %s\n", it.Key(), it.Value())
		}
		_, open, err := view.OpenMark(o)
		fmt.Fprintf(&b, "open %t\n", open)
		if err := errors.Join(err, it.Close()); err != nil {
			s.Fatalf("read: %v", err)
		}
	}
	if err := view.Events(id, 0, func(_ uint64, value []byte) bool {
		fmt.Fprintf(&b, "event %s\n", value)
		return true
	}); err != nil {
		s.Fatalf("events: %v", err)
	}
	return b.String()
}

// alarmRow is the stored alarm of a job, and whether an execution of it is open.
func alarmRow(s *harness.Sim, id storage.ID) (row string, open bool) {
	view := s.Store()
	o, err := view.Find(id)
	if err != nil || o.Number == 0 {
		return "none", false
	}
	value, _, err := view.Alarm(o)
	_, open, err2 := view.OpenMark(o)
	s.OK(errors.Join(err, err2))
	return string(value), open
}

// with plays a refusal with a limit for the bytes that a turn may write. It returns the
// stored rows before the limit holds, between the turns, and at the end, and the error of
// the call.
func (r refusal) with(t *testing.T, limit int) (states []string, err error) {
	bytes := 0
	harness.Run(t, func(s *harness.Sim) {
		bytes, states = 0, nil
		prepared := false
		c := r.config
		c.Schedule = jobs.Every(time.Hour)
		c.Run = func(_ context.Context, run *continuous.Run[tally]) error {
			if !prepared && r.slow && r.hook == nil {
				s.Sleep(time.Hour)
			}
			s.Sleep(10 * time.Millisecond)
			if prepared {
				run.State.Trace = strings.Repeat("x", 3000)
			}
			if r.end != nil {
				r.end(run)
			}
			return r.run
		}
		if r.hook != nil {
			c.OnExhausted = func(_ context.Context, x *jobs.Exhaustion) error {
				if !prepared {
					s.Sleep(time.Hour)
				}
				s.Sleep(10 * time.Millisecond)
				return r.hook(x)
			}
		}
		j := ticking(s, c)
		see := func() { states = append(states, rowsOf(s, j.ID("a"))) }
		s.Host(j)
		if r.prepare != nil {
			r.prepare(s, j)
		}
		if !r.slow || r.hook != nil {
			s.Advance(30 * time.Millisecond)
		}
		prepared = true
		s.Crash(harness.Kill)
		bytes = limit
		s.Restart()
		see()
		if r.call != nil {
			err = r.call(s, j)
			see()
		} else {
			// The recovery comes after 100 ms. The ends of the run and of the hook follow
			// after 10 ms each. No refused turn is tried again before 300 ms.
			for _, at := range []time.Duration{105, 10, 10, 175} {
				s.Advance(at * time.Millisecond)
				see()
			}
		}
		s.Crash(harness.Kill)
		bytes = 0
		s.Restart()
		alarm, open := alarmRow(s, j.ID("a"))
		_, _ = j.Status(s.Context(), s, "a")
		if after, _ := alarmRow(s, j.ID("a")); !open {
			s.Always("a wake-up leaves the alarm of a job at rest", after == alarm, after, alarm)
		} else {
			due := alarmOf(s, "a").Sub(s.Now())
			s.Always("a wake-up arms a lost execution, whatever retry its alarm waits for", due == 100*time.Millisecond, due)
		}
	}, harness.OneAlarm, harness.NeverOrphaned, harness.Invariant("C3: runCount is the number of committed runs", committed),
		harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes = bytes }))
	return states, err
}

// failedForItsSize reports whether the run was given up because its state was refused.
func failedForItsSize(rows string) bool {
	return strings.Contains(rows, `"lastError":"counter/a: object: turn writes too much`) &&
		strings.Contains(rows, `"k":"exhausted"`) && strings.Contains(rows, "open false")
}

// Proves S7, O6, J5, J6: a write of a job's turn is refused because the turn writes too
// much, and then the turn stores nothing. That holds for each write of a turn: neither a
// call nor a run nor a hook ends half, and an answered call has stored all its writes.
func TestRefusedWriteEndsTheTurn(t *testing.T) {
	const least = 24 // bytes: few writes of a turn are nearer to one another
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			whole, err := r.with(t, 0)
			if err != nil {
				t.Fatal(err)
			}
			end := whole[len(whole)-1]
			if end == whole[0] {
				t.Fatal("nothing was stored")
			}
			step := cmp.Or(r.step, least)
			if r.call == nil {
				step = cmp.Or(r.step, 2*least)
			}
			step *= prove.Stride()
			for limit, last := step, ""; last != end; limit += step {
				states, err := r.with(t, limit)
				last = states[len(states)-1]
				switch {
				case failedForItsSize(last) && r.run == nil: // that is the end of a run with so large a state
				case !slices.Contains(whole, last):
					t.Fatalf("limit %d, error %v: stored is\n%s\nwant one of\n%s", limit, err, last, strings.Join(whole, "\n"))
				case err == nil && r.call != nil && last != end:
					t.Fatalf("limit %d: the call is answered, and stored is\n%s\nwant\n%s", limit, last, end)
				case err != nil && (!errors.Is(err, object.ErrBatchTooLarge) || last != whole[0]):
					t.Fatalf("limit %d: the call ends with %v, and stored is\n%s\nwant\n%s", limit, err, last, whole[0])
				}
			}
		})
	}
}
