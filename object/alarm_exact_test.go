package object_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves A2: the first nanosecond after 1970 is a time for an alarm, and the last one
// before it is not.
func TestFirstTimeOfAnAlarm(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return nil })
	for ns, fits := range map[int64]bool{-1: false, 0: false, 1: true} {
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.SetAlarm(ctx, time.Unix(0, ns)) })
		if fits && err != nil || !fits && !errors.Is(err, object.ErrBadAlarmTime) {
			t.Errorf("A2: %d ns after 1970: %v", ns, err)
		}
	}
}

// Proves A4, A5: an alarm is delivered to its object once. That holds too if another
// alarm took its place meanwhile, if its handler stored another alarm and failed, and if
// it became a dead letter.
func TestAlarmIsDispatchedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		handle     func(th *thing, ctx context.Context) error
		meanwhile  action // in the turn that the alarm waits behind
		dispatches int
	}{
		"done":           {func(*thing, context.Context) error { return nil }, nothing, 1},
		"a dead letter":  {func(*thing, context.Context) error { return object.Permanent(errors.New("no")) }, nothing, 1},
		"deleted before": {nil, func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) }, 1},
		"set before":     {nil, setAlarm(time.Hour), 1},
		"set and failed": {func(th *thing, ctx context.Context) error {
			return errors.Join(th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)), th.st.Sync(ctx), errors.New("no"))
		}, nothing, 1},
		"deleted while lent out": {func(th *thing, ctx context.Context) error {
			return th.st.Release(ctx, func(ctx context.Context) error {
				_, err := th.fix.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) })
				return errors.Join(err, errors.New("no"))
			})
		}, nothing, 1},
		"retried": {func(*thing, context.Context) error { return object.RetryAfter(time.Minute, errors.New("no")) }, nothing, 2},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t, object.ClassOptions{AlarmRetry: alarm.Retry{MaxAttempts: 2, Backoff: alarm.Constant(time.Second)}})
			p := &points{}
			f.options.Seams.Probe = p
			f.open()
			defer f.end()
			f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error { return c.handle(th, ctx) })
			f.must("a", setAlarm(time.Second))
			wait := make(chan struct{})
			go f.must("a", func(th *thing, ctx context.Context) (any, error) { <-wait; return c.meanwhile(th, ctx) })
			pass(2 * time.Second)
			close(wait)
			pass(15 * time.Minute)
			if n := strings.Count(p.take(), "alarm/dispatch thing/a"); n != c.dispatches {
				t.Errorf("A4: an alarm that was %s went on its way %d times, want %d", name, n, c.dispatches)
			}
			wantValues(t, f, map[string]float64{"holdfast_alarms_in_flight": 0})
		})
	}
}

// Proves A8: the rows of flights that are over go with the next one.
func TestFlightsLeaveNoRows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		for i := range 10 {
			f.must("a", setAlarm(time.Second))
			pass(2 * time.Second)
			rows := 0
			if err := f.host.Store().Metas("flight/", func(string, []byte) error { rows++; return nil }); err != nil || rows != 1 {
				t.Errorf("A8: after flight %d there are %d rows, %v", i+1, rows, err)
			}
		}
	})
}

// Proves A4, O1: a handler deletes its own alarm, which is gone with the turn, and so is
// an object that has nothing else. To delete an alarm that does not exist makes no
// commit.
func TestDeleteOfAnAlarmInItsHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var fired atomic.Int32 // the two alarms may fire at once
		f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
			fired.Add(1)
			if err := th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)); err != nil {
				return err
			}
			return th.st.DeleteAlarm(ctx)
		})
		f.must("a", setAlarm(time.Second))
		f.must("b", put("k", "v"))
		f.must("b", setAlarm(time.Second))
		pass(10 * time.Hour)
		for name, want := range map[string]bool{"a": false, "b": true} {
			if in, err := f.host.Inspect(context.Background(), f.id(name)); err != nil || in.Exists != want || in.Alarm != nil {
				t.Errorf("O1: %s: %+v, %v", name, in, err)
			}
		}
		if n := fired.Load(); n != 2 {
			t.Errorf("A4: two alarms fired %d times", n)
		}
		before := f.host.Store().Applied()
		for _, name := range []string{"none", "b"} {
			f.must(name, func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) })
		}
		if after := f.host.Store().Applied(); after != before {
			t.Errorf("A1: to delete no alarm has made a commit: %v, %v", before, after)
		}
	})
}

// Proves A7, J13: an alarm fails after its handler has set another one. The failure has
// one line of the log, which tells of no next attempt.
func TestFailureOfAReplacedAlarmIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var r loglines.Recorder
		f := newFixture(t)
		f.options.Logger = r.Logger()
		f.open()
		defer f.close()
		f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
			return errors.Join(th.st.SetAlarm(ctx, th.st.Now().Add(1000*time.Hour)), th.st.Sync(ctx), errors.New("boom"))
		})
		at := time.Now().Add(time.Second)
		f.must("a", setAlarm(time.Second))
		pass(time.Minute)
		want := "WARN alarm failed class=thing object=a attempt=1 scheduled=" + at.UTC().Format(time.RFC3339) + " error=boom"
		if got := r.Text(slog.LevelInfo); got != want {
			t.Errorf("logged\n%s\nwant\n%s", got, want)
		}
		wantValues(t, f, map[string]float64{"holdfast_turns_total done": 1, "holdfast_turns_total failed": 1, "holdfast_alarm_retries_total": 0})
	})
}

// Proves A1: the scheduler holds the stored alarms and no others through each change
// of theirs.
func TestSchedulerFollowsTheAlarms(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		held := func(step string, want float64) {
			t.Helper()
			synctest.Wait()
			wantValues(t, f, map[string]float64{"holdfast_alarms_held": want})
			if t.Failed() {
				t.Fatalf("A1: after %s", step)
			}
		}
		f.must("a", put("k", "v"))
		f.must("a", setAlarm(time.Hour))
		f.must("b", setAlarm(time.Hour))
		held("two were set", 2)
		f.must("a", setAlarm(2*time.Hour))
		held("one was moved", 2)
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) })
		held("that of an object with a key was deleted", 1)
		f.must("b", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().DeleteAll(ctx) })
		held("DeleteAll", 0)
		f.must("a", setAlarm(time.Hour))
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(th.st.Driver().Purge(ctx), th.st.Sync(ctx), th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)))
		})
		held("another life of the object has one", 1)
		if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
			t.Fatal(err)
		}
		held("Delete", 0)
	})
}

// Proves A6, A8: the count of an alarm's failures includes crashes, and the stored text
// of a failure is cut to its bounds.
func TestWhatIsStoredOfFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		attempt, release := 0, make(chan struct{})
		long := strings.Repeat("x", alarm.MaxErrorBytes)
		var failures []int
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			n, err := th.st.Driver().AlarmFailures(ctx)
			if err != nil {
				return err
			}
			failures = append(failures, n)
			switch attempt++; attempt {
			case 1:
				return errors.New(long + "y")
			case 2:
				<-release // the process dies here
			case 3:
				if info.LastError != long || info.Attempt != 2 || !info.Crashed {
					t.Errorf("A6: after a failure and a crash: attempt %d, %d bytes of an error, crashed %v", info.Attempt, len(info.LastError), info.Crashed)
				}
			}
			return object.Permanent(errors.New(long + "z"))
		})
		f.must("a", setAlarm(time.Second))
		pass(10 * time.Second)
		f.crash()
		f.open()
		defer f.close()
		pass(10 * time.Second)
		close(release)
		if len(failures) != 3 || failures[0] != 0 || failures[1] != 1 || failures[2] != 2 {
			t.Errorf("A6: the attempts have failed %v times before, want 0, 1 and 2", failures)
		}
		all, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || len(all) != 1 || all[0].LastError != long || all[0].Attempts != 2 || all[0].Crashes != 1 || all[0].Reason != "permanent error" || all[0].Stack != "" {
			t.Errorf("A7: dead letters %.200v, %v", all, err)
		}
	})
}
