package object_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// cutOffTwice is things with alarms that two crashes in a row have cut off. The third
// process has just begun; handle runs in it.
func cutOffTwice(t *testing.T, n int, handle func(name string, ctx context.Context) error) *fixture {
	f := newFixture(t, object.ClassOptions{IdleAfter: 100 * time.Hour})
	var mu sync.Mutex
	life, died := 1, make(chan struct{})
	f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
		mu.Lock()
		now, end := life, died
		mu.Unlock()
		if now == 3 {
			return handle(th.st.Name(), ctx)
		}
		<-end
		return errDied
	})
	f.open()
	for i := range n {
		if _, err := f.call(fmt.Sprintf("n%03d", i), setAlarm(time.Second), object.Unconfirmed()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		pass(2 * time.Second)
		mu.Lock()
		end := died
		life, died = life+1, make(chan struct{})
		mu.Unlock()
		survives := f.mem.Crash(0)
		close(end)
		_ = f.host.Shutdown(ended())
		f.mem = survives
		f.open()
	}
	return f
}

// actions counts the lines of the recovery report by their action.
func (f *fixture) actions() map[string]int {
	lines, _ := f.host.Recoveries()
	n := map[string]int{}
	for _, line := range lines {
		n[line.Action]++
	}
	return n
}

// Proves A8, R6: suspects are held back for three seconds, and then tried in at most 16
// groups. Each group begins when the one before it has ended. A suspect that is alone in
// its group is reported.
func TestTrialsOfQuickSuspects(t *testing.T) {
	for n, alone := range map[int]int{1: 1, 2: 2, 16: 16, 17: 1, 32: 0, 33: 0} {
		bubble(t, func(t *testing.T) {
			var mu sync.Mutex
			at := map[time.Duration]int{}
			opened := time.Now()
			f := cutOffTwice(t, n, func(string, context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				at[time.Since(opened)]++
				return nil
			})
			defer f.close()
			mu.Lock()
			opened = f.host.Store().OpenedAt()
			mu.Unlock()
			pass(3*time.Second - 1)
			mu.Lock()
			if len(at) != 0 {
				t.Errorf("A8: suspects ran after %v", at)
			}
			mu.Unlock()
			pass(1)
			mu.Lock()
			if want := map[time.Duration]int{3 * time.Second: n}; !maps.Equal(at, want) {
				t.Errorf("A8: %d suspects ran after %v, want all three seconds after the opening", n, at)
			}
			mu.Unlock()
			want := map[string]int{"held back": n}
			if alone > 0 {
				want["tried alone"] = alone
			}
			if got := f.actions(); !maps.Equal(got, want) {
				t.Errorf("R6: of %d suspects the report tells %v, want %v", n, got, want)
			}
			wantValues(t, f, map[string]float64{"holdfast_alarms_held": 0, "holdfast_busy": 0})
			pass(time.Minute)
			if _, stored, err := f.host.Store().Meta("suspects/plan"); stored || err != nil {
				t.Errorf("A8: when all are cleared their plan is stored: %v, %v", stored, err)
			}
		})
	}
}

// Proves A8: after an end in order nothing is stored of the search, and suspects
// run at once.
func TestEndInOrderEndsTheSearch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ran := 0
		f := cutOffTwice(t, 1, func(string, context.Context) error { ran++; return nil })
		pass(time.Second)
		for _, row := range []string{"suspects", "suspects/plan"} {
			if _, stored, err := f.host.Store().Meta(row); !stored || err != nil {
				t.Errorf("A8: while it is held back the row %s is stored: %v, %v", row, stored, err)
			}
		}
		f.close()
		f.open()
		defer f.close()
		pass(time.Millisecond)
		for _, row := range []string{"suspects", "suspects/plan"} {
			if _, stored, err := f.host.Store().Meta(row); stored || err != nil {
				t.Errorf("A8: after an end in order the row %s is stored: %v, %v", row, stored, err)
			}
		}
		if ran != 1 {
			t.Errorf("A8: it ran %d times", ran)
		}
	})
}

// Proves A8: a group that does not end holds the next one up for ten seconds, and not for
// longer.
func TestTrialsOfSlowSuspects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		var opened time.Time
		f := cutOffTwice(t, 20, func(_ string, ctx context.Context) error {
			mu.Lock()
			at = append(at, time.Since(opened))
			mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		})
		defer func() { _ = f.host.Shutdown(ended()) }()
		mu.Lock()
		opened = f.host.Store().OpenedAt()
		mu.Unlock()
		pass(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(at)
		var want []time.Duration
		for i := range 20 { // ten groups of two
			want = append(want, 3*time.Second+time.Duration(i/2)*10*time.Second)
		}
		if !slices.Equal(at, want) {
			t.Errorf("A8: they ran at %v, want %v", at, want)
		}
	})
}

// Proves A8: the alarm of a suspect is deleted, or set anew, before its trial. The
// suspect does not hold up the others, and its handler is not called for the old alarm.
func TestSuspectsThatHaveGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var ran []string
		f := cutOffTwice(t, 3, func(name string, _ context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, name)
			return nil
		})
		defer f.close()
		f.must("n000", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.DeleteAlarm(ctx) })
		f.must("n001", setAlarm(time.Hour))
		all := func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(ran, " ")
		}
		pass(time.Minute)
		if got := all(); got != "n002" {
			t.Errorf("A8: %q ran, want n002", got)
		}
		pass(time.Hour)
		if got := all(); got != "n002 n001" {
			t.Errorf("A8: %q ran, want n002 and n001", got)
		}
		if _, stored, err := f.host.Store().Meta("suspects/plan"); stored || err != nil {
			t.Errorf("A8: the plan is stored: %v, %v", stored, err)
		}
	})
}

// Proves A8: an alarm with as many charges as it may have is delivered once more, to
// become a dead letter, and its handler is not called.
func TestChargedAlarmIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MaxAlarmCrashes: 1})
		p := &points{}
		f.options.Seams.Probe = p
		runs, begun, release := 0, make(chan struct{}, 8), make(chan struct{})
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error {
			runs++
			begun <- struct{}{}
			<-release // the process dies here
			return nil
		})
		f.open()
		f.must("a", setAlarm(time.Second))
		for range 3 { // two make it a suspect, and the third is charged to it
			<-begun
			f.crash()
			p.take()
			f.open()
		}
		pass(time.Minute)
		close(release)
		letters, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || len(letters) != 1 || letters[0].Crashes != 3 || letters[0].Reason != "crashes" || runs != 3 {
			t.Errorf("A8: after %d runs: %+v, %v", runs, letters, err)
		}
		got := p.take()
		if n := strings.Count(got, "alarm/dispatch thing/a"); n != 1 || strings.Contains(got, "handler/enter") {
			t.Errorf("A8: it went on its way %d times: %s", n, got)
		}
		if got := f.actions(); !maps.Equal(got, map[string]int{"charged": 1}) {
			t.Errorf("R6: the report tells %v", got)
		}
		f.end()
	})
}

// Proves A8: a suspect that fails in its trial is tried again as any other alarm, and is
// a suspect no more.
func TestSuspectThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var attempts atomic.Int32
		f := cutOffTwice(t, 1, func(string, context.Context) error {
			if attempts.Add(1) < 3 {
				return object.RetryAfter(time.Minute, errors.New("no"))
			}
			return nil
		})
		defer f.close()
		for want := range 4 {
			if got := int(attempts.Load()); got != want {
				t.Errorf("A8: %d attempts, want %d", got, want)
			}
			pass([]time.Duration{3 * time.Second, time.Minute, time.Minute, time.Hour}[want])
		}
		if got := f.actions(); !maps.Equal(got, map[string]int{"held back": 1, "tried alone": 1}) {
			t.Errorf("R6: the report tells %v", got)
		}
	})
}
