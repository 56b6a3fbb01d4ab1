package harness

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/seam"
)

// NoCallBeforeCommit checks that no handler calls another object that commits, and then
// commits itself. Such a call is a commit of its own, before that of the caller's turn, so
// a crash between the two leaves half. Without this option each such call is a warning, in
// Report.CallsBeforeCommit and in the text of a failed run.
//
// A call with object.Idempotent or object.Repeatable passes, because a repeat does no harm.
// So does a call after the turn has committed rows of its own, by Sync or Release, because
// those may tell that the rest is to be done. Constructors are not looked at.
func NoCallBeforeCommit(c *Config) { c.callCheck = true }

// CallBeforeCommit is a method that called another one, which committed, and whose own turn
// committed rows after that.
type CallBeforeCommit struct {
	Caller string `json:"caller"` // class and method, such as purse.give
	Called string `json:"called"` // the same, such as purse.take
	From   string `json:"from"`   // an object that made such a call, such as purse/alice
	To     string `json:"to"`     // the object that it called
	Count  int    `json:"count"`  // of such calls in all runs
}

// String tells of the two methods and of the cure.
func (c CallBeforeCommit) String() string {
	return fmt.Sprintf("the turn %s called %s, which committed, and then committed itself: a crash between the two commits leaves half. "+
		"Make the call a part of the turn's commit (Method.Send, or the verb of a job with State.Outbox), "+
		"or say that a repeat of it does no harm (object.Idempotent, object.Repeatable)",
		methodOf(c.Caller, c.From), methodOf(c.Called, c.To))
}

// methodOf names a method with an object, such as give of purse/alice.
func methodOf(method, object string) string {
	class, _, _ := strings.Cut(object, "/")
	return strings.TrimPrefix(method, class+".") + " of " + object
}

// watchedTurn is a turn that is under way.
type watchedTurn struct {
	seam.Turn
	committed bool        // it has committed rows of its own
	calls     []seam.Turn // turns that it called and that committed since its last commit
}

// TurnBegan notes a turn.
func (p *processProbe) TurnBegan(t seam.Turn) { p.turns[t.ID] = &watchedTurn{Turn: t} }

// TurnCommitted warns of the calls that the turn has made before this commit, and notes
// the commit for the turn's caller.
func (p *processProbe) TurnCommitted(id any) {
	t := p.turns[id]
	if t == nil {
		return
	}
	for _, called := range t.calls {
		p.s.callBefore(t.Turn, called)
	}
	t.committed, t.calls = true, nil
	p.pass(t, t.Turn)
}

// TurnEnded forgets a turn. The calls that it made without a commit of its own after them
// came before the commit of its caller too, so they go to that.
func (p *processProbe) TurnEnded(id any) {
	t := p.turns[id]
	if t == nil {
		return
	}
	delete(p.turns, id)
	p.pass(t, t.calls...)
}

// pass notes turns that have committed for the caller of t, if the call of t counts.
func (p *processProbe) pass(t *watchedTurn, committed ...seam.Turn) {
	caller := p.turns[t.Caller]
	if caller == nil || caller.committed || t.Repeatable || caller.Object == t.Object {
		return
	}
	caller.calls = append(caller.calls, committed...)
}

// callsBefore is the calls before a commit, by their methods.
type callsBefore map[[2]string]CallBeforeCommit

// add counts a call. It keeps the lesser of two examples, so that runs beside one another
// lead to the same report.
func (all *callsBefore) add(c CallBeforeCommit) {
	if *all == nil {
		*all = make(callsBefore)
	}
	pair := [2]string{c.Caller, c.Called}
	if old, ok := (*all)[pair]; ok {
		if cmp.Or(cmp.Compare(old.From, c.From), cmp.Compare(old.To, c.To)) < 0 {
			c.From, c.To = old.From, old.To
		}
		c.Count += old.Count
	}
	(*all)[pair] = c
}

// list is all calls, by their methods.
func (all callsBefore) list() []CallBeforeCommit {
	return slices.SortedFunc(maps.Values(all), func(a, b CallBeforeCommit) int {
		return cmp.Or(cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Called, b.Called))
	})
}

// text is the warning of a failed run; empty if there is none to give.
func (all callsBefore) text() string {
	var lines []string
	for _, c := range all.list() {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}

// callBefore notes that a turn has committed after the turn that it called.
func (s *Sim) callBefore(caller, called seam.Turn) {
	c := CallBeforeCommit{Caller: methodIn(caller), Called: methodIn(called), From: caller.Object, To: called.Object, Count: 1}
	s.callsBefore.add(c)
	if s.cfg.callCheck {
		s.report("NoCallBeforeCommit", promiseUnit.String(), concerning{errors.New(c.String()), caller.Object})
	}
}

// methodIn is the class and the method of a turn, such as purse.give.
func methodIn(t seam.Turn) string {
	class, _, _ := strings.Cut(t.Object, "/")
	return class + "." + t.Method
}
