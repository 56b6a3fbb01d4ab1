package object

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

// countedLog is a log in which each alarm that runs has made a commit. It notes
// how many had run when somebody waited for it, and for which commit.
type countedLog struct {
	ran   int
	waits [][2]int
}

func (l *countedLog) Applied() storage.Ticket { return storage.Ticket(l.ran) }

func (l *countedLog) WaitDurable(t storage.Ticket) error {
	l.waits = append(l.waits, [2]int{l.ran, int(t)})
	return nil
}

// newRunway returns a runway of one task, and alarms to put on it.
func newRunway(alarms int) (*runway, *countedLog, *calledTasks, []runner) {
	e, log := &calledTasks{}, &countedLog{}
	w := &runway{crew: &crew{executor: e}, log: log, life: &life{}}
	rs := make([]runner, alarms)
	for i := range rs {
		rs[i] = runFunc(func() { log.ran++ })
	}
	return w, log, e, rs
}

// While a call is under way a sync passes between the portions, and the alarms go
// on for as long as the call lasts. Proves A9.
func TestCallsWaitForAPortionOfAlarmsOnly(t *testing.T) {
	w, log, e, rs := newRunway(100)
	if err := w.life.enterCall(false); err != nil {
		t.Fatal(err)
	}
	w.add(rs)
	e.runNext()
	var want [][2]int
	for n := portionSize; n < 100; n += portionSize {
		want = append(want, [2]int{n, n - portionSize})
	}
	if !slices.Equal(log.waits, want) || log.ran != 100 {
		t.Errorf("%d of 100 ran, with waits after so many for the commits of so many: %v, want %v", log.ran, log.waits, want)
	}
}

// Without a call, and with works and other alarms under way, nothing is waited for.
func TestAlarmsWaitForNoSyncWithoutCalls(t *testing.T) {
	w, log, e, rs := newRunway(1000)
	w.life.begin()
	w.add(rs[:500])
	w.add(rs[500:])
	e.runNext()
	if len(log.waits) != 0 || log.ran != 1000 {
		t.Errorf("%d of 1000 ran, with %d waits", log.ran, len(log.waits))
	}
	if w.open || len(w.portion) != 0 || !w.waiting.empty() {
		t.Errorf("at rest open is %v, %d alarms are in the portion, %d wait", w.open, len(w.portion), len(w.waiting.runners))
	}
	w.add(rs[:1]) // the spare of before has yet to look
	e.runNext()
	if log.ran != 1001 {
		t.Error("an alarm that came later did not run")
	}
}

// What the crew has in its queue of alarms is at most a portion: a call that
// begins waits for no more.
func TestCrewHoldsOnePortion(t *testing.T) {
	w, log, e, rs := newRunway(200)
	for i := range rs {
		rs[i] = runFunc(func() {
			if n := len(w.crew.alarms.runners) - w.crew.alarms.head; n > portionSize {
				t.Fatalf("%d alarms lie in the crew's queue", n)
			}
			log.ran++
		})
	}
	w.add(rs)
	e.runNext()
	if log.ran != 200 {
		t.Errorf("%d of 200 ran", log.ran)
	}
}
