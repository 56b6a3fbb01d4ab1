package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// armed returns when the alarm of the rig fires; zero: it has none.
func armed(t *testing.T, l *lives, k *rigKind) time.Time {
	t.Helper()
	in, err := l.host.Inspect(t.Context(), k.ID("r"))
	if err != nil {
		t.Fatal(err)
	}
	if in.Alarm == nil {
		return time.Time{}
	}
	return in.Alarm.Due
}

// nothing is a turn that changes nothing.
func nothing(context.Context, *rig) error { return nil }

// Proves J5: after each turn the alarm is that of the job type, or else of the end of the
// idle object. A lazy alarm moves to an earlier time only, unless nothing is to be done.
func TestAlarmAfterATurn(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		k := newRigKind(&rigKind{options: engine.Options{LazyAlarm: lazy}})
		inLives(t, func(t *testing.T, l *lives) {
			now := time.Now()
			in := func(minutes int) (at time.Time) {
				if minutes > 0 {
					at = now.Add(time.Duration(minutes) * time.Minute)
				}
				return at
			}
			for _, step := range []struct{ next, idle, want, lazy int }{
				{10, 0, 10, 10}, {20, 0, 20, 10}, {5, 0, 5, 5}, {0, 60, 60, 60}, {0, 90, 90, 90}, {0, 30, 30, 30},
				{10, 60, 10, 10}, {0, 0, 0, 0}, {10, 0, 10, 10}, {10, 0, 10, 10},
			} {
				k.next, k.idle = at(in(step.next)), at(in(step.idle))
				if err := k.turn(l.host, nothing); err != nil {
					t.Fatal(err)
				}
				want := step.want
				if lazy {
					want = step.lazy
				}
				if got := armed(t, l, k); !got.Equal(in(want)) {
					t.Errorf("lazy %t, %+v: the alarm is at %v", lazy, step, got)
				}
			}
		}, k)
	}
}

// Proves R5: an activation moves no alarm to a later time.
func TestActivationMovesNoAlarmToALaterTime(t *testing.T) {
	soon := noonOf2001.Add(-time.Minute)
	for name, test := range map[string]struct{ before, now rigKind }{
		"run":      {rigKind{next: at(soon)}, rigKind{next: at(noonOf2001)}},
		"end":      {rigKind{idle: at(soon)}, rigKind{idle: at(noonOf2001)}},
		"no end":   {rigKind{idle: at(soon)}, rigKind{}},
		"same run": {rigKind{next: at(soon)}, rigKind{next: at(soon)}},
	} {
		k := newRigKind(&rigKind{next: test.before.next, idle: test.before.idle})
		inLives(t, func(t *testing.T, l *lives) {
			if err := k.turn(l.host, nothing); err != nil {
				t.Fatal(err)
			}
			l.crash()
			k.next, k.idle = test.now.next, test.now.idle
			l.begin()
			if err := k.do(l.host, nothing); err != nil {
				t.Fatal(err)
			}
			if got := armed(t, l, k); !got.Equal(soon) {
				t.Errorf("%s: the alarm is at %v", name, got)
			}
		}, k)
	}
}

// Proves R3, R6: an orphan is armed for its time, and the recovery of one that is not due
// yet is told with no age.
func TestOrphanThatIsNotDue(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		err := k.turn(l.host, func(ctx context.Context, r *rig) error { return r.st.Storage().PutBytes(ctx, "key", nil) })
		if err != nil {
			t.Fatal(err)
		}
		l.crash()
		k.next = at(noonOf2001)
		l.begin()
		if err := k.do(l.host, nothing); err != nil {
			t.Fatal(err)
		}
		told, n := l.host.Recoveries()
		if got := armed(t, l, k); !got.Equal(noonOf2001) || n != 1 || told[0].Cause != "orphan" || told[0].Age != 0 || told[0].Action != "arm" {
			t.Errorf("the alarm is at %v, told is %+v", got, told)
		}
	}, k)
}

// Proves R2, C5: an alarm that waits for its next attempt stays where it is if a definition
// asks for an earlier time, and moves if an execution was lost.
func TestAlarmThatWaitsForAnAttempt(t *testing.T) {
	var fails atomic.Bool
	k := newRigKind(&rigKind{settle: func(context.Context, *rig) error {
		if fails.Load() {
			return errors.New("no")
		}
		return nil
	}})
	inLives(t, func(t *testing.T, l *lives) {
		due := time.Now().Add(time.Hour)
		k.next = at(due)
		if err := k.turn(l.host, nothing); err != nil {
			t.Fatal(err)
		}
		fails.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		retry := armed(t, l, k)
		if !retry.After(due) {
			t.Fatalf("the alarm is at %v", retry)
		}
		l.crash()
		l.begin()
		if err := k.do(l.host, nothing); err != nil {
			t.Fatal(err)
		}
		if got := armed(t, l, k); !got.Equal(retry) {
			t.Errorf("the alarm is moved from %v to %v", retry, got)
		}
		l.crash()
	}, k)
	var o outcomes
	fails.Store(false)
	k = newRigKind(&rigKind{})
	o.keep(k)
	settle := k.settle
	k.settle = func(ctx context.Context, r *rig) error {
		if fails.Load() {
			return errors.New("no")
		}
		return settle(ctx, r)
	}
	inLives(t, func(t *testing.T, l *lives) {
		k.begin(t, l.host, engine.Spec{Subject: "a", Work: hangs})
		fails.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if retry := armed(t, l, k); time.Until(retry) < 500*time.Millisecond {
			t.Fatalf("the alarm is at %v", retry)
		}
		l.crash()
		fails.Store(false)
		l.begin()
		time.Sleep(101 * time.Millisecond)
		if out, _ := o.of("a"); out.Kind != engine.Recover {
			t.Errorf("once the delay is over it has ended as %+v", out)
		}
	}, k)
}

// Proves J7: leases are extended at a third of them, those of works that began shortly after
// one another together, and not at wake-ups for other reasons.
func TestLeasesAreExtendedTogether(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		began := time.Now()
		leases := func(want ...time.Duration) {
			t.Helper()
			for i, x := range k.open(t, l.host) {
				if got := x.Lease.Sub(began); got != want[i] {
					t.Errorf("after %v the lease of work %d ends after %v, want %v", time.Since(began), i, got, want[i])
				}
			}
		}
		k.begin(t, l.host, engine.Spec{Work: hangs})
		time.Sleep(4 * time.Second)
		wake := began.Add(6 * time.Second)
		var woken atomic.Bool
		k.next = func() time.Time {
			if woken.Load() {
				return time.Time{}
			}
			return wake
		}
		k.due = func(_ context.Context, _ *rig, now time.Time) error {
			if !now.Before(wake) {
				woken.Store(true)
			}
			return nil
		}
		time.Sleep(time.Second)
		k.begin(t, l.host, engine.Spec{Work: hangs})
		time.Sleep(time.Nanosecond)
		k.begin(t, l.host, engine.Spec{Work: hangs})
		time.Sleep(2 * time.Second)
		if !woken.Load() {
			t.Error("no other wake-up came")
		}
		const s = time.Second
		leases(30*s, 35*s, 35*s+1)
		time.Sleep(4 * time.Second)
		leases(40*s, 40*s, 35*s+1)
		time.Sleep(5 * time.Second)
		leases(45*s+1, 45*s+1, 45*s+1)
	}, k)
}

// Proves J7: when one of two works has ended, the lease of the other is extended still.
func TestLeaseOfTheOther(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		k.begin(t, l.host, engine.Spec{Work: hangs})
		k.begin(t, l.host, engine.Spec{Work: func(context.Context, engine.Execution) (engine.Result, error) {
			time.Sleep(time.Second)
			return engine.Result{}, nil
		}})
		time.Sleep(11 * time.Second)
		if open := k.open(t, l.host); len(open) != 1 || time.Until(open[0].Lease) != 29*time.Second {
			t.Errorf("open are %+v", open)
		}
	}, k)
}

// Proves R6: the recovery of a lease that ended before its begin is told with no age.
func TestAgeOfARecovery(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		k.begin(t, l.host, engine.Spec{Subject: "left", Lease: -1})
		synctest.Wait()
		if told, n := l.host.Recoveries(); n != 1 || told[0].Age != 0 || told[0].Cause != "lease" || told[0].Task != "left" {
			t.Errorf("told is %+v", told)
		}
	}, k)
}

// Proves R4: an execution that is lost too often while its process lives is given up, and
// its error tells of no crash.
func TestLostTooOften(t *testing.T) {
	k := newRigKind(&rigKind{options: engine.Options{Limits: recovery.Limits{MaxRecoveries: 1}}})
	var o outcomes
	o.keep(k)
	inLives(t, func(t *testing.T, l *lives) {
		k.begin(t, l.host, engine.Spec{Subject: "left", Run: jobs.Run{Number: 1, Losses: 1, Recoveries: 1}})
		time.Sleep(time.Minute)
		out, _ := o.of("left")
		if out.Kind != engine.GaveUp || out.Reason != jobs.ReasonRecoveries || out.Err.Error() != "jobs: execution was lost: lease" {
			t.Errorf("it ends as %+v", out)
		}
		if told, n := l.host.Recoveries(); n != 1 || told[0].Attempt != 1 || !told[0].GivenUp {
			t.Errorf("told is %+v", told)
		}
	}, k)
}

// Proves J5, R1: a lost execution that ends in the first turn of its activation leaves
// neither alarm nor open mark behind.
func TestMarkOfALostExecution(t *testing.T) {
	for _, n := range []int{1, 2} {
		k := newRigKind(&rigKind{})
		inLives(t, func(t *testing.T, l *lives) {
			for range n {
				k.begin(t, l.host, engine.Spec{Work: hangs})
			}
			time.Sleep(time.Second)
			l.crash()
			l.begin()
			time.Sleep(time.Second)
			in, err := l.host.Inspect(t.Context(), k.ID("r"))
			if err != nil || in.Execution || in.Alarm != nil {
				t.Errorf("%d executions: %+v, %v", n, in, err)
			}
		}, k)
	}
}

// Proves J7: a wake-up ends once it has written enough, and the next one, which comes at
// once, goes on.
func TestWakeUpThatWritesMuch(t *testing.T) {
	const n = 10
	run := func(t *testing.T, maxBatch int) (written, turns []int) {
		var o outcomes
		k := newRigKind(&rigKind{})
		o.keep(k)
		k.ended = func(ctx context.Context, r *rig, _ engine.Execution, _ engine.Outcome) error {
			bytes, err := r.st.Driver().WrittenBytes(ctx)
			o.mu.Lock()
			defer o.mu.Unlock()
			written, turns = append(written, bytes), append(turns, o.turn)
			return err
		}
		inLives(t, func(t *testing.T, l *lives) {
			err := k.turn(l.host, func(ctx context.Context, r *rig) error {
				for range n {
					if _, err := r.engine.Begin(ctx, engine.Spec{Work: hangs}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			l.crash()
			l.options.MaxBatchBytes = maxBatch
			l.begin()
			time.Sleep(110 * time.Millisecond)
		}, k)
		return written, turns
	}
	written, turns := run(t, 0)
	if len(written) != n || turns[0] != turns[n-1] {
		t.Fatalf("written are %d bytes, in turns %d", written, turns)
	}
	third := written[2]
	for maxBatch, want := range map[int]int{4 * third: 3, 4*third + 4: 4} {
		_, turns := run(t, maxBatch)
		first := 0
		for _, turn := range turns {
			if turn == turns[0] {
				first++
			}
		}
		if len(turns) != n || first != want {
			t.Errorf("with at most %d bytes %d executions end in turns %d, the first has %d, want %d", maxBatch, len(turns), turns, first, want)
		}
	}
}

// Proves W5, J9: an outside execution that is lost, and counts as a failure, is told as one
// with what follows; a run that is given up after losses has no failure.
func TestEventsOfLosses(t *testing.T) {
	for want, o := range map[string]engine.Options{
		"start failure retry":     {LossIsFailure: true, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)}},
		"start failure exhausted": {LossIsFailure: true},
		"start exhausted":         {Limits: recovery.Limits{MaxRecoveries: -1}},
		"start recovery":          {},
	} {
		k := newRigKind(&rigKind{options: o})
		inLives(t, func(t *testing.T, l *lives) {
			k.begin(t, l.host, engine.Spec{Subject: "left", Run: jobs.Run{Number: 7}})
			time.Sleep(time.Minute)
			events, err := l.host.Events(t.Context(), k.ID("r"), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, e := range events {
				kinds = append(kinds, e.Kind)
				if data := string(e.Data); !strings.Contains(data, `"subject":"left","run":7,"attempt":1`) {
					t.Errorf("event %s: %s", e.Kind, data)
				}
			}
			if got := strings.Join(kinds, " "); got != want {
				t.Errorf("events %s, want %s", got, want)
			}
		}, k)
	}
}

// Proves J11, R4, R6: the event of a recovery tells the cause of the loss, and how many recoveries
// the run has had with this one.
func TestRecoveryTellsItsCause(t *testing.T) {
	var last atomic.Pointer[jobs.Run]
	last.Store(new(jobs.Run))
	k := newRigKind(&rigKind{ended: func(_ context.Context, _ *rig, _ engine.Execution, out engine.Outcome) error {
		last.Store(&out.Run)
		return nil
	}})
	inLives(t, func(t *testing.T, l *lives) {
		losses := []struct {
			lose func()
			want string
		}{
			{func() { l.crash(); l.begin() }, "crash 1"},
			{func() { l.close(); l.mem = l.mem.Crash(0); l.begin() }, "shutdown 1"}, // which is none of the run's
			{func() { l.crash(); l.begin() }, "crash 2"},
			{nil, "lease 3"},
		}
		var want, got []string
		for _, c := range losses {
			s := engine.Spec{Subject: "a", Run: *last.Load(), Work: hangs}
			if c.lose == nil {
				s.Work = nil // a caller outside holds it, and is gone
			}
			k.begin(t, l.host, s)
			if synctest.Wait(); c.lose != nil {
				c.lose()
			}
			time.Sleep(time.Minute)
			want = append(want, c.want)
		}
		events, err := l.host.Events(t.Context(), k.ID("r"), 0, 100)
		for _, e := range events {
			var of jobs.Event
			if err := errors.Join(err, json.Unmarshal(e.Data, &of)); err != nil {
				t.Fatal(err)
			}
			if e.Kind == jobs.EventRecovery {
				got = append(got, fmt.Sprint(of.Reason, " ", of.Recoveries))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("recoveries %q, want %q", got, want)
		}
	}, k)
}

// Proves J4, S7: whichever event of an end is refused because the turn writes too much, the
// turn stores nothing.
func TestRefusedEvents(t *testing.T) {
	no := errors.New(strings.Repeat("no ", 200))
	for name, test := range map[string]struct {
		err     error
		retries int
		events  int
	}{"success": {nil, 0, 1}, "snooze": {jobs.Snooze(time.Hour), 0, 1}, "given up": {no, 0, 2}, "again": {no, 3, 2}} {
		k := newRigKind(&rigKind{options: engine.Options{Retry: jobs.Retry{MaxAttempts: test.retries}}})
		inLives(t, func(t *testing.T, l *lives) {
			const limit = 4096
			l.crash()
			l.options.MaxBatchBytes = limit
			l.begin()
			x := k.begin(t, l.host, engine.Spec{})
			refused := 0
			for pad := limit - 100; ; pad -= 8 {
				err := k.turn(l.host, func(ctx context.Context, r *rig) error {
					return errors.Join(r.st.Storage().PutBytes(ctx, "pad", make([]byte, pad)), r.engine.Finish(ctx, x.Token, engine.Result{}, test.err))
				})
				events, err2 := l.host.Events(t.Context(), k.ID("r"), 0, 100)
				if err2 != nil {
					t.Fatal(err2)
				}
				if err == nil {
					if events = events[1:]; len(events) != test.events {
						t.Errorf("%s: %d events, want %d", name, len(events), test.events)
					}
					break
				}
				if refused++; !errors.Is(err, object.ErrBatchTooLarge) || len(events) != 1 {
					t.Fatalf("%s: pad %d, %v, events %+v", name, pad, err, events)
				}
			}
			if refused < 10 {
				t.Errorf("%s: %d turns were refused", name, refused)
			}
		}, k)
	}
}

// Proves R6, S7: a recovery is stored with its event, or not at all.
func TestRefusedRecovery(t *testing.T) {
	for limit, recovered := 40, false; !recovered; limit += 4 {
		k := newRigKind(&rigKind{})
		inLives(t, func(t *testing.T, l *lives) {
			k.begin(t, l.host, engine.Spec{Work: hangs})
			time.Sleep(time.Second)
			l.crash()
			l.options.MaxBatchBytes = limit
			l.begin()
			time.Sleep(101 * time.Millisecond)
			events, err := l.host.Events(t.Context(), k.ID("r"), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			recovered = len(k.open(t, l.host)) == 0
			if recovered != (len(events) == 2) {
				t.Fatalf("limit %d: recovered %t, events %+v", limit, recovered, events)
			}
		}, k)
	}
}
