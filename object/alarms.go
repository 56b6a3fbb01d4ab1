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
	Scheduled time.Time // when it was set to fire first
	Attempt   int       // 1 for the first
	LastError string    // of the attempt before; empty if there was none
	Crashed   bool      // the attempt before was cut off by the end of its process
}

// SetAlarm sets the object's one alarm, in place of the one it may have. A past
// time means now. It returns ErrBadAlarmTime for a time not after 1970, and
// ErrNoAlarmHandler if the class handles no alarms.
func (s *State) SetAlarm(ctx context.Context, at time.Time) error {
	t, err := s.turn(ctx)
	switch {
	case err != nil:
		return err
	case !s.act.hosted.class.alarms:
		return named(s.act.id, ErrNoAlarmHandler)
	case !at.After(time.Unix(0, 0)):
		return fmt.Errorf("%s: %w: %v", s.act.id, ErrBadAlarmTime, at)
	}
	at = at.Round(0) // the wall clock rules: nothing else is left of it after a restart
	t.write()
	t.writes.alarmSet = true
	t.writes.alarm = &alarm.Row{Due: at, Scheduled: at, Gen: s.act.hosted.host.store.NextSeq()}
	return nil
}

// DeleteAlarm removes the object's alarm, if it has one. In the alarm's own
// handler it removes the alarm that the handler has set.
func (s *State) DeleteAlarm(ctx context.Context) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	stored, err := s.act.alarm()
	if err != nil {
		return s.act.hosted.host.storageError(s.act.id, err)
	}
	switch {
	case t.firing != nil:
		t.writes.alarmSet, t.writes.alarm = false, nil
	case stored != nil:
		t.writes.alarmSet, t.writes.alarm, t.writes.removes = true, nil, true
	default:
		t.writes.alarmSet, t.writes.alarm = false, nil
	}
	return nil
}

// Alarm returns when the object's alarm fires; ok is false if it has none. While
// the alarm's handler runs there is none, unless the handler has set one.
func (s *State) Alarm(ctx context.Context) (at time.Time, ok bool, err error) {
	t, err := s.turn(ctx)
	if err != nil {
		return time.Time{}, false, err
	}
	row, err := s.act.alarm()
	if err != nil {
		return time.Time{}, false, s.act.hosted.host.storageError(s.act.id, err)
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

// AlarmFailures returns how many attempts of the object's alarm have failed or were
// cut off by crashes, so that it waits for a retry; zero for an alarm as it was set,
// and if there is none.
func (s *State) AlarmFailures(ctx context.Context) (int, error) {
	t, err := s.turn(ctx)
	if err != nil {
		return 0, err
	}
	row, err := s.act.alarm()
	if err != nil {
		return 0, s.act.hosted.host.storageError(s.act.id, err)
	}
	if t.writes.alarmSet {
		row = t.writes.alarm
	}
	if row == nil {
		return 0, nil
	}
	return row.Attempt + row.Crashes, nil
}

// alarm returns the stored alarm, or nil. The caller owns the turn.
func (a *activation) alarm() (*alarm.Row, error) {
	if a.rowKnown {
		return a.row, nil
	}
	value, ok, err := a.hosted.host.store.Alarm(a.object)
	if err != nil {
		return nil, err
	}
	a.row = nil
	if ok {
		row, err := alarm.DecodeRow(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.id, err)
		}
		a.row = &row
	}
	a.rowKnown = true
	return a.row, nil
}

// dueOf is the due time of a row as storage keeps it, or nil.
func dueOf(row *alarm.Row) *int64 {
	if row == nil {
		return nil
	}
	due := alarm.Nanos(row.Due)
	return &due
}

// moveAlarm writes the change from one alarm to another.
func moveAlarm(b *storage.Batch, o storage.Object, from, to *alarm.Row) {
	var row, index []byte
	if to != nil {
		const room = 64 // enough for most, which then need no allocation
		row = alarm.AppendRow(make([]byte, 0, room), *to)
		index = alarm.AppendIndex(make([]byte, 0, room), to.Gen, o.ID.Class, o.ID.Name)
	}
	b.MoveAlarm(o, dueOf(from), dueOf(to), row, index)
}

// firing is the operation of a turn that handles an alarm.
type firing struct {
	gen uint64     // of the alarm that was due
	row *alarm.Row // that the handler ran for
	// settled: the alarm is not stored any more as it was when it came due, so it
	// need not fire again before it is set.
	settled bool
}

// run calls the handler, unless the alarm is not what it was when it came due.
func (f *firing) run(ctx context.Context, a *activation) error {
	t := a.current
	row, err := a.alarm()
	if err != nil {
		return err
	}
	now := a.hosted.host.seams.Clock.Now()
	if row == nil || row.Gen != f.gen {
		f.settled = true
		return nil
	}
	if row.Due.After(now) { // the clock was put back
		return nil
	}
	f.row = row
	a.hosted.host.metrics.lag.Observe(now.Sub(row.Due).Seconds())
	t.firing = row
	handler, ok := a.instance.(AlarmHandler)
	if !ok {
		return named(a.id, ErrNoAlarmHandler)
	}
	return handler.Alarm(ctx, AlarmInfo{
		Scheduled: row.Scheduled,
		Attempt:   row.Attempt + 1,
		LastError: row.LastError,
		Crashed:   row.Crashes > 0,
	})
}

// stopped turns an alarm that has killed the process once too often into a dead
// letter, before any user code runs for it, the constructor included.
func (f *firing) stopped(t *turn) (bool, error) {
	a := t.act
	if err := a.locate(); err != nil {
		return false, err
	}
	charges := a.hosted.host.suspects.charged(subject{id: a.id, gen: f.gen})
	row, err := a.alarm()
	if err != nil || row == nil || row.Gen != f.gen || charges < a.hosted.options.MaxAlarmCrashes || charges == 0 {
		return false, err
	}
	t.life = nil
	t.bury(*row, fmt.Errorf("the process died %d times in a row while this alarm was handled, and no other suspect was", charges), "crashes")
	err = t.commit(false)
	f.settled = err == nil
	return true, err
}

// failed stores what follows a failed attempt: the alarm that the handler set, a
// later attempt, or a dead letter (A5 to A8).
func (f *firing) failed(t *turn, cause error) error {
	a, h := t.act, t.act.hosted.host
	if !t.holds() || notTheHandlers(cause) || h.life.ctx.Err() != nil {
		return cause
	}
	row, err := a.alarm()
	if err != nil {
		return errors.Join(cause, h.storageError(a.id, err))
	}
	if row == nil || row.Gen != f.gen { // the handler, or another turn meanwhile, has committed a change of it
		f.settled = true
		if f.row != nil {
			a.logFailed(*f.row, cause, time.Time{})
		}
		return cause
	}
	f.row = row
	t.firing, t.life, t.object = nil, nil, &a.object
	next, dead := f.next(a, cause)
	switch {
	case t.again != nil:
		next, dead = t.again, ""
	case dead != "":
		t.bury(*f.row, cause, dead)
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
	if dead == "" { // else the dead letter is told of
		a.logFailed(*f.row, cause, next.Due)
	}
	return cause
}

// notTheHandlers tells failures that cost the alarm no attempt (A8).
func notTheHandlers(err error) bool {
	return errors.Is(err, ErrStorage) || errors.Is(err, ErrShutdown) || errors.Is(err, ErrNoSpace)
}

// next returns the row of the next attempt, or why there is none.
func (f *firing) next(a *activation, cause error) (next *alarm.Row, dead string) {
	h := a.hosted.host
	row := *f.row
	row.Attempt++
	row.Crashes, row.CutEpoch = 0, 0
	row.LastError = cause.Error()
	row.Gen = h.store.NextSeq()
	if IsPermanent(cause) {
		return nil, "permanent error"
	}
	delay, ok := a.hosted.options.AlarmRetry.Next(row.Attempt, h.seams.Rand.Uint64())
	if !ok {
		return nil, "retries used up"
	}
	if wished, ok := RetryDelay(cause); ok {
		delay = wished
	}
	row.Due = h.seams.Clock.Now().Add(delay).Round(0)
	return &row, ""
}

// replaceAlarm makes row the object's alarm.
func (t *turn) replaceAlarm(row *alarm.Row) {
	t.write()
	t.writes.alarmSet, t.writes.alarm = true, row
}

// bury turns the object's alarm into a dead letter.
func (t *turn) bury(row alarm.Row, cause error, reason string) {
	a, h := t.act, t.act.hosted.host
	row.Attempt++
	row.LastError = alarm.Cut(cause.Error(), alarm.MaxErrorBytes)
	d := DeadLetter{
		ID: a.id, Seq: h.store.NextSeq(), Scheduled: row.Scheduled, Died: h.seams.Clock.Now(),
		Attempts: row.Attempt, Crashes: row.Crashes, LastError: row.LastError, Reason: reason,
		Stack: alarm.Cut(stackOf(cause), MaxStackBytes),
	}
	t.write().SetDead(t.object.Shard, a.id, d.Seq, encodeDead(d))
	t.writes.alarmSet, t.writes.alarm, t.writes.removes = true, nil, true
	t.then(func(at storage.Ticket) { h.died(a.hosted, d, cause, at) })
}
