package workerpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// lettersTold is the kinds of the events about dead letters that a story has stored, in order.
func lettersTold(s *harness.Sim, p *pool) (told []string) {
	s.OK(s.Retry(func() error {
		told = nil
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			events, err := h.Events(ctx, p.ID("0"), 0, 1000)
			for _, e := range events {
				var ev jobs.Event
				if err := json.Unmarshal(e.Data, &ev); err != nil {
					return err
				}
				switch e.Kind {
				case jobs.EventStale, workerpool.EventDeleted, workerpool.EventReplayed, jobs.EventRetentionFailed:
					told = append(told, e.Kind)
				}
			}
			return err
		})
	}))
	return told
}

// lettersCrash is a story of a task that dies: with a crash at any point its letter is stale once and gone once, each told
// once, and its hooks are called before.
func lettersCrash(t *testing.T, c config, want string) {
	exhaust(t, 1, func(s *harness.Sim) {
		c := c
		r := &c.Retention
		noted := func(name string, hook func(context.Context, *jobs.Retired) error) func(context.Context, *jobs.Retired) error {
			if hook == nil {
				return nil
			}
			return func(ctx context.Context, x *jobs.Retired) error {
				s.World().Do(name+" "+x.ID, nil)
				return hook(ctx, x)
			}
		}
		r.OnStale, r.OnDelete = noted("stale", r.OnStale), noted("delete", r.OnDelete)
		c.Work = func(context.Context, *workerpool.Task[string]) (string, error) {
			return "", jobs.Permanent(errors.New("broken"))
		}
		p := newPool(s, c)
		s.Host(p)
		id := enqueue(s, p, "a")
		s.Advance(10 * time.Minute)
		s.Finally("the letter was stale and is gone", func() error {
			if st := stats(s, p); st.Dead != 0 || st.Cancelled != 1 {
				return fmt.Errorf("W12: %+v", st)
			}
			told := lettersTold(s, p)
			crashed := !strings.Contains(want, jobs.EventRetentionFailed) && slices.Contains(told, jobs.EventRetentionFailed) // R4: too often in a call
			if crashed {
				told = slices.DeleteFunc(told, func(kind string) bool { return kind == jobs.EventRetentionFailed })
			}
			if got := strings.Join(told, " "); got != want {
				return fmt.Errorf("W12: told is %s, want %s", got, want)
			}
			for name, hook := range map[string]bool{"stale ": r.OnStale != nil, "delete ": r.OnDelete != nil} {
				if n := s.World().Count(name + id.String()); hook && n == 0 && !crashed {
					return fmt.Errorf("W12: %s was not called", name)
				}
			}
			return nil
		})
	}, harness.Settle(10*time.Minute))
}

// Proves W12, W10: a letter survives crashes until its time, is stale once and gone once, with its letter in the list of all
// dead work, wholly there or wholly gone.
func TestCrashStaleLetter(t *testing.T) {
	lettersCrash(t, config{Retention: jobs.Retention{StaleAfter: time.Minute, Failed: 2 * time.Minute}}, "stale deleted")
}

// Proves W12, J23: the calls of all hooks survive crashes, and the letter is gone after them.
func TestCrashHooksOfALetter(t *testing.T) {
	fine := func(context.Context, *jobs.Retired) error { return nil }
	lettersCrash(t, config{
		Retention: jobs.Retention{StaleAfter: time.Minute, Failed: 2 * time.Minute, OnStale: fine, OnDelete: fine},
		OnDead:    func(context.Context, workerpool.DeadLetter[string]) error { return nil },
	}, "stale deleted")
}

// Proves W12, J23: a letter with hooks that fail for good is gone all the same, and its OnDead, which is owed
// for longer than it is kept, is called before.
func TestCrashFailingHooksOfALetter(t *testing.T) {
	refuse := func(context.Context, *jobs.Retired) error { return jobs.Permanent(errors.New("no")) }
	lettersCrash(t, config{Retention: jobs.Retention{Failed: time.Minute, OnDelete: refuse}}, "retention.failed deleted")
}

// Proves W12, W6: a letter that is replayed as its time comes is pending or gone, and not both; the task that dies again has
// all its time.
func TestCrashReplayOfALetterThatGoes(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{
			Retention: jobs.Retention{StaleAfter: 30 * time.Second, Failed: time.Minute, OnDelete: func(context.Context, *jobs.Retired) error {
				s.Sleep(2 * time.Second)
				return nil
			}},
			Work: func(context.Context, *workerpool.Task[string]) (string, error) {
				return "", jobs.Permanent(errors.New("broken"))
			},
		})
		s.Host(p)
		id := enqueue(s, p, "a")
		s.Advance(time.Minute + time.Second) // in the call of OnDelete
		replays, unanswered := 0, 0          // a call without an answer may have replayed the task, which may be dead again as the next one comes
		s.OK(s.Retry(func() error {
			n, err := p.Replay(s.Context(), s, id)
			replays += n
			if harness.Unknown(err) {
				unanswered++
			}
			if errors.Is(err, jobs.ErrNotFound) {
				return nil // it is gone, or an answer was lost
			}
			return err
		}))
		if st := stats(s, p); replays == 1 && s.Crashes() == 0 && st.Dead+st.Pending+st.Running != 1 {
			s.Errorf("W12: the replayed task is gone: %+v", st)
		}
		s.Advance(5 * time.Minute)
		s.Finally("each death was told to be over once", func() error {
			told := lettersTold(s, p)
			count := func(kind string) (n int) {
				for _, k := range told {
					if k == kind {
						n++
					}
				}
				return n
			}
			if n := count(workerpool.EventReplayed); n < replays || n > replays+unanswered {
				return fmt.Errorf("W12: told is %v after %d replays and %d calls without an answer", told, replays, unanswered)
			}
			if count(workerpool.EventDeleted) != 1 || told[len(told)-1] != workerpool.EventDeleted {
				return fmt.Errorf("W12: told is %v", told)
			}
			if st := stats(s, p); st.Cancelled != 1 || st.Dead != 0 {
				return fmt.Errorf("W1: %+v", st)
			}
			return nil
		})
	}, harness.Settle(10*time.Minute))
}
