package workerpool_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// errHook is that of hooks that fail.
var errHook = errors.New("the hook has failed")

// toldHook is a hook of a Retention that notes its calls, and fails as often as it is told.
type toldHook struct {
	fails int

	mu    sync.Mutex
	calls []jobs.Retired // guarded by mu
}

func (h *toldHook) told() []jobs.Retired {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *toldHook) call(_ context.Context, r *jobs.Retired) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, *r)
	if len(h.calls) <= h.fails {
		return errHook
	}
	return nil
}

// letterPool is a pool of claimed tasks on a store in memory, opened and crashed by turns.
type letterPool struct {
	t   *testing.T
	c   config
	p   *pool
	h   *object.Host
	mem *memstore.Store
	spy *spy
}

// inLetterPool runs a story of dead tasks in virtual time.
func inLetterPool(t *testing.T, c config, story func(l *letterPool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.Name = "tasks"
		l := &letterPool{t: t, c: c, mem: memstore.New()}
		l.open(object.Options{})
		story(l)
		healthy(t, l.h)
		must(0, l.h.Shutdown(ctx))
	})
}

func (l *letterPool) open(o object.Options) {
	l.p = workerpool.New(l.c)
	l.h, l.spy = spied(l.t, l.mem, o, l.p)
}

// again opens the store anew after a crash, with another Retention. change may be nil.
func (l *letterPool) again(r jobs.Retention, change func(rows)) {
	l.t.Helper()
	mem := l.mem.Crash(0)
	must(0, l.h.Shutdown(ctx))
	if change != nil {
		mem = rewrite(l.t, mem, change)
	}
	l.mem, l.c.Retention = mem, r
	l.open(object.Options{})
	synctest.Wait()
}

// die adds n tasks that die, and returns when the last has died.
func (l *letterPool) die(n int) time.Time {
	l.t.Helper()
	must(l.p.EnqueueBatch(ctx, l.h, slices.Repeat([]workerpool.Item[string]{item("in")}, n)))
	for left := n; left > 0; {
		for _, c := range must(l.p.Claim(ctx, l.h, 16, 0)) {
			must(0, l.p.Nack(ctx, l.h, c.Lease, jobs.Permanent(errors.New("no"))))
			left--
		}
	}
	return time.Now()
}

func (l *letterPool) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want fails the test unless n letters are there, of which some are stale, and none is seen elsewhere.
func (l *letterPool) want(step string, n, stale int) {
	l.t.Helper()
	letters := must(l.p.DeadLetters(ctx, l.h, workerpool.TaskID{}, 1000))
	staleNow := 0
	for _, d := range letters {
		if d.Stale {
			staleNow++
		}
	}
	listed := must(lettersOf(l.h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})))
	st := must(l.p.Stats(ctx, l.h))
	if len(letters) != n || staleNow != stale || len(listed) != n || int(st.Dead) != n || st.Check() != nil {
		l.t.Errorf("W12: %s: %d letters, %d of them stale, %d in the list of all, stats %+v; want %d and %d", step, len(letters), staleNow, len(listed), st, n, stale)
	}
	healthy(l.t, l.h)
}

// told is the kinds and the reasons of the events about letters, in order.
func (l *letterPool) told() string {
	l.t.Helper()
	var told []string
	for _, e := range must(l.h.Events(ctx, l.p.ID("0"), 0, 10_000)) {
		var ev jobs.Event
		must(0, json.Unmarshal(e.Data, &ev))
		switch e.Kind {
		case jobs.EventStale, workerpool.EventDeleted, jobs.EventRetentionFailed:
			told = append(told, strings.TrimSuffix(e.Kind+":"+ev.Reason, ":"))
		}
	}
	return strings.Join(told, " ")
}

// alarm is when the alarm of the partition is due; zero: it has none.
func (l *letterPool) alarm() (at time.Time) {
	l.t.Helper()
	if a := must(l.h.Inspect(ctx, l.p.ID("0"))).Alarm; a != nil {
		at = a.Due
	}
	return at
}

// Proves W12, J22: a dead letter is stale at its time and gone at its time, and not a nanosecond before,
// each told by one event, also over crashes. The alarm of the partition is that of the next step. The
// letter keeps its place in both lists until it is gone.
func TestDeadLettersGoByTheRetention(t *testing.T) {
	keep := jobs.Retention{StaleAfter: time.Hour, Failed: 3 * time.Hour}
	inLetterPool(t, config{Retention: keep}, func(l *letterPool) {
		died := l.die(2)
		id := workerpool.TaskID{Number: 1}
		l.sleep(30 * time.Minute) // the first alarm is that of the lease
		if at := l.alarm(); !at.Equal(died.Add(time.Hour)) {
			t.Errorf("the alarm is at %v, want an hour after %v", at, died)
		}
		l.again(keep, nil)
		l.sleep(30*time.Minute - 1)
		l.want("before", 2, 0)
		l.sleep(1)
		l.want("stale", 2, 2)
		if at := l.alarm(); !at.Equal(died.Add(3 * time.Hour)) {
			t.Errorf("the alarm is at %v, want 3 h after %v", at, died)
		}
		if page := must(l.p.Tasks(ctx, l.h, workerpool.TasksOptions{})); len(page.Tasks) != 2 || !page.Tasks[0].Stale {
			t.Errorf("W11: %+v", page)
		}
		l.again(keep, nil)
		l.sleep(2*time.Hour - 1)
		l.want("before the end", 2, 2)
		l.sleep(1)
		l.want("gone", 0, 0)
		if _, err := l.p.Status(ctx, l.h, id); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("W12: the status of a letter that is gone: %v", err)
		}
		if st := must(l.p.Stats(ctx, l.h)); st.Cancelled != 2 || st.Submitted != 2 {
			t.Errorf("W1: %+v", st)
		}
		if told := l.told(); told != "stale:permanent stale:permanent deleted:retention deleted:retention" {
			t.Errorf("told is %s", told)
		}
		if at := l.alarm(); !at.IsZero() {
			t.Errorf("the alarm is at %v, with nothing to do", at)
		}
	})
}

// Proves W12: letters go without being stale, are stale and stay, are both at once, and stay
// without a Retention, as it says.
func TestStepsOfARetention(t *testing.T) {
	for name, c := range map[string]struct {
		keep  jobs.Retention
		after time.Duration
		left  int
		stale int
		told  string
	}{
		"gone only":     {jobs.Retention{Failed: time.Hour}, time.Hour, 0, 0, "deleted:retention"},
		"stale only":    {jobs.Retention{StaleAfter: time.Hour}, 20 * time.Hour, 1, 1, "stale:permanent"},
		"both at once":  {jobs.Retention{StaleAfter: time.Hour, Failed: time.Hour}, time.Hour, 0, 0, "stale:permanent deleted:retention"},
		"none":          {jobs.Retention{}, 1000 * time.Hour, 1, 0, ""},
		"for ever":      {jobs.Retention{Failed: jobs.Forever}, 1000 * time.Hour, 1, 0, ""},
		"at once":       {jobs.Retention{Failed: workerpool.AtOnce}, 1, 0, 0, "deleted:retention"},
		"beyond clocks": {jobs.Retention{Failed: jobs.Forever - 1}, 1000 * time.Hour, 1, 0, ""},
	} {
		inLetterPool(t, config{Retention: c.keep}, func(l *letterPool) {
			l.die(1)
			l.sleep(c.after)
			l.want(name, c.left, c.stale)
			if told := l.told(); told != c.told {
				t.Errorf("%s: told is %s", name, told)
			}
		})
	}
}

// Proves W12: done and cancelled tasks are kept each for its own time, and not at all with AtOnce.
func TestEndedTasksAreKeptByTheirState(t *testing.T) {
	for _, c := range []struct{ done, cancelled, keptDone, keptCancelled time.Duration }{
		{0, 0, time.Hour, time.Hour}, {time.Minute, 2 * time.Hour, time.Minute, 2 * time.Hour},
		{workerpool.AtOnce, time.Minute, 0, time.Minute}, {time.Minute, workerpool.AtOnce, time.Minute, 0},
	} {
		inLetterPool(t, config{Retention: jobs.Retention{Completed: c.done, Cancelled: c.cancelled}}, func(l *letterPool) {
			done := must(l.p.Enqueue(ctx, l.h, "done")).ID
			must(0, l.p.Ack(ctx, l.h, must(l.p.Claim(ctx, l.h, 1, 0))[0].Lease, "out"))
			cancelled := must(l.p.Enqueue(ctx, l.h, "cancelled")).ID
			must(l.p.Cancel(ctx, l.h, cancelled))
			began := time.Now()
			for id, kept := range map[workerpool.TaskID]time.Duration{done: c.keptDone, cancelled: c.keptCancelled} {
				for _, at := range []time.Duration{0, kept - 1, kept} {
					if at < 0 || time.Since(began) > at {
						continue
					}
					time.Sleep(at - time.Since(began))
					if _, err := l.p.Status(ctx, l.h, id); errors.Is(err, jobs.ErrNotFound) != (at >= kept) {
						t.Errorf("W12: %v after its end task %s of %+v: %v", at, id, c, err)
					}
				}
			}
		})
	}
}

// Proves W12, J23: OnDead, OnStale and OnDelete are called one after another for a letter, the last two with its death. A failed call
// comes again with the same key, up to five times; the letter is gone after the call of OnDelete that has
// succeeded, and after five that have not, which one event tells.
func TestHooksOfLetters(t *testing.T) {
	for _, fails := range []int{0, 4, 5} {
		stale, gone := &toldHook{fails: fails}, &toldHook{fails: fails}
		var dead []string
		inLetterPool(t, config{
			Retention: jobs.Retention{StaleAfter: time.Hour, Failed: 2 * time.Hour, OnStale: stale.call, OnDelete: gone.call},
			OnDead: func(_ context.Context, d workerpool.DeadLetter[string]) error {
				dead = append(dead, d.ID.String())
				return nil
			},
		}, func(l *letterPool) {
			died := l.die(1)
			waits := time.Duration(0) // 1 s, 2 s, 3 s, 4 s
			for i := 1; i <= min(fails, 4); i++ {
				waits += time.Duration(i) * time.Second
			}
			l.sleep(time.Hour - 1)
			if len(stale.told()) != 0 || len(dead) != 1 {
				t.Errorf("OnStale is called %d times too early, OnDead %d times", len(stale.told()), len(dead))
			}
			l.sleep(1 + waits)
			l.want("stale", 1, 1)
			l.sleep(time.Hour - waits - 1)
			if len(gone.told()) != 0 {
				t.Error("OnDelete is called too early")
			}
			if fails > 0 {
				l.sleep(waits)
				l.want("before the last call", 1, 1)
			}
			l.sleep(1)
			l.want("gone", 0, 0)
			for name, h := range map[string]*toldHook{"OnStale": stale, "OnDelete": gone} {
				if len(h.told()) != min(fails+1, 5) {
					t.Errorf("%s is called %d times after %d failures", name, len(h.told()), fails)
				}
				for _, r := range h.told() {
					if r.ID != "0-1" || r.Key == "" || r.Key != h.told()[0].Key || r.Status != jobs.Failed || !r.EndedAt.Equal(died) || r.Reason != "permanent" || r.Error != "no" || r.Caller == nil {
						t.Errorf("%s is told %+v", name, r)
					}
				}
			}
			if stale.told()[0].Key == gone.told()[0].Key {
				t.Error("two calls have one key")
			}
			want := "stale:permanent deleted:retention"
			if fails == 5 {
				want = "stale:permanent retention.failed:OnStale retention.failed:OnDelete deleted:retention"
			}
			if told := l.told(); told != want {
				t.Errorf("told is %s, want %s", told, want)
			}
		})
	}
}

// Proves W12, W6: a letter waits for the calls of OnDead and OnStale that are owed for it, whether they wait for another attempt or are under way, and goes when the last is over.
func TestLetterWaitsForItsCalls(t *testing.T) {
	for _, hook := range []string{"OnDead", "OnStale"} {
		for _, underWay := range []bool{false, true} {
			var goes atomic.Bool
			var free chan struct{}
			call := func() error {
				if underWay {
					<-free
					return nil
				}
				if goes.Load() {
					return nil
				}
				return jobs.RetryAfter(time.Minute, errHook)
			}
			c := config{Retention: jobs.Retention{StaleAfter: time.Minute, Failed: 2 * time.Minute}}
			if hook == "OnDead" {
				c.OnDead = func(context.Context, workerpool.DeadLetter[string]) error { return call() }
			} else {
				c.Retention.OnStale = func(context.Context, *jobs.Retired) error { return call() }
			}
			inLetterPool(t, c, func(l *letterPool) {
				free = make(chan struct{})
				l.die(1)
				l.sleep(2*time.Minute + 30*time.Second)
				l.want(hook+" is owed", 1, 1)
				goes.Store(true)
				close(free)
				l.sleep(time.Minute)
				l.want(hook+" is over", 0, 0)
			})
		}
	}
}

// Proves W12: a letter does not wait for an OnDead that the Config has no more, also if it waited for it when
// the Config still had it.
func TestLetterWithoutItsOnDead(t *testing.T) {
	keep := jobs.Retention{Failed: time.Minute}
	for _, waits := range []bool{false, true} {
		inLetterPool(t, config{Retention: keep, OnDead: func(context.Context, workerpool.DeadLetter[string]) error {
			return jobs.RetryAfter(time.Hour, errHook)
		}}, func(l *letterPool) {
			l.die(2)
			l.sleep(time.Second)
			if waits {
				l.sleep(2 * time.Minute)
			}
			l.want("owed", 2, 0)
			l.c.OnDead = nil
			l.again(keep, nil)
			l.sleep(2 * time.Hour)
			l.want("without the hook", 0, 0)
		})
	}
}

// Proves W12: a letter that is replayed, discarded or dies again during a call of OnDelete, or between two of
// them, is not removed by that call, and its next death has a call of its own.
func TestReplayBeforeOnDeleteIsOver(t *testing.T) {
	for _, between := range []bool{false, true} {
		for _, diesAgain := range []bool{false, true} {
			var calls toldHook
			if between {
				calls.fails = 1
			}
			var goes chan struct{}
			keep := jobs.Retention{StaleAfter: time.Minute, Failed: time.Hour, OnDelete: func(ctx context.Context, r *jobs.Retired) error {
				err := calls.call(ctx, r)
				if !between {
					<-goes
				}
				return err
			}}
			inLetterPool(t, config{Retention: keep}, func(l *letterPool) {
				goes = make(chan struct{})
				l.die(1)
				l.sleep(time.Hour)
				if n := must(l.p.Replay(ctx, l.h, workerpool.TaskID{Number: 1})); n != 1 {
					t.Errorf("replayed %d", n)
				}
				if diesAgain {
					for _, c := range must(l.p.Claim(ctx, l.h, 16, 0)) {
						must(0, l.p.Nack(ctx, l.h, c.Lease, jobs.Permanent(errors.New("again"))))
					}
				}
				close(goes)
				l.sleep(30 * time.Second)
				if n := len(calls.told()); n != 1 {
					t.Errorf("W12: %d calls for a letter that was replayed", n)
				}
				if !diesAgain {
					l.want("replayed", 0, 0)
					for _, c := range must(l.p.Claim(ctx, l.h, 16, 0)) {
						must(0, l.p.Nack(ctx, l.h, c.Lease, jobs.Permanent(errors.New("again"))))
					}
				}
				l.want("dead again", 1, 0)
				l.sleep(2 * time.Hour)
				l.want("gone", 0, 0)
				if got := calls.told(); len(got) != 2 || got[0].Key == got[1].Key {
					t.Errorf("W12: the calls are %+v", got)
				}
				if told := l.told(); told != "stale:permanent stale:permanent deleted:retention" {
					t.Errorf("told is %s", told)
				}
			})
		}
	}
}

// Proves W12: a changed Retention counts for the letters that there are, from their death, once the partition is in
// memory. Letters that died without one are found too, and so are those of a store that a version without the
// index has had meanwhile.
func TestRetentionOfLettersThatChanges(t *testing.T) {
	const day = 24 * time.Hour
	downgrade := func(all rows) { all["c"] = fewerCounters(all["c"], 13) }
	for name, c := range map[string]struct {
		from, to jobs.Retention
		change   func(rows)
		want     time.Duration // 0: it stays
	}{
		"longer":                {jobs.Retention{Failed: time.Hour}, jobs.Retention{Failed: day}, nil, day},
		"shorter":               {jobs.Retention{Failed: day}, jobs.Retention{Failed: time.Hour}, nil, time.Hour},
		"for ever":              {jobs.Retention{Failed: time.Hour}, jobs.Retention{}, nil, 0},
		"no more for ever":      {jobs.Retention{}, jobs.Retention{Failed: time.Hour}, nil, time.Hour},
		"over at once":          {jobs.Retention{}, jobs.Retention{Failed: time.Minute}, nil, 10 * time.Minute},
		"stale no more":         {jobs.Retention{StaleAfter: time.Minute, Failed: day}, jobs.Retention{Failed: time.Hour}, nil, time.Hour},
		"after an old version":  {jobs.Retention{Failed: time.Hour}, jobs.Retention{Failed: time.Hour}, downgrade, time.Hour},
		"stale, an old version": {jobs.Retention{StaleAfter: time.Minute}, jobs.Retention{Failed: time.Hour}, downgrade, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inLetterPool(t, config{Retention: c.from}, func(l *letterPool) {
				died := l.die(20)
				l.sleep(10 * time.Minute)
				l.again(c.to, c.change)
				must(l.p.Stats(ctx, l.h)) // it is in memory now
				synctest.Wait()
				if c.want == 0 {
					l.sleep(1000 * time.Hour)
					l.want(name, 20, 0)
					return
				}
				if rest := time.Until(died.Add(c.want)); rest > 0 {
					l.sleep(rest - 1)
					if n := must(l.p.Stats(ctx, l.h)).Dead; n < 20 {
						t.Errorf("W12: %d letters before the time", n)
					}
					l.sleep(1)
				}
				l.want(name, 0, 0)
				if told := strings.Count(l.told(), "deleted"); told != 20 {
					t.Errorf("W12: %d letters are told to be gone", told)
				}
			})
		})
	}
}

// Proves W12: a call of OnDelete that waits for another attempt is not made again under a longer Retention, and the
// letter is removed at its new time.
func TestLongerRetentionDuringACallOfOnDelete(t *testing.T) {
	gone := &toldHook{fails: 1}
	keep := func(d time.Duration) jobs.Retention { return jobs.Retention{Failed: d, OnDelete: gone.call} }
	inLetterPool(t, config{Retention: keep(time.Hour)}, func(l *letterPool) {
		died := l.die(1)
		l.sleep(time.Hour)
		l.again(keep(3*time.Hour), nil)
		l.sleep(time.Hour)
		l.want("longer", 1, 0)
		if n := len(gone.told()); n != 1 {
			t.Errorf("%d calls", n)
		}
		if at := l.alarm(); !at.Equal(died.Add(3 * time.Hour)) {
			t.Errorf("the alarm is at %v, want 3 h after %v", at, died)
		}
		l.sleep(time.Hour)
		l.want("gone", 0, 0)
		if n := len(gone.told()); n != 2 {
			t.Errorf("%d calls", n)
		}
	})
}

// Proves W12: a row of the index without its letter, or with one that has died again, of a store that a version without the index has had
// meanwhile, removes nothing and holds up nothing.
func TestOrphansInTheIndexOfLetters(t *testing.T) {
	keep := jobs.Retention{Failed: time.Hour}
	inLetterPool(t, config{Retention: keep}, func(l *letterPool) {
		l.die(3)
		l.sleep(30 * time.Minute)
		var first string
		l.again(keep, func(all rows) {
			for key := range all {
				if strings.HasPrefix(key, "d/") && (first == "" || key < first) {
					first = key
				}
			}
			died := binary.BigEndian.Uint64([]byte(first[3:]))
			earlier := first[:3] + string(binary.BigEndian.AppendUint64(nil, died-uint64(time.Minute))) + first[11:]
			all[earlier] = all[first]
		})
		l.sleep(30*time.Minute - 1)
		if n := must(l.p.Stats(ctx, l.h)).Dead; n != 3 {
			t.Errorf("W12: %d letters before their time", n)
		}
		l.sleep(1)
		l.want("gone", 0, 0)
	})
}

// Proves W12: a thousand letters with a time that is over at once, after a downtime, go in several batches that fit, in the order of
// their deaths, and no alarm fails.
func TestManyLettersAreRemoved(t *testing.T) {
	keep := jobs.Retention{StaleAfter: time.Minute, Failed: time.Hour}
	inLetterPool(t, config{Retention: keep, Concurrency: 100}, func(l *letterPool) {
		l.die(1000)
		mem := l.mem.Crash(0)
		must(0, l.h.Shutdown(ctx))
		time.Sleep(2 * time.Hour)
		l.mem = mem
		l.open(object.Options{MaxBatchBytes: 64 << 10})
		must(l.p.Stats(ctx, l.h)) // it is in memory now
		l.sleep(time.Second)
		l.want("after a downtime", 0, 0)
		if l.spy.commits < 10 {
			t.Errorf("W12: %d commits in batches of 64 KiB", l.spy.commits)
		}
		told := l.told()
		if strings.Count(told, "stale") != 1000 || strings.Count(told, "deleted") != 1000 {
			t.Errorf("W12: %d are told stale, %d gone", strings.Count(told, "stale"), strings.Count(told, "deleted"))
		}
	})
}

// Proves W12, R3, R6: a partition with letters that wait for their time and that has lost its alarm is a suspect at rest, and a scrub with
// Repair arms it for the next step. Without a Retention it is none after the scrub of a live store.
func TestScrubArmsThePartitionOfLetters(t *testing.T) {
	p := workerpool.New(config{Name: "pool", Retention: jobs.Retention{Failed: time.Hour}})
	dir := damaged(t, p, func(h *object.Host) {
		must(p.Enqueue(ctx, h, "a"))
		must(0, p.Nack(ctx, h, must(p.Claim(ctx, h, 1, 0))[0].Lease, jobs.Permanent(errHook)))
	}, disarm)
	if seen := scrubCold(t, dir); seen.Suspects != 1 || len(seen.Findings) != 0 {
		t.Errorf("at rest: %+v", seen)
	}
	h := open(t, dir, p)
	seen := must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true, Pause: 1}))
	if len(seen.Findings) != 1 || !seen.Findings[0].Repaired || seen.Findings[0].Promise != "R3" {
		t.Fatalf("live: %+v", seen)
	}
	died := must(p.DeadLetters(ctx, h, workerpool.TaskID{}, 1))[0].Died
	facts := must(h.Inspect(ctx, storage.ID{Class: "pool", Name: "0"}))
	if facts.Alarm == nil || !facts.Alarm.Due.Equal(died.Add(time.Hour)) {
		t.Errorf("the alarm is %+v, want one an hour after %v", facts.Alarm, died)
	}
	if seen := must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true, Pause: 1})); len(seen.Findings)+seen.Suspects != 0 {
		t.Errorf("a second scrub: %+v", seen)
	}
}

// Proves W12, H3: the results of the phases go with a letter that is removed.
func TestPhasesGoWithTheLetter(t *testing.T) {
	inLetterPool(t, config{
		Retention: jobs.Retention{Failed: time.Hour}, Phases: []string{"one", "two"}, Retry: jobs.Retry{MaxAttempts: 1},
		Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			if _, err := workerpool.Phase(ctx, t, "one", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
			return "", fmt.Errorf("two: %w", errHook)
		},
	}, func(l *letterPool) {
		id := must(l.p.Enqueue(ctx, l.h, "in")).ID
		l.sleep(time.Second)
		if all := must(l.p.PhaseResults(ctx, l.h, id)); len(all) != 1 {
			t.Errorf("H3: results %+v", all)
		}
		l.sleep(time.Hour)
		l.want("gone", 0, 0)
	})
}
