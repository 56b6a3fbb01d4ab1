package debounce

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Config defines a debounce job over events of type E. With Reduce, events are
// folded into a state of type S as they come; without it S is not used, and
// struct{} will do. E and S are stored with the host's codec.
type Config[E, S any] struct {
	// Name is the class of the job's objects. Required.
	Name string
	// Version names the forms of E and S, in at most 128 bytes. It is stored in the
	// metadata of each job, and with the events or the state of each generation (J15).
	Version string
	// MigrateEvent makes an event of the bytes of one that was stored under another
	// Version, older or, after a rollback, newer; from is that Version, empty for an
	// event that had none. It is called beside the turns for a flush, and in a turn of
	// the object for Pending, each time: stored events stay as they are. So it must be
	// quick and depend on its arguments alone; raw is a copy. An error or a panic fails
	// the flush. Nil: the host's codec decodes events of all versions. It needs a
	// Version, and is for events that are kept: without Reduce.
	MigrateEvent func(from string, raw []byte) (E, error)
	// MigrateState does the same for a state that Reduce made. Where an Add needs the
	// state, it is called in the turn of that: an error or a panic refuses the event
	// and changes nothing, and the Add stores the state in its new form. It needs a
	// Version and Reduce.
	MigrateState func(from string, raw []byte) (S, error)

	// Mode is what the wait is counted from: Trailing or Window. Zero is
	// Trailing.
	Mode Mode
	// Quiet is the time without an event after which a flush is due. Required
	// in mode Trailing, and only there.
	Quiet time.Duration
	// Window is the time from the first event to the flush. Required in mode
	// Window, and only there.
	Window time.Duration
	// MaxWait bounds the time from the first event to the flush, however many
	// follow. Zero means no bound. Only in mode Trailing.
	MaxWait time.Duration
	// MaxEvents is the number of events that makes a flush due at once. A flush
	// has more of them only if they came while an earlier one was under way, while
	// it waited for Concurrency or StartRate, or while the job was paused. Zero means no such number.
	MaxEvents int
	// MaxPending bounds the events that wait for the next flush, without
	// Reduce: beyond it Add refuses with ErrFull. Zero means 100,000.
	MaxPending int

	// Reduce folds an event into the state of its generation; of the first
	// event, exists is false and state is the zero S. An error refuses the
	// event, and nothing is stored. It runs in a turn: it must be quick and
	// depend on nothing but its arguments. Without Reduce all events are kept,
	// in order. A definition that gains or loses its Reduce needs another Name
	// or empty buffers.
	Reduce func(state S, exists bool, event E) (S, error)
	// Flush is what becomes of a generation; see Flush. It runs beside the
	// object's turns, one at a time for each object. Its ctx ends at Timeout,
	// when the job is terminated and when the host shuts down. Required.
	Flush func(ctx context.Context, f *Flush[E, S]) error

	// Dedup is how long the id of an event is remembered. It must be longer
	// than callers go on repeating an Add. An object that is running, has nothing to
	// flush and owes no call of OnExhausted ends by itself, as by Terminate for
	// jobs.IdleReason, once nothing has changed it for this time and it has forgotten
	// all ids (D6). The next Add makes it anew. One that is paused or failed stays.
	// Zero means 24 hours; it must not be negative.
	Dedup time.Duration

	// Retry says how failed flushes are tried again. The zero Retry tries once.
	Retry jobs.Retry
	// Timeout ends the ctx of one attempt to flush. Zero means no limit.
	Timeout time.Duration
	// Exhausted says what follows when a flush is given up: Fail or Drop. Zero
	// is Fail. Events that cannot be read are never dropped for that: the job fails.
	Exhausted Exhausted
	// OnExhausted is called for each flush that was given up, beside the turns: at
	// least once, unless ten calls in a row end with an error. A repeat, after an
	// error or a crash, has the same Key. Calls for one object come in order, one
	// at a time; flushes go on meanwhile, until 16 calls are owed. With Exhausted Drop
	// the events are gone by then; see there.
	OnExhausted func(ctx context.Context, x *jobs.Exhaustion) error
	// Concurrency is how many flushes of all jobs of this definition may execute at
	// a time in a host. The others wait in the order in which they came due, behind
	// those that a crash has cut off. Zero means no limit.
	Concurrency int
	// StartRate bounds how often they start, retries among them, so that those that a
	// downtime has left come spread over time. Zero means no limit.
	StartRate object.StartRate
	// Execution holds the finer settings of the attempts: leases and recovery.
	// Its Retry, Timeout and LazyAlarm are set by this package. Zero is fit for
	// production.
	Execution jobs.Options
	// Class holds the settings of the objects. Its Works are taken from above. Zero is
	// fit for production.
	Class object.ClassOptions
}

// Exhausted says what follows when the Retry of a flush is used up. A flush whose
// recoveries after crashes are used up always fails the job.
type Exhausted uint8

const (
	// Fail makes the job failed. Its events stay, more are collected, and
	// Resume flushes them with a fresh budget.
	Fail Exhausted = iota
	// Drop discards the events of that flush, with an event that says how many
	// (see EventDropped), and goes on with the next. They are gone in the batch that
	// gives the flush up, so OnExhausted is not told which they were. A Flush that
	// would keep them puts them elsewhere in its last attempt, under its Key, and
	// returns nil. An attempt may be the last one if its Flush.Attempt is at least
	// Retry.MaxAttempts.
	Drop
)

const (
	defaultDedup      = 24 * time.Hour
	defaultMaxPending = 100_000
)

func (c Config[E, S]) withDefaults() Config[E, S] {
	if c.Dedup == 0 {
		c.Dedup = defaultDedup
	}
	if c.MaxPending == 0 {
		c.MaxPending = defaultMaxPending
	}
	c.Execution.Retry, c.Execution.Timeout = c.Retry, c.Timeout
	c.Execution.LazyAlarm = true // an Add in mode Trailing leaves the alarm where it is
	return c
}

// Validate reports the first mistake in c, as an ErrInvalid of package jobs.
func (c Config[E, S]) Validate() error {
	if what := c.mistake(); what != "" {
		return jobs.Invalidf(c.of(), "%s", what)
	}
	events, states := c.events(), c.states()
	for _, err := range []error{c.works().Validate(), events.Validate(), states.Validate(), c.withDefaults().Execution.Validate()} {
		if err != nil {
			return jobs.Invalidf(c.of(), "%w", err)
		}
	}
	return nil
}

// events reads events as they are stored.
func (c *Config[E, S]) events() jobs.Reader[E] {
	return jobs.Reader[E]{Version: c.Version, Migrate: c.MigrateEvent, Field: "MigrateEvent"}
}

// states reads states of generations as they are stored.
func (c *Config[E, S]) states() jobs.Reader[S] {
	return jobs.Reader[S]{Version: c.Version, Migrate: c.MigrateState, Field: "MigrateState"}
}

// of is how errors name the definition.
func (c Config[E, S]) of() string { return strings.TrimSpace("debounce " + c.Name) }

func (c Config[E, S]) mistake() string {
	switch {
	case c.Name == "":
		return "Name is empty"
	case c.Flush == nil:
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
	case c.MigrateEvent != nil && c.Reduce != nil:
		return "MigrateEvent is for events that are kept: with Reduce give MigrateState"
	case c.MigrateState != nil && c.Reduce == nil:
		return "MigrateState is for Reduce: without it give MigrateEvent"
	}
	return ""
}

func (c Config[E, S]) limits() limits {
	if c.Mode == Window {
		return limits{maxWait: c.Window, maxEvents: c.MaxEvents}
	}
	return limits{quiet: c.Quiet, maxWait: c.MaxWait, maxEvents: c.MaxEvents}
}

// works returns the limit of the flushes.
func (c Config[E, S]) works() object.WorkLimit {
	return object.WorkLimit{AtOnce: c.Concurrency, StartRate: c.StartRate}
}

// class returns the settings of the class.
func (c Config[E, S]) class() object.ClassOptions {
	o := jobs.ClassOptions(c.Class)
	if w := c.works(); w.Validate() == nil { // else Validate has told
		o.Works = w
	}
	return o
}
