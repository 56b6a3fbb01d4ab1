package continuous

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Config defines a continuous job with a state of type S. Name and Run are
// required; every other field has a default that is fit for production.
type Config[S any] struct {
	// Name is the class name of the jobs. Stored jobs belong to it, so it must
	// not change while jobs are stored. Required.
	Name string
	// Version names the form of S, in at most 128 bytes. Change it together
	// with S when old states need Migrate. It is stored with each job's
	// metadata and with each state (J15).
	Version string
	// Migrate decodes a state that was stored under another Version: an older
	// one or, after a rollback, a newer one. from is that Version; it is empty
	// for a state stored without one. raw is a copy.
	//
	// It is called each time the state is read, until a run has succeeded and
	// stored the state in its new form: outside of turns for a run, within a
	// turn of the job for State. So it must be quick and depend on its
	// arguments alone. An error or a panic fails the run, and the stored state
	// stays as it is. It requires a Version. Nil: the codec decodes all states.
	Migrate func(from string, raw []byte) (S, error)
	// Run does one run. It changes run.State, a private copy, which is stored
	// if Run returns nil. It may be called again for the same run: after an
	// error if Retry says so, and after a crash. A panic counts as an error.
	// ctx ends at Timeout, when the job is stopped or terminated, and when the
	// host shuts down; Run should return soon after that. Required.
	Run func(ctx context.Context, run *Run[S]) error
	// Schedule says when runs are due. The zero Schedule means only by Trigger.
	Schedule jobs.Schedule
	// Missed says how many runs make up for those that were missed, for example
	// while the process was down. Default: one run for all of them.
	Missed jobs.Missed
	// Retry says how often and how soon a failed run is tried again. The zero
	// Retry does not retry: the next run is by the schedule.
	Retry jobs.Retry
	// Exhausted says what happens to the job when Retry is used up. Default: it
	// goes on by its schedule. A job with a state that cannot be decoded is
	// never purged; it fails.
	Exhausted jobs.Exhausted
	// OnExhausted is called for each run that was given up, outside of turns.
	// It is called at least once, and again after an error or a crash, with the
	// same Exhaustion.Key, until ten calls in a row have failed. Calls for one
	// job come one at a time and in order. Runs continue meanwhile, until 16
	// calls are owed. With Exhausted Purge the job is failed until the call is
	// over, and then purged.
	OnExhausted func(ctx context.Context, x *jobs.Exhaustion) error
	// Retention says how long a failed or stopped job is kept, when it becomes stale, and which
	// hooks are called then. Default: it is kept until Resume or Terminate.
	Retention jobs.Retention
	// Timeout bounds one execution of Run: its ctx ends then. Zero means no
	// limit.
	Timeout time.Duration
	// Concurrency is how many runs of this definition may execute at a time on
	// a host. The other runs wait in the order in which they came due, behind
	// those that a crash cut off. Zero means no limit.
	Concurrency int
	// StartRate bounds how often runs start, retries included, so that the runs
	// that came due during a downtime are spread over time. Zero means no
	// limit.
	StartRate object.StartRate
	// StartLater leaves the first run to the schedule. By default Start begins
	// it at once.
	StartLater bool
	// StartPaused makes Start create a paused job. Its first run waits for
	// Resume.
	StartPaused bool
	// Lease is how long an execution may go without a sign of life before it
	// counts as lost. The runtime renews the lease of work that is alive,
	// however long that takes. Default: 30 s.
	Lease time.Duration
	// Heartbeat is how often the runtime renews a lease; it must be less than
	// Lease. Default: a third of Lease.
	Heartbeat time.Duration
	// StaleThreshold is how old an execution must be before it is recovered in
	// the process that lost its work (R2). Default: 30 s.
	StaleThreshold time.Duration
	// RecoveryDelay is the time from the opening of the store to the recovery
	// of executions that an earlier process lost (R2). Default: 100 ms.
	RecoveryDelay time.Duration
	// MaxRecoveries is how many crashes in a row may be charged to one run
	// before its job fails, and how often a living process may lose it (R4).
	// Default: 3. With a negative number the job fails at the first crash that
	// cuts the run off.
	MaxRecoveries int
	// FewEvents leaves out the events of starts, successes and snoozes, so that
	// a job that runs often stores fewer rows. Failures and calls of the job's
	// methods always emit theirs.
	FewEvents bool
	// Class has settings of the objects. Its WorkLimit is ignored: Concurrency and
	// StartRate replace it.
	Class object.ClassOptions
}

// Validate returns the first mistake in c, as a jobs.ErrInvalid. object.Open
// does the same.
func (c *Config[S]) Validate() error { return c.untyped().validate() }

// untyped is a Config without its type.
type untyped struct {
	Name, Version           string
	Schedule                jobs.Schedule
	Missed                  jobs.Missed
	Retry                   jobs.Retry
	Exhausted               jobs.Exhausted
	OnExhausted             func(ctx context.Context, x *jobs.Exhaustion) error
	Retention               jobs.Retention
	Timeout                 time.Duration
	Concurrency             int
	StartRate               object.StartRate
	StartLater, StartPaused bool
	Lease, Heartbeat        time.Duration
	StaleThreshold          time.Duration
	RecoveryDelay           time.Duration
	MaxRecoveries           int
	FewEvents               bool
	Class                   object.ClassOptions
	runs                    bool  // it has a Run
	unread                  error // the mistake in Version and Migrate
}

// untyped returns c without its type.
func (c *Config[S]) untyped() *untyped {
	reader := c.reader()
	return &untyped{
		Name: c.Name, Version: c.Version, Schedule: c.Schedule, Missed: c.Missed, Retry: c.Retry,
		Exhausted: c.Exhausted, OnExhausted: c.OnExhausted, Retention: c.Retention, Timeout: c.Timeout,
		Concurrency: c.Concurrency, StartRate: c.StartRate, StartLater: c.StartLater, StartPaused: c.StartPaused,
		Lease: c.Lease, Heartbeat: c.Heartbeat, StaleThreshold: c.StaleThreshold, RecoveryDelay: c.RecoveryDelay,
		MaxRecoveries: c.MaxRecoveries, FewEvents: c.FewEvents, Class: c.Class, runs: c.Run != nil, unread: reader.Validate(),
	}
}

// validate is Validate.
func (c *untyped) validate() error {
	switch {
	case c.Name == "":
		return engine.Invalidf("continuous", "Name is empty")
	case !c.runs:
		return engine.Invalidf("continuous "+c.Name, "Run is nil")
	case !c.Missed.Valid():
		return engine.Invalidf("continuous "+c.Name, "Missed is %d: want RunOnce, RunEach or Skip", c.Missed)
	case c.Concurrency < 0:
		return engine.Invalidf("continuous "+c.Name, "Concurrency must not be negative: %d", c.Concurrency)
	case !c.Exhausted.Valid():
		return engine.Invalidf("continuous "+c.Name, "Exhausted is %d: want Keep, Fail or Purge", c.Exhausted)
	}
	for _, err := range []error{c.workLimit().Validate(), c.Schedule.Validate(), c.unread, c.execution().Validate(), c.Retention.Validate()} {
		if err != nil {
			return engine.Invalidf("continuous "+c.Name, "%w", err)
		}
	}
	return nil
}

// reader decodes stored states.
func (c *Config[S]) reader() engine.Reader[S] {
	return engine.Reader[S]{Version: c.Version, Migrate: c.Migrate, Field: "Migrate"}
}

// execution returns the settings of the engine.
func (c *untyped) execution() engine.Options {
	return engine.Options{
		Retry: c.Retry, Timeout: c.Timeout, Lease: c.Lease, Heartbeat: c.Heartbeat, Quiet: c.FewEvents,
		Limits: recovery.Limits{StaleThreshold: c.StaleThreshold, RecoveryDelay: c.RecoveryDelay, MaxRecoveries: c.MaxRecoveries},
	}
}

// workLimit returns the limit on concurrent runs.
func (c *untyped) workLimit() object.WorkLimit {
	return object.WorkLimit{AtOnce: c.Concurrency, StartRate: c.StartRate}
}

// class returns the settings of the objects' class.
func (c *untyped) class() object.ClassOptions {
	o := engine.ClassOptions(c.Class)
	if l := c.workLimit(); l.Validate() == nil { // otherwise Validate reports it
		o.WorkLimit = l
	}
	return o
}
