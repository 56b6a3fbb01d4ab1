package machine_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
)

// A timer of AtFunc rings when the wall clock shows its time. After a jump beyond that it
// rings at the next look of its owner, as a timer of production would, and never before
// its time. Proves A9.
func TestTimersFollowTheWallClock(t *testing.T) {
	const look = time.Minute
	hour := machine.Epoch.Add(time.Hour)
	for name, c := range map[string]struct {
		after, jump time.Duration // the clock jumps by jump after so long
		then, back  time.Duration // and by back, then after that
		want        time.Duration // of Now, when the timer rings
	}{
		"no jump":                        {want: time.Hour},
		"ahead, not beyond":              {after: 90 * time.Second, jump: 30 * time.Minute, want: 30 * time.Minute},
		"ahead, to 1 ns before":          {after: 90 * time.Second, jump: time.Hour - 90*time.Second - 1, want: 90*time.Second + 1},
		"ahead, to its time":             {after: 90 * time.Second, jump: time.Hour - 90*time.Second, want: 2 * time.Minute},
		"ahead, far beyond":              {after: 90 * time.Second, jump: 24 * time.Hour, want: 2 * time.Minute},
		"ahead at a look":                {after: 2 * time.Minute, jump: 24 * time.Hour, want: 3 * time.Minute},
		"ahead at once":                  {jump: 24 * time.Hour, want: time.Minute},
		"ahead in the last minute":       {after: time.Hour - 10*time.Second, jump: 20 * time.Second, want: time.Hour},
		"back":                           {after: 90 * time.Second, jump: -time.Hour, want: 2 * time.Hour},
		"ahead and back before the look": {after: 90 * time.Second, jump: 24 * time.Hour, then: 10 * time.Second, back: -24 * time.Hour, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := start(t, machine.Config{})
			rang := time.Duration(-1)
			p.AtFunc(hour, look, func() { rang = m.Now().Sub(machine.Epoch) })
			stopped := p.AtFunc(hour, look, func() { t.Error("a stopped timer has rung") })
			plain := time.Duration(-1)
			p.AfterFunc(time.Hour, func() { plain = m.Now().Sub(machine.Epoch) })
			m.Drive(m.Now().Add(c.after), nil)
			m.Skew(c.jump)
			if !stopped.Stop() {
				t.Error("Stop came too late")
			}
			m.Drive(m.Now().Add(c.then), nil)
			m.Skew(c.back)
			m.Drive(m.Now().Add(3*time.Hour), nil)
			if rang != c.want || plain != time.Hour {
				t.Errorf("rang after %v, want %v; a timer of AfterFunc after %v, want 1h", rang, c.want, plain)
			}
		})
	}
}

// A timer of AtFunc that a fault makes late rings once, when it is to.
func TestLateTimerFollowsNoClock(t *testing.T) {
	m, p := start(t, machine.Config{OnTimer: func(*machine.Process) time.Duration { return time.Minute }})
	var rang []time.Duration
	p.AtFunc(machine.Epoch.Add(time.Hour), time.Minute, func() { rang = append(rang, m.Now().Sub(machine.Epoch)) })
	m.Drive(machine.Epoch.Add(time.Hour), nil)
	m.Skew(-time.Hour)
	m.Drive(machine.Epoch.Add(5*time.Hour), nil)
	if len(rang) != 1 || rang[0] != time.Hour+time.Minute {
		t.Errorf("rang after %v, want once after 1h1m", rang)
	}
}
