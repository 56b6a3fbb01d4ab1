package alarm

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// following is a world with timers that follow its wall clock.
type following struct{ *world }

func (w following) AtFunc(at time.Time, _ time.Duration, f func()) seam.Timer {
	return w.AfterFunc(at.Sub(w.Now()), f)
}

// While the timers follow the wall clock, an alarm a year ahead is waited for with one timer,
// and fires at its time. With another clock the scheduler looks once a minute.
//
// Proves A9.
func TestOneTimerWithAClockThatFollows(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for follows, timers := range map[bool]int{true: 1, false: int(year / time.Minute)} {
		r := newRig(t, nil)
		if follows {
			r.s.cfg.Seams.Clock = following{r.world}
		}
		r.s.Start()
		r.set(r.entry(1, year))
		r.advance(year - 1)
		if len(r.got) > 0 || r.armed != timers {
			t.Errorf("the timers follow the clock: %t: %d fired too early, %d timers were set, want %d", follows, len(r.got), r.armed, timers)
		}
		r.advance(1)
		if len(r.got) != 1 {
			t.Errorf("the timers follow the clock: %t: %d fired at the time", follows, len(r.got))
		}
	}
}
