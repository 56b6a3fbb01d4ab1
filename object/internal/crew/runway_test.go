package crew

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

// countedLog is a log in which each alarm that runs has made a commit. When the runway
// waits for a commit, it notes which, and how many alarms had run.
type countedLog struct {
	ran   int
	waits [][2]int
}

func (l *countedLog) Applied() storage.Ticket { return storage.Ticket(l.ran) }

func (*countedLog) Durable(storage.Ticket) bool { return false }

func (l *countedLog) WaitDurable(t storage.Ticket) error {
	l.waits = append(l.waits, [2]int{l.ran, int(t)})
	return nil
}

// newRunway returns a runway of one task, and alarms to put on it.
func newRunway(alarms int, calls int64) (*Runway, *countedLog, *calledTasks, []Runner) {
	e, log := &calledTasks{}, &countedLog{}
	w := NewRunway(New(e), log, func() int64 { return calls })
	rs := make([]Runner, alarms)
	for i := range rs {
		rs[i] = Func(func() { log.ran++ })
	}
	return w, log, e, rs
}

// While a call is under way a sync passes between the portions, and the alarms go
// on for as long as the call lasts. Proves A9.
func TestCallsWaitForAPortionOfAlarmsOnly(t *testing.T) {
	w, log, e, rs := newRunway(100, 1)
	w.Add(rs)
	e.runNext()
	var want [][2]int
	for n := portionSize; n < 100; n += portionSize {
		want = append(want, [2]int{n, n - portionSize})
	}
	if !slices.Equal(log.waits, want) || log.ran != 100 {
		t.Errorf("%d of 100 ran, with waits after so many for the commits of so many: %v, want %v", log.ran, log.waits, want)
	}
}

// Without a call nothing is waited for.
func TestAlarmsWaitForNoSyncWithoutCalls(t *testing.T) {
	w, log, e, rs := newRunway(1000, 0)
	w.Add(rs[:500])
	w.Add(rs[500:])
	e.runNext()
	if len(log.waits) != 0 || log.ran != 1000 {
		t.Errorf("%d of 1000 ran, with %d waits", log.ran, len(log.waits))
	}
	if w.open || len(w.portion) != 0 || !w.waiting.empty() {
		t.Errorf("at rest open is %v, %d alarms are in the portion, %d wait", w.open, len(w.portion), len(w.waiting.runners))
	}
	w.Add(rs[:1]) // the spare of before has yet to look
	e.runNext()
	if log.ran != 1001 {
		t.Error("an alarm that came later did not run")
	}
}

// The crew has at most one portion of alarms in its queue, so a call that begins waits
// for no more.
func TestCrewHoldsOnePortion(t *testing.T) {
	w, log, e, rs := newRunway(200, 0)
	for i := range rs {
		rs[i] = Func(func() {
			if n := len(w.crew.alarms.runners) - w.crew.alarms.head; n > portionSize {
				t.Fatalf("%d alarms lie in the crew's queue", n)
			}
			log.ran++
		})
	}
	w.Add(rs)
	e.runNext()
	if log.ran != 200 {
		t.Errorf("%d of 200 ran", log.ran)
	}
}
