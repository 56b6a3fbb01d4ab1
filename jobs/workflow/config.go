package workflow

import (
	"cmp"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Config has the settings of a workflow. The zero value is fit for production.
type Config struct {
	// Signals are those that the function waits for. A signal that is not one of them is
	// refused with ErrUnknownSignal, because it would wait for ever.
	Signals Signals
	// Retry says how a failed step is tried again, unless the step has an option of its
	// own. Default: three attempts, 1 s and 2 s after a failure.
	Retry jobs.Retry
	// Concurrency is how many runs of this workflow may execute at a time on a host.
	// Runs that sleep or wait do not count. The others wait in the order in which they
	// came due. Default: 1,000.
	Concurrency int
	// Retention is how long a run that has ended can be asked for. Default: a completed and
	// a cancelled one 7 days, a failed one until Retry or Terminate. With jobs.Forever a run
	// is kept. Stopped has no meaning, because a run is not stopped.
	Retention jobs.Retention
	// MaxEntries and MaxBytes bound the history of a run since its last ContinueAs. A run
	// that has reached one, and needs another entry, is stuck with ErrHistoryFull; a Sleep
	// whose entry is the last still ends in its time, and the function may return behind it.
	// Defaults: 10,000 and 16 MiB.
	MaxEntries int
	MaxBytes   int
	// KeepGenerations is how many histories of earlier generations stay for a look back: ContinueAs
	// keeps the one that ends, and removes the oldest beyond that number. It counts for the
	// generations that begin under it. Each may have MaxBytes; all go with the run. Default: 0.
	KeepGenerations int
	// Lease is how long an execution may go without a sign of life before it counts as
	// lost. The runtime renews the lease of an execution that is alive, however long it
	// takes. A step that ignores the end of its context is given up one Lease after it.
	// Default: 30 s.
	Lease time.Duration
	// StaleThreshold is how old an execution must be before it is recovered in the process
	// that lost it. Default: 30 s.
	StaleThreshold time.Duration
	// RecoveryDelay is the time from the opening of the store to the recovery of runs
	// that an earlier process lost. Default: 100 ms.
	RecoveryDelay time.Duration
	// MaxRecoveries is how many crashes in a row, without a new entry between, may be
	// charged to one run before it is stuck. Default: 3. With a negative number it is stuck
	// at the first crash that cuts it off.
	MaxRecoveries int
	// Class has settings of the objects. Its WorkLimit is ignored: Concurrency replaces it.
	Class object.ClassOptions
}

// Signals are the signals that a workflow waits for.
type Signals []declared

const (
	defaultConcurrency = 1000
	defaultEntries     = 10_000
	defaultBytes       = 16 << 20
	defaultRetention   = 7 * 24 * time.Hour
	maxNameBytes       = 128
)

// withDefaults returns c with each zero field set to its default.
func (c Config) withDefaults() Config {
	if c.Retry.MaxAttempts == 0 {
		c.Retry.MaxAttempts = 3
	}
	if c.Retry.Backoff == (jobs.Backoff{}) {
		c.Retry.Backoff = jobs.Exponential(time.Second, 2*time.Second)
	}
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.MaxEntries, c.MaxBytes = cmp.Or(c.MaxEntries, defaultEntries), cmp.Or(c.MaxBytes, defaultBytes)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Retention.Completed = cmp.Or(c.Retention.Completed, defaultRetention)
	c.Retention.Cancelled = cmp.Or(c.Retention.Cancelled, defaultRetention)
	return c
}

// validate returns the first mistake in c, as a jobs.ErrInvalid.
func (c *Config) validate(name string) error {
	of := "workflow " + name
	switch {
	case c.Concurrency < 0:
		return engine.Invalidf(of, "Concurrency must not be negative: %d", c.Concurrency)
	case c.MaxEntries < 0:
		return engine.Invalidf(of, "MaxEntries must not be negative: %d", c.MaxEntries)
	case c.MaxBytes < 0:
		return engine.Invalidf(of, "MaxBytes must not be negative: %d", c.MaxBytes)
	case c.KeepGenerations < 0:
		return engine.Invalidf(of, "KeepGenerations must not be negative: %d", c.KeepGenerations)
	}
	for _, err := range []error{c.execution().Validate(), c.Retry.Validate(), c.Retention.Validate()} {
		if err != nil {
			return engine.Invalidf(of, "%w", err)
		}
	}
	return nil
}

// The waits between the attempts at a run that is stuck.
var stuckRetry = jobs.Retry{MaxAttempts: 1 << 30, Backoff: jobs.Exponential(time.Minute, 10*time.Minute)}

// execution returns the settings of the engine.
func (c *Config) execution() engine.Options {
	return engine.Options{
		Retry: stuckRetry, Lease: c.Lease, Quiet: true,
		Limits: recovery.Limits{StaleThreshold: c.StaleThreshold, RecoveryDelay: c.RecoveryDelay, MaxRecoveries: c.MaxRecoveries},
	}
}

// class returns the settings of the objects' class.
func (c *Config) class() object.ClassOptions {
	o := engine.ClassOptions(c.Class)
	o.WorkLimit = object.WorkLimit{}
	if c.Concurrency > 0 {
		o.WorkLimit.AtOnce = c.Concurrency
	}
	return o
}
