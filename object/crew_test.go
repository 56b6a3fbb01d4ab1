package object_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Alarm handlers that wait, or end their goroutine, hold up no other alarm of their
// flight. Calls that do not end hold up none either. Proves A9.
func TestAlarmsThatWaitHoldUpNoOther(t *testing.T) {
	for _, calls := range []int{0, 3} {
		t.Run(fmt.Sprintf("calls=%d", calls), func(t *testing.T) { alarmsThatWait(t, calls) })
	}
}

func alarmsThatWait(t *testing.T, calls int) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		const alarms = 300
		goOn := make(chan struct{})
		var ended atomic.Int64
		f.handleAlarm(func(th *thing, _ context.Context, info object.AlarmInfo) error {
			switch n := th.st.Name()[len(th.st.Name())-1]; {
			case n%3 == 0:
				<-goOn
			case n%3 == 1 && info.Attempt == 1:
				runtime.Goexit()
			}
			ended.Add(1)
			return nil
		})
		for i := range alarms {
			f.must(fmt.Sprint(i), setAlarm(time.Minute))
		}
		for i := range calls {
			go f.must(fmt.Sprint("call", i), func(*thing, context.Context) (any, error) {
				<-goOn
				return nil, nil
			})
		}
		pass(time.Minute)
		const waiting = 120 // of each ten names 0, 3, 6 and 9 wait, 1, 4 and 7 end their goroutine
		if n := ended.Load(); n != 90 {
			t.Errorf("%d alarms have ended while %d wait, want 90", n, waiting)
		}
		pass(time.Minute) // the second attempts
		if n := ended.Load(); n != alarms-waiting {
			t.Errorf("%d alarms have ended while %d wait, want %d", n, waiting, alarms-waiting)
		}
		close(goOn)
		synctest.Wait()
		if n := ended.Load(); n != alarms {
			t.Errorf("%d alarms have ended, want %d", n, alarms)
		}
	})
}

// Works that wait, and turns that wait, hold up no other work and no other turn.
func TestWorksAndTurnsThatWaitHoldUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		const many = 100
		goOn := make(chan struct{})
		var works, turns atomic.Int64
		for i := range many {
			name := fmt.Sprint(i)
			f.must(name, func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Go(ctx, "work", func(context.Context) {
					if i%2 == 0 {
						<-goOn
					}
					works.Add(1)
				})
			})
			for range 2 { // the second waits in the mailbox, on any goroutine
				go f.must(name, func(*thing, context.Context) (any, error) {
					if i%2 == 1 {
						<-goOn
					}
					turns.Add(1)
					return nil, nil
				})
			}
		}
		synctest.Wait()
		if w, n := works.Load(), turns.Load(); w != many/2 || n != many {
			t.Errorf("while half of them wait %d works and %d turns have ended, want %d and %d", w, n, many/2, many)
		}
		close(goOn)
		synctest.Wait()
		if w, n := works.Load(), turns.Load(); w != many || n != 2*many {
			t.Errorf("%d works and %d turns have ended, want %d and %d", w, n, many, 2*many)
		}
	})
}
