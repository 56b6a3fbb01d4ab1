package workflow

import (
	"testing"

	"github.com/holdfast-dev/holdfast/seam"
)

// Proves J10. A task that rests ends the stretch also if the pause was taken back after rest had set it and
// before the task was parked: no timer would wake it. A task that waits for a moment goes on.
func TestRestsThoughThePauseWasTakenBack(t *testing.T) {
	seams := seam.Seams{}.WithDefaults()
	began := seams.Clock.Now().Round(0)
	for want, w := range map[outcomeKind]*waiter{
		suspended: {ready: make(chan struct{}), rests: true},
		running:   {ready: make(chan struct{}), until: began.Add(linger)},
	} {
		s := &stretch{dry: true, seams: &seams, live: 1, tasks: 1, ended: make(chan struct{})}
		s.hold = true
		s.goOn()
		s.mu.Lock()
		s.waiters, s.live = []*waiter{w}, 0
		s.consider()
		s.mu.Unlock()
		if s.outcome.kind != want || want == suspended && s.outcome.wake.Before(began) {
			t.Errorf("the stretch has the outcome %d with wake %s, want %d", s.outcome.kind, s.outcome.wake, want)
		}
	}
}
