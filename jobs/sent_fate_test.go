package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// newSender returns a class of objects, and a method that runs do in a turn of one.
func newSender(do func(ctx context.Context, st *object.State) error) (*object.Class[clerk], *object.Method[none, none]) {
	class := object.Define("sender", func(_ context.Context, st *object.State) (*clerk, error) { return &clerk{st}, nil })
	return class, object.Handle(class, "do", func(c *clerk, ctx context.Context, _ none) (none, error) { return none{}, do(ctx, c.st) })
}

// waiting counts the messages that a store holds for the classes of the jobs.
func waiting(s *harness.Sim) (n int) {
	c, err := s.Store().CountMessages()
	s.OK(err)
	for more := true; more; {
		more, err = c.Next(func(_ storage.ID, k int) bool { n += k; return true })
		s.OK(err)
	}
	s.OK(c.Close())
	return n
}

// dead are the dead letters of the host.
func dead(s *harness.Sim) (all []object.DeadLetter) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
		all, err = lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
		return err
	}))
	return all
}

var errTurn = errors.New("the turn fails")

// Proves J19. A verb that was sent leaves nothing behind if the turn fails, or if the
// Transaction around it is undone.
func TestSentVerbsGoWithTheirTurn(t *testing.T) {
	for _, c := range []struct {
		name string
		in   func(ctx context.Context, st *object.State, send func() error) error
		want error
		sent bool
	}{
		{"commits", func(_ context.Context, _ *object.State, send func() error) error { return send() }, nil, true},
		{"fails", func(_ context.Context, _ *object.State, send func() error) error { return errors.Join(send(), errTurn) }, errTurn, false},
		{"undone", func(ctx context.Context, st *object.State, send func() error) error {
			err := st.Storage().Transaction(ctx, func(context.Context, *object.Storage) error { return errors.Join(send(), errTurn) })
			if !errors.Is(err, errTurn) {
				return fmt.Errorf("the transaction gave %w", err)
			}
			return nil
		}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				j := newSendable()
				senders, do := newSender(func(ctx context.Context, st *object.State) error {
					return c.in(ctx, st, func() error {
						_, err1 := j.pool.Enqueue(ctx, st.Outbox(), parcelA)
						_, err2 := j.clock.Start(ctx, st.Outbox(), "a", parcelA)
						_, err3 := j.heap.Add(ctx, st.Outbox(), "a", parcelA)
						_, err4 := j.trip.Start(ctx, st.Outbox(), "a", parcelA)
						return errors.Join(err1, err2, err3, err4)
					})
				})
				s.Host(senders, j.pool, j.clock, j.heap, j.trip)
				_, err := do.Call(s.Context(), s, "x", none{})
				s.Always("the turn ends so", errors.Is(err, c.want), err)
				s.RunUntilIdle()
				_, trip := j.trip.Status(s.Context(), s, "a")
				stats, err := j.pool.Stats(s.Context(), s)
				s.OK(err)
				_, clock := j.clock.Status(s.Context(), s, "a")
				_, heap := j.heap.Status(s.Context(), s, "a")
				exists := []bool{stats.Submitted == 1, clock == nil, heap == nil, trip == nil}
				for i, there := range exists {
					s.Always("all or nothing exists", there == c.sent, i, exists)
				}
				s.Always("nothing waits", waiting(s) == 0 && len(dead(s)) == 0)
			})
		})
	}
}

// Proves J19, M4. Verbs that were sent with a delay take effect at its end, and not before.
func TestDelayedVerbs(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := newSendable()
		senders, do := newSender(func(ctx context.Context, st *object.State) error {
			later := st.Outbox(object.After(time.Hour))
			task, err1 := j.pool.Enqueue(ctx, later, parcelA)
			_, err2 := j.clock.Start(ctx, later, "a", parcelA)
			_, err3 := j.heap.Add(ctx, later, "a", parcelA)
			s.Always("the answer is that of a message", task.Sent)
			return errors.Join(err1, err2, err3)
		})
		s.Host(senders, j.pool, j.clock, j.heap)
		_, err := do.Call(s.Context(), s, "x", none{})
		s.OK(err)
		for i, wait := range []time.Duration{time.Hour - time.Second, 2 * time.Second} {
			s.Advance(wait)
			stats, err := j.pool.Stats(s.Context(), s)
			s.OK(err)
			_, clock := j.clock.Status(s.Context(), s, "a")
			_, heap := j.heap.Status(s.Context(), s, "a")
			for k, there := range []bool{stats.Submitted == 1, clock == nil, heap == nil} {
				s.Always("each exists after the delay", there == (i == 1), i, k, clock, heap)
			}
		}
		s.Always("nothing waits", waiting(s) == 0 && len(dead(s)) == 0)
	})
}

// Proves J19. A task that was sent to a pool which is draining, or full, waits without an
// attempt, in its order, and is added later.
func TestSentTasksWaitForThePool(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, free func(s *harness.Sim, p *workerpool.Pool[int, int]) error
	}{
		{"draining", func(s *harness.Sim, p *workerpool.Pool[int, int]) error {
			return p.Drain(s.Context(), s)
		}, func(s *harness.Sim, p *workerpool.Pool[int, int]) error { return p.Resume(s.Context(), s) }},
		{"full", func(s *harness.Sim, p *workerpool.Pool[int, int]) error {
			_, err := p.Enqueue(s.Context(), s, 0)
			return errors.Join(p.Pause(s.Context(), s), err)
		}, func(s *harness.Sim, p *workerpool.Pool[int, int]) error {
			_, err := p.Discard(s.Context(), s)
			return errors.Join(err, p.Resume(s.Context(), s))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				var did []int
				pool := workerpool.New(workerpool.Config[int, int]{
					Name: "pool", Concurrency: 1, MaxQueued: 1, Work: func(_ context.Context, t *workerpool.Task[int]) (int, error) {
						did = append(did, t.In)
						return 0, nil
					},
				})
				n := 0
				senders, do := newSender(func(ctx context.Context, st *object.State) error {
					n++
					_, err := pool.Enqueue(ctx, st.Outbox(), n)
					return err
				})
				s.Host(senders, pool)
				if c.name == "full" { // the task of before must not begin
					s.OK(pool.Pause(s.Context(), s))
				}
				s.OK(c.before(s, pool))
				for range 3 {
					_, err := do.Call(s.Context(), s, "x", none{})
					s.OK(err)
				}
				s.Advance(48 * time.Hour) // much longer than all attempts of a message take
				s.Always("all wait", waiting(s) == 3 && len(dead(s)) == 0 && len(did) == 0, waiting(s), did)
				s.OK(c.free(s, pool))
				s.Advance(5 * time.Minute) // a full queue lets one task in at a time
				s.Always("all were done in their order", fmt.Sprint(did) == "[1 2 3]" && waiting(s) == 0, waiting(s), did)
			})
		})
	}
}

// Proves J19. A verb that the job refuses for good is a dead letter at once, after one
// attempt. An Add to a full job is tried again.
func TestRefusedVerbsAreDeadLetters(t *testing.T) {
	full := debounce.New(debounce.Config[parcel, none]{
		Name: "full", Quiet: 2 * time.Minute, MaxPending: 1,
		Flush: func(context.Context, *debounce.Flush[parcel, none]) error { return nil },
	})
	strict := continuous.New(continuous.Config[choosy]{
		Name: "strict", Run: func(context.Context, *continuous.Run[choosy]) error { return nil },
	})
	for _, c := range []struct {
		name, said string
		send       func(ctx context.Context, j *sendable, from object.Caller) error
	}{
		{"unknown task", "no such job", func(ctx context.Context, j *sendable, from object.Caller) error {
			_, err := j.pool.Cancel(ctx, from, workerpool.TaskID{Number: 77})
			return err
		}},
		{"unknown job", "no such job", func(ctx context.Context, j *sendable, from object.Caller) error {
			return j.clock.Trigger(ctx, from, "nobody")
		}},
		{"no such move", "illegal move", func(ctx context.Context, j *sendable, from object.Caller) error {
			_, err := j.clock.Start(ctx, from, "a", parcelA)
			return errors.Join(err, j.clock.Stop(ctx, from, "a", ""), j.clock.Pause(ctx, from, "a"))
		}},
		{"invalid state", "invalid", func(ctx context.Context, _ *sendable, from object.Caller) error {
			_, err := strict.Start(ctx, from, "a", choosy{})
			return err
		}},
		{"full", "", func(ctx context.Context, _ *sendable, from object.Caller) error {
			_, err1 := full.Add(ctx, from, "a", parcelA)
			_, err2 := full.Add(ctx, from, "a", parcelA)
			return errors.Join(err1, err2)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				j := newSendable()
				senders, do := newSender(func(ctx context.Context, st *object.State) error { return c.send(ctx, j, st.Outbox()) })
				s.Host(senders, j.pool, j.clock, full, strict)
				_, err := do.Call(s.Context(), s, "x", none{})
				s.OK(err)
				s.RunUntilIdle()
				if c.said == "" {
					s.Always("the second event waits", waiting(s) == 1 && len(dead(s)) == 0, waiting(s))
					s.Advance(20 * time.Minute)
					st, err := full.Status(s.Context(), s, "a")
					s.OK(err)
					s.Always("both events were flushed", st.EventsFlushed == 2 && waiting(s) == 0, st, waiting(s))
					return
				}
				all := dead(s)
				s.Always("one dead letter of one attempt", len(all) == 1 && all[0].Attempts == 1 && waiting(s) == 0, all, waiting(s))
				s.Always("it says why", strings.Contains(all[0].LastError, c.said), all[0].LastError)
			})
		})
	}
}

// choosy is a state that refuses itself.
type choosy struct{}

func (choosy) Validate() error { return errors.New("not this one") }

// Proves J14. The refusal of a verb is an ordinary failure of the run that returns it, as
// any other error is: it is tried again, and the caller of a verb sees no change.
func TestRefusalsFailARunAsOtherErrorsDo(t *testing.T) {
	for _, refusal := range []error{
		jobs.ErrNotFound, jobs.ErrInvalid, &jobs.MoveError{From: jobs.Stopped, To: jobs.Paused}, workerpool.ErrQueueFull, workerpool.ErrDraining,
		workflow.ErrBusy, workflow.ErrEnded,
	} {
		t.Run(refusal.Error(), func(t *testing.T) {
			if object.IsPermanent(refusal) || object.Retryable(refusal) {
				t.Errorf("IsPermanent %t, Retryable %t: want neither", object.IsPermanent(refusal), object.Retryable(refusal))
			}
			if wrapped := fmt.Errorf("x: %w", refusal); !errors.Is(wrapped, refusal) {
				t.Error("errors.Is does not find it")
			}
			harness.Run(t, func(s *harness.Sim) {
				tries := map[string]int{}
				retry := jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Second)}
				clock := continuous.New(continuous.Config[none]{Name: "clock", Retry: retry, Run: func(context.Context, *continuous.Run[none]) error {
					tries["run"]++
					return refusal
				}})
				pool := workerpool.New(workerpool.Config[int, int]{Name: "pool", Retry: retry, Work: func(context.Context, *workerpool.Task[int]) (int, error) {
					tries["task"]++
					return 0, refusal
				}})
				heap := debounce.New(debounce.Config[int, none]{Name: "heap", Quiet: time.Second, Retry: retry, Flush: func(context.Context, *debounce.Flush[int, none]) error {
					tries["flush"]++
					return refusal
				}})
				s.Host(clock, pool, heap)
				_, err1 := clock.Start(s.Context(), s, "a", none{})
				_, err2 := pool.Enqueue(s.Context(), s, 1)
				_, err3 := heap.Add(s.Context(), s, "a", 1)
				s.OK(errors.Join(err1, err2, err3))
				s.Advance(time.Minute)
				s.Always("each was tried three times", tries["run"] == 3 && tries["task"] == 3 && tries["flush"] == 3, tries)
			})
		})
	}
}

// Proves J19. An id of no partition is refused by Cancel itself, because a partition of
// that number would refuse each message, and never lose it.
func TestCancelOfNoPartition(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := newSendable()
		var errs []error
		senders, do := newSender(func(ctx context.Context, st *object.State) error {
			for _, id := range []workerpool.TaskID{{Partition: -1, Number: 1}, {Partition: 1024, Number: 1}, {Partition: 0, Number: 0}} {
				_, err := j.pool.Cancel(ctx, st.Outbox(), id)
				errs = append(errs, err)
			}
			_, err := j.pool.Cancel(ctx, st.Outbox(), workerpool.TaskID{Partition: 1023, Number: 1})
			return err
		})
		s.Host(senders, j.pool)
		_, err := do.Call(s.Context(), s, "x", none{})
		s.OK(err)
		for _, err := range errs {
			s.Always("it is refused", errors.Is(err, jobs.ErrNotFound), err)
		}
		s.RunUntilIdle()
		s.Always("the last partition knows no such task", len(dead(s)) == 1 && waiting(s) == 0, dead(s), waiting(s))
	})
}

// lettersOf passes on the letters of a page.
func lettersOf(page object.DeadLetterPage, err error) ([]object.DeadLetter, error) {
	return page.Letters, err
}
