package why

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// young is the age up to which a turn, a call that waits and a sync are no reason yet.
const young = 100 * time.Millisecond

// recent is how long a refused call is a reason.
const recent = time.Minute

// objectRules are about the object and its turns.
var objectRules = []rule{
	{code: Unreadable, means: "rows of the object are damaged, so no reason can be read from them", do: []string{"restore a backup of the store"},
		holds: func(f *facts) (Answer, bool) {
			if f.damage == nil {
				return Answer{}, false
			}
			return Answer{Text: "Its rows cannot be read.", Error: f.damage.Error()}, true
		}},
	{code: Parked, live: true, means: "the program does not define the class, so its objects rest", do: []string{"deploy a program that defines the class"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: "The program does not define this class."}, f.store.parked && f.exists
		}},
	{code: Absent, means: "there is no such object, job or task", do: []string{"start it, or look at its events and dead letters"},
		holds: absent},
	{code: ConstructorFailing, live: true, means: "the constructor fails, so each call is refused", do: []string{"mend the cause", "wake it"},
		holds: func(f *facts) (Answer, bool) {
			if f.live == nil || f.live.Constructor == nil {
				return Answer{}, false
			}
			c := f.live.Constructor
			return Answer{Text: fmt.Sprintf("Its constructor has failed %d times in a row.", c.Times), Error: c.Error, Until: c.Next}, true
		}},
	{code: DeadlockRefused, live: true, means: "a call of its turn would have closed a circle of waiting turns", do: []string{"change the circle of calls"},
		holds: func(f *facts) (Answer, bool) {
			if f.live == nil || f.live.Deadlock == nil || f.now.Sub(f.live.Deadlock.At) >= recent {
				return Answer{}, false
			}
			d := f.live.Deadlock
			return Answer{Text: "A call of its turn was refused, because it would have closed a circle.", Error: d.Error, Since: d.At, Name: d.To.String()}, true
		}},
	{code: TurnRunning, live: true, means: "a turn has held the object for 100 ms or longer", do: []string{"wait", "look at the stack in the log, if it has held it for long"},
		holds: func(f *facts) (Answer, bool) {
			if !f.turnHeld() || len(f.live.Turn.WaitsFor) > 0 {
				return Answer{}, false
			}
			return Answer{Text: "A turn holds the object.", Name: f.live.Turn.Method, Since: f.live.Turn.Since}, true
		}},
	{code: TurnWaits, live: true, means: "the turn that holds the object waits for another object", do: []string{"ask for the reason of the other object"},
		holds: func(f *facts) (Answer, bool) {
			if !f.turnHeld() || len(f.live.Turn.WaitsFor) == 0 {
				return Answer{}, false
			}
			return Answer{Text: "The turn that holds the object waits for another.", Name: f.live.Turn.WaitsFor[0].String(), Since: f.live.Turn.Since, Because: f.other.linked()}, true
		}},
	{code: TurnLent, live: true, means: "a turn has lent the object out, by Release or Await", do: []string{"wait"},
		holds: func(f *facts) (Answer, bool) {
			if f.live == nil || len(f.live.Lent) == 0 || f.now.Sub(f.live.Lent[0].Since) < young {
				return Answer{}, false
			}
			l := f.live.Lent[0]
			return Answer{Text: fmt.Sprintf("Turns that have lent the object out: %d.", f.live.LentTurns), Name: l.Method, Since: l.Since}, true
		}},
	{code: Mailbox, live: true, means: "calls wait for the object", do: []string{"split the object", "raise MailboxLimit, if calls are refused"},
		holds: func(f *facts) (Answer, bool) {
			if f.live == nil {
				return Answer{}, false
			}
			m := f.live.Mailbox
			text := fmt.Sprintf("%d calls wait for it.", m.Calls)
			if m.Refusing {
				text = fmt.Sprintf("%d calls wait for it, and more are refused.", m.Calls)
			}
			return Answer{Text: text, Since: m.Oldest}, m.Refusing || m.Calls > 0 && f.now.Sub(m.Oldest) >= young
		}},
	{code: NotDurable, live: true, means: "a commit is applied, and the disk has not made it durable yet", do: []string{"look at the disk"},
		holds: func(f *facts) (Answer, bool) {
			ok := f.live != nil && f.live.NotDurable && !f.live.Syncing.IsZero() && f.now.Sub(f.live.Syncing) >= young
			if !ok {
				return Answer{}, false
			}
			return Answer{Text: "A commit of it waits for the disk.", Since: f.live.Syncing}, true
		}},
}

// turnHeld reports whether a turn has held the object for long enough to be a reason.
func (f *facts) turnHeld() bool {
	return f.live != nil && f.live.Turn != nil && !f.live.Turn.Since.IsZero() && f.now.Sub(f.live.Turn.Since) >= young
}

// waitsForObject is the object for which the turn waits.
func (f *facts) waitsForObject() (id storage.ID, ok bool) {
	if !f.turnHeld() || len(f.live.Turn.WaitsFor) == 0 {
		return id, false
	}
	return f.live.Turn.WaitsFor[0], true
}

// absent tells of something that is not there.
func absent(f *facts) (Answer, bool) {
	switch {
	case f.exists:
		return Answer{}, false
	case f.kind == aTask:
		return Answer{Text: "There is no such task, or none any more."}, true
	}
	text := "There is no such object."
	if f.kind == aJob {
		text = "There is no such job."
	}
	if f.letters > 0 {
		text += fmt.Sprintf(" It has left %d dead letters.", f.letters)
	}
	return Answer{Text: text, Name: f.lastEvent.Kind, Since: f.lastEvent.At}, true
}
