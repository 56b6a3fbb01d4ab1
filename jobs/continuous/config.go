package continuous

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Config defines a continuous job with a state of type S. Name and Run are
// required; the zero value of each other field is fit for production.
type Config[S any] struct {
	// Name is the class of the jobs. It must not change while jobs of it are
	// stored.
	Name string
	// Version names the form of S, in at most 128 bytes. It is stored in the metadata
	// of each job that this definition wrote, and with each state (J15).
	Version string
	// Migrate makes a state of the bytes of one that was stored under another
	// Version, older or, after a rollback, newer; from is that Version, empty for a
	// state that had none. It is called beside the turns for a run, and in a turn of
	// the job for State, each time until a run has succeeded, which stores the state
	// in its new form. So it must be quick and depend on its arguments alone; raw is
	// a copy. An error or a panic fails the run, and the state stays as it is. Nil:
	// the host's codec decodes states of all versions. It needs a Version.
	Migrate func(from string, raw []byte) (S, error)
	// Run does one run. It changes run.State, a private copy, which is stored
	// when it returns nil. It should return soon after ctx has ended. It may be
	// called again for the same run: after an error if Retry says so, and after
	// a crash. A panic is an error.
	Run func(ctx context.Context, run *Run[S]) error
	// Schedule says when the runs are. Zero means only when triggered.
	Schedule jobs.Schedule
	// Missed says what becomes of runs that could not happen when they were
	// due. Zero means one run for all of them.
	Missed jobs.Missed
	// Retry says how a failed run is tried again. Zero means not at all: the
	// next run is by the schedule.
	Retry jobs.Retry
	// Exhausted says what becomes of a job when a run was given up. Zero means
	// that it goes on by its schedule. A job with a state that cannot be read fails
	// in place of being purged.
	Exhausted jobs.Exhausted
	// OnExhausted is called for each run that was given up, beside the turns: at
	// least once, unless ten calls in a row end with an error. A repeat, after an
	// error or a crash, has the same Key. Calls for one job come in order, one at
	// a time; runs go on meanwhile, until 16 calls are owed. With Exhausted Purge
	// the job is failed until the call is over, and then gone.
	OnExhausted func(ctx context.Context, x *jobs.Exhaustion) error
	// Timeout bounds one execution of Run. Zero means no limit.
	Timeout time.Duration
	// Concurrency is how many runs of all jobs of this definition may execute at
	// a time in a host. The others wait in the order in which they came due, behind
	// those that a crash has cut off. Zero means no limit.
	Concurrency int
	// StartRate bounds how often they start, retries among them, so that those that a
	// downtime has left come spread over time. Zero means no limit.
	StartRate object.StartRate
	// StartLater leaves the first run to the schedule. By default it is begun
	// by Start.
	StartLater bool
	// StartPaused makes Start create a job that is paused. Its first run waits
	// for Resume.
	StartPaused bool
	// Execution has the rarer settings of executions: lease, recovery, events.
	// Its Retry and Timeout are taken from above.
	Execution jobs.Options
	// Class shapes the objects that the jobs are. Its Works are taken from above.
	Class object.ClassOptions
}

// Validate reports the first mistake in c, as a jobs.ErrInvalid. New does it too,
// and Open returns its error.
func (c *Config[S]) Validate() error {
	switch {
	case c.Name == "":
		return jobs.Invalidf("continuous", "Name is empty")
	case c.Run == nil:
		return jobs.Invalidf("continuous "+c.Name, "Run is nil")
	case !c.Missed.Valid():
		return jobs.Invalidf("continuous "+c.Name, "Missed is %d", c.Missed)
	case c.Concurrency < 0:
		return jobs.Invalidf("continuous "+c.Name, "Concurrency must not be negative: %d", c.Concurrency)
	case !c.Exhausted.Valid():
		return jobs.Invalidf("continuous "+c.Name, "Exhausted is %d", c.Exhausted)
	}
	reader := c.reader()
	for _, err := range []error{c.works().Validate(), c.Schedule.Validate(), reader.Validate(), c.execution().Validate()} {
		if err != nil {
			return jobs.Invalidf("continuous "+c.Name, "%w", err)
		}
	}
	return nil
}

// reader reads states as they are stored.
func (c *Config[S]) reader() jobs.Reader[S] {
	return jobs.Reader[S]{Version: c.Version, Migrate: c.Migrate, Field: "Migrate"}
}

// execution returns the settings of the engine.
func (c *Config[S]) execution() jobs.Options {
	o := c.Execution
	o.Retry, o.Timeout = c.Retry, c.Timeout
	return o
}

// works returns the limit of the runs.
func (c *Config[S]) works() object.WorkLimit {
	return object.WorkLimit{AtOnce: c.Concurrency, StartRate: c.StartRate}
}

// class returns the settings of the class.
func (c *Config[S]) class() object.ClassOptions {
	o := jobs.ClassOptions(c.Class)
	if w := c.works(); w.Validate() == nil { // else Validate has told
		o.Works = w
	}
	return o
}
