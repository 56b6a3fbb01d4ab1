package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves A2, A3.
func TestAlarmTimes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		began := time.Now()
		var at []time.Duration
		var infos []object.AlarmInfo
		f.handleAlarm(func(_ *thing, _ context.Context, info object.AlarmInfo) error {
			at = append(at, time.Since(began))
			infos = append(infos, info)
			return nil
		})
		f.must("past", setAlarm(-time.Hour)) // a past time means now
		synctest.Wait()
		f.must("a", setAlarm(time.Minute))
		f.must("moved", setAlarm(time.Minute))
		f.must("moved", setAlarm(time.Hour))
		f.must("cleared", setAlarm(time.Minute))
		f.must("cleared", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) })
		f.must("restart", setAlarm(2*time.Hour)) // fires after a restart, on an object not in memory
		pass(90 * time.Minute)
		f.close()
		f.open()
		defer f.close()
		pass(time.Hour)
		want := []time.Duration{0, time.Minute, time.Hour, 2 * time.Hour}
		if !slices.Equal(at, want) {
			t.Errorf("alarms fired at %v, want %v", at, want)
		}
		if info := infos[1]; info.Attempt != 1 || info.LastError != "" || info.Crashed || !info.Scheduled.Equal(began.Add(time.Minute)) {
			t.Errorf("info of a first attempt: %+v", info)
		}
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.SetAlarm(ctx, time.Unix(0, 0)) })
		if !errors.Is(err, object.ErrBadAlarmTime) {
			t.Errorf("time 0: %v", err)
		}
		_, err = f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.SetAlarm(ctx, time.Time{}) })
		if !errors.Is(err, object.ErrBadAlarmTime) {
			t.Errorf("the zero time: %v", err)
		}
	})
}

// Proves A2.
func TestAlarmWithoutHandler(t *testing.T) {
	f := newFixture(t)
	type plain struct{ st *object.State }
	class := object.Define("plain", func(_ context.Context, st *object.State) (*plain, error) { return &plain{st}, nil })
	set := object.Handle(class, "set", func(p *plain, ctx context.Context, _ int) (int, error) {
		return 0, p.st.SetAlarm(ctx, p.st.Now())
	})
	f.open(class)
	defer f.close()
	if _, err := set.Call(context.Background(), f.host, "x", 0); !errors.Is(err, object.ErrNoAlarmHandler) {
		t.Error(err)
	}
}

// Proves A5. Cases 7 and 21.
func TestAlarmSetInItsHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var runs int
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			runs++
			if at, ok, err := th.st.Alarm(ctx); ok || err != nil {
				t.Errorf("while the handler runs there is an alarm at %v, %v", at, err)
			}
			if runs == 1 {
				// The very same instant again is another alarm.
				if err := th.st.SetAlarm(ctx, info.Scheduled); err != nil {
					return err
				}
				if at, ok, _ := th.st.Alarm(ctx); !ok || !at.Equal(info.Scheduled) {
					t.Errorf("the alarm it set is %v, %v", at, ok)
				}
			}
			return nil
		})
		f.must("a", setAlarm(time.Minute))
		pass(time.Hour)
		if runs != 2 {
			t.Errorf("the handler ran %d times, want 2", runs)
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			if at, ok, _ := th.st.Alarm(ctx); ok {
				t.Errorf("an alarm is left: %v", at)
			}
			return nil, nil
		})
	})
}

// Another alarm takes the place of one that is on its way to its object. The first one
// does nothing; the second is tried once, and fails once. Proves A5 and A6.
func TestReplacedAlarmDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var mu sync.Mutex
		var made []int
		f.handleAlarm(func(_ *thing, _ context.Context, info object.AlarmInfo) error {
			mu.Lock()
			defer mu.Unlock()
			made = append(made, info.Attempt)
			return errors.New("no")
		})
		attempts := func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(made)
		}
		f.must("a", setAlarm(time.Second))
		busy := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				<-busy
				return setAlarm(0)(th, ctx)
			})
		})
		pass(2 * time.Second) // the first alarm waits behind the turn
		close(busy)
		wg.Wait()
		synctest.Wait()
		if got := attempts(); !slices.Equal(got, []int{1}) {
			t.Errorf("A5: attempts at one instant: %v, want the first of the second alarm", got)
		}
		pass(3 * time.Second)
		if got := attempts(); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("A6: attempts after the first wait: %v", got)
		}
	})
}

// Proves A5.
func TestAlarmSetInAHandlerThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var attempts []int
		began := time.Now()
		var at []time.Duration
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			attempts = append(attempts, info.Attempt)
			at = append(at, time.Since(began))
			if len(attempts) == 1 {
				_ = th.st.SetAlarm(ctx, th.st.Now().Add(10*time.Minute))
				return errors.New("no")
			}
			return nil
		})
		f.must("a", setAlarm(0))
		pass(time.Hour)
		if !slices.Equal(attempts, []int{1, 1}) || at[1] != 10*time.Minute {
			t.Errorf("attempts %v at %v", attempts, at)
		}
	})
}

// Proves A6, A7, A10. Case 22.
func TestAlarmRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var dead []object.DeadLetter
		f := newFixture(t, object.ClassOptions{
			OnDeadLetter: func(_ context.Context, d object.DeadLetter) { dead = append(dead, d) },
		})
		f.open()
		ok := false
		var at []time.Time
		var infos []object.AlarmInfo
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			at = append(at, time.Now())
			infos = append(infos, info)
			_ = th.st.Storage().PutBytes(ctx, "k", []byte("half"))
			if ok {
				return nil
			}
			return fmt.Errorf("attempt %d", info.Attempt)
		})
		f.must("a", setAlarm(time.Second))
		pass(20 * time.Second) // attempts at 1, 3, 7, 15 s and a little
		f.close()              // counts survive a restart
		f.open()
		pass(10 * time.Minute)
		if len(at) != 7 {
			t.Fatalf("%d attempts, want 7", len(at))
		}
		for i := range 6 {
			base := 2 * time.Second << i
			if gap := at[i+1].Sub(at[i]); gap < base || gap > base+base/4+time.Second {
				t.Errorf("wait %d was %v, want %v to %v", i+1, gap, base, base+base/4)
			}
			if info := infos[i+1]; info.Attempt != i+2 || info.LastError != fmt.Sprintf("attempt %d", i+1) || !info.Scheduled.Equal(infos[0].Scheduled) {
				t.Errorf("info of attempt %d: %+v", i+2, info)
			}
		}
		letters, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || len(letters) != 1 || len(dead) != 1 {
			t.Fatalf("dead letters %v, hook %v, %v", letters, dead, err)
		}
		if d := letters[0]; d.ID != f.id("a") || d.Attempts != 7 || d.LastError != "attempt 7" || d.Reason != "retries used up" {
			t.Errorf("dead letter %+v", d)
		}
		if f.stored("a", "k") != "" {
			t.Error("failed attempts left a key")
		}
		// It can be replayed, with all attempts before it.
		ok = true
		if err := f.host.ReplayDeadLetter(context.Background(), f.id("a"), letters[0].Seq); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if infos[7].Attempt != 1 || f.stored("a", "k") != "half" {
			t.Errorf("replay: %+v", infos[7])
		}
		if err := f.host.ReplayDeadLetter(context.Background(), f.id("a"), letters[0].Seq); !errors.Is(err, object.ErrNoDeadLetter) {
			t.Errorf("a second replay: %v", err)
		}
		f.close()
	})
}

// Proves A6. Case 22: a new alarm during the wait takes effect at once.
func TestSetAndDeleteDuringRetryWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var mu sync.Mutex // guards runs: two things have handlers at a time
		runs := map[string]int{}
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			mu.Lock()
			defer mu.Unlock()
			runs[th.st.Name()]++
			if runs[th.st.Name()] == 1 {
				return object.RetryAfter(time.Hour, errors.New("later"))
			}
			if info.Attempt != 1 {
				t.Errorf("a new alarm has attempt %d", info.Attempt)
			}
			return nil
		})
		f.must("set", setAlarm(0))
		f.must("delete", setAlarm(0))
		pass(time.Minute)
		f.must("set", setAlarm(time.Second))
		f.must("delete", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) })
		pass(2 * time.Second)
		if runs["set"] != 2 {
			t.Error("an alarm set during the wait did not fire at its time")
		}
		pass(2 * time.Hour)
		if runs["delete"] != 1 || runs["set"] != 2 {
			t.Errorf("runs %v", runs)
		}
	})
}

// Proves A7.
func TestPermanentAndRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var at []time.Duration
		began := time.Now()
		f.handleAlarm(func(_ *thing, _ context.Context, info object.AlarmInfo) error {
			at = append(at, time.Since(began))
			if info.Attempt == 1 {
				return object.RetryAfter(7*time.Second, errors.New("busy"))
			}
			return object.Permanent(errors.New("never"))
		})
		f.must("a", setAlarm(0))
		pass(time.Hour)
		if !slices.Equal(at, []time.Duration{0, 7 * time.Second}) {
			t.Errorf("attempts at %v", at)
		}
		letters, _ := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if len(letters) != 1 || letters[0].Reason != "permanent error" {
			t.Errorf("dead letters %+v", letters)
		}
		if err := f.host.DiscardDeadLetter(context.Background(), f.id("a"), letters[0].Seq); err != nil {
			t.Error(err)
		}
		if letters, _ = lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage})); len(letters) != 0 {
			t.Errorf("after Discard: %v", letters)
		}
	})
}

// Proves A4, A8: a shutdown costs no attempt.
func TestShutdownCostsNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		var infos []object.AlarmInfo
		block := true
		f.handleAlarm(func(_ *thing, ctx context.Context, info object.AlarmInfo) error {
			infos = append(infos, info)
			if block {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		f.must("a", setAlarm(0))
		synctest.Wait()
		f.host.Shutdown(ended())
		f.mem = f.mem.Crash(0)
		block = false
		f.open()
		defer f.close()
		pass(time.Minute)
		if len(infos) != 2 || infos[1].Attempt != 1 || infos[1].Crashed {
			t.Errorf("infos %+v", infos)
		}
	})
}

// Proves A8, A10. Story: a handler that kills the process each time.
func TestHandlerThatKillsTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const bound = 6 // two crashes make it a suspect, four more are charged to it
		f := newFixture(t)
		var mu sync.Mutex
		var killer, innocent []object.AlarmInfo
		begun, release := make(chan struct{}, bound), make(chan struct{})
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			mu.Lock()
			if th.st.Name() != "killer" {
				innocent = append(innocent, info)
				mu.Unlock()
				return nil
			}
			killer = append(killer, info)
			mu.Unlock()
			begun <- struct{}{}
			<-release // the process dies here
			return nil
		})
		f.open()
		f.must("killer", setAlarm(time.Second))
		f.must("innocent", setAlarm(time.Second))
		for range bound {
			<-begun
			pass(5 * time.Second)
			f.crash()
			f.open()
		}
		close(release)
		pass(time.Minute)
		if len(killer) != bound {
			t.Errorf("the killer ran %d times, want %d", len(killer), bound)
		}
		for i, info := range killer {
			if info.Attempt != 1 || info.Crashed != (i > 0) {
				t.Errorf("killer's attempt %d: %+v", i, info)
			}
		}
		if len(innocent) != 1 {
			t.Errorf("the innocent ran %d times, want 1", len(innocent))
		}
		letters, _ := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if len(letters) != 1 || letters[0].Crashes != bound || letters[0].Reason != "crashes" {
			t.Errorf("dead letters %+v", letters)
		}
		f.close()
	})
}

// Crashes count in a row: an attempt that fails between them begins the count
// anew, so one more crash makes no suspect. Proves A8.
func TestFailureEndsTheCountOfCrashes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		attempt, begun, release := 0, make(chan struct{}, 8), make(chan struct{})
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error {
			attempt++
			switch attempt {
			case 2:
				return errors.New("no")
			case 4:
				return nil
			}
			begun <- struct{}{}
			<-release // the process dies here
			return nil
		})
		f.open()
		f.must("a", setAlarm(time.Second))
		for range 2 {
			<-begun
			f.crash()
			f.open()
		}
		pass(time.Second)
		if attempt != 4 {
			t.Errorf("A8: %d attempts a second after the last open, want 4", attempt)
		}
		close(release)
		f.close()
	})
}

// A slow alarm does not become a dead letter, though an alarm beside it kills the
// process, however often the two are due together. Proves A8.
func TestSlowAlarmBesideOneThatKills(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		slow, begun, release := 0, make(chan struct{}, 8), make(chan struct{})
		f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
			if th.st.Name() == "killer" {
				begun <- struct{}{}
				<-release // the process dies a second later
				return nil
			}
			time.Sleep(10 * time.Second)
			if ctx.Err() == nil {
				slow++
			}
			return nil
		})
		f.open()
		f.must("killer", setAlarm(time.Second))
		f.must("slow", setAlarm(time.Second))
		for range 6 { // as often as an alarm may
			<-begun
			time.Sleep(time.Second)
			f.crash()
			f.open()
		}
		pass(time.Hour)
		close(release)
		letters, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if slow != 1 || len(letters) != 1 || letters[0].ID.Name != "killer" || err != nil {
			t.Errorf("A8: the slow one came to its end %d times, want 1; dead letters %+v, %v", slow, letters, err)
		}
		f.close()
	})
}

// Proves A9: overdue alarms of one class do not starve another, nor calls.
func TestManyOverdueAlarms(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 5000
		f := newFixture(t)
		f.options.AlarmsInFlight = 16
		f.open()
		for i := range n {
			if _, err := f.call(fmt.Sprint(i), setAlarm(time.Hour), object.Unconfirmed()); err != nil {
				t.Fatal(err)
			}
		}
		f.close()
		pass(2 * time.Hour) // the process is down
		var running, most, fired atomic.Int64
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			time.Sleep(time.Millisecond)
			running.Add(-1)
			fired.Add(1)
			return nil
		})
		f.open()
		defer f.close()
		f.must("a call", nothing)
		pass(10 * time.Second)
		if fired.Load() != n || most.Load() > 16 {
			t.Errorf("%d of %d fired, at most %d at a time", fired.Load(), n, most.Load())
		}
	})
}

// Proves J12's object side: the alarms of a class that is gone wait for it.
func TestParkedClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		old := object.Define("old", func(_ context.Context, st *object.State) (*alarmed, error) { return &alarmed{st}, nil })
		arm := object.Handle(old, "arm", func(a *alarmed, ctx context.Context, _ int) (int, error) {
			return 0, a.st.SetAlarm(ctx, a.st.Now().Add(time.Minute))
		})
		f.open(old)
		if _, err := arm.Call(context.Background(), f.host, "x", 0); err != nil {
			t.Fatal(err)
		}
		f.close()
		f.open()
		pass(time.Hour)
		if parked, err := f.host.Parked(); !slices.Equal(parked, []string{"old"}) || err != nil {
			t.Errorf("parked: %v, %v", parked, err)
		}
		f.close()
		alarmedRuns.Store(0)
		f.open(old)
		synctest.Wait()
		if alarmedRuns.Load() != 1 {
			t.Errorf("the alarm fired %d times when its class was back", alarmedRuns.Load())
		}
		f.close()
	})
}

type alarmed struct{ st *object.State }

var alarmedRuns atomic.Int64

func (*alarmed) Alarm(context.Context, object.AlarmInfo) error { alarmedRuns.Add(1); return nil }
