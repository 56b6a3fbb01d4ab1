package why_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// cause is a story that ends in one reason, in the process and in the store that it leaves.
type cause struct {
	name       string
	story      func(*shop) asked
	live, cold why.Code
}

// question asks for a task of a pool.
func question(pool string, id workerpool.TaskID) asked {
	return asked{pool + "/" + id.String(), func(ctx context.Context, src why.Source) (why.Answer, error) {
		return why.Task(ctx, src, pool, id)
	}}
}

// add submits tasks that take a minute each, and asks for the last of them.
func (p *shop) add(pool *workerpool.Pool[time.Duration, int], n int, options ...workerpool.Option) asked {
	var last workerpool.TaskID
	for range n {
		ref, err := pool.Enqueue(p.Context(), p, time.Minute, options...)
		p.OK(err)
		last = ref.ID
	}
	p.Advance(time.Second)
	return question(pool.Name(), last)
}

// begin starts a workflow of a kind and lets it come to its wait.
func (p *shop) begin(kind string) asked {
	p.Must(p.orders.Start(p.Context(), p, kind, kind))
	p.Advance(time.Second)
	return p.about("order", kind)
}

// rings sets the alarm of a bell and lets it ring after a second.
func (p *shop) rings(name string) asked {
	p.Must(p.ring.Call(p.Context(), p, name, time.Second))
	p.Advance(2 * time.Second)
	return p.about("bell", name)
}

// ticked starts the job that has a schedule, and asks for it after a second.
func (p *shop) ticked() asked {
	p.Must(p.ticks.Start(p.Context(), p, "1", 0))
	p.Advance(time.Second)
	return p.about("tick", "1")
}

// handed starts the job that has none.
func (p *shop) handed() asked {
	p.Must(p.hands.Start(p.Context(), p, "1", 0))
	p.Advance(time.Second)
	return p.about("hand", "1")
}

// then does one thing more before a question is asked.
func then(q asked, p *shop, err error) asked {
	p.OK(err)
	p.Advance(time.Second)
	return q
}

// causes has a story for each reason that rows alone can tell.
var causes = []cause{
	{"absent", func(p *shop) asked { return p.about("tick", "nothing") }, why.Absent, why.Absent},
	{"paused", func(p *shop) asked { return then(p.ticked(), p, p.ticks.Pause(p.Context(), p, "1")) }, why.Paused, why.Paused},
	{"pausing", func(p *shop) asked {
		p.takes = time.Minute
		return then(p.ticked(), p, p.ticks.Pause(p.Context(), p, "1"))
	}, why.Pausing, why.Pausing},
	{"stopped", func(p *shop) asked { return then(p.handed(), p, p.hands.Stop(p.Context(), p, "1", hostile)) }, why.Ended, why.Ended},
	{"failed", func(p *shop) asked {
		p.failing = true
		q := p.ticked()
		p.Advance(time.Minute)
		return q
	}, why.Ended, why.Ended},
	{"a run", func(p *shop) asked { p.takes = time.Minute; return p.ticked() }, why.Executing, why.Executing},
	{"a flush", func(p *shop) asked {
		p.takes = time.Minute
		p.Must(p.mails.Add(p.Context(), p, "1", ""))
		p.Advance(6 * time.Second)
		return p.about("mail", "1")
	}, why.Executing, why.Executing},
	{"a task", func(p *shop) asked { return p.add(p.work, 1) }, why.Executing, why.Executing},
	{"a claim", func(p *shop) asked {
		q := p.add(p.claims, 1)
		return then(q, p, second(p.claims.Claim(p.Context(), p, 1, time.Minute)))
	}, why.HeldOutside, why.HeldOutside},
	{"a run that is repeated", func(p *shop) asked { p.failing = true; return p.handedOnce() }, why.Retry, why.Retry},
	{"a task that is repeated", func(p *shop) asked {
		p.failing = true
		q := p.add(p.work, 1)
		p.Advance(time.Minute)
		return q
	}, why.Retry, why.Retry},
	{"an alarm that fails", func(p *shop) asked { p.failing = true; return p.rings("1") }, why.AlarmRetry, why.AlarmRetry},
	{"an alarm that was given up", func(p *shop) asked {
		p.failing = true
		q := p.rings("1")
		p.Advance(48 * time.Hour)
		return q
	}, why.AlarmDead, why.AlarmDead},
	{"an alarm behind another", func(p *shop) asked {
		p.takes = time.Hour
		p.rings("1")
		return p.rings("2")
	}, why.AlarmQueued, why.AlarmQueued},
	{"a paused pool", func(p *shop) asked {
		p.OK(p.work.Pause(p.Context(), p))
		return p.add(p.work, 1)
	}, why.PoolPaused, why.PoolPaused},
	{"no worker", func(p *shop) asked { return p.add(p.claims, 1) }, why.NoWorkHere, why.NoWorkHere},
	{"a later time", func(p *shop) asked { return p.add(p.work, 1, workerpool.Delay(time.Hour)) }, why.WaitsForTime, why.WaitsForTime},
	{"a key", func(p *shop) asked { return p.add(p.work, 2, workerpool.Key(hostile)) }, why.BehindKey, why.BehindKey},
	{"a place", func(p *shop) asked { return p.add(p.work, 4) }, why.InLine, why.InLine},
	{"busy workers", func(p *shop) asked { return p.add(p.work, 3) }, why.WorkersBusy, why.WorkersBusy},
	{"events", func(p *shop) asked {
		p.Must(p.mails.Add(p.Context(), p, "1", ""))
		return p.about("mail", "1")
	}, why.Collecting, why.Collecting},
	{"a schedule", func(p *shop) asked { return p.ticked() }, why.Scheduled, why.Scheduled},
	{"no schedule", func(p *shop) asked { return p.handed() }, why.NeedsTrigger, why.NeedsTrigger},
	{"no event", func(p *shop) asked {
		p.Must(p.mails.Add(p.Context(), p, "1", ""))
		p.Advance(20 * time.Second)
		return p.about("mail", "1")
	}, why.NeedsEvent, why.NeedsEvent},
	{"nothing to do", func(p *shop) asked { return p.rings("1") }, why.IdleByDesign, why.IdleByDesign},
	{"a signal", func(p *shop) asked { return p.begin("signal") }, why.WaitsForSignal, why.WaitsForSignal},
	{"a timer", func(p *shop) asked { return p.begin("sleep") }, why.WaitsForTimer, why.WaitsForTimer},
	{"a child", func(p *shop) asked { return p.begin("child") }, why.WaitsForChild, why.WaitsForChild},
	{"a step", func(p *shop) asked { p.takes = time.Minute; return p.begin("step") }, why.Executing, why.Executing},
	{"a step that is repeated", func(p *shop) asked { p.failing = true; return p.begin("step") }, why.Step, why.Step},
	{"a breaker", func(p *shop) asked { p.failing = true; return p.begin("breaker") }, why.BreakerOpen, why.BreakerOpen},
	{"another code", func(p *shop) asked { p.failing = true; return p.begin("stuck") }, why.Stuck, why.Stuck},
	{"an undo", func(p *shop) asked { p.failing, p.takes = true, time.Minute; return p.begin("undo") }, why.Executing, why.Executing},
	{"an undo that is repeated", func(p *shop) asked { p.failing = true; return p.begin("undo") }, why.Step, why.Step},
}

// handedOnce triggers the job without a schedule.
func (p *shop) handedOnce() asked {
	return then(p.handed(), p, p.hands.Trigger(p.Context(), p, "1"))
}

// Proves Y2: each reason of a job, a task and an alarm is the headline in the process, and the
// first reason after not-open in the store of that process when it was killed.
func TestCauses(t *testing.T) {
	for _, c := range causes {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				p := open(s)
				q := c.story(p)
				if a, ok := p.live(q); !ok || a.Code != c.live {
					s.Errorf("live: %v, want %s first\n%+v", a.Holds(), c.live, a)
				}
				s.Crash(harness.Kill)
				if a := p.cold(q); a.Code != why.NotOpen || len(a.Also) == 0 || a.Also[0].Code != c.cold {
					s.Errorf("cold: %v, want %s after not-open\n%+v", a.Holds(), c.cold, a)
				}
				s.Restart()
			}, harness.Shards(2), harness.HostOptions(func(o *object.Options) { o.AlarmsInFlight = 1 }))
		})
	}
}

// Proves Y2: where two reasons hold, the second is told too: a pool that drains while its last
// task runs, and a workflow that undoes its steps.
func TestCausesBeside(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		p.add(p.work, 1)
		s.Go("drain", func() { _ = p.work.Drain(s.Context(), s) })
		s.Advance(time.Second)
		p.failing = true
		for q, code := range map[string]why.Code{"work/0": why.Draining, "order/undo": why.Undoing} {
			var question asked
			if q == "work/0" {
				question = p.about("work", "0")
			} else {
				question = p.begin("undo")
			}
			if a, _ := p.live(question); !slices.Contains(a.Holds(), code) {
				s.Errorf("%s: live %v, want %s too", q, a.Holds(), code)
			}
			if a := p.cold(question); !slices.Contains(a.Holds(), code) {
				s.Errorf("%s: cold %v, want %s too", q, a.Holds(), code)
			}
		}
	}, harness.Shards(2))
}

// Proves Y2: a run that crashes cut off is lost in the store of the dead process, and held back as a
// suspect by the process that comes after two of them.
func TestCausesOfCrashes(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		p.takes = time.Hour
		run, bell := p.ticked(), p.rings("1")
		s.Crash(harness.Kill)
		if a := p.cold(run); !slices.Contains(a.Holds(), why.Lost) {
			s.Errorf("cold: %v, want lost too", a.Holds())
		}
		s.Restart()
		s.Advance(time.Second)
		s.Crash(harness.Kill)
		s.Restart()
		if a, ok := p.live(bell); !ok || a.Code != why.AlarmSuspect {
			s.Errorf("live: %+v, want alarm-suspect", a)
		}
		s.Crash(harness.Kill)
		if a := p.cold(bell); !slices.Contains(a.Holds(), why.AlarmSuspect) {
			s.Errorf("cold: %v, want alarm-suspect too", a.Holds())
		}
		s.Restart()
		p.takes = 0
	}, harness.Shards(2))
}

// Proves Y1 and R4: over a log, a task that the process before has left open is lost until three
// seconds after the opening, whichever node opens it, and the cause says whether that was another.
func TestCausesOfTakeovers(t *testing.T) {
	for cause, store := range map[string]harness.Option{
		"Its process has died":                        harness.LogStore(),
		"Another node has run it, which was replaced": harness.TakeoverStore(),
	} {
		harness.Run(t, func(s *harness.Sim) {
			p := open(s)
			task := p.add(p.work, 1)
			s.Crash(harness.Kill)
			s.Restart()
			opened := s.Now()
			lost := func() {
				a, _ := p.live(task)
				if a.Code != why.Lost || !a.Next.Equal(opened.Add(3*time.Second)) || !strings.HasPrefix(a.Text, cause) {
					s.Errorf("after %v: %+v, want %q until 3s", s.Now().Sub(opened), a, cause)
				}
			}
			lost()
			s.Advance(3*time.Second - time.Nanosecond)
			lost()
			s.Advance(time.Nanosecond)
			if a, _ := p.live(task); a.Code != why.Executing {
				s.Errorf("after 3s: %+v, want executing", a)
			}
		}, harness.Shards(2), store)
	}
}

// Proves Y1 and R4: a task is to be repeated after each of the first twenty losses of its owner in a row, and given up after the next.
func TestCausesOfManyTakeovers(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		task := p.add(p.work, 1)
		for n := range recovery.MaxOwnersLost + 1 {
			s.Crash(harness.Kill)
			s.Restart()
			want := "it is repeated"
			if n == recovery.MaxOwnersLost {
				want = "is given up"
			}
			if a, _ := p.live(task); !strings.Contains(a.Text, want) {
				s.Errorf("loss %d: %+v, want %q", n+1, a, want)
			}
			s.Advance(4 * time.Second)
		}
		if a, _ := p.live(task); a.Code == why.Executing || a.Code == why.Lost {
			s.Errorf("after the last loss: %+v", a)
		}
	}, harness.Shards(2), harness.TakeoverStore())
}

// Proves Y1: a call that would have closed a circle is the reason of the object that made it, for
// less than a minute.
func TestCausesOfACircle(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := &shop{Sim: s}
		broken = nil
		s.Host(desks)
		s.Must(keep.Call(s.Context(), s, "b", 1))
		if _, err := round.Call(s.Context(), s, "a", "b"); !errors.Is(err, object.ErrDeadlock) {
			s.Errorf("the circle ended with %v", err)
		}
		s.Advance(time.Minute - time.Nanosecond)
		if a := p.object("desk", "b"); a.Code != why.DeadlockRefused || a.Name != "desk/a" {
			s.Errorf("%+v", a)
		}
		s.Advance(time.Nanosecond)
		if a := p.object("desk", "b"); slices.Contains(a.Holds(), why.DeadlockRefused) {
			s.Errorf("a minute later: %+v", a)
		}
	}, harness.Shards(2))
}

// Case WY3: a disk with less free space than the floor is the reason of each object, in the
// process and in its store, and one with as much is none.
func TestCauseOfAFullDisk(t *testing.T) {
	const floor = 50 << 20
	broken = nil
	disk := fulldisk.New()
	disk.SetFreeBytes(floor)
	options := storage.Options{Dir: "store", MinFreeBytes: floor, Pebble: pebblestore.Options{FS: disk}}
	h, err := object.Open(object.Options{Storage: options}, desks)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keep.Call(t.Context(), h, "a", 1); err != nil {
		t.Fatal(err)
	}
	holds := func(src why.Source) []why.Code {
		t.Helper()
		a, err := why.Object(t.Context(), src, desks.ID("a"))
		if err != nil {
			t.Fatal(err)
		}
		return a.Holds()
	}
	if got := holds(why.Live(h)); slices.Contains(got, why.NoSpace) {
		t.Errorf("live, at the floor: %v", got)
	}
	disk.SetFreeBytes(floor - 1)
	for err == nil { // the store looks now and then
		_, err = keep.Call(t.Context(), h, "a", 1)
	}
	if !errors.Is(err, object.ErrNoSpace) {
		t.Fatal(err)
	}
	if got := holds(why.Live(h)); got[0] != why.NoSpace {
		t.Errorf("live: %v", got)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for free, full := range map[uint64]bool{floor - 1: true, floor: false} {
		disk.SetFreeBytes(free)
		store, err := storage.OpenReadOnly(options)
		if err != nil {
			t.Fatal(err)
		}
		if got := holds(why.Cold(store, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))); slices.Contains(got, why.NoSpace) != full {
			t.Errorf("cold, %d bytes free: %v", free, got)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
