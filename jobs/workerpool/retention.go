package workerpool

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

// Dead letters go by the Retention of the pool (W12). Each has a row in an index of its step:
//
//	d/ 0, time of death, number   the letter waits to be stale, or to be removed
//	d/ 1, time of death, number   it is stale, and waits to be removed
//	d/ 2, time of death, number   its time is over; it waits for calls of hooks
//
// The rows have the time of death and not that of the next step, so a changed Retention counts
// for all of them without a write. The way of a letter:
//
//  1. die stores it at agingFresh.
//  2. age finds it stale: goStale tells that, and owes the call of OnStale.
//  3. age finds its time over: retire waits for the calls of OnDead and OnStale that are owed,
//     owes the call of OnDelete, and removes the letter after that.
//  4. callEnded goes on with step 3 after each call.
//
// A letter at agingLeft has a call that is owed or under way, in every stored state.

// aging is the step of a dead letter.
type aging byte

const (
	agingFresh aging = iota
	agingStale
	agingLeft
)

const agingPrefix = "d/"

// agingLine is the prefix of the index of a step.
func agingLine(a aging) []byte {
	return append(make([]byte, 0, len(agingPrefix)+17), agingPrefix[0], agingPrefix[1], byte(a))
}

func agingKey(a aging, at place) string { return placed(agingLine(a), at) }

// deathPlace is the place of a dead letter in the index.
func deathPlace(r *row) place { return place{uint64(max(r.endedAt, 0)), r.num} }

// ageMax bounds the dead letters that one turn makes stale or removes.
const ageMax = 256

// longestKept bounds how long a task is kept that is done or cancelled, because no verb removes it.
const longestKept = 100 * 365 * 24 * time.Hour

// validRetention reports the first mistake in the Retention of a pool.
func validRetention(r jobs.Retention) error {
	switch {
	case r.Completed > longestKept || r.Cancelled > longestKept:
		return fmt.Errorf("%w: Retention.Completed and Cancelled must be at most %v, because no verb removes such tasks", jobs.ErrInvalid, longestKept)
	case r.Stopped != 0:
		return fmt.Errorf("%w: Retention.Stopped must be zero, because no task is stopped", jobs.ErrInvalid)
	}
	return r.Validate()
}

// keeps is how long a task is kept that is done or cancelled; 0: nothing of it is.
func (s *settings) keeps(ended State) time.Duration {
	kept := s.retention.Completed
	if ended == Cancelled {
		kept = s.retention.Cancelled
	}
	if kept == AtOnce {
		return 0
	}
	return kept
}

// ages reports whether dead letters become stale, or are removed.
func (s *settings) ages() bool { return s.retention.StaleAfter > 0 || s.retention.For(jobs.Failed) > 0 }

// after is how long after its death a letter makes its next step; 0: never.
func (s *settings) after(a aging) time.Duration {
	switch {
	case a == agingFresh && s.retention.StaleAfter > 0:
		return s.retention.StaleAfter
	case a == agingLeft:
		return 0
	}
	return s.retention.For(jobs.Failed)
}

// over reports whether the time of a letter is over.
func (p *partition) over(r *row) bool {
	kept := p.set.retention.For(jobs.Failed)
	return kept > 0 && !stepAt(deathPlace(r), kept).After(p.engine.Now())
}

// stepAt is the time after a death, as an alarm can have it.
func stepAt(died place, after time.Duration) time.Time {
	return timeOf(alarm.Nanos(time.Unix(0, int64(died.major)).Add(after)))
}

// step is where a letter belongs that does not leave.
func (r *row) step() aging {
	if r.rare.Stale {
		return agingStale
	}
	return agingFresh
}

// file puts a letter in the index of a step.
func (p *partition) file(ctx context.Context, r *row, a aging) error {
	at := deathPlace(r)
	if err := p.st.Storage().PutBytes(ctx, agingKey(a, at), encodeNumber(r.num)); err != nil {
		return err
	}
	if a != agingLeft {
		p.letterLines[a].add(entry{place: at, num: r.num})
	}
	return nil
}

// unfile takes a letter out of the index of a step, and reports whether it was there.
func (p *partition) unfile(ctx context.Context, r *row, a aging) (bool, error) {
	at := deathPlace(r)
	_, there, err := p.st.Storage().Get(ctx, agingKey(a, at))
	if err != nil || !there {
		return false, err
	}
	if a != agingLeft {
		p.letterLines[a].evict(at)
	}
	return true, p.st.Storage().Remove(ctx, agingKey(a, at))
}

// unfileAll takes a letter out of the index. It has one row there, or none if it died under a
// Config without a Retention for it.
func (p *partition) unfileAll(ctx context.Context, r *row) error {
	for a := agingFresh; a <= agingLeft; a++ {
		if there, err := p.unfile(ctx, r, a); there || err != nil {
			return err
		}
	}
	return nil
}

// filed reports whether a letter is in the index.
func (p *partition) filed(ctx context.Context, r *row) (bool, error) {
	for a := agingFresh; a <= agingLeft; a++ {
		if _, there, err := p.st.Storage().Get(ctx, agingKey(a, deathPlace(r))); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// fileNew puts a letter in the index that has just died. Without a Retention for it the index is
// no longer whole.
func (p *partition) fileNew(ctx context.Context, r *row) error {
	if !p.set.ages() {
		p.whole = 0
		return nil
	}
	return p.file(ctx, r, agingFresh)
}

// fillLetters loads the first rows of each step into a window that is empty.
func (p *partition) fillLetters(ctx context.Context) error {
	for a := range p.letterLines {
		w := &p.letterLines[a]
		if !p.set.ages() || !w.wants() {
			continue
		}
		if err := p.fillWindow(ctx, w, agingLine(aging(a))); err != nil {
			return err
		}
	}
	return nil
}

// nextStep is when the next letter makes a step, and which; zero: none does.
func (p *partition) nextStep() (at time.Time, a aging) {
	for i := range p.letterLines {
		span := p.set.after(aging(i))
		e, there := p.letterLines[i].first()
		if span == 0 || !there {
			continue
		}
		if due := stepAt(e.place, span); at.IsZero() || due.Before(at) {
			at, a = due, aging(i)
		}
	}
	return at, a
}

// age makes letters stale, and removes those with a time that is over, as many as fit well in the batch.
func (p *partition) age(ctx context.Context, now time.Time) error {
	for range ageMax {
		at, a := p.nextStep()
		if at.IsZero() || at.After(now) {
			return nil
		}
		if bytes, err := p.turnBytes(ctx); bytes >= p.st.Driver().MaxBatchBytes()/2 || err != nil {
			return err
		}
		if err := p.ageFirst(ctx, a); err != nil {
			return err
		}
		if err := p.fillLetters(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ageFirst moves the first letter of a step on. A row of the index without its letter is of a store that
// a version without the index has had meanwhile.
func (p *partition) ageFirst(ctx context.Context, a aging) error {
	e, _ := p.letterLines[a].first()
	if err := p.st.Storage().Remove(ctx, agingKey(a, e.place)); err != nil {
		return err
	}
	p.letterLines[a].pop()
	r, ok, err := p.letter(ctx, e.num)
	switch {
	case err != nil || !ok || deathPlace(r) != e.place:
		return err
	case a == agingFresh && p.set.retention.StaleAfter > 0:
		return p.goStale(ctx, r)
	}
	return p.retire(ctx, r)
}

// goStale stores that a letter is stale, tells it, and owes the call of OnStale: one batch.
func (p *partition) goStale(ctx context.Context, r *row) error {
	r.rare.Stale = true
	if err := p.put(ctx, deadKey(r.num), r); err != nil {
		return err
	}
	if err := p.file(ctx, r, agingStale); err != nil {
		return err
	}
	if p.set.retention.OnStale != nil {
		if err := p.putCall(ctx, callOf(r.num, onStale), jobs.Run{Number: 1, Scheduled: timeOf(r.endedAt)}); err != nil {
			return err
		}
	}
	return p.tellLetter(ctx, jobs.EventStale, r, "")
}

// retire makes the next step of a letter when its time is over. The letter has no row in the index.
func (p *partition) retire(ctx context.Context, r *row) error {
	owed, err := p.owes(ctx, r.num)
	switch {
	case err != nil:
		return err
	case !owed && p.set.retention.OnDelete == nil:
		return p.removeLetter(ctx, r)
	case !owed:
		if err := p.putCall(ctx, callOf(r.num, onDelete), jobs.Run{Number: 1, Scheduled: timeOf(r.endedAt)}); err != nil {
			return err
		}
	}
	return p.file(ctx, r, agingLeft)
}

// owes reports whether a call of OnDead or OnStale for a letter is owed or under way. Without the hook
// the call is not made, so the letter does not wait for it.
func (p *partition) owes(ctx context.Context, num uint64) (bool, error) {
	for _, h := range [...]hook{onDead, onStale} {
		id := callOf(num, h)
		if p.calling[id] {
			return true, nil
		}
		if p.calls == 0 || h == onDead && p.set.onDead == nil {
			continue
		}
		if _, asked, err := p.st.Storage().Get(ctx, id.key()); asked || err != nil {
			return asked, err
		}
	}
	return false, nil
}

// callEnded goes on with a letter after the last attempt at a call for it. died is the time of death that the
// call was of: the task may have been replayed, and died again.
func (p *partition) callEnded(ctx context.Context, id callID, died time.Time, out engine.Outcome) error {
	r, ok, err := p.letter(ctx, id.num())
	if err != nil || !ok || id.hook() != onDead && !timeOf(r.endedAt).Equal(died) {
		return err
	}
	if id.hook() != onDead && out.Kind == engine.GaveUp {
		ev := jobs.Event{Subject: subject(taskSubject, r.num), Run: 1, Attempt: out.Run.Failed(), Reason: id.hook().String(), Error: engine.Shorten(out.Err.Error())}
		if err := p.st.Emit(ctx, jobs.EventRetentionFailed, ev); err != nil {
			return err
		}
	}
	left, err := p.unfile(ctx, r, agingLeft)
	switch {
	case err != nil || !left:
		return err
	case !p.over(r):
		return p.file(ctx, r, r.step())
	case id.hook() == onDelete:
		return p.removeLetter(ctx, r)
	}
	return p.retire(ctx, r)
}

// wants reports whether a call is still to be made: the letter is there, of the same death, and for OnDelete
// its time is over.
func (p *partition) wants(id callID, r *row, run jobs.Run) bool {
	switch {
	case r == nil:
		return false
	case id.hook() == onDead:
		return true
	}
	return timeOf(r.endedAt).Equal(run.Scheduled) && (id.hook() == onStale || p.over(r))
}

// removeLetter removes a letter when its time is over, which counts as a cancelled task then: one batch.
func (p *partition) removeLetter(ctx context.Context, r *row) error {
	if err := p.unbury(ctx, r); err != nil {
		return err
	}
	if err := p.dropPhases(ctx, r.num); err != nil {
		return err
	}
	p.count(Cancelled)
	return p.tellLetter(ctx, EventDeleted, r, jobs.RetentionReason)
}

// tellLetter emits an event of a letter. Without a reason it is that of the death.
func (p *partition) tellLetter(ctx context.Context, kind string, r *row, reason string) error {
	ev := jobs.Event{Subject: subject(taskSubject, r.num), Run: 1, Attempt: r.rare.Run.Attempt, Reason: reason, Error: r.rare.Run.LastError}
	if reason == "" {
		ev.Reason = string(r.rare.Reason)
	}
	return p.st.Emit(ctx, kind, ev)
}

// retired is a letter as the hooks of the Retention are told of it.
func (p *partition) retired(r *row, key string) *jobs.Retired {
	return &jobs.Retired{
		Caller: p.st, ID: p.id(r.num).String(), Key: key, Status: jobs.Failed,
		EndedAt: timeOf(r.endedAt), Reason: string(r.rare.Reason), Error: r.rare.Run.LastError,
	}
}
