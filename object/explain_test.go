package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// explain is the explanation of a thing.
func (f *fixture) explain(name string) object.Explanation {
	f.t.Helper()
	e, err := f.host.Explain(context.Background(), f.id(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// same compares a part of an explanation with what is wanted.
func same(t *testing.T, at string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("O18: %s: -want +got\n%s", at, d)
	}
}

// until is an action that waits for a channel without regard to its context.
func until(gate <-chan struct{}) action {
	return func(*thing, context.Context) (any, error) { <-gate; return nil, nil }
}

// Proves O18: the turn that holds an object, told while it is stuck: its method, since when it
// has been seen, the object that called it and the one that it waits for.
func TestExplainTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{HoldLimit: 40 * time.Second}).open()
		defer f.end()
		f.must("other", nothing)
		same(t, "an object that is not in memory", f.explain("a").Live, false)
		gate, began := make(chan struct{}), time.Now()
		go f.call("a", f.calls("b", until(gate)))
		pass(time.Second)
		a, b := f.explain("a"), f.explain("b")
		same(t, "the caller", a.Turn, &object.TurnState{Method: "do", Number: a.Turn.Number, Since: a.Turn.Since, WaitsFor: []storage.ID{f.id("b")}})
		same(t, "the called", b.Turn, &object.TurnState{Method: "do", Number: b.Turn.Number, Since: b.Turn.Since, Caller: f.id("a")})
		same(t, "both are in memory", []bool{a.Live, b.Live}, []bool{true, true})
		pass(10 * time.Second) // a look of the watch has passed, because it looks four times in a limit
		seen := f.explain("b").Turn
		same(t, "the same turn", seen.Number, b.Turn.Number)
		if late := seen.Since.Sub(began); late < 0 || late > 10*time.Second {
			t.Errorf("O18: the turn is said to hold its object since %v after its begin", late)
		}
		close(gate)
		pass(0)
		same(t, "the turn has ended", f.explain("b").Turn, (*object.TurnState)(nil))
		hold := make(chan struct{})
		go f.call("b", until(hold))
		pass(0)
		if next := f.explain("b").Turn; next == nil || next.Number == b.Turn.Number || !next.Since.IsZero() && next.Since.Before(began.Add(11*time.Second)) {
			t.Errorf("O18: the next turn is told as %+v, the one before as %+v", next, seen)
		}
		close(hold)
	})
}

// heldCrew is an executor on which no member of the crew begins until the gate is closed.
type heldCrew struct {
	seam.Executor
	hold atomic.Bool
	gate chan struct{}
}

func (e *heldCrew) Go(name string, f func()) {
	if name == "crew" && e.hold.Load() {
		e.Executor.Go(name, func() { <-e.gate; f() })
		return
	}
	e.Executor.Go(name, f)
}

// Proves O18: a call that was handed to the crew and has not begun is a call that waits, and
// no turn.
func TestExplainNoTurnBeforeItBegins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := &heldCrew{Executor: seam.Seams{}.WithDefaults().Executor, gate: make(chan struct{})}
		f := newFixture(t)
		f.options.Seams.Executor = e
		f.open()
		defer f.end()
		f.must("a", nothing)
		pass(0) // so that no member of the crew is left to take the call
		e.hold.Store(true)
		go f.call("b", nothing) // it needs the constructor, which the crew runs
		pass(0)
		x := f.explain("b")
		same(t, "no turn has begun", x.Turn, (*object.TurnState)(nil))
		same(t, "one call waits", x.Mailbox.Calls, 1)
		e.hold.Store(false)
		close(e.gate)
		pass(0)
		same(t, "no call waits", f.explain("b").Mailbox.Calls, 0)
	})
}

// Proves O18: turns that are lent out, by Release and by Await, with the times of both and the
// calls that they wait for. The list is bounded, and the count is not.
func TestExplainLentTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 10 * object.MaxExplained}).open()
		defer f.end()
		gate, began := make(chan struct{}), time.Now()
		f.must("b", nothing)
		go f.call("a", released(f.calls("b", until(gate))))
		pass(time.Second)
		go f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Await(ctx, gate) })
		pass(time.Minute)
		x := f.explain("a")
		same(t, "none holds the object", x.Turn, (*object.TurnState)(nil))
		same(t, "two are lent", x.Lent, []object.TurnState{
			{Method: "do", Since: began, WaitsFor: []storage.ID{f.id("b")}},
			{Method: "do", Since: began.Add(time.Second)},
		})
		same(t, "the caller of b", f.explain("b").Turn.Caller, f.id("a"))
		for range object.MaxExplained - 1 {
			go f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Await(ctx, gate) })
		}
		pass(0)
		x = f.explain("a")
		same(t, "the list and the count", []int{len(x.Lent), x.LentTurns}, []int{object.MaxExplained, object.MaxExplained + 1})
		close(gate)
		pass(0)
		x = f.explain("a")
		same(t, "none is lent any more", []int{len(x.Lent), x.LentTurns}, []int{0, 0})
	})
}

// Proves O18: a repeat under an idempotency key waits for the first, which is of its own object.
func TestExplainARepeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		gate, key := make(chan struct{}), object.Idempotent("k", time.Hour)
		lend := func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Await(ctx, gate) }
		go f.call("a", lend, key)
		pass(0)
		go f.call("a", lend, key)
		pass(0)
		waits := [][]storage.ID{}
		for _, l := range f.explain("a").Lent {
			waits = append(waits, l.WaitsFor)
		}
		slices.SortFunc(waits, func(x, y []storage.ID) int { return len(x) - len(y) })
		same(t, "the first and the repeat", waits, [][]storage.ID{nil, {f.id("a")}})
		close(gate)
	})
}

// Proves O18, O11: the calls that wait, since when, and whether the next is refused, on both
// sides of both limits. A call that has left does not count.
func TestExplainTheMailbox(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 2, MailboxAge: 40 * time.Second}).open()
		defer f.end()
		gate := make(chan struct{})
		f.must("a", nothing)
		refused := func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
			defer cancel()
			_, err := f.do.Call(ctx, f.host, "a", nothing)
			return errors.Is(err, object.ErrOverloaded)
		}
		want := func(at string, m object.Mailbox) {
			t.Helper()
			got := f.explain("a").Mailbox
			m.Limit = 2
			same(t, at, got, m)
			if m.Refusing != refused() {
				t.Errorf("O11: %s: a call is not treated as Explain says", at)
			}
		}
		go f.call("a", until(gate))
		pass(0)
		want("nothing waits", object.Mailbox{})
		since := time.Now()
		go f.call("a", nothing)
		pass(0)
		want("one waits", object.Mailbox{Calls: 1, Oldest: since})
		go f.call("a", nothing)
		pass(0)
		since = f.explain("a").Mailbox.Oldest
		want("two wait", object.Mailbox{Calls: 2, Oldest: since, Refusing: true})
		close(gate)
		pass(0)
		gate = make(chan struct{})
		go f.call("a", until(gate))
		pass(0)
		since = time.Now()
		go f.call("a", nothing)
		pass(40*time.Second - time.Nanosecond)
		want("one has waited for the limit", object.Mailbox{Calls: 1, Oldest: since})
		pass(time.Nanosecond)
		want("one has waited for longer", object.Mailbox{Calls: 1, Oldest: since, Refusing: true})
		close(gate)
	})
}

// Proves O18: a call that its caller has left before its turn does not wait any more, although it
// is still in the mailbox.
func TestExplainCallersThatHaveLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		gate := make(chan struct{})
		go f.call("a", until(gate))
		pass(0)
		since := time.Now()
		go f.call("a", nothing)
		pass(0)
		if _, err := f.leaves("a", nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		same(t, "one has left", f.explain("a").Mailbox, object.Mailbox{Calls: 1, Oldest: since, Limit: 1024})
		close(gate)
	})
}

// Proves O18: alarms and turns of routines wait beside the calls, and no limit is for them.
func TestExplainOthersThatWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 2}).open()
		defer f.end()
		gate := make(chan struct{})
		f.must("a", setAlarm(time.Second))
		go f.call("a", func(th *thing, ctx context.Context) (any, error) {
			go th.st.Do(context.Background(), func(context.Context) error { return nil })
			<-gate
			return nil, nil
		})
		pass(time.Second)
		same(t, "an alarm and a Do wait", f.explain("a").Mailbox, object.Mailbox{Others: 2, Limit: 2, Refusing: true})
		same(t, "the alarm is in flight", f.explain("a").Alarm.Where, alarm.InFlight)
		close(gate)
	})
}

// Proves O18, O4: the failure of a constructor, with the time before which it is not called again.
func TestExplainAFailingConstructor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		var fail atomic.Bool
		fail.Store(true)
		f.handleConstruct(func(context.Context, *thing) error {
			if fail.Load() {
				return errors.New("no schema")
			}
			return nil
		})
		same(t, "before", f.explain("a").Constructor, (*object.ConstructorFailure)(nil))
		f.call("a", nothing)
		same(t, "once", f.explain("a").Constructor, &object.ConstructorFailure{Times: 1, Error: "no schema", Next: time.Now().Add(100 * time.Millisecond)})
		pass(100 * time.Millisecond)
		f.call("a", nothing)
		same(t, "twice", f.explain("a").Constructor, &object.ConstructorFailure{Times: 2, Error: "no schema", Next: time.Now().Add(200 * time.Millisecond)})
		fail.Store(false)
		pass(200 * time.Millisecond)
		f.must("a", nothing)
		same(t, "after a success", f.explain("a").Constructor, (*object.ConstructorFailure)(nil))
	})
}

// Proves O18: the routines that run, by their names, while they run and no longer.
func TestExplainWorks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		defer f.end()
		gate := make(chan struct{})
		f.must("a", nothing)
		d.hold.Store(true)
		start := func(names ...string) action {
			return func(th *thing, ctx context.Context) (any, error) {
				err := th.st.Storage().Put(ctx, "k", 1)
				for _, name := range names {
					err = errors.Join(err, th.st.Go(ctx, name, func(context.Context) { <-gate }))
				}
				return nil, err
			}
		}
		go f.call("a", start("send", "fetch"))
		go f.call("b", start("other"))
		pass(0)
		same(t, "before the commit is durable", f.explain("a").Works, []string(nil))
		d.hold.Store(false)
		close(d.gate)
		pass(0)
		same(t, "two run", f.explain("a").Works, []string{"fetch", "send"})
		close(gate)
		pass(0)
		same(t, "none runs", f.explain("a").Works, []string(nil))
	})
}

// Proves O18, A9: the place of an alarm: waiting, in flight, and in the queue behind others of
// its class, because there is no slot.
func TestExplainTheAlarm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.AlarmsInFlight = 1
		f.open()
		defer f.end()
		gate := make(chan struct{})
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { <-gate; return nil })
		pass(0) // the index has been read
		same(t, "no alarm", f.explain("a").Alarm, object.AlarmPlace{Place: alarm.Place{Where: alarm.Absent, Limit: 1, All: true}})
		due := time.Now().Add(time.Minute).UTC()
		for i := range 4 {
			f.must(fmt.Sprint(i), func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.SetAlarm(ctx, due.Add(time.Duration(i)))
			})
		}
		x := f.explain("3").Alarm
		same(t, "before its time", []any{x.Where, x.Due, x.InFlight}, []any{alarm.Waiting, due.Add(3), 0})
		pass(2 * time.Minute)
		for i, want := range []alarm.Place{
			{Where: alarm.InFlight, Due: due, InFlight: 1, Limit: 1, All: true},
			{Where: alarm.Queued, Due: due.Add(1), Before: 0, Classes: 1, InFlight: 1, Limit: 1, All: true},
			{Where: alarm.Queued, Due: due.Add(2), Before: 1, Classes: 1, InFlight: 1, Limit: 1, All: true},
			{Where: alarm.Queued, Due: due.Add(3), Before: 2, Classes: 1, InFlight: 1, Limit: 1, All: true},
		} {
			got := f.explain(fmt.Sprint(i)).Alarm.Place
			got.Look = time.Time{}
			same(t, fmt.Sprint("alarm ", i), got, want)
		}
		same(t, "the turn of the alarm", f.explain("0").Turn.Method, "alarm")
		close(gate)
		pass(0)
		same(t, "handled", f.explain("3").Alarm.Where, alarm.Absent)
	})
}

// Proves O18: an alarm that waits for a permit has its place in that line, and none in the scheduler.
func TestExplainTheLineForAPermit(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := newWorkers(s, object.WorkLimit{AtOnce: 1})
		for _, name := range []string{"a", "b", "c"} {
			if _, err := w.begin.Call(s.Context(), s, name, ""); err != nil {
				t.Fatal(err)
			}
		}
		s.Advance(time.Millisecond)
		for i, name := range []string{"a", "b", "c"} {
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				x, err := h.Explain(ctx, w.class.ID(name))
				s.Always("the place is that in the line", x.Alarm.Permit == i && x.Alarm.Where == alarm.Absent, name, x.Alarm)
				s.Always("one works", (len(x.Works) == 1) == (i == 0), name, x.Works)
				return err
			}))
		}
		s.RunUntilIdle()
	})
}

// Proves O18, A8: alarms that two crashes have cut off are held back, then tried one after
// another, and Explain says how many trials come first and what they are charged with.
func TestExplainSuspects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDeadly(t, time.Minute, time.Second, crowd(3, "killer")...)
		d.must("last", setAlarm(time.Second)) // and those before are durable
		for range 2 {
			<-d.kill
			d.die()
		}
		held := func(name string) []object.HeldWork { return d.explain(name).Held }
		opened := time.Now()
		pass(time.Second)
		same(t, "held back", held("killer"), []object.HeldWork{{NotBefore: opened.Add(3 * time.Second)}})
		same(t, "and not in the scheduler", d.explain("killer").Alarm.Where, alarm.Absent)
		same(t, "an object without an alarm", held("x"), []object.HeldWork(nil))
		pass(2 * time.Second) // the first trial
		before, trying := []int{}, 0
		for _, name := range crowd(3, "killer", "last") {
			for _, w := range held(name) {
				before = append(before, w.Before)
				if w.OnTrial {
					trying++
				}
			}
		}
		slices.Sort(before)
		same(t, "one is on trial", trying, 1)
		same(t, "the places of all", before, []int{0, 0, 1, 2, 3})
		for range 3 { // until the killer is charged
			<-d.kill
			d.die()
		}
		pass(time.Second)
		x := held("killer")
		if len(x) != 1 || x[0].Charges == 0 || !x[0].NotBefore.After(time.Now().Add(2*time.Second-time.Millisecond)) {
			t.Errorf("O18: the killer is charged and told as %+v", x)
		}
		d.live(12 * time.Hour)
		same(t, "after all", held("killer"), []object.HeldWork(nil))
		d.close()
	})
}

// Proves O18, O7: while the disk does not answer, Explain does, and tells since when.
func TestExplainASlowDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		defer f.end()
		f.must("a", put("k", "v"))
		f.must("idle", nothing)
		x := f.explain("a")
		same(t, "durable", []any{x.NotDurable, x.Syncing}, []any{false, time.Time{}})
		d.hold.Store(true)
		began := time.Now().UTC()
		go f.call("a", put("k", "w"))
		pass(time.Minute - time.Second) // and the object is in memory still
		x = f.explain("a")
		same(t, "not durable", []any{x.NotDurable, x.Syncing}, []any{true, began})
		same(t, "an object that wrote nothing", f.explain("idle").NotDurable, false)
		same(t, "the turn is over", x.Turn, (*object.TurnState)(nil))
		d.hold.Store(false)
		close(d.gate)
		pass(0)
		x = f.explain("a")
		same(t, "durable again", []any{x.NotDurable, x.Syncing}, []any{false, time.Time{}})
	})
}

// slowApply is an engine that holds back the commits.
type slowApply struct {
	*slowDisk
	stop atomic.Bool
	goOn chan struct{}
}

func (d *slowApply) Apply(batch []byte) error {
	if d.stop.Load() {
		<-d.goOn
	}
	return d.slowDisk.Apply(batch)
}

// Proves O18: a turn says so while the store applies its commit.
func TestExplainACommitUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := &slowApply{slowDisk: newSlowDisk(f.mem), goOn: make(chan struct{})}
		f.options.Storage.Engine = d
		f.open()
		defer f.end()
		f.must("a", nothing)
		d.stop.Store(true)
		go f.call("a", put("k", "v"))
		pass(0)
		if x := f.explain("a").Turn; x == nil || !x.Committing {
			t.Errorf("O18: %+v is not committing", x)
		}
		d.stop.Store(false)
		close(d.goOn)
	})
}

// Proves O18, O8: the newest call that was refused, with its circle. A call that succeeds later
// takes nothing away: the time tells how old it is.
func TestExplainARefusedCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		same(t, "none", f.explain("b").Deadlock, (*object.RefusedCall)(nil))
		for range 2 {
			pass(time.Minute)
			if err := f.within("a", f.calls("b", f.calls("a", nothing))); !errors.Is(err, object.ErrDeadlock) {
				t.Error(err)
			}
		}
		at := time.Now()
		pass(time.Minute)
		f.must("b", nothing)
		same(t, "the call of b", f.explain("b").Deadlock, &object.RefusedCall{
			At: at, To: f.id("a"), Error: "thing/b: deadlock: it called thing/a, which is waiting for thing/b",
		})
		same(t, "the call of a is not refused itself", f.explain("a").Deadlock, (*object.RefusedCall)(nil))
	})
}

// Proves O18: the state of the host, also after its end, and of a class that it does not have.
func TestExplainTheHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.slow()
		f.open()
		x := f.explain("a")
		same(t, "a host at work", []any{x.Registered, x.Closing, x.Failed, x.NoSpace, x.At}, []any{true, false, "", "", time.Now()})
		x, err := f.host.Explain(context.Background(), storage.ID{Class: "other", Name: "a"})
		same(t, "a class that the host does not have", []any{x.Registered, err}, []any{false, nil})
		if _, err := f.host.Explain(context.Background(), f.id("")); !errors.Is(err, object.ErrBadName) {
			t.Errorf("O18: an empty name: %v", err)
		}
		if _, err := f.host.Explain(ended(), f.id("a")); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "thing/a") {
			t.Errorf("O18: a context that has ended: %v", err)
		}
		gate := make(chan struct{})
		go f.call("a", until(gate))
		pass(0)
		var wg sync.WaitGroup
		wg.Go(f.end)
		pass(0)
		x = f.explain("a")
		same(t, "a shutdown that waits", []any{x.Closing, x.Failed, x.Turn.Method}, []any{true, "", "do"})
		close(gate)
		wg.Wait()
		x = f.explain("a")
		same(t, "after the shutdown", []any{x.Closing, x.Failed}, []any{true, ""})

		f.mem = f.mem.Crash(0)
		d := f.slow()
		f.open()
		d.fail.Store(true)
		f.call("a", put("k", "v"))
		pass(0)
		x = f.explain("a")
		if !x.Closing || !strings.Contains(x.Failed, errDisk.Error()) {
			t.Errorf("O18: a host that has failed is told as %+v", x)
		}
		f.host.Shutdown(ended())
		synctest.Wait()
		if x = f.explain("a"); !strings.Contains(x.Failed, errDisk.Error()) {
			t.Errorf("O18: a host that has failed and was shut down is told as %+v", x)
		}
	})
}

// Proves O18: an object was deleted under a turn, which goes on without it. The caller of that turn is not said
// to wait for the next turn of the object, which comes from outside.
func TestExplainTheCallerOfAnotherActivation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		gate, hold := make(chan struct{}), make(chan struct{})
		go f.call("a", f.calls("b", until(gate)))
		pass(0)
		if err := f.host.Delete(t.Context(), f.id("b")); err != nil {
			t.Fatal(err)
		}
		go f.call("b", until(hold))
		pass(0)
		same(t, "a waits for the turn of before", f.explain("a").Turn.WaitsFor, []storage.ID{f.id("b")})
		same(t, "the call from outside has no object as its caller", f.explain("b").Turn.Caller, storage.ID{})
		close(hold)
		pass(0)
		next := make(chan struct{})
		go f.call("c", f.calls("b", released(until(next))))
		pass(0)
		same(t, "a turn that is lent out has its caller", f.explain("b").Lent[0].Caller, f.id("c"))
		close(next)
		close(gate)
	})
}
