package object

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// AlarmInfo tells an alarm handler which alarm it handles.
type AlarmInfo struct {
	// Scheduled is the time that SetAlarm was given. A retry does not change it.
	Scheduled time.Time `json:"scheduled"`
	// Attempt is 1 for the first attempt. An attempt that a crash or a shutdown ended
	// does not count.
	Attempt int `json:"attempt"`
	// LastError is the text of the error of the attempt before; empty if there was none.
	LastError string `json:"lastError,omitempty"`
	// Crashed is true if the process crashed during the attempt before.
	Crashed bool `json:"crashed,omitempty"`
	// OwnersLost counts the attempts in a row, up to the one before, that were cut off because another node has taken the store
	// over. On one machine it is zero.
	OwnersLost int `json:"ownersLost,omitempty"`
}

// SetAlarm sets the object's one alarm, in place of the one it may have. It is part of
// the turn's commit. A past time means now. It returns ErrBadAlarmTime for a time not
// after 1970, ErrNoAlarmHandler if the class handles no alarms, and ErrAlarmOwned if a job
// or package timers owns the alarm. In the alarm's own handler it sets the next alarm,
// which stays when the handler returns nil or fails.
func (s *State) SetAlarm(ctx context.Context, at time.Time) error {
	t, err := s.unowned(ctx)
	if err != nil {
		return err
	}
	return s.setAlarm(t, at)
}

// unowned returns the present turn, or ErrAlarmOwned if the alarm has an owner.
func (s *State) unowned(ctx context.Context) (*turn, error) {
	t, err := s.turn(ctx)
	if err == nil && s.act.owner != 0 {
		err = fmt.Errorf("%s: %w %s", s.act.object.ID, ErrAlarmOwned, s.act.owner)
	}
	return t, err
}

// setAlarm does the work of SetAlarm for anyone, also for the owner of the alarm.
func (s *State) setAlarm(t *turn, at time.Time) error {
	switch {
	case !s.act.hosted.class.alarms:
		return named(s.act.object.ID, ErrNoAlarmHandler)
	case !at.After(time.Unix(0, 0)):
		return fmt.Errorf("%s: %w: %v", s.act.object.ID, ErrBadAlarmTime, at)
	}
	at = at.Round(0) // the wall clock rules: nothing else is left of it after a restart
	t.replaceAlarm(&alarm.Row{Due: at, Scheduled: at, Gen: s.act.host.store.NextSeq()})
	return nil
}

// DeleteAlarm removes the object's alarm, if it has one, with the turn's commit. In the
// alarm's own handler it takes back the alarm that the handler has set. The alarm that is
// being handled stays until the handler returns nil, so that a failure can be retried. It
// returns ErrAlarmOwned if a job or package timers owns the alarm.
func (s *State) DeleteAlarm(ctx context.Context) error {
	t, err := s.unowned(ctx)
	if err != nil {
		return err
	}
	return s.deleteAlarm(t)
}

// deleteAlarm does the work of DeleteAlarm for anyone, also for the owner of the alarm.
func (s *State) deleteAlarm(t *turn) error {
	stored, err := s.act.alarm()
	if err != nil {
		return s.act.host.storageError(s.act.object.ID, err)
	}
	if t.firing == nil && stored != nil {
		t.writes.alarmSet, t.writes.alarm, t.writes.removes = true, nil, true
	} else {
		t.writes.alarmSet, t.writes.alarm = false, nil
	}
	return nil
}

// Alarm returns when the object's alarm fires, as this turn has left it; ok is false if
// it has none. While the alarm's handler runs there is none, unless the handler has set
// one. For an alarm that failed it is the time of the next attempt.
func (s *State) Alarm(ctx context.Context) (at time.Time, ok bool, err error) {
	t, err := s.turn(ctx)
	if err != nil {
		return time.Time{}, false, err
	}
	row, err := s.act.alarm()
	if err != nil {
		return time.Time{}, false, s.act.host.storageError(s.act.object.ID, err)
	}
	if t.firing != nil {
		row = nil
	}
	if t.writes.alarmSet {
		row = t.writes.alarm
	}
	if row == nil {
		return time.Time{}, false, nil
	}
	return row.Due, true, nil
}

// alarm returns the row of the stored alarm, or nil. It reads the store once; after that
// each commit of a turn keeps the cached row equal to the stored one. The caller owns
// the turn, has called locate, and must not change the row.
func (a *activation) alarm() (*alarm.Row, error) {
	if a.rowKnown {
		return a.row, nil
	}
	value, ok, err := a.host.store.Alarm(a.object)
	if err != nil {
		return nil, err
	}
	if ok {
		row, err := alarm.DecodeRow(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.object.ID, err)
		}
		a.row = &row
	}
	a.rowKnown = true
	return a.row, nil
}

// firing is the operation of a turn that handles an alarm. Only the turn uses it, and
// alarmCall after the turn has ended.
//
// gen is the generation of the alarm that was due. Each SetAlarm makes another, so that
// an alarm that was replaced on its way to the object does nothing.
type firing struct {
	gen uint64
	row *alarm.Row // the alarm that the handler ran for; nil: it did not run
	// settled is true if the stored alarm is another one now, or none. The scheduler
	// knows of that one, so this one need not be handed to it again.
	settled bool
	charges int32 // crashes that the alarm is charged with
}

// run calls the handler, unless the alarm was replaced or removed after it came due. An
// alarm that is not due any more, because the clock was put back, is not settled, so it
// fires again later.
func (f *firing) run(ctx context.Context, a *activation) error {
	t := turnOf(ctx)
	row, err := a.alarm()
	if err != nil {
		return err
	}
	now := a.host.seams.Clock.Now()
	if row == nil || row.Gen != f.gen {
		f.settled = true
		return nil
	}
	if row.Due.After(now) { // the clock was put back
		return nil
	}
	f.row = row
	a.host.metrics.lag.Observe(now.Sub(row.Due).Seconds())
	t.firing = row
	handler, ok := a.instance.(AlarmHandler)
	if !ok {
		return named(a.object.ID, ErrNoAlarmHandler)
	}
	return handler.Alarm(ctx, AlarmInfo{
		Scheduled: row.Scheduled,
		Attempt:   row.Attempt + 1,
		LastError: row.LastError,
		Crashed:   row.Crashes > 0,

		OwnersLost: row.OwnersLost,
	})
}

// stopped turns an alarm that is charged with MaxAlarmCrashes crashes, or was cut off by maxOwnersLost take-overs in a row, into a dead
// letter. It does so before any user code runs, because the constructor might crash the
// process as well. It reports whether the turn is done. The caller owns the turn.
func (f *firing) stopped(t *turn) (bool, error) {
	a := t.act
	if err := a.locate(); err != nil {
		return false, err
	}
	row, err := a.alarm()
	if err != nil || row == nil || row.Gen != f.gen {
		return false, err
	}
	reason, cause := a.hosted.killer(int(f.charges), row.OwnersLost, "alarm")
	if cause == nil {
		return false, nil
	}
	t.state = nil
	t.deadLetter(*row, cause, reason)
	err = t.commit(false)
	f.settled = err == nil
	return true, err
}

// maxOwnersLost is how many take-overs in a row by other nodes an alarm or a message survives. They are no fault of it, but one that
// kills each node that handles it must not go round for ever. It is recovery.MaxOwnersLost. A class that survives more crashes
// survives as many owners.
const maxOwnersLost = 20

// killer returns the reason of the dead letter of an alarm or a message that must not be handled again, and why: the crashes that it
// is charged with, or the owners that were lost in a row while it was handled. A nil cause: it may be handled.
func (c *hosted) killer(charges, ownersLost int, what string) (reason string, cause error) {
	switch {
	case charges > 0 && charges >= c.options.MaxAlarmCrashes:
		return "crashes", fmt.Errorf("the process died %d times in a row while this %s was handled, and no other suspect was", charges, what)
	case ownersLost >= max(maxOwnersLost, c.options.MaxAlarmCrashes):
		return "owners lost", fmt.Errorf("%d owners of the log were lost in a row while this %s was handled", ownersLost, what)
	}
	return "", nil
}

// failed stores the alarm that follows a failed attempt, in a commit of its own, because
// the writes of the handler were dropped (A5 to A8). In this order:
//
//  1. A shutdown, a dead store or a full disk costs no attempt, and a turn that does not
//     hold its object may not commit: nothing is stored.
//  2. The handler or another turn has committed another alarm: that one stays.
//  3. The handler has set another alarm before it failed: that one is stored.
//  4. A permanent error, or the last retry: a dead letter.
//  5. Otherwise the alarm is stored with the time of its next attempt.
//
// It returns cause, joined with the error of the commit if that fails too. The caller
// owns the turn of t.
func (f *firing) failed(t *turn, cause error) error {
	a, h := t.act, t.act.host
	if !t.holds() || notTheHandlers(cause) || h.lifecycle.ctx.Err() != nil {
		return cause
	}
	row, err := a.alarm()
	if err != nil {
		return errors.Join(cause, h.storageError(a.object.ID, err))
	}
	if row == nil || row.Gen != f.gen { // a commit of Sync, or of a turn while this one was lent out
		f.settled = true
		if f.row != nil {
			a.logFailed(*f.row, cause, time.Time{})
		}
		return cause
	}
	f.row = row
	t.firing, t.state, t.object = nil, nil, &a.object
	next, dead := f.next(a, cause)
	switch {
	case t.again != nil:
		next, dead = t.again, ""
	case dead != "":
		t.deadLetter(*f.row, cause, dead)
	default:
		a.hosted.counts.retries.Add(1)
	}
	if dead == "" {
		t.replaceAlarm(next)
	}
	if err := t.commit(false); err != nil {
		return errors.Join(cause, err)
	}
	f.settled = true
	if dead == "" { // died logs a dead letter
		a.logFailed(*f.row, cause, next.Due)
	}
	return cause
}

// notTheHandlers reports whether a failure costs the alarm no attempt, because the
// handler did not cause it (A8).
func notTheHandlers(err error) bool {
	return errors.Is(err, ErrStorage) || errors.Is(err, ErrShutdown) || errors.Is(err, ErrNoSpace)
}

// next returns the row of the next attempt; if there is none, dead is the reason. The
// delay is that of RetryAfter, or the backoff of the class. The counts of crashes begin
// anew, because they count crashes in a row.
func (f *firing) next(a *activation, cause error) (next *alarm.Row, dead string) {
	h := a.host
	row := *f.row
	row.Attempt++
	row.Crashes, row.CutEpoch, row.OwnersLost = 0, 0, 0
	row.LastError = cause.Error()
	row.Gen = h.store.NextSeq()
	if IsPermanent(cause) {
		return nil, "permanent error"
	}
	retry := &a.hosted.options.AlarmRetry
	if row.Attempt >= retry.MaxAttempts {
		return nil, "retries used up"
	}
	delay, wished := RetryDelay(cause)
	if !wished {
		delay = retry.Backoff.Delay(row.Attempt, h.seams.Rand)
	}
	row.Due = h.seams.Clock.Now().Add(delay).Round(0)
	if retry.MaxElapsed > 0 && row.Due.Sub(row.Scheduled) > retry.MaxElapsed {
		return nil, "retries used up"
	}
	return &row, ""
}

// replaceAlarm makes row the object's alarm with the turn's commit.
func (t *turn) replaceAlarm(row *alarm.Row) {
	t.writes.alarmSet, t.writes.alarm = true, row
}

// deadLetter removes the object's alarm and writes a dead letter for it, both with the
// turn's commit. After the commit, died logs the letter and calls the hook of the class.
func (t *turn) deadLetter(row alarm.Row, cause error, reason string) {
	a, h := t.act, t.act.host
	row.Attempt++
	row.LastError = alarm.Cut(cause.Error(), alarm.MaxErrorBytes)
	d := DeadLetter{
		ID: a.object.ID, Seq: h.store.NextSeq(), Kind: DeadAlarm, Scheduled: row.Scheduled, Died: h.seams.Clock.Now(),
		Attempts: row.Attempt, Crashes: row.Crashes, LastError: row.LastError, Reason: reason,
		Stack: alarm.Cut(stackOf(cause), MaxStackBytes),
	}
	t.write().SetDead(t.object.Shard, a.object.ID, d.Seq, encodeDead(d))
	t.writes.alarmSet, t.writes.alarm, t.writes.removes = true, nil, true
	t.then(func(at storage.Ticket) { h.died(a.hosted, d, cause, at) })
}

// logFailed logs that an attempt of an alarm failed. next is the time of the next
// attempt; zero means that another alarm, or none, has taken its place.
func (a *activation) logFailed(row alarm.Row, cause error, next time.Time) {
	args := []any{"attempt", row.Attempt + 1, "scheduled", row.Scheduled}
	if !next.IsZero() {
		args = append(args, "next", next)
	}
	a.log().Warn("alarm failed", telling(cause, args...)...)
}
