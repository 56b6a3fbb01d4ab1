package object

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// handClock is a clock that a test moves, and that rings no timer by itself.
type handClock struct {
	now    time.Time
	timers []*handTimer
}

type handTimer struct {
	at      time.Time
	stopped bool
}

func (t *handTimer) Stop() bool {
	t.stopped = true
	return true
}

func (c *handClock) Now() time.Time { return c.now }

func (c *handClock) AfterFunc(d time.Duration, _ func()) seam.Timer {
	t := &handTimer{at: c.now.Add(d)}
	c.timers = append(c.timers, t)
	return t
}

// armed is when the timers that were not stopped ring, after the clock's zero.
func (c *handClock) armed() (at []time.Duration) {
	for _, t := range c.timers {
		if !t.stopped {
			at = append(at, t.at.Sub(handZero))
		}
	}
	return at
}

var handZero = time.Unix(1000, 0)

func newHandPermits(l WorkLimit) (*permits, *handClock) {
	c := &handClock{now: handZero}
	return newPermits(&Host{seams: seam.Seams{Clock: c}}, l), c
}

// due is an alarm of the object.
func due(name string, gen uint64) alarm.Entry { return alarm.Entry{Name: name, Gen: gen} }

func names(entries []alarm.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return strings.Join(all, " ")
}

// Proves J17: the time between two starts, and how much may come early, to the
// nanosecond.
func TestStartRateInNanoseconds(t *testing.T) {
	for _, c := range []struct {
		rate                StartRate
		interval, tolerance time.Duration
	}{
		{StartRate{}, 0, 100 * time.Millisecond},
		{StartRate{Starts: 3, Per: 9}, 3, 100*time.Millisecond - 3},
		{StartRate{Starts: 3, Per: 10}, 4, 100*time.Millisecond - 4},
		{StartRate{Starts: 3, Per: 12}, 4, 100*time.Millisecond - 4},
		{StartRate{Starts: 1, Per: 30 * time.Millisecond}, 30 * time.Millisecond, 70 * time.Millisecond},
		{StartRate{Starts: 1, Per: 30 * time.Millisecond, Burst: 1}, 30 * time.Millisecond, 0},
		{StartRate{Starts: 1, Per: time.Second}, time.Second, 0},
		{StartRate{Starts: 1, Per: time.Second, Burst: 5}, time.Second, 4 * time.Second},
	} {
		if i, tol := c.rate.interval(), c.rate.tolerance(); i != c.interval || tol != c.tolerance {
			t.Errorf("%+v: interval %v, tolerance %v, want %v and %v", c.rate, i, tol, c.interval, c.tolerance)
		}
	}
}

// Proves J16, J17: each mistake in a limit is named, and limits at the bounds are fine.
func TestWorkLimitValidate(t *testing.T) {
	rate := func(starts int, per time.Duration, burst int) WorkLimit {
		return WorkLimit{StartRate: StartRate{Starts: starts, Per: per, Burst: burst}}
	}
	const longest = int(1<<63-1) / int(time.Second)
	for _, l := range []WorkLimit{{}, {AtOnce: 1}, rate(1, 1, 0), rate(1, 1, 1), rate(1, time.Second, longest+1)} {
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	for _, c := range []struct {
		limit WorkLimit
		says  string
	}{
		{WorkLimit{AtOnce: -1}, "AtOnce must not be negative"},
		{rate(-1, time.Second, 0), "StartRate must not be negative"},
		{rate(1, -time.Second, 0), "StartRate must not be negative"},
		{rate(1, time.Second, -1), "StartRate must not be negative"},
		{rate(1, 0, 0), "needs both"},
		{rate(0, time.Second, 0), "needs both"},
		{rate(0, 0, 1), "needs both"},
		{rate(1, time.Second, longest+2), "more than 292 years"},
	} {
		if err := c.limit.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.limit, err, c.says)
		}
	}
}

// Proves J16: an object awaits a permit from its refusal until it has a permit, or until
// the line is empty.
func TestAwaitedUntilItIsServed(t *testing.T) {
	p, _ := newHandPermits(WorkLimit{AtOnce: 1})
	steps := []struct {
		name  string
		do    func() string
		gives string
		await string // those that await a permit after it
	}{
		{"a takes it", func() string { return verdictText(p.take("a", false)) }, "yes", ""},
		{"b is refused", func() string { return verdictText(p.take("b", false)) }, "no", "b"},
		{"c is refused, and no alarm comes", func() string { return verdictText(p.take("c", false)) }, "no", "b c"},
		{"the alarm of b waits", func() string { return verdictText(p.enter(due("b", 1))) }, "no", "b c"},
		{"b asks again", func() string { return verdictText(p.take("b", true)) }, "no", "b c"},
		{"the alarm of d waits behind it", func() string { return verdictText(p.judge(due("d", 1), true) == letThrough) }, "no", "b c d"},
		{"a gives back", func() string { return names(p.giveBack(1, 0)) }, "b", "c d"},
		{"b has it", func() string { return verdictText(p.take("b", false)) }, "yes", "c d"},
		{"b gives back", func() string { return names(p.giveBack(1, 0)) }, "d", ""},
	}
	for _, s := range steps {
		if got := s.do(); got != s.gives {
			t.Fatalf("%s: %q, want %q", s.name, got, s.gives)
		}
		var await []string
		for _, name := range []string{"a", "b", "c", "d"} {
			if p.awaited(name) {
				await = append(await, name)
			}
		}
		if got := strings.Join(await, " "); got != s.await {
			t.Fatalf("%s: %q await a permit, want %q", s.name, got, s.await)
		}
	}
}

func verdictText(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

// Proves J16: an object that was refused and then finds a permit free, by a call or by
// its alarm, does not await a permit any more.
func TestRefusedAndThenFree(t *testing.T) {
	for name, get := range map[string]func(p *permits) bool{
		"by a call":    func(p *permits) bool { return p.take("b", false) },
		"by its alarm": func(p *permits) bool { return p.enter(due("b", 1)) },
	} {
		p, c := newHandPermits(WorkLimit{StartRate: StartRate{Starts: 1, Per: time.Second, Burst: 1}})
		if !p.take("a", false) || p.take("b", false) || !p.awaited("b") {
			t.Fatalf("%s: a and b", name)
		}
		c.now = c.now.Add(time.Second)
		if !get(p) || p.awaited("b") {
			t.Errorf("%s: b awaits a permit: %v", name, p.awaited("b"))
		}
		if taken, waiting := p.count(); taken != 2 || waiting != 0 || len(c.timers) != 0 {
			t.Errorf("%s: %d taken, %d wait, %d timers", name, taken, waiting, len(c.timers))
		}
	}
}

// Proves J17, A5: one timer rings at the time when the start rate lets the first in line
// go. It is set again for the next, and stopped when another look at the line or the end
// of the host comes first. The alarm that goes is the newest of its object.
func TestOneTimerForTheLine(t *testing.T) {
	p, c := newHandPermits(WorkLimit{StartRate: StartRate{Starts: 1, Per: time.Second, Burst: 1}})
	if !p.take("a", false) {
		t.Fatal("a is refused")
	}
	armed := func(step string, want ...time.Duration) {
		t.Helper()
		if got := c.armed(); !slices.Equal(got, want) {
			t.Fatalf("%s: timers ring at %v, want %v", step, got, want)
		}
	}
	for _, name := range []string{"b", "c"} {
		p.take(name, false)
		if p.enter(due(name, 1)) {
			t.Fatalf("%s does not wait", name)
		}
	}
	if p.enter(due("b", 2)) {
		t.Fatal("the next alarm of b does not wait")
	}
	armed("two wait", time.Second)
	c.now = handZero.Add(time.Second - 1)
	if got := p.rung(); len(got) != 0 {
		t.Fatalf("too early: %v", got)
	}
	armed("a look before the time", time.Second)
	c.now = handZero.Add(time.Second)
	if got := p.rung(); names(got) != "b" || got[0].Gen != 2 {
		t.Fatalf("in time: %v", got)
	}
	armed("b has gone", 2*time.Second)
	if p.judge(due("d", 1), true) != inLine {
		t.Fatal("d passes c")
	}
	c.now = handZero.Add(2 * time.Second)
	if p.judge(due("e", 1), true) != inLine || p.take("e", false) {
		t.Fatal("e passes those that wait, since the timer is late")
	}
	p.close()
	armed("the end")
	if taken, waiting := p.count(); taken != 2 || waiting != 0 {
		t.Errorf("after the end %d are taken, %d wait", taken, waiting)
	}
	if !p.enter(due("f", 1)) || len(p.giveBack(1, 0)) != 0 {
		t.Error("after the end alarms wait")
	}
	armed("after the end")
}

// Proves J16, J17: no timer is armed while a work holds the permit that an object waits
// for. A permit that a work gives back does not change the start rate.
func TestGivenBackKeepsTheRate(t *testing.T) {
	p, c := newHandPermits(WorkLimit{AtOnce: 1, StartRate: StartRate{Starts: 1, Per: time.Second, Burst: 1}})
	p.take("a", false)
	p.take("b", false)
	p.enter(due("b", 1))
	if len(c.timers) != 0 {
		t.Fatalf("timers ring at %v while the permit is taken", c.armed())
	}
	c.now = handZero.Add(time.Second - 1)
	p.over(1)
	if got := c.armed(); !slices.Equal(got, []time.Duration{time.Second}) {
		t.Fatalf("timers ring at %v", got)
	}
	c.now = handZero.Add(time.Second)
	if got := names(p.rung()); got != "b" {
		t.Errorf("in time comes %q", got)
	}
}

// Proves J16: the alarm of an object with an open execution is let through without a
// permit. So is each alarm once the store has failed, because its turn then reports the
// failure.
func TestAlarmOfAnExecutionPasses(t *testing.T) {
	s, err := storage.Open(storage.Options{Engine: memstore.New(), Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newHandPermits(WorkLimit{AtOnce: 1})
	p.host.store = s
	o := storage.Object{ID: storage.ID{Class: "c", Name: "open"}, Number: s.NewNumber()}
	var b storage.Batch
	b.SetOpenMark(o, []byte("mark"))
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	open := alarm.Entry{Class: "c", Name: "open", Object: uint64(o.Number)}
	idle := alarm.Entry{Class: "c", Name: "idle", Object: uint64(s.NewNumber())}
	p.take("a", false)
	if p.enter(idle) {
		t.Error("the alarm of an object without an execution passes")
	}
	if !p.enter(open) {
		t.Error("the alarm of an execution waits")
	}
	p.take("open", false)
	if p.enter(open) {
		t.Error("the alarm of an execution whose object was refused passes")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if other := (alarm.Entry{Class: "c", Name: "other", Object: 7}); !p.enter(other) {
		t.Error("an alarm of a store that has failed waits")
	}
}

// Proves A8, J16: alarms that come out of the line fly in groups of the size of a
// flight.
func TestLineFliesInFlights(t *testing.T) {
	for n, flights := range map[int]uint64{flightSize: 1, flightSize + 1: 2} {
		synctest.Test(t, func(t *testing.T) {
			c := Define("c", func(context.Context, *State) (*struct{}, error) { return new(struct{}), nil },
				ClassOptions{WorkLimit: WorkLimit{AtOnce: n}})
			h, err := Open(Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, c)
			if err != nil {
				t.Fatal(err)
			}
			p := h.hosted["c"].permits
			for i := range n {
				p.take(strconv.Itoa(i), false)
			}
			for i := range n {
				if e := (alarm.Entry{Class: "c", Name: strconv.Itoa(i)}); p.enter(e) {
					t.Fatalf("alarm %d of %d passes", i, n)
				}
			}
			p.over(n)
			synctest.Wait()
			if got := h.flightLog.next; got != flights {
				t.Errorf("%d alarms fly in %d flights, want %d", n, got, flights)
			}
			if taken, waiting := p.count(); taken != 0 || waiting != 0 {
				t.Errorf("after alarms that are out of date %d permits are taken, %d wait", taken, waiting)
			}
			if n == flightSize { // the end by an error closes the line too
				h.fail(errors.New("the disk is gone"))
			} else if err := h.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if _ = h.Shutdown(t.Context()); !p.closed {
				t.Error("after the end the line is open")
			}
		})
	}
}
