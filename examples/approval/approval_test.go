package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/jobs/workflow/workflowtest"
	"github.com/holdfast-dev/holdfast/object"
)

// promises are the checks of every crash.
var promises = []harness.Option{
	harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, harness.NoStuck, harness.OneEnd, harness.AtMostOncePerCrash("mail/"),
}

// mails are what a simulated post has sent: it knows keys.
type mails map[string]string

func (m mails) post(s *harness.Sim) Post {
	return func(_ context.Context, key, text string) error {
		return s.World().Do("mail/"+key, func() { m[key] = text })
	}
}

// texts are the mails that begin so.
func (m mails) texts(begin string) (n int) {
	for _, text := range m {
		if strings.HasPrefix(text, begin) {
			n++
		}
	}
	return n
}

// story asks for money, lets a time pass, and has something happen then.
func story(after time.Duration, happens func(s *harness.Sim, requests *workflow.Workflow[Request, string]) error,
	want string, paid, taken int) harness.Scenario {
	return func(s *harness.Sim) {
		sent := make(mails)
		requests := NewRequests(sent.post(s))
		s.Host(requests)
		s.OK(s.Retry(func() error {
			_, err := requests.Start(s.Context(), s, "anna", Request{"anna", 250})
			return err
		}))
		s.Advance(after)
		var st workflow.Status
		shown := ""
		s.OK(s.Retry(func() (err error) {
			if st, err = requests.Status(s.Context(), s, "anna"); err == nil {
				shown, _, err = Progress.Get(s.Context(), s, requests, "anna")
			}
			return err
		}))
		s.Always("it waits for the boss", shown == "waits for the boss" && st.Meta.Status == jobs.Running && len(st.Waits) == 1, shown, st)
		s.OK(s.Retry(func() error { return happens(s, requests) }))
		s.Advance(time.Minute)
		s.Finally("it has ended, and the mails are sent", func() error {
			outcome, err := requests.Wait(s.Context(), s, "anna")
			if errors.Is(err, workflow.ErrCancelled) {
				outcome, err = "cancelled", nil
			}
			if err != nil || outcome != want || len(sent) != 1+paid+taken || sent.texts("May anna") != 1 ||
				sent.texts("Pay 250") != paid || sent.texts("Never mind") != taken {
				return fmt.Errorf("%q, %v, mails %v, want %q", outcome, err, sent, want)
			}
			return nil
		})
	}
}

func decide(yes bool) func(s *harness.Sim, requests *workflow.Workflow[Request, string]) error {
	return func(s *harness.Sim, requests *workflow.Workflow[Request, string]) error {
		return Decided.Send(s.Context(), s, requests, "anna", yes, object.Idempotent("decision", time.Hour))
	}
}

func nothing(*harness.Sim, *workflow.Workflow[Request, string]) error { return nil }

// Almost a year passes, the boss says yes, and the process dies at each point. Proves F1, F2,
// F5, F13 and F14. Cases WF1, WF2, WF3, WF4, WF6, WF7 and WF9.
func TestCrashApprovedAfterAlmostAYear(t *testing.T) {
	crashes.Try(t, story(patience-time.Hour, decide(true), "paid", 1, 0), promises...)
}

func TestCrashRefused(t *testing.T) {
	crashes.Try(t, story(time.Hour, decide(false), "refused", 0, 0), promises...)
}

// The boss says nothing for a year: the wait is over then, and not before. Proves F4.
func TestCrashNoDecisionWithinAYear(t *testing.T) {
	crashes.Try(t, story(patience-time.Minute, nothing, "refused, because the boss said nothing", 0, 0), promises...)
}

// The decision comes at the instant at which the wait ends: there is one outcome, which a
// crash does not change. Case WF8.
func TestCrashDecisionAtTheEndOfTheYear(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		sent := make(mails)
		requests := NewRequests(sent.post(s))
		s.Host(requests)
		s.OK(s.Retry(func() error {
			_, err := requests.Start(s.Context(), s, "anna", Request{"anna", 250})
			return err
		}))
		s.Go("boss", func() {
			s.Sleep(patience)
			err := s.Retry(func() error { return decide(true)(s, requests) })
			if !errors.Is(err, workflow.ErrEnded) {
				s.OK(err)
			}
		})
		s.Advance(patience + time.Minute)
		s.Finally("one outcome", func() error {
			outcome, err := requests.Wait(s.Context(), s, "anna")
			if paid := outcome == "paid"; err != nil || sent.texts("Pay") == 1 != paid || !paid && !strings.HasPrefix(outcome, "refused") {
				return fmt.Errorf("%q, %v, mails %v", outcome, err, sent)
			}
			again, err := requests.Wait(s.Context(), s, "anna")
			if err != nil || again != outcome {
				return fmt.Errorf("%q, and later %q, %v", outcome, again, err)
			}
			return nil
		})
	}, promises...)
}

// A request that is taken back tells the boss, once. Proves F8, F9. Cases WF10 and WF11.
func TestCrashTakenBack(t *testing.T) {
	cancel := func(s *harness.Sim, requests *workflow.Workflow[Request, string]) error {
		return requests.Cancel(s.Context(), s, "anna", "not needed")
	}
	crashes.Try(t, story(90*24*time.Hour, cancel, "cancelled", 0, 1), promises...)
}

// The unit test of the workflow, in one call for each outcome.
func TestOutcomes(t *testing.T) {
	var sent map[string]string
	requests := NewRequests(func(_ context.Context, key, text string) error {
		sent[key] = text
		return nil
	})
	outside := workflowtest.Outside(func() { sent = make(map[string]string) }, func() any { return len(sent) })
	for _, c := range []struct {
		option workflowtest.Option
		want   string
		mails  int
	}{
		{workflowtest.Signal(time.Hour, Decided, true), "paid", 2},
		{workflowtest.Signal(time.Hour, Decided, false), "refused", 1},
		{workflowtest.Signal(patience-time.Hour, Decided, true), "paid", 2},
		{workflowtest.With(), "refused, because the boss said nothing", 1},
		{workflowtest.Cancel(time.Hour), "", 2},
	} {
		out, err := workflowtest.Run(t, requests, Request{"anna", 250}, c.option, outside)
		if out != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, workflow.ErrCancelled) || len(sent) != c.mails {
			t.Errorf("%q, %v, %d mails, want %q", out, err, len(sent), c.want)
		}
	}
}

// A post that fails for good fails the request, which Retry lets go on.
func TestCrashPostThatFails(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		sent, broken := make(mails), true
		requests := NewRequests(func(ctx context.Context, key, text string) error {
			if broken {
				return jobs.Permanent(errors.New("no post today"))
			}
			return sent.post(s)(ctx, key, text)
		})
		s.Host(requests)
		s.OK(s.Retry(func() error {
			_, err := requests.Start(s.Context(), s, "anna", Request{"anna", 250})
			return err
		}))
		s.Advance(time.Minute)
		var err error
		s.OK(s.Retry(func() error {
			if _, err = requests.Wait(s.Context(), s, "anna"); errors.Is(err, workflow.ErrFailed) {
				return nil
			}
			return err
		}))
		s.Always("it has failed", err != nil && strings.HasSuffix(err.Error(), `step "ask": no post today`), err)
		broken = false
		err = s.Retry(func() error { return requests.Retry(s.Context(), s, "anna") })
		if !errors.Is(err, jobs.ErrIllegalMove) { // of a repeat, when the first answer was lost
			s.OK(err)
		}
		s.Advance(time.Minute)
		s.Finally("it waits", func() error {
			st, err := requests.Status(s.Context(), s, "anna")
			if err != nil || st.Meta.Status != jobs.Running || len(st.Waits) != 1 || sent.texts("May anna") != 1 {
				return fmt.Errorf("%+v, %v, mails %v", st, err, sent)
			}
			return nil
		})
	}, promises...)
}
