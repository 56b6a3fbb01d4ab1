package object

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// suspects finds the work that kills its process (A8, R4). One crash makes no
// suspect: the work that it cut off runs again at once. A subject that was cut off by two
// crashes in a row is held back at first, and then tried in a group of suspects,
// one group after another, while the others wait. If the process dies during a
// trial, the next process divides the group, until one suspect runs alone. A crash
// then is charged to it. See inquiry.judge for the conclusion from each crash.
//
// For example, 40 subjects were running in two crashes in a row. The third process holds
// all of them back for 3 s, and then runs them in 14 groups of up to 3, one group after
// another. It dies during the fifth trial. The fourth process runs the 25 of the groups
// after that one together, then the 3 of that group one by one, and dies with the second
// of them. The fifth process charges one crash to that one.
//
// It is idle, and costs a load of an atomic, unless processes have died in a row.
type suspects struct {
	host *Host
	some atomic.Bool // a subject may be a suspect

	// Set by Open, constant after it; so they need no mutex.
	found   inquiry          // the conclusion from the end of the process before
	gather  time.Time        // no trial begins before this, so that all suspects come first
	control time.Time        // a charged suspect is held back until this time
	window  time.Duration    // a trial lasts no longer
	fresh   []subject        // alarms that the last crash has made suspects
	tried   map[subject]bool // on trial when the process before died

	// mu guards the fields below. It is not held during a commit or a wait.
	mu     sync.Mutex
	sets   map[subject]int      // the set of each suspect known at Open, until it is cleared
	held   map[subject]*suspect // held back
	late   []*suspect           // those of held that are in no trial yet
	queue  []trial              // trials to come; a member that is not in held has gone
	trying map[subject]bool     // on trial
	row    inquiry              // as it is stored, without its plan
	formed bool                 // a trial was formed in this process
	stale  bool                 // the stored plan differs from queue
	until  time.Time            // the end of the trial under way
	timer  seam.Timer           // for the next step; nil: none was armed
	busy   bool                 // a goroutine runs advance
	closed bool                 // the host is closing: nothing is held or tried any more
}

// suspect is a subject that is held back: an alarm, a message or a routine.
type suspect struct {
	subject
	set       int         // see group
	entry     alarm.Entry // of an alarm
	message   *message    // nil for others
	routine   *Routine    // of an execution, else nil
	canceller canceller   // gives the routine up when its instance goes
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

// begin takes up the rows q that an earlier process has left, and computes the times of
// this process from the life of the one before. Open calls it before any alarm fires and
// any work starts, so it needs no mutex.
func (s *suspects) begin(h *Host, q inquiry) {
	crash, opened := h.store.Previous(), h.store.OpenedAt()
	s.host, s.found = h, q.judge(crash, h.store.OwnerLost())
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
	if len(s.sets) > 0 || !crash.Clean && !h.store.OwnerLost() && crash.Crashes >= cutsOfSuspect {
		s.row.phase = holding
		s.some.Store(true)
	}
}

// record writes the suspects that Open has found to b, which flightLog.open commits. If
// there are none, and the process before ended in order, it deletes the rows.
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

// start reports the charged suspects and arms the timer for the first trial. Open calls
// it, after recovery and before alarms fire.
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

// suspectAlarm notes that the last crash made an alarm a suspect. Only flightLog.open
// calls it, before any alarm or work runs, so it needs no mutex.
func (s *suspects) suspectAlarm(x subject) {
	if _, listed := s.sets[x]; !listed {
		s.sets[x] = freshSet
		s.fresh = append(s.fresh, x)
	}
}

// charged returns how many crashes a subject is charged with. Any goroutine may call it.
func (s *suspects) charged(x subject) int {
	if !s.some.Load() {
		return 0
	}
	return s.found.charges[x]
}

// setOf returns the set of a subject, and whether it is a suspect. The subject was cut
// off by cuts crashes in a row, the last of them the crash of opening epoch; a caller
// that does not know them gives zeros. A suspect that no process has listed gets freshSet.
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

// hold holds x back until its trial. It reports false if its subject is on trial now, so
// that the caller runs it. After close it gives x up and reports true. A suspect of the
// same subject that was held before is given up, because its instance has gone or an
// alarm was delivered twice.
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
		x.giveUp()
	case before != nil: // of an instance that is gone, or delivered twice
		before.giveUp()
	case !trying:
		s.tell(x.subject, "held back", s.found.charges[x.subject])
	}
	return closed || !trying
}

// remove takes x out of those that are held, and reports whether it was one of them. If
// so, the caller must run it or give it up, and no other goroutine does.
func (s *suspects) remove(x *suspect) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[x.subject] != x {
		return false
	}
	delete(s.held, x.subject)
	return true
}

// removeMessages takes the messages to a receiver out of those that are held, but for those
// that wait for their next attempt, and returns them.
func (s *suspects) removeMessages(to storage.ID) (messages []*message) {
	if !s.some.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.held {
		if m := x.message; m != nil && m.To == to && m.due == 0 {
			messages = append(messages, m)
		}
	}
	for _, m := range messages {
		delete(s.held, m.subject())
	}
	return messages
}

// ended clears a subject that ran to its end without a crash. If it was the last one on
// trial, the next trial begins at once and does not wait for the end of the window.
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

// close ends all trials. Routines that are held back never begin in this process. The next
// process runs them, and no crash or attempt is counted. Shutdown calls it, and the end
// of the host after an error of the store.
func (s *suspects) close() {
	s.mu.Lock()
	held := s.held
	s.closed, s.held, s.late, s.queue = true, nil, nil, nil
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	for _, x := range held {
		x.giveUp()
	}
}

// giveUp ends a held routine that will not begin, so that its permit and its hold on the
// object are given back. An alarm needs nothing, because it stays stored. The caller
// does not hold suspects.mu, because the end of a routine locks other mutexes.
func (x *suspect) giveUp() {
	if x.routine != nil {
		x.canceller.forget()
		x.routine.over()
	}
}

// tell adds an entry to the recovery report and logs it as a warning. The stored key of an
// execution without a subject begins with a blank, which the log leaves out.
func (s *suspects) tell(x subject, action string, charges int) {
	h := s.host
	h.report.add(Recovery{ID: x.id, At: h.seams.Clock.Now(), Cause: "crashes in a row", Attempt: charges, Action: action})
	h.options.Logger.Warn("work that may kill its process", "class", x.id.Class, "object", x.id.Name, "execution", strings.TrimPrefix(x.key, " "), "action", action, "charges", charges)
}

// open takes up the rows that earlier processes have left. One durable commit deletes
// them, counts a crash in each alarm that the end of the last process cut off, and stores
// which work is a suspect now. One commit, because a crash during open must neither lose
// a count nor count twice. Open calls it before any alarm fires or any turn runs.
func (l *flightLog) open(h *Host) error {
	l.host = h
	left, err := readInquiry(h.store)
	if err != nil {
		return err
	}
	l.suspects.begin(h, left)
	var b storage.Batch
	if err := l.countCutOff(&b); err != nil {
		return err
	}
	if err := l.suspects.record(&b); err != nil || b.Empty() {
		return err
	}
	t, err := h.store.Commit(&b)
	if err != nil {
		return err
	}
	return h.store.WaitDurable(t)
}

// countCutOff deletes the rows of earlier processes with b. If the last process crashed,
// it counts a crash in each alarm that they list and that is still stored as it was,
// in the order of the processes, because crashes count in a row.
func (l *flightLog) countCutOff(b *storage.Batch) error {
	h := l.host
	cut := make(map[uint64][]alarm.Entry) // by epoch
	err := h.store.Metas(flightRow, func(name string, value []byte) error {
		b.DeleteMeta(name)
		epoch, err := flightEpoch(name)
		if err != nil {
			return err
		}
		entries, err := decodeFlight(value)
		cut[epoch] = append(cut[epoch], entries...)
		return err
	})
	// After an end in order the rows count for nothing: a full disk has left them.
	if err != nil || h.store.Previous().Clean {
		return err
	}
	for _, epoch := range slices.Sorted(maps.Keys(cut)) {
		for _, e := range cut[epoch] {
			if err := l.countCrash(b, e, epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

// cuts returns how many crashes in a row have cut off a subject that the last crash has cut
// off, and before it that of opening epoch, 0 for none. An earlier crash counts only if it is
// not cleared, so that the two were in a row.
func (s *suspects) cuts(epoch uint64) int {
	if epoch > s.found.cleared {
		return cutsOfSuspect
	}
	return 1
}

// countCrash adds one to the crashes of an alarm with b, if it is still the alarm that
// ran in the opening epoch. Its due time stays, so that it runs again at once. Its
// generation stays too, so that a second flight row that names it counts as well. If this
// was one crash too many, the alarm becomes a suspect. A take-over by another node has a count of its own, and makes no
// suspect.
func (l *flightLog) countCrash(b *storage.Batch, e alarm.Entry, epoch uint64) error {
	h := l.host
	if id, ok := l.messageIn(e); ok {
		return l.countCrashOf(b, id, epoch)
	}
	o, err := h.store.Find(storage.ID{Class: e.Class, Name: e.Name})
	if err != nil {
		return err
	}
	value, ok, err := h.store.Alarm(o)
	if err != nil || !ok {
		return err
	}
	row, err := alarm.DecodeRow(value)
	if err != nil || row.Gen != e.Gen { // a generation is one of its kind, also in another life of the object
		return err
	}
	old := row
	if h.store.OwnerLost() {
		h.metrics.recovered(e.Class, "alarm_owner_lost", "re-run")
		row.OwnersLost++
		moveAlarm(b, o, &old, &row)
		return nil
	}
	if l.suspects.found.suspected(l.suspects.cuts(row.CutEpoch), epoch) {
		l.suspects.suspectAlarm(subjectOf(e))
	}
	h.metrics.recovered(e.Class, "alarm_cut_off", "re-run")
	row.Crashes, row.CutEpoch = row.Crashes+1, epoch
	moveAlarm(b, o, &old, &row)
	return nil
}
