package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves W2, W5: so many tasks are ready, or become ready, that one batch cannot hold
// their begins. They begin in several turns, and no verb fails.
func TestMoreBeginsThanABatchHolds(t *testing.T) {
	const tasks = 400
	for _, delay := range []time.Duration{0, time.Minute} {
		for _, outside := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := config{Name: "tasks", Concurrency: 1000, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}}
				if !outside {
					c.Work = func(context.Context, *workerpool.Task[string]) (string, error) { return "", nil }
				}
				p := workerpool.New(c)
				h, s := spied(t, memstore.New(), object.Options{MaxBatchBytes: 16 << 10}, p)
				if err := p.Pause(ctx, h); err != nil {
					t.Fatal(err)
				}
				for range tasks {
					must(p.Enqueue(ctx, h, "in", workerpool.Delay(delay)))
				}
				time.Sleep(delay)
				if err := p.Resume(ctx, h); err != nil {
					t.Errorf("Resume after %v, outside: %t: %v", delay, outside, err)
				}
				for range 100 {
					if !outside {
						break
					}
					got, err := p.Claim(ctx, h, tasks, 0)
					if err != nil || len(got) == 0 && must(p.Stats(ctx, h)).Pending > 0 {
						t.Fatalf("Claim after %v: %d, %v", delay, len(got), err)
					}
					for _, c := range got {
						if err := p.Ack(ctx, h, c.Lease, ""); err != nil {
							t.Fatal(err)
						}
					}
				}
				time.Sleep(time.Second)
				if st := must(p.Stats(ctx, h)); st.Done != tasks || st.Executions != tasks {
					t.Errorf("after %v, outside: %t, in %d commits: %+v", delay, outside, s.commits, st)
				}
				if err := h.Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A pool with the greatest number of partitions asks each of them, and no others.
func TestMostPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workerpool.New(config{Name: "tasks", Partitions: 1024, Concurrency: 1024})
		h, _ := spied(t, memstore.New(), object.Options{}, p)
		if got, err := p.DeadLetters(ctx, h, workerpool.TaskID{}, 10); len(got) != 0 || err != nil {
			t.Errorf("letters %v, %v", got, err)
		}
		if got, err := p.Claim(ctx, h, 10, 0); len(got) != 0 || err != nil {
			t.Errorf("claims %v, %v", got, err)
		}
		if s, err := p.Stats(ctx, h); len(s.Partitions) != 1024 || err != nil {
			t.Errorf("%d partitions, %v", len(s.Partitions), err)
		}
		if n, err := p.Discard(ctx, h); n != 0 || err != nil {
			t.Errorf("Discard: %d, %v", n, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// unhurried is a caller. Each of its calls returns when all work that the call causes is
// over.
type unhurried struct{ object.Caller }

func (u unhurried) Invoke(ctx context.Context, r *object.Request) error {
	err := u.Caller.Invoke(ctx, r)
	synctest.Wait()
	return err
}

// Proves W6: ReplayAll replays each letter once that was there when it began, even if its
// task dies again meanwhile. Replay replays the letters that it names.
func TestReplayOfLettersThatDieAgain(t *testing.T) {
	const letters = 20
	synctest.Test(t, func(t *testing.T) {
		p := workerpool.New(config{
			Name: "tasks", Retry: jobs.Retry{MaxAttempts: 1},
			Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("no") },
		})
		h, _ := spied(t, memstore.New(), object.Options{MaxBatchBytes: 64 << 10}, p)
		var ids []workerpool.TaskID
		for range letters {
			ids = append(ids, must(p.Enqueue(ctx, h, strings.Repeat("x", 6<<10))).ID)
			synctest.Wait()
		}
		if n, err := p.ReplayAll(ctx, unhurried{h}); n != letters || err != nil {
			t.Errorf("ReplayAll: %d, %v", n, err)
		}
		if n, err := p.Replay(ctx, unhurried{h}, ids[3:13]...); n != 10 || err != nil {
			t.Errorf("Replay: %d, %v", n, err)
		}
		if s := must(p.Stats(ctx, h)); s.Dead != letters || s.Executions != 2*letters+10 {
			t.Errorf("stats %+v", s)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Proves W2: a failure that does not fit in the row of its task is stored shortened, or
// without the failures before it, and no more is dropped than must be. A Nack is refused
// only if the row does not fit even without failures.
func TestFailuresShrinkToTheRow(t *testing.T) {
	kept := make(map[string]int) // the least limit with which so much is kept
	for limit := 420; limit > 170; limit-- {
		synctest.Test(t, func(t *testing.T) {
			p := workerpool.New(config{Name: "tasks", Retry: jobs.Retry{MaxAttempts: 9, Backoff: jobs.Constant(0)}})
			mem := memstore.New()
			h, _ := spied(t, mem, object.Options{}, p)
			must(p.Enqueue(ctx, h, "in"))
			nack := func(cause string) error {
				return p.Nack(ctx, h, must(p.Claim(ctx, h, 1, 0))[0].Lease, errors.New(cause))
			}
			if err := nack("first cause"); err != nil {
				t.Fatal(err)
			}
			lease := must(p.Claim(ctx, h, 1, time.Hour))[0].Lease
			if err := h.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			h, _ = spied(t, mem.Crash(0), object.Options{MaxValueBytes: limit}, p)
			err := p.Nack(ctx, h, lease, errors.New("a cause of forty bytes and one, or so it is"))
			state := "refused"
			if err == nil {
				state = ""
				for _, f := range must(p.Status(ctx, h, lease.ID)).Failures {
					state += fmt.Sprintf("%d %d ", f.Attempt, len(f.Error))
				}
			}
			kept[state] = limit
			_ = h.Shutdown(ctx)
		})
	}
	same(t, "the failures kept, and the least limit for them", kept, map[string]int{
		"1 11 2 43 ": 411, "2 43 ": 347, "2 10 ": 281, "2 2 ": 265, "2 0 ": 246, "": 180, "refused": 171,
	})
}
