package debounce

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Config defines a debounce job over events of type E. With Reduce, each event
// is folded into a state of type S when it is added. Without Reduce all events
// are kept and S is not used; struct{} will do. The host's codec
// (object.Options.Codec) encodes E and S. Name, Flush and one of Quiet and
// Window are required.
type Config[E, S any] struct {
	// Name is the class name of the job's objects. Stored events belong to it,
	// so it must not change while events are stored. Required.
	Name string
	// Version names the forms of E and S, in at most 128 bytes. Change it
	// together with them when stored events or states need MigrateEvent or
	// MigrateState. It is stored with each job's metadata and with each
	// generation (J15).
	Version string
	// MigrateEvent decodes an event that was stored under another Version: an
	// older one or, after a rollback, a newer one. from is that Version; it is
	// empty for an event stored without one. raw is a copy.
	//
	// It is called each time an event is read, because stored events are never
	// rewritten: outside of turns for a flush, within a turn of the object for
	// Pending. So it must be quick and depend on its arguments alone. An error
	// or a panic fails the flush.
	//
	// It requires a Version and is only for jobs without Reduce. Nil: the codec
	// decodes all events.
	MigrateEvent func(from string, raw []byte) (E, error)
	// MigrateState does the same for a state that Reduce made. An Add that
	// needs the state calls it within its turn. If it fails there, by an error
	// or a panic, the Add is refused and nothing changes; otherwise the Add
	// stores the state in its new form. It requires a Version and Reduce.
	MigrateState func(from string, raw []byte) (S, error)

	// Mode says from which event the waiting time counts: from the last one
	// (Trailing) or the first one (Window). Default: Trailing.
	Mode Mode
	// Quiet is the time without a new event after which a flush is due.
	// Required in mode Trailing; not allowed in mode Window.
	Quiet time.Duration
	// Window is the time from the first event to the flush. Required in mode
	// Window; not allowed in mode Trailing.
	Window time.Duration
	// MaxWait bounds the time from the first event to the flush in mode
	// Trailing. Without it, events that keep coming within Quiet postpone the
	// flush for ever. Zero means no bound.
	MaxWait time.Duration
	// MaxEvents is the number of events at which a flush is due at once. A
	// flush has more events if they came while an earlier flush was running,
	// while this flush waited for Concurrency or StartRate, or while the job
	// was paused. Zero means no such number.
	MaxEvents int
	// MaxPending is how many events may wait for the next flush of an object
	// without Reduce. Add returns ErrFull beyond it. Default: 100,000.
	MaxPending int

	// Reduce folds an event into the state of its generation. For the first
	// event, exists is false and state is the zero S. If Reduce returns an
	// error or panics, Add returns that and stores nothing. Reduce runs in a
	// turn of the object: it must be quick and depend on its arguments alone.
	//
	// Nil: all events are kept, in the order of their Adds. A definition that
	// gains or loses Reduce needs another Name, unless no events are stored.
	Reduce func(state S, exists bool, event E) (S, error)
	// Flush processes a generation of events. It runs outside of turns, one
	// call at a time for each object. It may be called again for the same
	// generation: after an error if Retry says so, and after a crash. A panic
	// counts as an error. ctx ends at Timeout, when the job is terminated, and
	// when the host shuts down. Required.
	Flush func(ctx context.Context, f *Flush[E, S]) error

	// Dedup is how long the id of an event (EventID) is remembered. It
	// must be longer than callers repeat an Add. Default: 24 hours. It must not
	// be negative.
	//
	// An object that has nothing to flush ends by itself after this time
	// without a change, as if by Terminate with jobs.IdleReason; by then it has
	// forgotten all ids (D6). The next Add makes it again. A paused or failed
	// object, or one that owes a call of OnExhausted, stays.
	Dedup time.Duration

	// Retry says how often and how soon a failed flush is tried again. The zero
	// Retry does not retry.
	Retry jobs.Retry
	// Timeout bounds one attempt to flush: its ctx ends then. Zero means no
	// limit.
	Timeout time.Duration
	// Exhausted says what happens to the events when Retry is used up. Default:
	// Fail. Events that cannot be decoded are never dropped: the job fails.
	Exhausted Exhausted
	// OnExhausted is called for each flush that was given up, outside of turns.
	// It is called at least once, and again after an error or a crash, with the
	// same Exhaustion.Key, until ten calls in a row have failed. Calls for one
	// object come one at a time and in order. Flushes continue meanwhile, until
	// 16 calls are owed. With Drop the events are already gone; see there.
	OnExhausted func(ctx context.Context, x *jobs.Exhaustion) error
	// Retention says how long a failed object is kept, when it becomes stale, and which hooks are
	// called then. The events that wait go with it, also those of a late Add. Default: it is kept
	// until Resume or Terminate.
	Retention jobs.Retention
	// Concurrency is how many flushes of this definition may run at a time on a
	// host. The other flushes wait in the order in which they came due, behind
	// those that a crash cut off. Zero means no limit.
	Concurrency int
	// StartRate bounds how often flushes start, retries included, so that the
	// flushes that came due during a downtime are spread over time. Zero means
	// no limit.
	StartRate object.StartRate
	// Lease is how long an attempt may go without a sign of life before it
	// counts as lost. The runtime renews the lease of work that is alive,
	// however long that takes. Default: 30 s.
	Lease time.Duration
	// Heartbeat is how often the runtime renews a lease; it must be less than
	// Lease. Default: a third of Lease.
	Heartbeat time.Duration
	// StaleThreshold is how old an attempt must be before it is recovered in
	// the process that lost its work (R2). Default: 30 s.
	StaleThreshold time.Duration
	// RecoveryDelay is the time from the opening of the store to the recovery
	// of attempts that an earlier process lost (R2). Default: 100 ms.
	RecoveryDelay time.Duration
	// MaxRecoveries is how many crashes in a row may be charged to one flush
	// before its job fails, and how often a living process may lose it (R4).
	// Default: 3. With a negative number the job fails at the first crash that
	// cuts the flush off.
	MaxRecoveries int
	// FewEvents leaves out the events of starts, successes and snoozes, so that
	// a job that runs often stores fewer rows. Failures and calls of the job's
	// methods always emit theirs.
	FewEvents bool
	// Class has settings of the objects. Its WorkLimit is ignored: Concurrency and
	// StartRate replace it.
	Class object.ClassOptions
}

// Exhausted says what happens to the events of a flush when its Retry is used
// up. A flush that repeatedly kills its process fails the job under either
// value.
type Exhausted uint8

const (
	// Fail sets the job's status to failed. Its events stay and Add collects
	// more. Resume flushes them, with fresh attempts.
	Fail Exhausted = iota
	// Drop discards the events of that flush, emits EventDropped with their
	// number, and continues with the next generation. They are deleted in the
	// batch that gives the flush up, so OnExhausted cannot read them. To keep
	// them, let Flush store them elsewhere in its last attempt, under its Key,
	// and return nil. An attempt may be the last one if its Flush.Attempt is at
	// least Retry.MaxAttempts.
	Drop
)

const (
	defaultDedup      = 24 * time.Hour
	defaultMaxPending = 100_000
)

// withDefaults returns c with each zero field replaced by its default.
func (c untyped) withDefaults() untyped {
	if c.Dedup == 0 {
		c.Dedup = defaultDedup
	}
	if c.MaxPending == 0 {
		c.MaxPending = defaultMaxPending
	}
	return c
}

// Validate returns the first mistake in c, as a jobs.ErrInvalid. object.Open
// does the same.
func (c Config[E, S]) Validate() error { return c.untyped().validate() }

// untyped is a Config without its types.
type untyped struct {
	Name, Version    string
	Mode             Mode
	Quiet, Window    time.Duration
	MaxWait          time.Duration
	MaxEvents        int
	MaxPending       int
	Dedup            time.Duration
	Retry            jobs.Retry
	Timeout          time.Duration
	Exhausted        Exhausted
	OnExhausted      func(ctx context.Context, x *jobs.Exhaustion) error
	Retention        jobs.Retention
	Concurrency      int
	StartRate        object.StartRate
	Lease, Heartbeat time.Duration
	StaleThreshold   time.Duration
	RecoveryDelay    time.Duration
	MaxRecoveries    int
	FewEvents        bool
	Class            object.ClassOptions
	flushes, folds   bool  // it has a Flush, and a Reduce
	migratesEvents   bool  // it has a MigrateEvent
	migratesStates   bool  // it has a MigrateState
	unread           error // the mistake in Version and in one of these
}

// untyped returns c without its types.
func (c *Config[E, S]) untyped() untyped {
	events, states := c.events(), c.states()
	return untyped{
		Name: c.Name, Version: c.Version, Mode: c.Mode, Quiet: c.Quiet, Window: c.Window, MaxWait: c.MaxWait,
		MaxEvents: c.MaxEvents, MaxPending: c.MaxPending, Dedup: c.Dedup, Retry: c.Retry, Timeout: c.Timeout,
		Exhausted: c.Exhausted, OnExhausted: c.OnExhausted, Retention: c.Retention, Concurrency: c.Concurrency,
		StartRate: c.StartRate, Lease: c.Lease, Heartbeat: c.Heartbeat, StaleThreshold: c.StaleThreshold,
		RecoveryDelay: c.RecoveryDelay, MaxRecoveries: c.MaxRecoveries, FewEvents: c.FewEvents, Class: c.Class,
		flushes: c.Flush != nil, folds: c.Reduce != nil, migratesEvents: c.MigrateEvent != nil, migratesStates: c.MigrateState != nil,
		unread: cmp.Or(events.Validate(), states.Validate()),
	}
}

// validate is Validate.
func (c untyped) validate() error {
	if m := c.mistake(); m != "" {
		return engine.Invalidf(c.of(), "%s", m)
	}
	for _, err := range []error{c.workLimit().Validate(), c.unread, c.execution().Validate(), c.Retention.Validate()} {
		if err != nil {
			return engine.Invalidf(c.of(), "%w", err)
		}
	}
	return nil
}

// execution returns the settings of the engine.
func (c *untyped) execution() engine.Options {
	return engine.Options{
		Retry: c.Retry, Timeout: c.Timeout, Lease: c.Lease, Heartbeat: c.Heartbeat, Quiet: c.FewEvents,
		LazyAlarm: true, // an Add in mode Trailing moves the due time back and leaves the alarm
		Limits:    recovery.Limits{StaleThreshold: c.StaleThreshold, RecoveryDelay: c.RecoveryDelay, MaxRecoveries: c.MaxRecoveries},
	}
}

// events decodes stored events.
func (c *Config[E, S]) events() engine.Reader[E] {
	return engine.Reader[E]{Version: c.Version, Migrate: c.MigrateEvent, Field: "MigrateEvent"}
}

// states decodes stored states.
func (c *Config[E, S]) states() engine.Reader[S] {
	return engine.Reader[S]{Version: c.Version, Migrate: c.MigrateState, Field: "MigrateState"}
}

// of names the definition in errors.
func (c untyped) of() string { return strings.TrimSpace("debounce " + c.Name) }

// mistake describes the first mistake in the fields; it is empty if there is
// none.
func (c untyped) mistake() string {
	switch {
	case c.Name == "":
		return "Name is empty"
	case !c.flushes:
		return "Flush is nil"
	case c.Mode > Window:
		return "Mode is neither Trailing nor Window"
	case c.Mode == Trailing && c.Quiet <= 0:
		return "Quiet must be positive in mode Trailing"
	case c.Mode == Trailing && c.Window != 0:
		return "Window is for mode Window"
	case c.Mode == Window && c.Window <= 0:
		return "Window must be positive in mode Window"
	case c.Mode == Window && (c.Quiet != 0 || c.MaxWait != 0):
		return "Quiet and MaxWait are for mode Trailing"
	case c.MaxWait < 0:
		return fmt.Sprintf("MaxWait must not be negative: %v", c.MaxWait)
	case c.Dedup < 0:
		return fmt.Sprintf("Dedup must not be negative: %v", c.Dedup)
	case c.Concurrency < 0:
		return fmt.Sprintf("Concurrency must not be negative: %d", c.Concurrency)
	case c.MaxEvents < 0:
		return fmt.Sprintf("MaxEvents must not be negative: %d", c.MaxEvents)
	case c.MaxPending < 0:
		return fmt.Sprintf("MaxPending must not be negative: %d", c.MaxPending)
	case c.MaxPending != 0 && c.MaxEvents > c.MaxPending, c.MaxPending == 0 && c.MaxEvents > defaultMaxPending:
		return "MaxEvents is greater than MaxPending"
	case c.Exhausted > Drop:
		return "Exhausted is neither Fail nor Drop"
	case c.migratesEvents && c.folds:
		return "MigrateEvent is for events that are kept: with Reduce give MigrateState"
	case c.migratesStates && !c.folds:
		return "MigrateState is for Reduce: without it give MigrateEvent"
	}
	return ""
}

// limits returns the settings that decide when a generation is due.
func (c untyped) limits() limits {
	if c.Mode == Window {
		return limits{maxWait: c.Window, maxEvents: c.MaxEvents}
	}
	return limits{quiet: c.Quiet, maxWait: c.MaxWait, maxEvents: c.MaxEvents}
}

// workLimit returns the limit on concurrent flushes.
func (c untyped) workLimit() object.WorkLimit {
	return object.WorkLimit{AtOnce: c.Concurrency, StartRate: c.StartRate}
}

// class returns the settings of the objects' class.
func (c untyped) class() object.ClassOptions {
	o := engine.ClassOptions(c.Class)
	if l := c.workLimit(); l.Validate() == nil { // otherwise Validate reports it
		o.WorkLimit = l
	}
	return o
}
