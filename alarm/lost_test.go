package alarm

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// losing is a probe that loses timers while it is set.
type losing struct{ lose bool }

func (*losing) At(seam.Point) {}

func (l *losing) Fault(p seam.Point) bool { return l.lose && p.Name == seam.FaultTimerLost }

// A timer that did not ring keeps alarms waiting only until the scheduler is next
// told of something, or asked to look at the clock.
func TestLostTimer(t *testing.T) {
	for name, recover := range map[string]func(r *rig){
		"another alarm": func(r *rig) { r.set(r.entry(2, time.Hour)) },
		"a recheck":     func(r *rig) { r.s.Recheck() },
	} {
		t.Run(name, func(t *testing.T) {
			probe := &losing{lose: true}
			r := newRig(t, func(c *Config) { c.Seams.Probe = probe })
			r.s.Start()
			r.run()
			r.set(r.entry(1, 10*time.Second))
			r.advance(5 * time.Minute)
			want(t, r.objects())
			probe.lose = false
			recover(r)
			r.run()
			want(t, r.objects(), 1)
		})
	}
}
