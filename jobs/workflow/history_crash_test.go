package workflow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// runCall is a call of a client to a run, or something that the run does by itself. Its answer is a
// text: the outcome, or how the call was refused.
type runCall struct{ verb, value string }

func (c runCall) String() string { return c.verb + " " + c.value }

// runState is a run as the model sees it. It takes two signals, and then it completes.
type runState struct {
	Exists         bool
	Input          string
	Waiting, Taken string // signals: a letter each
	Cancel         bool
	End            string // outcome; empty: it has not ended
}

// byItself are the calls that stand for what a run does by itself. The history has them as calls
// without an answer from its begin on, so they may have happened at any time, or never.
var byItself = []runCall{{verb: "take"}, {verb: "take"}, {verb: "end"}}

// runModel is one run as a function.
func runModel(r runState, c runCall) (next runState, answer string) {
	switch {
	case c.verb == "start" && !r.Exists:
		return runState{Exists: true, Input: c.value}, "created"
	case c.verb == "start":
		return r, "exists"
	case !r.Exists:
		return r, "not found"
	case c.verb == "signal" && r.End != "", c.verb == "status" && r.End != "":
		return r, "ended"
	case c.verb == "signal":
		r.Waiting += c.value
	case c.verb == "status":
		return r, "open"
	case c.verb == "cancel":
		r.Cancel = r.Cancel || r.End == ""
	case c.verb == "wait":
		return r, r.End
	case c.verb == "take" && r.Waiting != "" && len(r.Taken) < 2 && !r.Cancel:
		r.Taken, r.Waiting = r.Taken+r.Waiting[:1], r.Waiting[1:]
	case c.verb == "end" && len(r.Taken) == 2 && r.End == "":
		r.End = r.Input + r.Taken
	case c.verb == "end" && r.Cancel && r.End == "":
		r.End = "cancelled"
	}
	return r, "ok"
}

// newPair is the workflow of the model.
func newPair(s *harness.Sim) *workflow.Workflow[string, string] {
	w := workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
	w.Func(func(c *workflow.Context, in string) (string, error) {
		for i := range 2 {
			v, err := approved.Wait(c, 0)
			if err != nil {
				return "", err
			}
			if in += v; i == 0 {
				if _, err := slow(s, c, "between", time.Second); err != nil { // signals gather meanwhile
					return "", err
				}
			}
		}
		return in, nil
	})
	return w
}

// ask makes a call once, records it, and reports whether it was answered.
func ask(s *harness.Sim, w *workflow.Workflow[string, string], id string, c runCall) bool {
	_, err := harness.Record(s, "order/"+id, c, func() (answer string, err error) {
		answer = "ok"
		switch c.verb {
		case "start":
			var started workflow.Started
			if started, err = w.Start(s.Context(), s, id, c.value); err == nil {
				answer = map[bool]string{true: "created", false: "exists"}[started.Created]
			}
		case "signal":
			err = approved.Send(s.Context(), s, w, id, c.value)
		case "cancel":
			err = w.Cancel(s.Context(), s, id, "")
		case "status":
			var st workflow.Status
			if st, err = w.Status(s.Context(), s, id); err == nil {
				answer = map[bool]string{true: "ended", false: "open"}[st.Meta.Status.Ended()]
			}
		case "wait":
			answer, err = w.Wait(s.Context(), s, id)
		}
		switch {
		case errors.Is(err, jobs.ErrNotFound):
			return "not found", nil
		case errors.Is(err, workflow.ErrEnded):
			return "ended", nil
		case errors.Is(err, workflow.ErrCancelled):
			return "cancelled", nil
		}
		return answer, err
	})
	s.OK(err)
	return err == nil
}

// askOut lets the run come to its end. It makes each call until it is answered, and records them all.
func askOut(s *harness.Sim, w *workflow.Workflow[string, string], id string) {
	for _, verb := range []string{"start", "cancel", "wait"} {
		if verb == "wait" {
			s.Eventually(3*time.Hour, "the run has ended", func() bool { return status(s, w, id).Meta.Status.Ended() })
		}
		for !ask(s, w, id, runCall{verb, "z"}) {
		}
	}
}

// record notes that the runs may do something by themselves.
func record(s *harness.Sim, ids ...string) {
	for _, id := range ids {
		for _, c := range byItself {
			_, _ = harness.Record(s, "order/"+id, c, func() (string, error) { return "", object.ErrUnknown })
		}
	}
}

// Proves F5, F8, F12, F13. Calls to a run answer as if they had been made one after another, also those that
// come at the same time, at the end of the run, and around a crash: one Start creates it, its signals are
// taken in one order, and each Wait returns the one outcome.
func TestCrashHistoryOfARun(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := newPair(s)
		record(s, "1")
		s.Host(w)
		for client, calls := range [][]runCall{
			{{"start", "x"}, {"signal", "a"}, {"wait", ""}, {"status", ""}},
			{{"start", "y"}, {"wait", ""}, {"signal", "b"}},
			{{"signal", "c"}, {"status", ""}, {"signal", "d"}, {"pause", ""}, {"cancel", ""}, {"wait", ""}},
		} {
			s.Go(fmt.Sprint("client ", client), func() {
				for _, c := range calls {
					if c.verb == "pause" { // until the second signal is taken
						s.Sleep(time.Second)
						continue
					}
					ask(s, w, "1", c)
				}
			})
		}
		s.Advance(time.Minute)
		askOut(s, w, "1")
	}, append(promises, crashes.Budget(150), harness.Linearizable(runModel))...)
}

// Proves F5, F8, F12, F13. The same with clients that call two runs at random times.
func TestRandomHistories(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		w, ids := newPair(s), []string{"1", "2"}
		record(s, ids...)
		s.Host(w)
		letter := 'a'
		for client := range rapid.IntRange(2, 4).Draw(rt, "clients") {
			var calls []func()
			for range rapid.IntRange(1, 5).Draw(rt, "calls") {
				id := rapid.SampledFrom(ids).Draw(rt, "run")
				verb := rapid.SampledFrom([]string{"start", "start", "signal", "signal", "signal", "cancel", "status", "wait"}).Draw(rt, "verb")
				pause := rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, time.Minute}).Draw(rt, "pause")
				c := runCall{verb, string(letter)}
				letter++
				calls = append(calls, func() { s.Sleep(pause); ask(s, w, id, c) })
			}
			s.Go(fmt.Sprint("client ", client), func() {
				for _, call := range calls {
					call()
				}
			})
		}
		s.Advance(10 * time.Minute)
		for _, id := range ids {
			askOut(s, w, id)
		}
	}, append(promises, harness.Linearizable(runModel))...)
}
