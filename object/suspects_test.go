package object_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// deadly is objects with alarms that are due at once. Those with "killer" in their name
// kill the process after delay, the others end after work.
type deadly struct {
	*fixture
	work, delay time.Duration
	run         *object.Method[errand, int] // of deadly messages

	mu      sync.Mutex
	life    chan struct{} // closed when the process dies; nil until the next one is open
	runs    map[string]int
	done    map[string]int
	running int  // in this life
	tame    bool // nothing kills any more
	kill    chan struct{}
}

// newDeadly sets the alarms and opens the host.
func newDeadly(t *testing.T, work, delay time.Duration, names ...string) *deadly {
	d := &deadly{
		fixture: newFixture(t), work: work, delay: delay,
		life: make(chan struct{}), runs: make(map[string]int), done: make(map[string]int), kill: make(chan struct{}, 16),
	}
	d.handleAlarm(func(th *thing, _ context.Context, _ object.AlarmInfo) error { return d.handle(th.st.Name()) })
	d.open()
	for _, name := range names {
		if _, err := d.call(name, setAlarm(time.Second), object.Unconfirmed()); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func crowd(n int, more ...string) []string {
	for i := range n {
		more = append(more, fmt.Sprintf("n%04d", i))
	}
	return more
}

func (d *deadly) handle(name string) error {
	d.mu.Lock()
	life := d.life
	if life == nil { // no run: its process is dead
		d.mu.Unlock()
		return errDied
	}
	d.runs[name]++
	d.running++
	d.mu.Unlock()
	kills := strings.Contains(name, "killer") && !d.tame
	wait := d.work
	if kills {
		wait = d.delay
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-life:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case life != d.life:
		return errDied
	case kills:
		d.mu.Unlock()
		d.kill <- struct{}{}
		<-life
		d.mu.Lock()
		return errDied
	}
	d.running--
	d.done[name]++
	return nil
}

// count returns how many handlers run, and how many alarms are done.
func (d *deadly) count() (running, done int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running, len(d.done)
}

var errDied = errors.New("the process has died")

// die crashes the process and opens the next. All handlers that are due have begun then,
// and none that begins between the two counts as a run.
func (d *deadly) die() {
	synctest.Wait()
	d.mu.Lock()
	survives := d.mem.Crash(0)
	close(d.life)
	d.life, d.running = nil, 0
	d.mu.Unlock()
	_ = d.host.Shutdown(ended()) // its error means nothing, because the process is killed
	synctest.Wait()
	d.mem = survives
	for len(d.kill) > 0 {
		<-d.kill
	}
	d.mu.Lock()
	d.life = make(chan struct{})
	d.mu.Unlock()
	d.open()
}

// live lets d of time pass, with a crash each time that a killer asks for it, and
// returns how many came.
func (d *deadly) live(limit time.Duration) (crashes int) {
	end := time.After(limit)
	for {
		select {
		case <-d.kill:
			if crashes++; crashes > 100 {
				d.t.Errorf("the killers go on")
				d.tame = true // so that the test ends
			}
			d.die()
		case <-end:
			synctest.Wait()
			return crashes
		}
	}
}

// finished checks that all but the killers are done, and only these are dead.
func (d *deadly) finished(killers, others int) {
	d.t.Helper()
	letters, err := lettersOf(d.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
	if err != nil || len(letters) != killers {
		d.t.Errorf("%d dead letters, want %d: %+v, %v", len(letters), killers, letters, err)
	}
	for _, l := range letters {
		if !strings.Contains(l.ID.Name, "killer") || l.Reason != "crashes" {
			d.t.Errorf("dead letter %+v", l)
		}
	}
	if _, done := d.count(); done != others {
		d.t.Errorf("%d are done, want %d", done, others)
	}
}

// Proves A8. A killer that takes longer than suspects are held back is found as soon after
// crashes with a cause outside as at other times.
func TestSlowKillerAfterCrashesFromOutside(t *testing.T) {
	for outside := range 5 {
		t.Run(fmt.Sprint(outside), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDeadly(t, 20*time.Second, 5*time.Second, crowd(6, "killer")...)
				d.must("seventh", setAlarm(time.Second)) // and the others are durable too
				for range outside {
					d.die() // before any alarm is due
				}
				crashes := d.live(12 * time.Hour)
				d.finished(1, 7)
				if crashes != 6 {
					t.Errorf("%d crashes, want 6", crashes)
				}
				d.close()
			})
		})
	}
}

// Proves A8. Case SU1: a power cut under 200 alarms that take 10 s each costs them
// these 10 s, for they run again at once and together.
func TestOneCrashDelaysNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDeadly(t, 10*time.Second, 0, crowd(200)...)
		pass(6 * time.Second)
		d.die()
		pass(10*time.Second - time.Millisecond)
		if running, done := d.count(); running != 200 || done != 0 {
			t.Errorf("%d run and %d are done before their time", running, done)
		}
		pass(10 * time.Millisecond)
		d.finished(0, 200)
		if lines, _ := d.host.Recoveries(); len(lines) != 0 {
			t.Errorf("one crash made suspects: %+v", lines)
		}
		d.close()
	})
}

// rhythms are times between crashes with a cause outside.
var rhythms = map[string]func(*rand.Rand) time.Duration{
	"1.2 s": func(*rand.Rand) time.Duration { return 1200 * time.Millisecond },
	"3.5 s": func(*rand.Rand) time.Duration { return 3500 * time.Millisecond },
	"20 s":  func(*rand.Rand) time.Duration { return 20 * time.Second },
	"200 s": func(*rand.Rand) time.Duration { return 200 * time.Second },
	"random up to 10 s": func(r *rand.Rand) time.Duration {
		return time.Duration(r.Int64N(int64(10 * time.Second)))
	},
	"random up to 60 s": func(r *rand.Rand) time.Duration {
		return time.Duration(r.Int64N(int64(time.Minute)))
	},
	"random around 10 s": func(r *rand.Rand) time.Duration {
		return time.Duration(r.ExpFloat64() * float64(10*time.Second))
	},
}

// Proves A8. Case SU2: crashes with a cause outside, at any rhythm, give up no alarm, and
// all alarms are done soon after the last crash.
func TestCrashesFromOutsideGiveUpNothing(t *testing.T) {
	for name, rhythm := range rhythms {
		for _, work := range []time.Duration{30 * time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprint(name, " under work of ", work), func(t *testing.T) {
				for seed := range uint64(4) {
					bubble(t, func(t *testing.T) {
						r := rand.New(rand.NewPCG(seed, 20))
						d := newDeadly(t, work, 0, crowd(25)...)
						pass(time.Second)
						for range 20 {
							pass(rhythm(r))
							d.die()
						}
						pass(2 * time.Hour)
						d.finished(0, 25)
						d.close()
					})
				}
			})
		}
	}
}

// Proves A8, R7. Cases SU3, SU8: an alarm that kills its process each time is stopped after
// at most 8 crashes, whenever it kills, and none of those beside it is stopped. The
// figures are exact, because nothing is left to chance: see mostCrashes for the bound.
func TestKillerIsFoundAmongMany(t *testing.T) {
	tests := []struct {
		others      int
		work, delay time.Duration
		killers     []string
		crashes     int // in all
		most        int // of one killer
	}{
		{0, 0, 0, []string{"killer"}, 6, 6},
		{7, 10 * time.Second, 0, []string{"killer"}, 6, 6},
		{200, 10 * time.Second, 0, []string{"killer"}, 7, 7},
		{200, 10 * time.Second, 5 * time.Second, []string{"zkiller"}, 7, 7},
		{200, 10 * time.Minute, time.Minute, []string{"killer"}, 7, 7},
		{2000, time.Second, 0, []string{"killer"}, 8, 8},
		{200, 10 * time.Second, 0, []string{"killer", "zkiller"}, 13, 8},
		{200, 10 * time.Second, 30 * time.Second, []string{"killer", "zkiller"}, 11, 7},
		{0, 0, time.Second, []string{"killer", "zkiller"}, 11, 7},
		{30, 10 * time.Second, 0, []string{"killer", "mkiller", "zkiller"}, 17, 8},
		{200, 10 * time.Second, 0, strings.Fields("killer bkiller ckiller dkiller ekiller fkiller gkiller hkiller"), 39, 8},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.killers, " after ", tt.delay, " among ", tt.others), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDeadly(t, tt.work, tt.delay, crowd(tt.others, tt.killers...)...)
				crashes := d.live(12 * time.Hour)
				d.finished(len(tt.killers), tt.others)
				most := 0
				for _, k := range tt.killers {
					most = max(most, d.runs[k])
				}
				if crashes != tt.crashes || most != tt.most {
					t.Errorf("%d crashes, at most %d of one killer, want %d and %d", crashes, most, tt.crashes, tt.most)
				}
				d.close()
			})
		})
	}
}
