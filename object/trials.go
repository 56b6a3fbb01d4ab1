package object

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// trial is a group of suspects that run at the same time.
type trial struct {
	set     int
	members []*suspect
	at      time.Time // not before this
}

// wake has a task advance the trials. The caller holds the mutex.
func (s *suspects) wake() {
	if s.busy || s.closed || s.host.life.enter(false) != nil {
		return
	}
	s.busy = true
	s.host.seams.Executor.Go("suspects", s.advance)
}

// arm has the trials advance at a time. The caller holds the mutex.
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

// advance does what is to be done now.
func (s *suspects) advance() {
	defer s.host.life.leave()
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
			s.host.options.Logger.Error("suspects wait: trial not stored", "error", err)
			return
		}
	}
}

// next returns what to do now, or nil after it has armed the timer for what comes
// later. The caller holds the mutex.
func (s *suspects) next() func() error {
	now := s.host.seams.Clock.Now()
	switch {
	case s.closed:
		return nil
	case len(s.trying) > 0 && now.Before(s.until):
		s.arm(s.until)
		return nil
	case now.Before(s.gather):
		s.arm(s.gather)
		return nil
	}
	for x := range s.trying { // they have run long enough
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
		s.arm(s.queue[0].at)
		return nil
	case len(s.queue) > 0:
		s.stale = true // the stored plan lists groups that are cleared
		return func() error { return s.store(holding) }
	case s.row.phase != noSuspects:
		return func() error { return s.store(noSuspects) }
	}
	return nil
}

// skipEmpty passes over groups whose members have all gone.
func (s *suspects) skipEmpty() {
	for len(s.queue) > 0 && len(s.present(s.queue[0].members)) == 0 {
		s.queue = s.queue[1:]
		s.row.trial++
	}
}

// present is those of members that are still held.
func (s *suspects) present(members []*suspect) []*suspect {
	return slices.DeleteFunc(slices.Clone(members), func(x *suspect) bool { return s.held[x.subject] != x })
}

// form makes the trials of all that are held back: the rest as one group, then the
// smallest sets, each divided. A charged suspect is alone, and waits for the end of
// its control.
func (s *suspects) form() {
	groups := make([]group, 0, len(s.late))
	for _, x := range s.present(s.late) {
		groups = append(groups, group{x.set, []subject{x.subject}})
	}
	for _, g := range merge(groups) {
		size := len(g.members)
		if g.set != restSet {
			size = (size + trialGroups - 1) / trialGroups
		}
		for part := range slices.Chunk(g.members, size) {
			s.queue = append(s.queue, s.trialOf(g.set, part))
		}
	}
	s.late, s.stale = nil, true
}

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

// try begins the next trial, once it is durable which it is.
func (s *suspects) try() error {
	if err := s.store(trying); err != nil {
		return err
	}
	s.mu.Lock()
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

// run starts what was held back.
func (s *suspects) run(members []*suspect) {
	var due []alarm.Entry
	for _, x := range members {
		if x.work == nil {
			due = append(due, x.entry)
			continue
		}
		x.ending.forget()
		s.host.crew.add(x.work)
	}
	for part := range slices.Chunk(due, flightSize) {
		s.host.fly(part, true)
	}
}

// store makes durable what the suspects do from now on.
func (s *suspects) store(p phase) error {
	s.mu.Lock()
	row, stale := s.row, s.stale
	row.phase, row.strays, row.began = p, 0, s.host.seams.Clock.Now()
	var b storage.Batch
	switch {
	case p == noSuspects:
		row.cleared, row.trial = row.epoch-1, 0
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

// groups is the queue as it is stored.
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
