package workerpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// listed is the dead tasks in the list of all dead work, in the order of their letters.
func listed(t *testing.T, h *object.Host) string {
	t.Helper()
	letters := must(lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})))
	slices.SortFunc(letters, func(a, b object.DeadLetter) int { return int(a.Seq) - int(b.Seq) })
	var ids []string
	for _, d := range letters {
		var data struct{ Task workerpool.TaskID }
		if err := json.Unmarshal(d.Data, &data); err != nil || d.Kind != workerpool.DeadTask {
			t.Errorf("W10: letter %+v: %v", d, err)
		}
		ids = append(ids, data.Task.String())
	}
	return strings.Join(ids, " ")
}

// healthy fails the test unless the rows of partition 0 fit together.
func healthy(t *testing.T, h *object.Host) {
	t.Helper()
	store := h.Store()
	o := must(store.Find(storage.ID{Class: "tasks", Name: "0"}))
	if f, err := recovery.Examine(store, o); f != nil && !f.Suspect || err != nil {
		t.Errorf("W10: %v, %v", f, err)
	}
	if err := workerpool.Audit(store, "tasks", 1, 1000, 1); err != nil {
		t.Error(err)
	}
}

// Proves W10, A11: a dead task has a letter in the list of all dead work, which tells of its
// failure. The letter goes with the batch of a replay or a discard, a verb that fails leaves
// it, and the host's own verbs refuse it.
func TestLetterGoesWithTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workerpool.New(config{
			Name: "tasks", Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}, Queues: map[string]int{"q": 1},
			Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
				if t.In == "panic" {
					panic("ouch")
				}
				return "", errors.New("broken")
			},
		})
		h, _ := spied(t, memstore.New(), object.Options{}, p)
		defer func() { must(0, h.Shutdown(ctx)) }()
		began := time.Now()
		var ids []workerpool.TaskID
		for _, in := range []string{"a", "panic", "b", "c"} {
			ids = append(ids, must(p.Enqueue(ctx, h, in, workerpool.Key("<k>"), workerpool.Queue("q"))).ID)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		want := func(step, want string) {
			t.Helper()
			if got := listed(t, h); got != want {
				t.Errorf("W10: %s: the list has %s, want %s", step, got, want)
			}
			healthy(t, h)
		}
		want("all dead", "0-1 0-2 0-3 0-4")
		letters := must(lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})))
		slices.SortFunc(letters, func(a, b object.DeadLetter) int { return int(a.Seq) - int(b.Seq) })
		d := letters[0]
		if d.ID != p.ID("0") || d.Attempts != 2 || d.Crashes != 0 || d.LastError != "broken" || d.Reason != "attempts" || d.Stack != "" ||
			!d.Scheduled.Equal(began) || !d.Died.Equal(began.Add(time.Minute)) || string(d.Data) != `{"task":"0-1","key":"\u003ck\u003e","queue":"q"}` {
			t.Errorf("W10: the letter is %+v", d)
		}
		if d := letters[1]; d.LastError != "panic: ouch" || !strings.Contains(d.Stack, "letters_test.go") {
			t.Errorf("W10: the letter of a panic is %+v", d)
		}
		for name, err := range map[string]error{
			"replay": h.ReplayDeadLetter(ctx, d.ID, d.Seq), "discard": h.DiscardDeadLetter(ctx, d.ID, d.Seq),
		} {
			if !errors.Is(err, object.ErrUseVerb) || !strings.HasSuffix(err.Error(), "of the kind task: use Pool.Replay or Pool.DiscardDead") {
				t.Errorf("A11: %s by the host: %v", name, err)
			}
		}
		none := workerpool.TaskID{Number: 99}
		for name, verb := range map[string]func(context.Context, object.Caller, ...workerpool.TaskID) (int, error){"Replay": p.Replay, "DiscardDead": p.DiscardDead} {
			if _, err := verb(ctx, h, ids[0], none); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("W6: %s of a task that is not dead: %v", name, err)
			}
		}
		want("verbs that were refused", "0-1 0-2 0-3 0-4")
		if n, err := p.DiscardDead(ctx, h, ids[1]); n != 1 || err != nil {
			t.Errorf("W6: DiscardDead: %d, %v", n, err)
		}
		want("DiscardDead", "0-1 0-3 0-4")
		if err := p.Pause(ctx, h); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Replay(ctx, h, ids[0]); n != 1 || err != nil {
			t.Errorf("W6: Replay: %d, %v", n, err)
		}
		want("Replay", "0-3 0-4")
		if n, err := p.ReplayAll(ctx, h); n != 2 || err != nil {
			t.Errorf("W6: ReplayAll: %d, %v", n, err)
		}
		want("ReplayAll", "")
		if err := p.Resume(ctx, h); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		want("dead again", "0-1 0-3 0-4")
		if d := must(lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})))[0]; d.Attempts != 4 {
			t.Errorf("W10: the letter after a replay is %+v", d)
		}
		if err := h.Delete(ctx, p.ID("0")); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, h); got != "" {
			t.Errorf("W10: a deleted partition leaves %s in the list", got)
		}
	})
}

// unlisted makes the rows of dead tasks as a version before letters left them: without the
// number of a letter, and without a count of them.
func unlisted(all rows) {
	for key, value := range all {
		if strings.HasPrefix(key, "z/") {
			all[key] = value[:strings.LastIndexByte(string(value), '}')+1]
		}
	}
	all["c"] = fewerCounters(all["c"], all["c"][3]-1) // there was one counter fewer
}

// fewerCounters is a row of counters of a version that had so many of them.
func fewerCounters(c []byte, kept byte) []byte {
	number := func(at int) int {
		for c[at] >= 0x80 {
			at++
		}
		return at + 1
	}
	at := 4
	for range kept {
		at = number(at)
	}
	end := at
	for range c[3] - min(c[3], kept) {
		end = number(end)
	}
	c[3] = min(c[3], kept)
	return append(c[:at:at], c[end:]...)
}

// withoutLetters removes the letters of a store.
func withoutLetters(t *testing.T, mem *memstore.Store, keep func(seq uint64) bool) *memstore.Store {
	t.Helper()
	s := must(storage.Open(storage.Options{Engine: mem, Shards: 1}))
	var b storage.Batch
	must(s.ListDead(storage.DeadOptions{}, func(id storage.ID, seq uint64, _ []byte) bool {
		if !keep(seq) {
			b.DeleteDead(s.ShardOf(id), id, seq)
		}
		return true
	}))
	must(s.Commit(&b))
	must(0, s.Close())
	return mem.Crash(0)
}

// Proves W10: dead tasks of a store of before letters get theirs when their partition
// becomes active, or from a scrub, in as many batches as they need. Each keeps the time at
// which it died. A new death among them has one letter.
func TestLettersOfAnOlderStore(t *testing.T) {
	for name, wake := range map[string]func(*testing.T, *pool, *object.Host){
		"verb": func(_ *testing.T, p *pool, h *object.Host) { must(p.Stats(ctx, h)) },
		"death": func(t *testing.T, p *pool, h *object.Host) {
			must(p.Enqueue(ctx, h, "new"))
			for _, c := range must(p.Claim(ctx, h, 1, 0)) {
				must(0, p.Nack(ctx, h, c.Lease, jobs.Permanent(errors.New("no"))))
			}
		},
		"scrub": func(t *testing.T, _ *pool, h *object.Host) {
			seen := must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true}))
			if len(seen.Findings) != 1 || seen.Findings[0].Promise != "W10" || !strings.Contains(seen.Findings[0].Problem, "dead task 0-1 has no dead letter") {
				t.Errorf("W10: the scrub found %v", seen.Findings)
			}
		},
	} {
		for _, tasks := range []int{1, 300} {
			synctest.Test(t, func(t *testing.T) {
				p := workerpool.New(config{Name: "tasks", Concurrency: 100})
				mem := memstore.New()
				h, _ := spied(t, mem, object.Options{}, p)
				must(p.EnqueueBatch(ctx, h, slices.Repeat([]workerpool.Item[string]{item("in")}, tasks)))
				for died := 0; died < tasks; {
					for _, c := range must(p.Claim(ctx, h, 100, 0)) {
						must(0, p.Nack(ctx, h, c.Lease, jobs.Permanent(errors.New("no"))))
						died++
					}
				}
				died := time.Now()
				must(0, h.Shutdown(ctx))
				mem = withoutLetters(t, rewrite(t, mem.Crash(0), unlisted), func(uint64) bool { return false })
				time.Sleep(time.Hour)
				h, s := spied(t, mem, object.Options{MaxBatchBytes: 64 << 10}, p)
				wake(t, p, h)
				time.Sleep(time.Second)
				synctest.Wait()
				healthy(t, h)
				letters, dead := must(lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))), must(p.Stats(ctx, h)).Dead
				if len(letters) != int(dead) || len(letters) < tasks || tasks == 300 && s.commits < 20 || tasks == 1 && s.commits > 8 {
					t.Errorf("W10: %s: %d letters of %d dead tasks after %d commits", name, len(letters), dead, s.commits)
				}
				for _, d := range letters {
					if !d.Died.Equal(died) && !strings.Contains(string(d.Data), fmt.Sprintf(`"0-%d"`, tasks+1)) {
						t.Errorf("W10: %s: the letter %+v, want a death at %v", name, d, died)
						break
					}
				}
				must(p.ReplayAll(ctx, h))
				healthy(t, h)
				must(0, h.Shutdown(ctx))
			})
		}
	}
}

// Proves W10: a partition whose dead tasks do not all fit in the values or batches of this
// process becomes active all the same, and buries those that fit. The next process with room
// buries the others.
func TestOlderDeadTasksWithLessRoom(t *testing.T) {
	// The large row counts as 3,452 bytes: its input, its error, and 400 for the rest. A batch
	// must hold that and the letter twice, 7,704 bytes, beside what the turn has written.
	for _, c := range []struct {
		limit   object.Options
		letters int
	}{
		{object.Options{MaxValueBytes: 3452}, 2}, {object.Options{MaxValueBytes: 3453}, 3},
		{object.Options{MaxBatchBytes: 7704}, 2}, {object.Options{MaxBatchBytes: 7900}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := workerpool.New(config{Name: "tasks"})
			mem := memstore.New()
			h, _ := spied(t, mem, object.Options{}, p)
			for _, in := range []string{"a", strings.Repeat("x", 3000), "b"} {
				must(p.Enqueue(ctx, h, in))
			}
			for _, c := range must(p.Claim(ctx, h, 3, 0)) {
				must(0, p.Nack(ctx, h, c.Lease, jobs.Permanent(errors.New(strings.Repeat("e", 50)))))
			}
			must(0, h.Shutdown(ctx))
			mem = withoutLetters(t, rewrite(t, mem.Crash(0), unlisted), func(uint64) bool { return false })
			for _, o := range []object.Options{c.limit, {}} {
				h, s := spied(t, mem, o, p)
				if st := must(p.Stats(ctx, h)); st.Dead != 3 {
					t.Errorf("W1: %+v", st)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if bare, err := workerpool.AuditLetters(h.Store(), "tasks"); bare != 3-c.letters || err != nil || s.commits > 12 {
					t.Errorf("W10: with values of %d and batches of %d: %d dead tasks have no letter after %d commits, %v", o.MaxValueBytes, o.MaxBatchBytes, bare, s.commits, err)
				}
				c.letters = 3
				must(0, h.Shutdown(ctx))
				mem = mem.Crash(0)
			}
		})
	}
}

// Proves W10: Examine finds a dead task whose letter is gone, and a letter whose task is.
func TestExamineComparesTheList(t *testing.T) {
	for want, change := range map[string]func(t *testing.T, mem *memstore.Store) *memstore.Store{
		"dead task 0-2 has no dead letter (W10)": func(t *testing.T, mem *memstore.Store) *memstore.Store {
			n := 0
			return withoutLetters(t, mem, func(uint64) bool { n++; return n != 2 })
		},
		"is of no dead task (W10)": func(t *testing.T, mem *memstore.Store) *memstore.Store {
			return rewrite(t, mem, func(all rows) { delete(all, "z/\x00\x00\x00\x00\x00\x00\x00\x02") })
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := workerpool.New(config{Name: "tasks"})
			mem := memstore.New()
			h, _ := spied(t, mem, object.Options{}, p)
			for range 3 {
				must(p.Enqueue(ctx, h, "in"))
			}
			for _, c := range must(p.Claim(ctx, h, 3, 0)) {
				must(0, p.Nack(ctx, h, c.Lease, jobs.Permanent(errors.New("no"))))
			}
			must(0, h.Shutdown(ctx))
			s := must(storage.Open(storage.Options{Engine: change(t, mem.Crash(0)), Shards: 1}))
			seen := must(recovery.ScrubStore(s))
			if len(seen.Findings) != 1 || !strings.HasSuffix(seen.Findings[0].String(), want) {
				t.Errorf("W10: the scrub found %v, want %s", seen.Findings, want)
			}
			must(0, s.Close())
		})
	}
}

// Proves W10, W2: tasks that die at the same time, with stacks and long errors, fit in the
// batches in which their executions end, so none of them runs twice.
func TestManyDeathsFitTheirBatches(t *testing.T) {
	const tasks = 200
	for name, work := range map[string]func(){
		"panics": func() { panic(strings.Repeat("x", 900)) },
		"errors": func() {},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := workerpool.New(config{
				Name: "tasks", Concurrency: tasks, Retry: jobs.Retry{MaxAttempts: 1},
				Work: func(context.Context, *workerpool.Task[string]) (string, error) {
					time.Sleep(time.Minute)
					work()
					return "", errors.New(strings.Repeat("e", 2000))
				},
			})
			h := must(object.Open(object.Options{
				Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: slog.New(slog.DiscardHandler), MaxBatchBytes: 256 << 10,
			}, p))
			for range tasks {
				must(p.Enqueue(ctx, h, "in"))
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if s := must(p.Stats(ctx, h)); s.Dead != tasks || s.Executions != tasks {
				t.Errorf("W2: %s: %+v", name, s)
			}
			healthy(t, h)
			must(0, h.Shutdown(ctx))
		})
	}
}

// Proves W6, W10: hundreds of dead tasks without inputs are replayed and discarded in turns
// that fit in small batches, with their letters.
func TestManySmallLetters(t *testing.T) {
	const tasks = 300
	synctest.Test(t, func(t *testing.T) {
		p := workerpool.New(config{Name: "tasks", Concurrency: tasks})
		h, _ := spied(t, memstore.New(), object.Options{MaxBatchBytes: 16 << 10}, p)
		var ids []workerpool.TaskID
		for range tasks {
			ids = append(ids, must(p.Enqueue(ctx, h, "")).ID)
		}
		die := func() {
			for {
				claims := must(p.Claim(ctx, h, 10, 0))
				if len(claims) == 0 {
					return
				}
				for _, c := range claims {
					must(0, p.Nack(ctx, h, c.Lease, jobs.Permanent(errors.New("no"))))
				}
			}
		}
		die()
		healthy(t, h)
		if n, err := p.ReplayAll(ctx, h); n != tasks || err != nil {
			t.Errorf("W6: ReplayAll: %d, %v", n, err)
		}
		healthy(t, h)
		die()
		if n, err := p.DiscardDead(ctx, h, ids...); n != tasks || err != nil {
			t.Errorf("W6: DiscardDead: %d, %v", n, err)
		}
		healthy(t, h)
		if got := listed(t, h); got != "" {
			t.Errorf("W10: the list has %s", got)
		}
		must(0, h.Shutdown(ctx))
	})
}

// lettersOf passes on the letters of a page.
func lettersOf(page object.DeadLetterPage, err error) ([]object.DeadLetter, error) {
	return page.Letters, err
}
