package harness

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Faults says which faults may strike a run, beside crashes. The zero Faults is none.
// Exhaust tries each fault at each place where it can strike, Check and Fuzz draw
// some, and Run chooses by its seed about one place in eight, up to the numbers
// given here.
type Faults struct {
	// FailCommit is how many writes or syncs of the store may fail. The store
	// then answers nothing more, the host must end (O13), and its process exits
	// within a second and is started again.
	FailCommit int
	// Slow is the longest time by which a step from a point on (a commit, a sync,
	// an effect, a handler) or a timer may be late. A client waits for a reply
	// for 10 minutes at most.
	Slow time.Duration
	// ClockJump is the farthest that the wall clock may jump, forward and back.
	// Timers run on, and Sim.Now tells the true time.
	ClockJump time.Duration
	// DropWake is how many times the timer of the alarm scheduler may be lost.
	// The next change of an alarm, or a scrubber, must make up for it.
	DropWake int
	// DupAlarm is how many alarms that are due may be delivered twice.
	DupAlarm int
	// LateMessage is how many messages may wait on disk until a reader brings them, as if the
	// host had no room for them.
	LateMessage int
	// DupMessage is how many messages that are due for another attempt may be delivered twice.
	DupMessage int
	// Zombie is how many effects (World.Do) and replies may be let through late: the
	// process dies, and its effect or reply arrives when the next process has begun, at
	// once or a second later.
	Zombie int
	// LostAnswer is how many effects (World.Do, DoOnce) may be done while their caller gets
	// ErrLostAnswer, as if the connection had broken after the request. The process lives
	// on, so the code under test must not take the error for a refusal.
	LostAnswer int
}

// AllowFaults adds faults to all of a run, as Sim.AllowFaults does from its beginning.
func AllowFaults(f Faults) Option { return func(c *Config) { c.faults = f } }

// AllowFaults allows the faults of p from now on, in place of those allowed before,
// until the scenario has ended: while it settles there are none. A jump of the
// clock is then taken back, and the time to settle is longer by the longest of
// its delays. Only the scenario itself may call it.
func (s *Sim) AllowFaults(p Faults) {
	s.onDriver("AllowFaults")
	if p.FailCommit < 0 || p.Slow < 0 || p.ClockJump < 0 || p.DropWake < 0 || p.DupAlarm < 0 || p.LateMessage < 0 || p.DupMessage < 0 || p.Zombie < 0 || p.LostAnswer < 0 {
		s.Fatalf("AllowFaults: %+v has a negative field: zero means none", p)
	}
	s.faults = p
	if s.random != nil {
		s.random.allow(p)
	}
}

// faultKind names a kind of fault, in the text of schedules and in reports.
type faultKind string

const (
	failCommit  faultKind = "failcommit"
	slow        faultKind = "slow"
	clockJump   faultKind = "clockjump"
	dropWake    faultKind = "dropwake"
	dupAlarm    faultKind = "dupalarm"
	lateMessage faultKind = "latemessage"
	dupMessage  faultKind = "dupmessage"
	zombie      faultKind = "zombie"
	lostAnswer  faultKind = "lostanswer"
)

var faultKinds = []faultKind{failCommit, slow, clockJump, dropWake, dupAlarm, lateMessage, dupMessage, zombie, lostAnswer}

// most is how many faults of a kind the schedule allows in a run.
func (p Faults) most(kind faultKind) int {
	const many = 1 << 30
	switch kind {
	case failCommit:
		return p.FailCommit
	case dropWake:
		return p.DropWake
	case dupAlarm:
		return p.DupAlarm
	case lateMessage:
		return p.LateMessage
	case dupMessage:
		return p.DupMessage
	case zombie:
		return p.Zombie
	case lostAnswer:
		return p.LostAnswer
	}
	if p.longest(kind) > 0 {
		return many
	}
	return 0
}

// longest is by how much a fault of the kind may be late, or jump.
func (p Faults) longest(kind faultKind) time.Duration {
	switch kind {
	case slow:
		return p.Slow
	case clockJump:
		return p.ClockJump
	}
	return 0
}

// endsProcess reports whether the process ends with such a fault, so that commits
// may be lost.
func (k faultKind) endsProcess() bool { return k == failCommit || k == zombie }

// fault is a fault at a place.
type fault struct {
	kind faultKind
	at   string        // place.String()
	by   time.Duration // slow, zombie: how late; clockJump: how far, less than zero is back
	keep int           // failCommit, zombie: commits that survive the end of the process
}

// zombieLate is the delay of an effect or reply of a zombie, from the begin of the next
// process, unless it arrives at once.
const zombieLate = time.Second

// Places of faults that are no points.
const (
	atApply     = "disk/apply"
	atSync      = "disk/sync"
	atTimer     = "timer"
	atLateReply = "ack/late"
	atLateDone  = "effect/late"
	atAnswer    = "effect/answer"
)

// chance is a place at which a fault could have struck.
type chance struct {
	kind     faultKind
	at       place
	before   int // hits passed before it
	unsynced int // commits that the end of the process could lose
	longest  time.Duration
}

// lateAt are the points at which a step may be slow or the clock jump: all but
// those of the harness's own that come after the fact.
func lateAt(name string) bool { return name != AckAfter }

// strikes reports whether a fault of the kind strikes at a point that is none of
// the timeline.
func (s *Sim) strikes(kind faultKind, name, object string) (fault, bool) {
	if s.settling || s.faults.most(kind) == 0 {
		return fault{}, false
	}
	at := seam.Point{Name: name, Object: object}
	if s.chanceCounts == nil {
		s.chanceCounts = make(map[seam.Point]int)
	}
	s.chanceCounts[at]++
	return s.strikesAt(kind, place{at, s.chanceCounts[at]})
}

// strikesAt reports whether a fault of the kind strikes at a place, and notes it.
func (s *Sim) strikesAt(kind faultKind, at place) (fault, bool) {
	if s.settling || s.faults.most(kind) == 0 {
		return fault{}, false
	}
	c := chance{kind, at, len(s.timeline.hits), s.disk.unsynced(), s.faults.longest(kind)}
	s.timeline.chances = append(s.timeline.chances, c)
	f, ok := s.chosen(c)
	if !ok {
		return fault{}, false
	}
	if s.struck == nil {
		s.struck = make(map[faultKind]int)
	}
	s.struck[kind]++
	s.timeline.note(s.elapsed(), "FAULT: "+f.String())
	return f, true
}

// chosen is the fault that strikes at a chance: the one in the schedule of the run, or
// one that is drawn for it.
func (s *Sim) chosen(c chance) (f fault, ok bool) {
	if s.random == nil {
		if s.came == nil {
			s.came = make([]bool, len(s.schedule.faults))
		}
		for i, f := range s.schedule.faults {
			if f.kind == c.kind && c.at.named(f.at) {
				s.struckAt = append(s.struckAt, c.before)
				s.came[i] = true
				return f, true
			}
		}
		return f, false
	}
	if s.struck[c.kind] >= s.faults.most(c.kind) {
		return f, false
	}
	if f, ok = s.random.fault(c.kind); ok {
		f.at = c.at.String()
		s.schedule.faults = append(s.schedule.faults, f)
	}
	return f, ok
}

// missing is the first fault of the schedule that has not struck, if there is one.
func (s *Sim) missing() (fault, bool) {
	for i, f := range s.schedule.faults {
		if s.random == nil && (s.came == nil || !s.came[i]) {
			return f, true
		}
	}
	return fault{}, false
}

// variants are the faults to try at a chance.
func (c chance) variants(seed uint64) []fault {
	f := fault{kind: c.kind, at: c.at.String(), by: c.longest}
	switch c.kind {
	case clockJump:
		back := f
		back.by = -f.by
		return []fault{f, back}
	case failCommit:
		if c.unsynced > 0 {
			all := f
			all.keep = c.unsynced
			return []fault{f, all}
		}
	case zombie:
		if c.unsynced > 0 {
			f.keep = int(hash(seed, f.at) % uint64(c.unsynced+1))
		}
		later := f
		later.by = zombieLate
		return []fault{f, later}
	}
	return []fault{f}
}

// errDisk is the error of a write of the store that fails on purpose.
var errDisk = errors.New("harness: the disk fails on purpose")

// String is the fault as a part of a schedule.
func (f fault) String() string {
	text := fmt.Sprintf("%s=%s", f.kind, escape(f.at))
	if f.by != 0 {
		text += ",by=" + f.by.String()
	}
	if f.kind.endsProcess() {
		text += ",keep=" + keepText(f.keep)
	}
	return text
}
