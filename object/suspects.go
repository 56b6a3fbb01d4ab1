package object

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// suspects finds the work that kills its process (A8, R4). One crash makes no
// suspect: what it cut off runs again at once. A subject that was cut off by two
// crashes in a row is held back at first, and then tried in a group of suspects,
// one group after another, while the others wait. If the process dies during a
// trial, the next process divides the group, until one suspect runs alone. A crash
// then is charged to it. See inquiry.judge for what each crash tells.
//
// It is idle, and costs a load of an atomic, unless processes have died in a row.
type suspects struct {
	host *Host
	some atomic.Bool // a subject may be a suspect

	// Set by Open, constant after it.
	found   inquiry          // what follows from the end of the process before
	gather  time.Time        // suspects come together until then
	control time.Time        // a charged suspect is held back until then
	window  time.Duration    // a trial lasts no longer
	fresh   []subject        // alarms that the last crash has made suspects
	tried   map[subject]bool // on trial when the process before died

	mu     sync.Mutex
	sets   map[subject]int      // of the suspects known at Open, until they are cleared
	held   map[subject]*suspect // held back
	late   []*suspect           // of these, those in no trial yet
	queue  []trial              // that are to come; a member that is not held has gone
	trying map[subject]bool     // on trial
	row    inquiry              // as it is stored, without its plan
	stale  bool                 // the stored plan is not that of queue
	until  time.Time            // the end of the trial under way
	timer  seam.Timer
	busy   bool // a task advances the trials
	closed bool
}

// suspect is a subject that is held back: an alarm or a work.
type suspect struct {
	subject
	set    int
	entry  alarm.Entry // of an alarm
	work   *Work       // of an execution, else nil
	ending ending      // of the work's activation
}

const (
	// holdBase is how long suspects are held back after Open. A crash in that time
	// is not theirs.
	holdBase = 3 * time.Second
	// trialGroups is into how many groups a set is divided.
	trialGroups = 16
	// A trial lasts twice as long as the one before had lasted when the process
	// died, within these limits.
	windowMin, windowMax = 10 * time.Second, 10 * time.Minute
	// A charged suspect is held back for twice the life of the process that died,
	// but at least for holdBase, and no longer than this.
	controlMax = time.Hour
)

// begin takes up what an earlier process has left, before any alarm fires.
func (s *suspects) begin(h *Host, q inquiry) {
	crash, opened := h.store.Previous(), h.store.OpenedAt()
	s.host, s.found = h, q.judge(crash)
	life := opened.Sub(crash.OpenedAt) // less than zero if the clock was put back
	lasted := life
	s.tried = make(map[subject]bool)
	if q.phase == trying && len(s.found.plan) > 0 {
		lasted = opened.Sub(q.began)
		for _, m := range q.plan[q.trial].members {
			s.tried[m] = true
		}
	}
	s.gather = opened.Add(holdBase)
	s.control = opened.Add(min(max(2*life, holdBase), controlMax))
	s.window = min(max(2*lasted, windowMin), windowMax)
	s.sets, s.held = make(map[subject]int), make(map[subject]*suspect)
	for _, g := range s.found.plan {
		for _, m := range g.members {
			s.sets[m] = g.set
		}
	}
	s.row = inquiry{epoch: h.Epoch(), cleared: s.found.cleared, strays: s.found.strays}
	if len(s.sets) > 0 || !crash.Clean && crash.Crashes >= cutsOfSuspect {
		s.row.phase = holding
		s.some.Store(true)
	}
}

// record stores with b what Open has found.
func (s *suspects) record(b *storage.Batch) error {
	_, stored, err := s.host.store.Meta(inquiryRow)
	switch {
	case s.row.phase != noSuspects:
		known := s.found
		if len(s.fresh) > 0 {
			known.plan = append(slices.Clone(known.plan), group{freshSet, s.fresh})
		}
		b.SetMeta(inquiryRow, s.row.appendHead(nil))
		b.SetMeta(planRow, known.appendPlan(nil))
	case stored && s.host.store.Previous().Clean:
		b.DeleteMeta(inquiryRow)
		b.DeleteMeta(planRow)
	}
	return err
}

// start has the trials begin in time, and tells of the charges.
func (s *suspects) start() {
	for x, n := range s.found.charges {
		s.tell(x, "charged", n)
	}
	if s.some.Load() {
		s.mu.Lock()
		s.arm(s.gather)
		s.mu.Unlock()
	}
}

// suspectAlarm notes that the last crash was one too many for an alarm.
func (s *suspects) suspectAlarm(x subject) {
	if _, listed := s.sets[x]; !listed {
		s.sets[x] = freshSet
		s.fresh = append(s.fresh, x)
	}
}

// charged returns how many crashes a subject is charged with.
func (s *suspects) charged(x subject) int {
	if !s.some.Load() {
		return 0
	}
	return s.found.charges[x]
}

// setOf returns the set of a suspect. cuts crashes have cut it off in a row, the
// last one that of opening epoch.
func (s *suspects) setOf(x subject, cuts int, epoch uint64) (set int, suspected bool) {
	if !s.some.Load() {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, listed := s.sets[x]; listed {
		return set, true
	}
	return freshSet, s.found.suspected(cuts, epoch)
}

// hold holds x back until its trial. It reports false if there is no need, because
// its subject is on trial now.
func (s *suspects) hold(x *suspect) bool {
	s.mu.Lock()
	before, trying, closed := s.held[x.subject], s.trying[x.subject], s.closed
	if !closed && !trying {
		s.held[x.subject] = x
		s.late = append(s.late, x)
		s.wake()
	}
	s.mu.Unlock()
	switch {
	case closed:
		x.drop()
	case before != nil: // of an activation that has ended, or delivered twice
		before.drop()
	case !trying:
		s.tell(x.subject, "held back", s.found.charges[x.subject])
	}
	return closed || !trying
}

// remove takes x back, and reports whether it was held.
func (s *suspects) remove(x *suspect) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[x.subject] != x {
		return false
	}
	delete(s.held, x.subject)
	return true
}

// ended clears a subject that was on trial and has ended.
func (s *suspects) ended(x subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sets, x)
	if s.trying[x] {
		delete(s.trying, x)
		if len(s.trying) == 0 {
			s.wake()
		}
	}
}

// close ends all trials. Works that are held back never begin; the next process
// runs them, at no cost.
func (s *suspects) close() {
	s.mu.Lock()
	held := s.held
	s.closed, s.held, s.late, s.queue = true, nil, nil, nil
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	for _, x := range held {
		x.drop()
	}
}

// drop gives up a work that has not begun.
func (x *suspect) drop() {
	if x.work != nil {
		x.ending.forget()
		x.work.over()
	}
}

// tell adds a line to the recovery report.
func (s *suspects) tell(x subject, action string, charges int) {
	h := s.host
	h.report.add(Recovery{ID: x.id, At: h.seams.Clock.Now(), Cause: "crashes in a row", Attempt: charges, Action: action})
	h.options.Logger.Warn("work that may kill its process", "class", x.id.Class, "object", x.id.Name, "execution", x.key, "action", action, "charges", charges)
}
