package workerpool_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Pools under crashes: each story is crashed at each point, at each pair of
// points and at random. In each stored state W1 and W3 must hold.

const crashLimit = 2 // concurrency of the pools

func exhaust(t *testing.T, partitions int, scenario harness.Scenario, opts ...harness.Option) {
	t.Helper()
	crashes.Try(t, scenario, append(opts, harness.NoTornBatch, harness.OneAlarm, harness.NoLostAck, harness.NeverOrphaned, harness.Shards(2),
		harness.Invariant("W1, W3, W10", func(store *storage.Store) error {
			return workerpool.Audit(store, "pool", partitions, crashLimit, 1)
		}))...)
}

type (
	config = workerpool.Config[string, string]
	pool   = workerpool.Pool[string, string]
)

// newPool is the pool of a story: its work notes each attempt in the World.
func newPool(s *harness.Sim, c config) *pool {
	c.Name = "pool"
	c.Concurrency = crashLimit
	if c.Retry.MaxAttempts == 0 {
		c.Retry = jobs.Retry{MaxAttempts: 5, Backoff: jobs.Constant(time.Second)}
	}
	inner := c.Work
	c.Work = func(ctx context.Context, t *workerpool.Task[string]) (out string, err error) {
		s.World().Do("work/"+t.In, nil)
		if inner == nil {
			return "did " + t.In, nil
		}
		return inner(ctx, t)
	}
	return workerpool.New(c)
}

// enqueue submits a task until it is acknowledged: its input is its idempotency key.
func enqueue(s *harness.Sim, p *pool, in string, opts ...workerpool.Option) workerpool.TaskID {
	var ref workerpool.TaskRef
	opts = append(opts, workerpool.Idempotent(in, time.Hour))
	s.OK(s.Retry(func() (err error) {
		ref, err = p.Enqueue(s.Context(), s, in, opts...)
		return err
	}))
	return ref.ID
}

// ask repeats a question until it is answered.
func ask[R any](s *harness.Sim, fn func() (R, error)) R {
	var r R
	s.OK(s.Retry(func() (err error) {
		r, err = fn()
		return err
	}))
	return r
}

func status(s *harness.Sim, p *pool, id workerpool.TaskID) workerpool.Status[string] {
	return ask(s, func() (workerpool.Status[string], error) { return p.Status(s.Context(), s, id) })
}

func expect(s *harness.Sim, p *pool, id workerpool.TaskID, want workerpool.State) {
	if info := status(s, p, id); info.State != want {
		s.Errorf("W2: the task is %+v, want %s", info, want)
	}
}

func stats(s *harness.Sim, p *pool) workerpool.Stats {
	st := ask(s, func() (workerpool.Stats, error) { return p.Stats(s.Context(), s) })
	s.OK(st.Check())
	return st
}

// finally lets a story go on for a little and checks how it ends, when there are
// no more crashes.
func finally(s *harness.Sim, check func()) {
	s.Advance(10 * time.Second)
	s.Finally("the end", func() error {
		check()
		return nil
	})
}

// attempts is how often the work for an input was begun.
func attempts(s *harness.Sim, in string) int { return s.World().Count("work/" + in) }

// Proves W1. Proves W2. Proves W8. Case WP1. Case WP3. Two tasks in two partitions are done,
// each once and once more for each crash; a repeated submission finds its task.
func TestCrashTasksAreDoneOnce(t *testing.T) {
	exhaust(t, 2, func(s *harness.Sim) {
		p := newPool(s, config{Partitions: 2})
		s.Host(p)
		var ids []workerpool.TaskID
		for _, in := range []string{"a", "b"} {
			ids = append(ids, enqueue(s, p, in))
		}
		finally(s, func() {
			for i, in := range []string{"a", "b"} {
				if again := enqueue(s, p, in); again != ids[i] {
					s.Errorf("W8: task %s was %s and is %s", in, ids[i], again)
				}
				info := status(s, p, ids[i])
				if info.State != workerpool.Done || info.Result != "did "+in {
					s.Errorf("W2: task %s is %+v", in, info)
				}
				if n := attempts(s, in); n > 1+s.Crashes() {
					s.Errorf("W2: task %s was run %d times with %d crashes", in, n, s.Crashes())
				}
			}
			if st := stats(s, p); st.Done != 2 || st.Submitted != 2 {
				s.Errorf("W1: %+v", st)
			}
		})
	})
}

// Proves W3. Proves W5. Case WP2. A task that fails, or is lost, waits for its retry. A
// later task of its key waits for it, and a task of another key does not.
func TestCrashKeepsTheOrderOfAKey(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
			if t.In == "a1" && t.Attempt == 1 {
				return "", errors.New("not yet")
			}
			return "", nil
		}})
		s.Host(p)
		first := enqueue(s, p, "a1", workerpool.Key("a"))
		enqueue(s, p, "a2", workerpool.Key("a"), workerpool.Priority(9))
		enqueue(s, p, "b1", workerpool.Key("b"))
		finally(s, func() {
			if st := stats(s, p); st.Done != 3 {
				s.Errorf("W2: %+v", st)
			}
			if info := status(s, p, first); info.Attempt < 2 || len(info.Failures) == 0 || info.Attempt > 2+s.Crashes() {
				s.Errorf("W5: the first task is %+v", info)
			}
			begun := ""
			for _, e := range s.World().Log() {
				if strings.HasPrefix(e.Key, "work/a") {
					begun += e.Key[5:]
				}
			}
			if i := strings.Index(begun, "a2"); i < 0 || strings.Contains(begun[i:], "a1") {
				s.Errorf("W3: the tasks of key a were begun in the order %s", begun)
			}
		})
	})
}

// Proves W6, W10. Case 19. Case WP4. A task that fails for good is a dead letter with all its
// errors, which is in the list of all dead work too; the hook is told at least once, and once
// more at most for each crash.
func TestCrashDeadLetter(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{
			Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)},
			Work: func(context.Context, *workerpool.Task[string]) (string, error) {
				return "", errors.New("broken")
			},
			OnDead: func(_ context.Context, d workerpool.DeadLetter[string]) error {
				s.World().Do("dead/"+d.ID.String(), nil)
				return nil
			},
		})
		s.Host(p)
		id := enqueue(s, p, "a")
		finally(s, func() {
			letters := ask(s, func() ([]workerpool.DeadLetter[string], error) {
				return p.DeadLetters(s.Context(), s, workerpool.TaskID{}, 10)
			})
			if len(letters) != 1 || letters[0].ID != id || letters[0].In != "a" || len(letters[0].Failures) != 2 || letters[0].Reason != jobs.ReasonAttempts {
				s.Errorf("W6: dead letters %+v", letters)
			}
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				all, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
				if err == nil && (len(all) != 1 || all[0].Kind != workerpool.DeadTask || all[0].LastError != "broken") {
					s.Errorf("W10: the list of all dead work is %+v", all)
				}
				return err
			}))
			if n := s.World().Count("dead/" + id.String()); n < 1 || n > 1+s.Crashes() {
				s.Errorf("W6: the hook was told %d times, with %d crashes", n, s.Crashes())
			}
			if st := stats(s, p); st.Dead != 1 || st.Done != 0 {
				s.Errorf("Case 19: a dead letter counts as processed: %+v", st)
			}
		})
	})
}

// Proves W6, W10. A dead letter that is discarded is gone from both lists in one commit.
func TestCrashDiscardDead(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{
			Retry: jobs.Retry{MaxAttempts: 1},
			Work:  func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("broken") },
		})
		s.Host(p)
		id := enqueue(s, p, "a")
		s.Advance(20 * time.Second)
		s.OK(s.Retry(func() error {
			_, err := p.DiscardDead(s.Context(), s, id)
			if errors.Is(err, jobs.ErrNotFound) {
				return nil // an earlier try was stored
			}
			return err
		}))
		finally(s, func() {
			expect(s, p, id, workerpool.Cancelled)
			stats(s, p)
		})
	})
}

// Proves W10. The partition of a store of before letters gives them to its dead tasks, one in
// each batch here. Whenever the process dies, no task has two letters, and at the end each
// has one.
func TestCrashLettersOfAnOlderStore(t *testing.T) {
	const tasks = 3
	number := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	old := object.Define("pool", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	write := object.Handle(old, "write", func(st *object.State, ctx context.Context, _ int) (int, error) {
		all := map[string][]byte{"c": []byte("\x01\x00\x00\x0b\x03\x00\x00\x00\x03\x00\x03\x00\x03\x01\x00" + "\x02\x00\x01\x00\x00")}
		for n := range uint64(tasks) {
			all["z/"+number(n+1)] = []byte("\x01\x03" + string(rune(n+1)) + "\x00\x00\x02\x02\x00\x00\x00" + "\x02" + `""` + "\x00\x00")
		}
		for key, value := range all {
			if err := st.Storage().PutBytes(ctx, key, value); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(old)
		s.OK(s.Retry(func() error { _, err := write.Call(s.Context(), s, "0", 0); return err }))
		p := newPool(s, config{})
		s.Restart(harness.WithCode(p))
		stats(s, p)
		finally(s, func() {
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				all, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
				if bare, bad := workerpool.AuditLetters(h.Store(), "pool"); err == nil && (len(all) != tasks || bare > 0 || bad != nil) {
					s.Errorf("W10: %d letters, %d dead tasks without, %v", len(all), bare, bad)
				}
				return err
			}))
		})
	}, harness.NoTornBatch, harness.OneAlarm, harness.NoLostAck, harness.Shards(2),
		harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes = 7 << 10 }),
		harness.Invariant("W10", func(store *storage.Store) error {
			_, err := workerpool.AuditLetters(store, "pool")
			return err
		}))
}

// Proves W6, W10. A dead letter that is replayed runs again, with fresh attempts.
func TestCrashReplay(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		healed := false
		p := newPool(s, config{
			// These attempts suffice for three lost executions after the replay, but not
			// for the one before it as well.
			Retry: jobs.Retry{
				MaxAttempts: 4, Backoff: jobs.Constant(time.Second),
				RetryIf: func(err error) bool { return errors.Is(err, engine.ErrLost) },
			},
			Work: func(context.Context, *workerpool.Task[string]) (string, error) {
				if !healed {
					return "", errors.New("broken")
				}
				return "mended", nil
			},
		})
		s.Host(p)
		id := enqueue(s, p, "a", workerpool.Key("k"))
		s.Advance(20 * time.Second) // it is dead by now, however many attempts crashes have cost
		healed = true
		unknown := false
		s.OK(s.Retry(func() error {
			_, err := p.Replay(s.Context(), s, id)
			if unknown && errors.Is(err, jobs.ErrNotFound) {
				return nil // the first was stored
			}
			unknown = unknown || harness.Unknown(err)
			return err
		}))
		finally(s, func() {
			if info := status(s, p, id); info.State != workerpool.Done || info.Result != "mended" || info.Attempt < 2 {
				s.Errorf("W6: after the replay: %+v", info)
			}
			stats(s, p)
		})
	})
}

// Proves W7. Case WP5. A paused pool is paused after a crash too, and has no alarm. After
// Resume it runs its tasks.
func TestCrashWhilePaused(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{})
		s.Host(p)
		s.OK(s.Retry(func() error { return p.Pause(s.Context(), s) }))
		id := enqueue(s, p, "a")
		late := enqueue(s, p, "late", workerpool.Delay(3*time.Second))
		s.Advance(10 * time.Second)
		if attempts(s, "a") > 0 {
			s.Errorf("W7: a task of a paused pool has run")
		}
		store := s.Store()
		if o, err := store.Find(p.ID("0")); err == nil {
			if _, armed, err := store.Alarm(o); armed || err != nil {
				s.Errorf("W7: a paused pool has an alarm (%v)", err)
			}
		}
		s.OK(s.Retry(func() error { return p.Resume(s.Context(), s) }))
		finally(s, func() {
			for _, id := range []workerpool.TaskID{id, late} {
				if info := status(s, p, id); info.State != workerpool.Done {
					s.Errorf("W7: after Resume: %+v", info)
				}
			}
		})
	})
}

// Proves W5. Proves W2. Outside workers: a claim that is not renewed is a failed
// attempt, its worker is fenced off, and the task goes to another.
func TestCrashClaims(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := workerpool.New(config{
			Name: "pool", Concurrency: crashLimit, Lease: 10 * time.Second,
			Retry: jobs.Retry{MaxAttempts: 9, Backoff: jobs.Constant(time.Second)},
		})
		s.Host(p)
		id := enqueue(s, p, "a")
		claim := func() []workerpool.Claim[string] {
			return ask(s, func() ([]workerpool.Claim[string], error) { return p.Claim(s.Context(), s, 5, 0) })
		}
		first := claim()
		var second []workerpool.Claim[string]
		for n := 0; len(second) == 0 && n <= 1+s.Crashes(); n++ {
			s.Advance(15 * time.Second) // a lease ends, also of a claim with a lost reply
			second = claim()
		}
		if len(second) != 1 || second[0].ID != id || second[0].Task.Attempt < 2 {
			s.Fatalf("W5: claimed %+v", second)
		}
		if len(first) > 0 {
			if err := p.Ack(s.Context(), s, first[0].Lease, "late"); err == nil || !harness.Unknown(err) && !errors.Is(err, jobs.ErrStaleExecution) {
				s.Errorf("W5: a stale acknowledgement: %v", err)
			}
		}
		lease := ask(s, func() (workerpool.Lease, error) { return p.Heartbeat(s.Context(), s, second[0].Lease) })
		unknown := false
		s.OK(s.Retry(func() error {
			err := p.Ack(s.Context(), s, lease, "done")
			if unknown && errors.Is(err, jobs.ErrStaleExecution) {
				return nil // the first was stored
			}
			unknown = unknown || harness.Unknown(err)
			return err
		}))
		finally(s, func() {
			if info := status(s, p, id); info.State != workerpool.Done || info.Result != "done" {
				s.Errorf("W2: the task is %+v", info)
			}
		})
	})
}

// Proves W6. Proves W7. A pending task that is cancelled never runs, and those of
// its key go on; Discard drops the pending.
func TestCrashCancelAndDiscard(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{})
		s.Host(p)
		later := workerpool.Delay(time.Hour)
		cancelled := enqueue(s, p, "cancelled", later, workerpool.Key("k"))
		next := enqueue(s, p, "next", workerpool.Key("k"))
		dropped := enqueue(s, p, "dropped", later)
		if got := ask(s, func() (workerpool.State, error) { return p.Cancel(s.Context(), s, cancelled) }); got != workerpool.Cancelled {
			s.Errorf("W6: Cancel says %s", got)
		}
		s.Advance(5 * time.Second)
		ask(s, func() (int, error) { return p.Discard(s.Context(), s) })
		finally(s, func() {
			expect(s, p, cancelled, workerpool.Cancelled)
			expect(s, p, dropped, workerpool.Cancelled)
			info := status(s, p, next)
			if lost := s.Crashes() > 0 && info.State == workerpool.Cancelled; info.State != workerpool.Done && !lost {
				s.Errorf("W2: the next task of the key is %+v", info)
			}
			if attempts(s, "cancelled")+attempts(s, "dropped") > 0 {
				s.Errorf("W6: a cancelled task ran")
			}
			stats(s, p)
		})
	})
}

// Proves W7. Case 20. Drain finishes all and takes no more, also when a crash
// comes between.
func TestCrashDrain(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{})
		s.Host(p)
		now := enqueue(s, p, "now")
		soon := enqueue(s, p, "soon", workerpool.Delay(5*time.Second))
		s.OK(s.Retry(func() error { return p.Drain(s.Context(), s) }))
		if st := stats(s, p); st.Done != 2 {
			s.Errorf("W7: a drained pool has %+v", st)
		}
		finally(s, func() {
			if _, err := p.Enqueue(s.Context(), s, "refused"); !errors.Is(err, workerpool.ErrDraining) {
				s.Errorf("W7: a draining pool answers %v", err)
			}
			expect(s, p, now, workerpool.Done)
			expect(s, p, soon, workerpool.Done)
		})
	})
}

// Proves W5. Case 19. A task that takes its process with it each time ends as a
// dead letter: two crashes make it a suspect, and four are charged to it.
func TestCrashByTheTask(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := newPool(s, config{
			Retry: jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Second)},
			Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
				s.Sleep(time.Hour)
				return "", nil
			},
		})
		s.Host(p)
		id := enqueue(s, p, "poison")
		for n := range 6 {
			for attempts(s, "poison") == n {
				s.Advance(time.Second)
			}
			s.Crash(harness.Kill)
			s.Restart()
		}
		s.Advance(10 * time.Second)
		info := status(s, p, id)
		if info.State != workerpool.Dead || len(info.Failures) != 1 || info.Failures[0].Attempt != 1 || attempts(s, "poison") != 6 {
			s.Errorf("the task is %+v after %d attempts", info, attempts(s, "poison"))
		}
		if st := stats(s, p); st.Executions != 6 || st.Lost != 6 || st.Dead != 1 {
			s.Errorf("W1: %+v", st)
		}
	})
}
