package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Options say how the timers of an object behave. The zero value is fit for production.
type Options struct {
	// Retry says when a timer is tried again after its handler has failed. Default: after 2, 4,
	// 8, 16, 32 and 64 s, each plus 0 to 25 %, so that seven attempts fail in all.
	Retry alarm.Retry
	// Missed is the policy for occurrences of a schedule that passed while the timer could
	// not run. Default: jobs.RunOnce.
	Missed jobs.Missed
}

// Handler runs for a timer that is due. Its writes and messages, and the removal of the
// timer, are one commit. If it returns an error or panics, its writes are undone and the
// timer is tried again (Options.Retry). object.Permanent and object.RetryAfter mean the same
// as in an alarm's handler. It may set and cancel timers, also the one that it runs for.
type Handler func(ctx context.Context, t Timer) error

// MaxName is the most bytes of a timer's name.
const MaxName = 256

// ErrExists refuses a Replay, because a timer of that name is set, or is tried again.
var ErrExists = errors.New("timers: a timer of that name is set")

// Timers are the named wake-ups of one object. A constructor makes them with Attach. The
// methods need the context of the present turn, and what they change is part of its commit.
// An error of a method names the timer, and the method has changed nothing then.
type Timers struct {
	st     *object.State
	retry  alarm.Retry
	missed jobs.Missed
	fire   Handler
	firing bool // Alarm is running, and sets the alarm at its end; only turns use it
}

// Attach returns the timers of the object of st, with fire as their handler. A constructor
// calls it, and the Alarm method of the instance calls Timers.Alarm. It reads and writes
// nothing. The alarm belongs to the timers from then on: Attach returns
// object.ErrAlarmOwned in a job and when it is called twice, because each of two owners
// would lose wake-ups of the other, and object.ErrNoAlarmHandler if the class has no Alarm
// method, because no timer would fire. A mistake in o is a jobs.ErrInvalid.
func Attach(ctx context.Context, st *object.State, o Options, fire Handler) (*Timers, error) {
	if err := o.validate(fire); err != nil {
		return nil, fmt.Errorf("%s: %w: timers: %w", st.ID(), jobs.ErrInvalid, err)
	}
	if err := st.Driver().OwnAlarm(ctx, object.OwnedByTimers); err != nil {
		return nil, err
	}
	o.Retry.MaxAttempts = cmp.Or(o.Retry.MaxAttempts, 7)
	if o.Retry.Backoff == (alarm.Backoff{}) {
		o.Retry.Backoff = alarm.Exponential(2*time.Second, 64*time.Second).WithJitter(0.25)
	}
	return &Timers{st: st, retry: o.Retry, missed: o.Missed, fire: fire}, nil
}

// validate returns the first mistake in the arguments of Attach.
func (o Options) validate(fire Handler) error {
	switch {
	case fire == nil:
		return errors.New("the handler is nil")
	case !o.Missed.Valid():
		return fmt.Errorf("Options.Missed is %d, which is no policy", o.Missed)
	}
	return o.Retry.Validate()
}

// ClassOptions returns o as the class of an object with timers needs it: the alarm itself is
// tried again without end, because a dead alarm would silence all timers of the object.
// Timers are given up one by one (Options.Retry).
func ClassOptions(o object.ClassOptions) object.ClassOptions {
	o.AlarmRetry.MaxAttempts = cmp.Or(o.AlarmRetry.MaxAttempts, math.MaxInt)
	o.MaxAlarmCrashes = cmp.Or(o.MaxAlarmCrashes, math.MaxInt32)
	return o
}

// At sets a timer that fires once, at the time at or later. It replaces the timer of that
// name, with its attempts. A past time means now. The name is UTF-8, 1 to MaxName bytes. The
// payload is encoded by the host's codec and may be nil; with the name and 80 bytes it has
// up to Options.MaxValueBytes of the host. At returns jobs.ErrInvalid for a
// name, object.ErrBadAlarmTime for a time that is not from 1970 to 2262,
// object.ErrValueTooLarge, object.ErrBatchTooLarge, or the error of the codec.
func (t *Timers) At(ctx context.Context, name string, at time.Time, payload any) error {
	r, err := t.made(name, payload)
	if err != nil {
		return err
	}
	if err := validTime(at); err != nil {
		return t.named(name, err)
	}
	r.due, r.scheduled = at.UnixNano(), at.UnixNano()
	old, _, err := t.dueOf(ctx, name)
	if err != nil {
		return err
	}
	return t.set(ctx, old, r)
}

// validTime refuses times that have no place in the order of the rows.
func validTime(at time.Time) error {
	if !at.After(time.Unix(0, 0)) || at.After(time.Unix(0, math.MaxInt64)) {
		return fmt.Errorf("%w, and before 2262: %v", object.ErrBadAlarmTime, at)
	}
	return nil
}

// On sets a timer that fires at each occurrence of a schedule, counted from now. It replaces
// the timer of that name. If that has the same schedule and the same payload, On changes
// nothing, so that a constructor may call it in each instance. Occurrences that pass while
// the timer cannot run are handled as Options.Missed says. On returns jobs.ErrInvalid for a
// schedule that has a mistake or no occurrences, and else the errors of At.
func (t *Timers) On(ctx context.Context, name string, s jobs.Schedule, payload any) error {
	r, err := t.made(name, payload)
	if err != nil {
		return err
	}
	text, err := s.MarshalText()
	if err != nil {
		return t.named(name, err)
	}
	r.schedule, r.text = s, string(text)
	r.cursor = jobs.StartCursor(t.st.Now().Round(0))
	at := t.next(&r)
	if at.IsZero() {
		return t.named(name, fmt.Errorf("%w: schedule %q has no occurrences", jobs.ErrInvalid, s))
	}
	if err := validTime(at); err != nil {
		return t.named(name, err)
	}
	old, stored, err := t.find(ctx, name)
	if err != nil || stored && old.text == r.text && string(old.payload) == string(r.payload) {
		return err
	}
	r.due = at.UnixNano()
	return t.set(ctx, old.due, r)
}

// Cancel removes the timer of that name, and reports whether there was one. In a handler it
// may cancel the timer that the handler runs for: that has no next occurrence then.
func (t *Timers) Cancel(ctx context.Context, name string) (bool, error) {
	due, ok, err := t.dueOf(ctx, name)
	if err != nil || !ok {
		return false, err
	}
	if err := t.remove(ctx, due, name); err != nil {
		return false, err
	}
	return true, t.moved(ctx, due, 0)
}

// Get returns the timer of that name; ok is false if there is none.
func (t *Timers) Get(ctx context.Context, name string) (timer Timer, ok bool, err error) {
	r, ok, err := t.find(ctx, name)
	if err != nil || !ok {
		return Timer{}, false, err
	}
	return t.shown(r), true, nil
}

// All returns up to limit timers, in the order of their times, and of their names where
// these are equal. It begins behind after, which is the last timer of the page before; the
// zero Timer begins with the earliest. The limit is at least 1; the payloads of a page are
// in memory at a time.
func (t *Timers) All(ctx context.Context, after Timer, limit int) ([]Timer, error) {
	if limit < 1 {
		return nil, fmt.Errorf("%s: %w: timers: the limit of a list is %d: it must be at least 1", t.st.ID(), jobs.ErrInvalid, limit)
	}
	o := object.ListOptions{Prefix: duePrefix, Limit: limit}
	if after.Name != "" {
		o.StartAfter = dueKey(after.Due.UnixNano(), after.Name)
	}
	var out []Timer
	for item, err := range t.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		r, err := decode(t.st, item.Key, item.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, t.shown(r))
	}
	return out, nil
}

// made returns the row of a new timer, without its time, once its name and its payload are
// known to be good.
func (t *Timers) made(name string, payload any) (row, error) {
	r := row{name: name}
	if len(name) < 1 || len(name) > MaxName || !utf8.ValidString(name) {
		return r, t.named(name, fmt.Errorf("%w: the name must be UTF-8 of 1 to %d bytes, and has %d", jobs.ErrInvalid, MaxName, len(name)))
	}
	if payload == nil {
		return r, nil
	}
	b, err := t.st.Driver().Codec().Encode(payload)
	if err != nil {
		return r, t.named(name, fmt.Errorf("encode the payload: %w", err))
	}
	r.payload = b
	return r, nil
}

// named wraps an error with the names of the object and the timer. A name that is too
// long is cut.
func (t *Timers) named(name string, err error) error {
	if len(name) > MaxName {
		name = name[:MaxName]
	}
	return fmt.Errorf("%s: timers: timer %q: %w", t.st.ID(), name, err)
}

// next returns when a timer with a schedule is due by its cursor; zero: never again. The
// jitter differs from one object, and one timer, to the next.
func (t *Timers) next(r *row) time.Time {
	return r.schedule.Due(r.cursor, t.jitterOf(r.name))
}

// jitterOf names a timer for the jitter of its schedule.
func (t *Timers) jitterOf(name string) string { return t.st.Name() + "/" + name }
