package object

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// trial is a group of suspects that run at the same time. Its members are held until the
// trial begins; one that is not in suspects.held any more was cancelled or replaced.
type trial struct {
	set     int
	members []*suspect
	at      time.Time // the trial begins at this time or later; zero: at any time
}

// The life of suspects in one process:
//
//  1. Open: begin reads the rows of the last process, and start arms the timer for gather.
//  2. Due alarms and recovered routines that are suspects come to hold, and wait.
//  3. At gather the first advance forms the trials of all that wait (form).
//  4. For each trial: store durably which group is on trial (store), then run its members
//     (try), and wait until all have ended or the window is over (next).
//  5. Suspects that have come meanwhile are formed into further trials.
//  6. When none is left, store that there are no suspects.
//
// One goroutine at a time runs these steps, see busy.

// wake starts a goroutine that advances the trials, unless one runs or the host is
// closing. The caller holds the mutex.
func (s *suspects) wake() {
	if s.busy || s.closed || s.host.lifecycle.enter(false) != nil {
		return
	}
	s.busy = true
	s.host.seams.Executor.Go("suspects", s.advance)
}

// arm sets the one timer to advance the trials at a time, in place of an earlier setting.
// The caller holds the mutex.
func (s *suspects) arm(at time.Time) {
	if s.timer != nil {
		s.timer.Stop()
	}
	clock := s.host.seams.Clock
	s.timer = clock.AfterFunc(at.Sub(clock.Now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake()
	})
}

// advance does one step after another, until the next one is not due. It does them
// without the mutex, because a step waits for the disk. If a step fails, for example on a
// full disk, it is tried again after a second; the suspects stay held until then.
func (s *suspects) advance() {
	defer s.host.lifecycle.leave()
	for {
		s.mu.Lock()
		do := s.next()
		s.busy = do != nil
		s.mu.Unlock()
		if do == nil {
			return
		}
		if err := do(); err != nil {
			s.mu.Lock()
			s.busy = false
			s.arm(s.host.seams.Clock.Now().Add(time.Second))
			s.mu.Unlock()
			s.host.options.Logger.Error("suspects wait: the group to try next was not stored", "error", err)
			return
		}
	}
}

// next returns the step that is due now, or nil. If a later step is known, it has armed
// the timer for it; otherwise hold or ended wakes the trials. Members of a trial that is
// over, because its window has passed, are cleared. The caller holds the mutex.
func (s *suspects) next() func() error {
	now := s.host.seams.Clock.Now()
	switch {
	case s.closed:
		return nil
	case len(s.trying) > 0 && now.Before(s.until): // the trial goes on
		s.arm(s.until)
		return nil
	case now.Before(s.gather): // recovery and due alarms still bring suspects
		s.arm(s.gather)
		return nil
	}
	for x := range s.trying { // still running after the window: cleared all the same
		delete(s.sets, x)
	}
	s.trying = nil
	s.skipEmpty()
	if len(s.queue) == 0 && len(s.late) > 0 {
		s.form()
	}
	switch {
	case len(s.queue) > 0 && !s.queue[0].at.After(now):
		return s.try
	case len(s.queue) > 0 && s.row.phase == holding:
		// A charged suspect waits for the end of its control time.
		s.arm(s.queue[0].at)
		return nil
	case len(s.queue) > 0:
		// The same, but the store still has the phase of the trial before: a crash from
		// now on must be judged as one with all suspects held back.
		s.stale = true // the stored plan lists groups that are cleared
		return func() error { return s.store(holding) }
	case s.row.phase != noSuspects:
		// All are cleared. The next process must not take up the plan.
		return func() error { return s.store(noSuspects) }
	}
	return nil
}

// skipEmpty drops the trials at the front of the queue that have no member left. The
// stored plan still lists them, so the index of the trial grows with each. The caller
// holds the mutex.
func (s *suspects) skipEmpty() {
	for len(s.queue) > 0 && len(s.present(s.queue[0].members)) == 0 {
		s.queue = s.queue[1:]
		s.row.trial++
	}
}

// present returns those of members that are still held. The caller holds the mutex.
func (s *suspects) present(members []*suspect) []*suspect {
	return slices.DeleteFunc(slices.Clone(members), func(x *suspect) bool { return s.held[x.subject] != x })
}

// form makes the trials of all suspects that are held back: the rest as one group, then
// the smallest sets, each divided into up to trialGroups parts. Sets of one size keep the
// order of the plan, however late their members came, because a crash of another set
// forgets the charges of a suspect. A charged suspect is alone in its set, and its trial
// waits for the end of the control time. The caller holds the mutex.
func (s *suspects) form() {
	groups := make([]group, 0, len(s.late))
	for _, x := range s.present(s.late) {
		groups = append(groups, group{x.set, []subject{x.subject}})
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(place(a.set), place(b.set)) })
	for _, g := range merge(groups) {
		size := len(g.members)
		if g.set != restSet {
			size = (size + trialGroups - 1) / trialGroups
		}
		for part := range slices.Chunk(g.members, size) {
			s.queue = append(s.queue, s.trialOf(g.set, part))
		}
	}
	s.late, s.stale, s.formed = nil, true, true
}

// trialOf makes the trial of a part of a set. The caller holds the mutex.
func (s *suspects) trialOf(set int, part []subject) trial {
	t := trial{set: set}
	for _, m := range part {
		t.members = append(t.members, s.held[m])
	}
	if s.found.charges[part[0]] > 0 {
		t.at = s.control
	}
	return t
}

// try begins the next trial. First it stores which group is on trial, durably, because
// the next process must know that if this one dies. Only advance calls it, so the queue
// has the same first trial before and after the commit, unless close has emptied it.
func (s *suspects) try() error {
	if err := s.store(trying); err != nil {
		return err
	}
	s.mu.Lock()
	// The host may have been closed, and members may have gone, during the commit.
	if s.closed || len(s.queue) == 0 {
		s.mu.Unlock()
		return nil
	}
	members := s.present(s.queue[0].members)
	s.queue = s.queue[1:]
	s.row.trial++
	s.trying = make(map[subject]bool)
	for _, x := range members {
		s.trying[x.subject] = true
		delete(s.held, x.subject)
	}
	s.until = s.row.began.Add(s.window)
	s.mu.Unlock()
	if len(members) == 1 {
		s.tell(members[0].subject, "tried alone", s.found.charges[members[0].subject])
	}
	s.run(members)
	return nil
}

// run starts the members of a trial: routines on the crew, alarms and messages as flights. The caller has
// removed them from held and does not hold the mutex.
func (s *suspects) run(members []*suspect) {
	var due []alarm.Entry
	var messages []*message
	for _, x := range members {
		switch {
		case x.message != nil:
			messages = append(messages, x.message)
		case x.routine == nil:
			due = append(due, x.entry)
		default:
			x.canceller.forget()
			s.host.crew.Add((*startedRoutine)(x.routine))
		}
	}
	s.host.mail.try(messages)
	// The scheduler has let go of these alarms when they were held back.
	for part := range slices.Chunk(due, flightSize) {
		s.host.fly(part, true)
	}
}

// store makes the phase of the suspects durable, with the plan if it has changed. The
// caller does not hold the mutex. The copy of the row in memory changes after the commit
// is durable, so that a failed step can be repeated.
func (s *suspects) store(p phase) error {
	s.mu.Lock()
	row, stale := s.row, s.stale
	row.phase, row.strays, row.began = p, 0, s.host.seams.Clock.Now()
	var b storage.Batch
	switch {
	case p == noSuspects:
		// If suspects were tried, the crashes of all earlier processes count no more. One of
		// this process would. Without a suspect they still count, because a killer that this
		// process has not yet got to may be cut off by them and by the next one.
		if row.trial = 0; s.formed {
			row.cleared = row.epoch - 1
		}
		b.DeleteMeta(planRow)
	case stale:
		row.trial = 0
		plan := inquiry{plan: s.groups(), charges: s.found.charges}
		b.SetMeta(planRow, plan.appendPlan(nil))
	}
	b.SetMeta(inquiryRow, row.appendHead(nil))
	s.mu.Unlock()
	t, err := s.host.store.Commit(&b)
	if err == nil {
		err = s.host.store.WaitDurable(t)
	}
	if err == nil {
		s.mu.Lock()
		s.row, s.stale = row, false
		s.mu.Unlock()
	}
	return err
}

// groups returns the queue as the plan of an inquiry. The caller holds the mutex.
func (s *suspects) groups() []group {
	var plan []group
	for _, t := range s.queue {
		g := group{set: t.set}
		for _, x := range t.members {
			g.members = append(g.members, x.subject)
		}
		plan = append(plan, g)
	}
	return plan
}
