package timers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// maxCrashes is how many times in a row a crash, or a reset of the instance, may end the
// handler of a timer that was stored as begun, before the timer is a dead letter. It is that
// of alarms (A8).
const maxCrashes = 4

// manyOwnersLost is the number of take-overs in a row by other nodes from which on those that follow are charged to a timer as crashes
// are. They are no fault of a timer, but one that kills each node is a dead letter after 20 of them.
const manyOwnersLost = 20 - maxCrashes

// attempt is one run of the handler of one timer.
type attempt struct {
	t      *Timers
	key    string
	now    time.Time // of the alarm's turn
	after  bool      // the turn before ended without a trace: the process died in it
	behind bool      // another timer has run in this turn

	r row // as it is stored now
}

// run handles the timer under the key, if it is still there: a handler before it may have
// cancelled or moved it. It returns an error if the turn must end.
func (a *attempt) run(ctx context.Context) error {
	r, ok, err := a.t.read(ctx, a.key)
	if err != nil || !ok {
		return err
	}
	a.r = r
	if r.text != "" && !r.taken && r.broken == nil {
		moved, scheduled, run := r.schedule.Take(r.cursor, a.t.jitterOf(r.name), a.now, a.t.missed)
		if r.cursor, r.scheduled = moved, scheduled.UnixNano(); !run && r.crashes == 0 {
			return a.over(ctx, r)
		}
	}
	if a.after && r.broken == nil {
		if ended, err := a.begin(ctx, &r); ended || err != nil {
			return err
		}
	}
	handle := func(ctx context.Context) error {
		if r.broken != nil {
			return r.broken
		}
		if err := a.t.fire(ctx, a.t.shown(r)); err != nil {
			return err
		}
		now, ok, err := a.t.read(ctx, a.key)
		if err != nil || !ok || now.gen != a.r.gen {
			return err // the handler has cancelled or replaced its own timer
		}
		return a.over(ctx, r)
	}
	if err := a.t.call(ctx, handle, func(err error) { _ = a.failed(ctx, r, err) }); err != nil {
		return a.failed(ctx, r, err)
	}
	return nil
}

// begin stores, durably, that the handler is about to run, so that a crash is charged to this
// timer. A timer with too many charges becomes a dead letter, and ended is true.
func (a *attempt) begin(ctx context.Context, r *row) (ended bool, err error) {
	if r.crashes >= maxCrashes {
		return true, a.dead(ctx, *r, fmt.Errorf("the process died, or the instance was reset, %d times in a row while this timer was handled", r.crashes), "crashes")
	}
	r.crashes++
	a.r.crashes++
	if err := a.t.put(ctx, a.r.due, a.r); err != nil {
		return false, err
	}
	if err := a.t.st.Sync(ctx); err != nil {
		return false, err
	}
	stored, _, err := a.t.read(ctx, a.key)
	a.r.gen = stored.gen
	return false, err
}

// over stores what follows an occurrence that is done with: the next one, or nothing. r has
// the cursor that has passed it.
func (a *attempt) over(ctx context.Context, r row) error {
	next := time.Time{}
	if r.text != "" {
		r.cursor = r.schedule.Ended(r.cursor, a.t.st.Now().Round(0))
		next = a.t.next(&r)
	}
	if next.IsZero() || validTime(next) != nil {
		return a.t.remove(ctx, a.r.due, a.r.name)
	}
	r.due, r.scheduled, r.taken = next.UnixNano(), 0, false
	r.failures, r.crashes, r.first, r.lastError = 0, 0, 0, ""
	return a.t.put(ctx, a.r.due, r)
}

// failed ends the turn after a failure of the handler. Its writes are undone. It commits
// the retry of the timer, or its dead letter, together with the effects of the timers
// before it and the next alarm. Then it returns an error, so that the runtime drops the
// instance, because the handler may have changed fields. A failure that is not the
// handler's leaves everything to the runtime, which tries the alarm again.
func (a *attempt) failed(ctx context.Context, r row, cause error) error {
	t := a.t
	err := t.failedBy(r, cause)
	if notTheTimers(ctx, cause) {
		return err
	}
	full := errors.Is(cause, object.ErrBatchTooLarge)
	if !full || !a.behind {
		e := t.st.Driver().AllOrNothing(ctx, func(ctx context.Context) error { return a.again(ctx, r, cause) })
		if full = errors.Is(e, object.ErrBatchTooLarge); e != nil && !(full && a.behind) {
			return errors.Join(err, e)
		}
	}
	// If full, the timers before it took the room: it is the first of the next turn.
	if e := t.arm(ctx); e != nil {
		return errors.Join(err, e)
	}
	if e := t.st.Sync(ctx); e != nil {
		return errors.Join(err, e)
	}
	// A turn that fails with a write has its instance reset; the write is dropped.
	return errors.Join(err, t.st.Storage().PutBytes(ctx, prefix, nil))
}

// again stores the time of the next attempt, or the dead letter.
func (a *attempt) again(ctx context.Context, r row, cause error) error {
	now := a.t.st.Now().Round(0)
	if r.first == 0 {
		r.first = a.now.UnixNano()
	}
	r.failures++
	r.crashes, r.taken = 0, r.broken == nil
	r.lastError = alarm.Cut(cause.Error(), max(0, min(alarm.MaxErrorBytes, a.t.st.Driver().MaxValueBytes()-r.leastBytes())))
	at, reason := a.t.retryAt(r, cause, now)
	if reason != "" {
		r.failures--
		return a.dead(ctx, r, cause, reason)
	}
	r.due = at.UnixNano()
	return a.t.put(ctx, a.r.due, r)
}

// retryAt returns when a timer is tried again, or the reason why it is not.
func (t *Timers) retryAt(r row, cause error, now time.Time) (at time.Time, reason string) {
	switch {
	case r.broken != nil:
		// Another process may know the zone, so the schedule is not given up.
	case object.IsPermanent(cause):
		return at, "permanent error"
	case t.retry.RetryIf != nil && !t.retry.RetryIf(cause):
		return at, "not retryable"
	case r.failures >= t.retry.MaxAttempts:
		return at, "retries used up"
	}
	delay, wished := object.RetryDelay(cause)
	if !wished {
		delay = t.retry.Backoff.Delay(r.failures, t.st.Driver().Seams().Rand)
	}
	at = now.Add(delay)
	if r.broken == nil && (t.retry.MaxElapsed > 0 && at.Sub(timeOf(r.first)) > t.retry.MaxElapsed || validTime(at) != nil) {
		return at, "retries used up"
	}
	return at, ""
}

// DeadTimer is the kind of the dead letters of timers (object.DeadLetter.Kind). Their data
// is JSON with the name of the timer: {"timer":"statement"}.
const DeadTimer = "timer"

// letterData is the data of a dead letter.
type letterData struct {
	Timer string `json:"timer"`
}

// dead stores a dead letter, with the timer in a row beside it, and then what follows the
// occurrence: a schedule goes on.
func (a *attempt) dead(ctx context.Context, r row, cause error, reason string) error {
	t := a.t
	data, err := json.Marshal(letterData{r.name})
	if err != nil {
		return err
	}
	stack := ""
	if p := (*object.PanicError)(nil); errors.As(cause, &p) {
		stack = string(p.Stack)
	}
	scheduled, attempts := timeOf(r.scheduled), r.failures
	if reason != "crashes" {
		attempts++
	}
	seq, err := t.st.Driver().Bury(ctx, object.DeadLetter{
		Kind: DeadTimer, Verb: "Timers.Replay or Timers.Discard", Scheduled: scheduled, Attempts: attempts, Crashes: r.crashes,
		LastError: cause.Error(), Reason: reason, Stack: stack, Data: data,
	})
	if err != nil {
		return t.named(r.name, err)
	}
	kept := r
	kept.taken, kept.failures, kept.crashes, kept.first = false, 0, 0, 0
	value := append(dueKeyRest(r), kept.encode()...)
	if err := t.st.Storage().PutBytes(ctx, deadKey(seq), value); err != nil {
		return t.named(r.name, err)
	}
	err = t.st.Driver().LogCommitted(ctx, slog.LevelError, "timer is a dead letter",
		"timer", r.name, "attempt", attempts, "scheduled", scheduled, "reason", reason, "error", cause)
	if err != nil {
		return err
	}
	return a.over(ctx, r)
}

// Replay sets the timer of a dead letter again, due now and with all its attempts, and
// removes the letter, in the present turn. seq is DeadLetter.Seq. If a timer of that name
// has been set since, Replay returns ErrExists, because it would replace that one. The
// schedule that the letter came from is no such timer: the occurrence of the letter comes
// before the next one. Replay returns object.ErrNoDeadLetter if the letter is gone.
func (t *Timers) Replay(ctx context.Context, seq uint64) error {
	r, err := t.letter(ctx, seq)
	if err != nil {
		return err
	}
	old, stored, err := t.find(ctx, r.name)
	if err != nil {
		return err
	}
	if stored && (old.text == "" || old.text != r.text || old.taken) {
		return t.named(r.name, fmt.Errorf("%w: Cancel it first, or Discard letter %d", ErrExists, seq))
	}
	if stored {
		r.cursor, r.payload = old.cursor, old.payload
	} else {
		r.text, r.schedule, r.cursor = "", jobs.Schedule{}, jobs.Cursor{}
	}
	r.due, r.taken, r.lastError = t.st.Now().UnixNano(), r.text != "", ""
	return t.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
		if err := t.Discard(ctx, seq); err != nil {
			return err
		}
		return t.set(ctx, old.due, r)
	})
}

// Discard removes a dead letter, with the timer that it kept, in the present turn. It
// returns object.ErrNoDeadLetter if the letter is gone.
func (t *Timers) Discard(ctx context.Context, seq uint64) error {
	if _, err := t.letter(ctx, seq); err != nil {
		return err
	}
	return t.st.Storage().Transaction(ctx, func(ctx context.Context, s *object.Storage) error {
		if err := s.Remove(ctx, deadKey(seq)); err != nil {
			return err
		}
		return t.st.Driver().Exhume(ctx, seq)
	})
}
