package object_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Proves O14: a shutdown that is not waited for names the objects with a turn or a work
// under way, and no others.
func TestShutdownNamesWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		gate := make(chan struct{})
		f.must("idle", nothing)
		f.must("work", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "w", func(context.Context) { <-gate })
		})
		f.must("turn", nothing)
		go f.call("turn", func(*thing, context.Context) (any, error) { <-gate; return nil, nil })
		synctest.Wait()
		began := time.Now()
		err := f.host.Shutdown(ended())
		if err == nil || err.Error() != "object: shutdown: still running: thing/work, thing/turn" {
			t.Errorf("O14: %v", err)
		}
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("O14: it waited %v for code that it has cancelled, want 200ms", took)
		}
		close(gate)
		synctest.Wait()
	})
}

// Proves O13, O14: a host that has ended, in order or by its store, arms no timer for the
// alarms that are stored.
func TestEndedHostRests(t *testing.T) {
	for _, dies := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			clock := &countingClock{Clock: seam.Seams{}.WithDefaults().Clock}
			f := newFixture(t)
			f.options.Seams.Clock = clock
			d := f.slow()
			f.open()
			f.must("a", setAlarm(100*time.Hour))
			f.must("b", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Mark(ctx, "m", nil, time.Hour) })
			if dies {
				d.fail.Store(true)
				_, _ = f.call("c", put("k", "v"))
			} else {
				f.end()
			}
			pass(time.Hour)
			before := clock.timers.Load()
			pass(24 * time.Hour)
			if n := clock.timers.Load() - before; n != 0 {
				t.Errorf("O14: by its store %v: %d timers in a day after the end", dies, n)
			}
			if dies {
				_ = f.host.Shutdown(context.Background())
			}
		})
	}
}

// Proves O11, O9: the turn of a work is not refused by an object with a full mailbox.
func TestWorkOfAnOverloadedObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 1}).open()
		defer f.close()
		begin := make(chan struct{})
		var got error
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "w", func(ctx context.Context) {
				<-begin
				got = th.st.Do(ctx, func(ctx context.Context) error { return th.st.Storage().PutBytes(ctx, "k", []byte("v")) })
			})
		})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { f.must("a", holdFor(time.Minute)) })
			synctest.Wait()
		}
		close(begin)
		wg.Wait()
		synctest.Wait()
		if got != nil || f.stored("a", "k") != "v" {
			t.Errorf("O11: the turn of the work says %v", got)
		}
	})
}

// Proves O10: objects that were busy may exceed MaxLive. Each object that comes later
// then evicts two others, until no more than MaxLive are in memory.
func TestRoomIsMadeByTwos(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{IdleAfter: 100 * time.Hour})
		f.options.MaxLive = 5
		f.open()
		defer f.close()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() { f.must(fmt.Sprint(i), func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
			synctest.Wait()
		}
		close(gate)
		wg.Wait()
		synctest.Wait() // for the ends of the turns, which come after the answers
		for i, want := range []float64{10, 9, 8, 7, 6, 5, 5, 5} {
			wantValues(t, f, map[string]float64{"holdfast_objects_live": want})
			f.must(fmt.Sprint("more", i), nothing)
			synctest.Wait()
		}
	})
}

// Proves O8: one look of the watch reports all turns that hold their objects for too
// long.
func TestAllHeldTurnsAreTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{HoldLimit: time.Minute}).open()
		defer f.close()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() { f.must(fmt.Sprint(i), holdFor(2*time.Minute)) })
		}
		pass(75 * time.Second)
		wantValues(t, f, map[string]float64{"holdfast_turns_stuck_total": 5})
		wg.Wait()
		wantValues(t, f, map[string]float64{"holdfast_turns_stuck_total": 5})
	})
}

// Proves O13: the end of a host by its store has one line of the log.
func TestEndByTheStoreIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var r loglines.Recorder
		f := newFixture(t)
		f.options.Logger = r.Logger()
		d := f.slow()
		f.open()
		d.fail.Store(true)
		_, _ = f.call("a", put("k", "v"))
		synctest.Wait()
		_, _ = f.call("a", put("k", "v"))
		_ = f.host.Shutdown(context.Background())
		if lines := r.From(slog.LevelError); len(lines) != 1 || !strings.HasPrefix(lines[0].String(), "ERROR host ends: storage failed") {
			t.Errorf("O13: logged\n%s", r.Text(slog.LevelError))
		}
	})
}

// Proves S8: unconfirmed commits share one timer.
func TestOneTimerForUnconfirmedCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := &countingClock{Clock: seam.Seams{}.WithDefaults().Clock}
		f := newFixture(t, object.ClassOptions{HoldLimit: -1, IdleAfter: 100 * time.Hour})
		f.options.Seams.Clock = clock
		f.open()
		defer f.close()
		f.must("a", nothing)
		for range 2 {
			before := clock.timers.Load()
			for range 5 {
				f.must("a", put("k", "v"), object.Unconfirmed())
			}
			if n := clock.timers.Load() - before; n != 1 {
				t.Errorf("S8: five calls have armed %d timers", n)
			}
			pass(2 * time.Second)
		}
	})
}
