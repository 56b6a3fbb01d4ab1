package workerpool

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Config defines a pool of tasks with inputs In and outputs Out, which are
// encoded by the host's codec. Only Name is required.
type Config[In, Out any] struct {
	// Name is the pool's class name.
	Name string
	// Version names the form of In: at most 128 bytes. It is stored with the inputs
	// of the tasks that are submitted, where it is not that of the tasks before (J15).
	Version string
	// Migrate makes an input of the bytes of one that was stored under another
	// Version, older or, after a rollback, newer; from is that Version, empty for an
	// input that had none. It is called beside the turns for Work and OnDead, and in
	// a turn of the partition for Claim and DeadLetters, each time: the stored input
	// stays as it is. So it must be quick and depend on its arguments alone; raw is a
	// copy. An error or a panic is that of an input that cannot be decoded. Nil: the
	// host's codec decodes inputs of all versions. It needs a Version. Outputs have no
	// version: one that cannot be decoded is told by its task's status, as it is stored.
	Migrate func(from string, raw []byte) (In, error)
	// Work runs a task; it may run several at a time. A nil error means that the
	// task is done and its output is stored. ctx ends when the task is cancelled,
	// has used up its Timeout, or the host shuts down. Nil: tasks wait for
	// outside workers to claim them.
	Work func(ctx context.Context, t *Task[In]) (Out, error)

	// Concurrency is how many tasks may run at a time in the whole pool. It must
	// not be less than Partitions. Default: 16, or Partitions if that is more.
	Concurrency int
	// Partitions is how many objects share the pool's tasks, each with its share
	// of Concurrency. It may be changed between two openings of a store: tasks
	// of a partition that is no longer used still run there, at least one at a
	// time. So if the pool has ever had more partitions than Concurrency, as many
	// tasks as these may run at a time; per-key order and idempotency keys hold within a partition. Default: 1.
	Partitions int
	// PerKey is how many tasks with one key may run at a time. Default: 1.
	PerKey int
	// MaxQueued is how many tasks may be pending in the pool, in equal shares of
	// its partitions; beyond, Enqueue returns ErrQueueFull. Default: 10 million.
	MaxQueued int
	// Queues are the weights of the named queues, from 1 to 1000. Queues that have
	// tasks share the workers by weight. The queue "" is there without being
	// named, with weight 1. Default: the queue "" alone.
	Queues map[string]int

	// Timeout ends the context of one attempt. Zero means no limit.
	Timeout time.Duration
	// Retry says when and how often a failed task is tried again. A lease that an
	// outside worker let end is a failure; a crash of this process is none, but a
	// task that kills its process becomes a dead letter after a few crashes that
	// are charged to it alone. A task whose input cannot be decoded is dead at once,
	// with that error. Default: 3 attempts, after 1 s and 2 s.
	Retry jobs.Retry
	// Lease is how long a running task may be without a sign of life before it
	// counts as failed; for work in this process the pool gives the sign.
	// Default: 30 s.
	Lease time.Duration
	// Heartbeat is how often the pool extends the leases of its own work.
	// Default: a third of Lease.
	Heartbeat time.Duration

	// KeepDone is how long a done or cancelled task, with its output, can be asked
	// for. Its input is dropped at once. Negative: not at all; then Wait ends with
	// jobs.ErrNotFound. Default: 1 hour.
	KeepDone time.Duration
	// Events adds an event for each start and success to those of failures,
	// retries and dead letters.
	Events bool

	// OnDead is called for each task that becomes a dead letter, also for one whose
	// input cannot be decoded (DeadLetter.DecodeError), beside the turns; at least
	// once, unless ten calls in a row fail, or the call kills its process. A repeat,
	// after an error or a crash, has the same ID.
	OnDead func(ctx context.Context, d DeadLetter[In]) error
	// OnEmpty is called, beside the turns, when the last task of a partition has
	// ended; at least once, unless ten calls in a row fail, or the call kills its
	// process. New tasks may have come meanwhile. A last task that ends while a call
	// that failed waits to be repeated asks for no call of its own.
	OnEmpty func(ctx context.Context, partition int) error
}

const (
	defaultConcurrency = 16
	defaultMaxQueued   = 10_000_000
	defaultAttempts    = 3
	defaultKeepDone    = time.Hour

	maxPartitions = 1024
	maxKeyBytes   = 512
	maxQueueBytes = 64
	maxQueues     = 64
	maxWeight     = 1000
	maxPriority   = 1000
	maxBatch      = 10_000 // tasks of one EnqueueBatch
)

func (c *Config[In, Out]) withDefaults() Config[In, Out] {
	d := *c
	d.Partitions = defaultTo(d.Partitions, 1)
	d.Concurrency = defaultTo(d.Concurrency, max(defaultConcurrency, d.Partitions))
	d.PerKey = defaultTo(d.PerKey, 1)
	d.MaxQueued = defaultTo(d.MaxQueued, defaultMaxQueued)
	d.KeepDone = defaultTo(d.KeepDone, defaultKeepDone)
	d.Retry.MaxAttempts = defaultTo(d.Retry.MaxAttempts, defaultAttempts)
	return d
}

func defaultTo[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// validate reports the first mistake in a config with its defaults.
func (c *Config[In, Out]) validate() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("%w: Name is empty", jobs.ErrInvalid)
	case c.Partitions < 0 || c.Partitions > maxPartitions:
		return fmt.Errorf("%w: Partitions must be from 1 to %d", jobs.ErrInvalid, maxPartitions)
	case c.Concurrency < c.Partitions:
		return fmt.Errorf("%w: Concurrency %d is less than Partitions %d", jobs.ErrInvalid, c.Concurrency, c.Partitions)
	case c.PerKey < 0:
		return fmt.Errorf("%w: PerKey must not be negative: %d", jobs.ErrInvalid, c.PerKey)
	case c.MaxQueued < 0:
		return fmt.Errorf("%w: MaxQueued must not be negative: %d", jobs.ErrInvalid, c.MaxQueued)
	case len(c.Queues) > maxQueues:
		return fmt.Errorf("%w: more than %d queues", jobs.ErrInvalid, maxQueues)
	}
	for name, weight := range c.Queues {
		if weight < 1 || weight > maxWeight {
			return fmt.Errorf("%w: weight of queue %q must be from 1 to %d", jobs.ErrInvalid, name, maxWeight)
		}
		if len(name) > maxQueueBytes {
			return fmt.Errorf("%w: name of queue %q is longer than %d bytes", jobs.ErrInvalid, name, maxQueueBytes)
		}
	}
	reader := c.reader()
	if err := reader.Validate(); err != nil {
		return err
	}
	return c.engine().Validate()
}

// reader reads inputs as they are stored.
func (c *Config[In, Out]) reader() jobs.Reader[In] {
	return jobs.Reader[In]{Version: c.Version, Migrate: c.Migrate, Field: "Migrate"}
}

// engine returns the settings of the execution engine.
func (c *Config[In, Out]) engine() jobs.Options {
	retry := c.Retry
	retry.RetryIf = retryable(retry.RetryIf)
	return jobs.Options{
		Retry: retry, Timeout: c.Timeout, Lease: c.Lease, Heartbeat: c.Heartbeat,
		LossIsFailure: true, LazyAlarm: true, Quiet: !c.Events,
	}
}
