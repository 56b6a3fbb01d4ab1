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

// deadly is objects whose alarms are due at once: those with "killer" in their name
// kill the process after they have run for delay, the others end after work.
type deadly struct {
	*fixture
	work, delay time.Duration

	mu      sync.Mutex
	life    chan struct{} // closed when the process dies
	runs    map[string]int
	done    map[string]int
	running int // in this life
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
	d.runs[name]++
	d.running++
	d.mu.Unlock()
	kills := strings.Contains(name, "killer")
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

// die crashes the process and opens the next.
func (d *deadly) die() {
	survives := d.mem.Crash(0)
	d.mu.Lock()
	close(d.life)
	d.life, d.running = make(chan struct{}), 0
	d.mu.Unlock()
	_ = d.host.Shutdown(ended()) // as a killed process: what it says counts for nothing
	d.mem = survives
	for len(d.kill) > 0 {
		<-d.kill
	}
	d.open()
}

// live lets d of time pass, with a crash each time that a killer asks for it, and
// returns how many came.
func (d *deadly) live(limit time.Duration) (crashes int) {
	end := time.After(limit)
	for {
		select {
		case <-d.kill:
			crashes++
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
	letters, err := d.host.DeadLetters(context.Background())
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

// Proves A8. Case SU2: whatever the rhythm of crashes that have their cause outside,
// no alarm is given up, and all are done soon after the last.
func TestCrashesFromOutsideGiveUpNothing(t *testing.T) {
	rhythms := map[string]func(*rand.Rand) time.Duration{
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

// Proves A8, R7. Case SU3: an alarm that kills its process each time is stopped after
// at most 8 crashes, whenever it kills, and none of those beside it is stopped.
func TestKillerIsFoundAmongMany(t *testing.T) {
	tests := []struct {
		others      int
		work, delay time.Duration
		killers     []string
	}{
		{0, 0, 0, []string{"killer"}},
		{7, 10 * time.Second, 0, []string{"killer"}},
		{200, 10 * time.Second, 0, []string{"killer"}},
		{200, 10 * time.Second, 5 * time.Second, []string{"zkiller"}},
		{200, 10 * time.Minute, time.Minute, []string{"killer"}},
		{2000, time.Second, 0, []string{"killer"}},
		{200, 10 * time.Second, 0, []string{"killer", "zkiller"}},
		{200, 10 * time.Second, 30 * time.Second, []string{"killer", "zkiller"}},
		{0, 0, time.Second, []string{"killer", "zkiller"}},
		{30, 10 * time.Second, 0, []string{"killer", "mkiller", "zkiller"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.killers, " after ", tt.delay, " among ", tt.others), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDeadly(t, tt.work, tt.delay, crowd(tt.others, tt.killers...)...)
				crashes := d.live(12 * time.Hour)
				d.finished(len(tt.killers), tt.others)
				for _, k := range tt.killers {
					if n := d.runs[k]; n > 8 || n < 4 {
						t.Errorf("%s has run %d times, with %d crashes in all, want 4 to 8", k, n, crashes)
					}
				}
				d.close()
			})
		})
	}
}
