package workerpool

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

// Config defines a pool of tasks with inputs In and outputs Out. The host's
// codec (object.Options.Codec) encodes both. Only Name is required; every other
// field has a default that is fit for production.
type Config[In, Out any] struct {
	// Name is the class name of the pool's partitions. Stored tasks belong to
	// it, so it must not change while tasks are stored. Required.
	Name string
	// Version names the form of In, in at most 128 bytes. Change it together
	// with In when old inputs need Migrate. A partition stores it once for a
	// range of tasks, so it costs nothing per task (J15).
	Version string
	// Migrate decodes an input that was stored under another Version: an older
	// one or, after a rollback, a newer one. from is that Version; it is empty
	// for an input stored without one. raw is a copy.
	//
	// Migrate is called each time an input is read, because stored inputs are
	// never rewritten: outside of turns for Work and OnDead, within a turn of
	// the partition for Claim and DeadLetters. So it must be quick and depend
	// on its arguments alone. An error or a panic counts as an input that
	// cannot be decoded. Outputs have no version: if an output cannot be
	// decoded, Pool.Status returns its bytes in Status.Raw.
	//
	// Migrate requires a Version. Nil: the codec decodes all inputs.
	Migrate func(from string, raw []byte) (In, error)
	// Work runs one attempt at a task. Up to Concurrency calls run
	// concurrently. If the error is nil, the task is done and the output is
	// stored. ctx ends when the task is cancelled, when Timeout has passed, or
	// when the host shuts down; Work should return soon after that. A panic
	// counts as an error.
	//
	// Nil: tasks wait until outside workers claim them.
	Work func(ctx context.Context, t *Task[In]) (Out, error)

	// OverlapWhileUnconfirmed lets tasks begin and go on while a replicated log does not answer, although another process
	// may own the store by then and run them too; see object.ClassOptions. Default: false, they are cut off after two
	// seconds, at no attempt, and run again when the log answers.
	OverlapWhileUnconfirmed bool
	// Concurrency is how many tasks of the pool may run at a time on this host.
	// It must not be less than Partitions. Default: 16, or Partitions if that
	// is more.
	Concurrency int
	// Partitions is how many objects share the pool's tasks; each has an equal
	// share of Concurrency and MaxQueued. More partitions use more processors.
	// The order of a key and the uniqueness of an idempotency key hold within a
	// partition. Between 1 and 1024. Default: 1.
	//
	// The number may change between two openings of a store. Tasks in a
	// partition that is not used any more still run there, at least one at a
	// time. So a pool that once had more partitions than Concurrency may run as
	// many tasks as it had partitions.
	Partitions int
	// PerKey is how many tasks with the same key may run at a time. Default: 1.
	PerKey int
	// MaxQueued is how many tasks may be pending in the pool, divided equally
	// among its partitions. A partition that has its share returns
	// ErrQueueFull. Default: 10 million.
	MaxQueued int
	// Queues maps the names of queues to weights from 1 to 1000. Queues that
	// have ready tasks share the workers by weight: for example, with weights 3
	// and 1 three of four tasks begin from the first. The queue "" always
	// exists and has weight 1 unless it is named here. Default: only the queue
	// "".
	Queues map[string]int

	// Phases names the phases of a task in their order, for example "download"
	// and "parse", so that Work can call Phase and Task.Progress. A stored result
	// belongs to the name and its place in the list, so while tasks are stored,
	// add names at the end only. At most 64 different names of 1 to 128 bytes.
	// Phases requires Work. Default: none.
	Phases []string

	// Timeout bounds one attempt: its context ends then. Zero means no limit.
	Timeout time.Duration
	// Retry says how often and how soon a failed task is tried again. A lease
	// that an outside worker let expire is a failure. A crash of this process
	// is not, but a task that repeatedly kills its process while it runs alone
	// becomes a dead letter. An input that cannot be decoded is never retried.
	// Default: 3 attempts, with waits of 1 s and 2 s.
	Retry jobs.Retry
	// Lease is how long a running task may go without a sign of life before its
	// attempt fails. The pool renews the leases of its own Work; an outside
	// worker calls Heartbeat. Default: 30 s.
	Lease time.Duration
	// Heartbeat is how often the pool renews the leases of its own Work.
	// Default: a third of Lease.
	Heartbeat time.Duration

	// Retention says how long tasks are kept after their end (W12). Status and Wait can return
	// a done task with its output for Completed, and a cancelled one for Cancelled: at most
	// 100 years, and 1 hour by default. The input is removed at once. With AtOnce nothing
	// is stored, and Wait returns jobs.ErrNotFound when the task has ended. Such a task expires
	// without an event or a call.
	//
	// A dead letter is kept for Failed, or until Replay or DiscardDead if that is zero. It is
	// stale after StaleAfter. OnStale and OnDelete are called for dead letters alone, up to 4
	// calls a partition at a time, with the text of the TaskID as the ID. A letter waits for
	// the calls of OnDead and OnStale that are owed for it. Stopped must be zero, because no
	// task is ever stopped.
	Retention jobs.Retention
	// Webhooks posts the outcomes of tasks with the option Webhook. While object.ErrOutboxFull keeps an outcome from
	// being sent its task does not end, and its Work is called again after 30 s, at no attempt. Nil: no task may have that option.
	Webhooks Webhooks
	// Events adds an event for each start and each success. Failures, retries
	// and dead letters always have one, and so has a success in a pool with Phases,
	// which stores events anyway. Default: false, because most programs
	// read only the latter and each event is a stored row.
	Events bool

	// OnDead is called for each task that becomes a dead letter, outside of
	// turns, up to 4 calls a partition at a time. An input that cannot be
	// decoded is no obstacle: see DeadLetter.DecodeError. It is called at least
	// once, and again after an error or a crash, with the same DeadLetter.ID.
	// The pool gives up after ten calls in a row that failed, or if the call
	// kills its process.
	OnDead func(ctx context.Context, d DeadLetter[In]) error
	// OnEmpty is called outside of turns when the last task of a partition has
	// ended. New tasks may have come before the call. It is called at least
	// once, under the rules of OnDead. If the last task ends again while a
	// failed call waits to be repeated, that repetition serves for both.
	OnEmpty func(ctx context.Context, partition int) error
}

// AtOnce as the Completed or the Cancelled of Config.Retention keeps nothing of such a task once it has
// ended, where zero is a default that keeps it for an hour.
const AtOnce = time.Duration(1)

const (
	defaultConcurrency = 16
	defaultMaxQueued   = 10_000_000
	defaultAttempts    = 3
	defaultKept        = time.Hour

	maxPartitions = 1024
	maxKeyBytes   = 512
	maxQueueBytes = 64
	maxQueues     = 64
	maxWeight     = 1000
	maxPriority   = 1000
	maxBatch      = 10_000 // tasks in one EnqueueBatch
)

// untyped is a Config without its types.
type untyped struct {
	Name, Version                              string
	Partitions, Concurrency, PerKey, MaxQueued int
	Queues                                     map[string]int
	Phases                                     []string
	Timeout, Lease, Heartbeat                  time.Duration
	Retry                                      jobs.Retry
	Retention                                  jobs.Retention
	Webhooks                                   Webhooks
	Events, works                              bool // works: it has a Work
	OnEmpty                                    func(ctx context.Context, partition int) error
	unread                                     error // the mistake in Version and Migrate
}

// untyped returns c without its types.
func (c *Config[In, Out]) untyped() *untyped {
	reader := c.reader()
	return &untyped{
		Name: c.Name, Version: c.Version,
		Partitions: c.Partitions, Concurrency: c.Concurrency, PerKey: c.PerKey, MaxQueued: c.MaxQueued,
		Queues: c.Queues, Phases: c.Phases, Timeout: c.Timeout, Lease: c.Lease, Heartbeat: c.Heartbeat,
		Retry: c.Retry, Retention: c.Retention, Webhooks: c.Webhooks, Events: c.Events, works: c.Work != nil,
		OnEmpty: c.OnEmpty, unread: reader.Validate(),
	}
}

// withDefaults returns a copy of c with each zero field replaced by its
// default.
func (c *untyped) withDefaults() *untyped {
	d := *c
	d.Partitions = cmp.Or(d.Partitions, 1)
	d.Concurrency = cmp.Or(d.Concurrency, max(defaultConcurrency, d.Partitions))
	d.PerKey = cmp.Or(d.PerKey, 1)
	d.MaxQueued = cmp.Or(d.MaxQueued, defaultMaxQueued)
	d.Retention.Completed = cmp.Or(d.Retention.Completed, defaultKept)
	d.Retention.Cancelled = cmp.Or(d.Retention.Cancelled, defaultKept)
	d.Retry.MaxAttempts = cmp.Or(d.Retry.MaxAttempts, defaultAttempts)
	return &d
}

// Validate returns the first mistake in c, as a jobs.ErrInvalid. object.Open does the same.
// It gives zero fields their defaults first, and leaves c as it is.
func (c Config[In, Out]) Validate() error { return c.untyped().withDefaults().invalid() }

// invalid is the error of Validate for a Config that has its defaults.
func (c *untyped) invalid() error {
	if err := c.validate(); err != nil {
		return engine.Invalidf(strings.TrimSpace("workerpool "+c.Name), "%w", err)
	}
	return nil
}

// validate reports the first mistake in a Config that has its defaults.
func (c *untyped) validate() error {
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
	if err := cmp.Or(validPhases(c.Phases, c.works), validRetention(c.Retention), c.unread); err != nil {
		return err
	}
	return c.engine().Validate()
}

// reader decodes stored inputs.
func (c *Config[In, Out]) reader() engine.Reader[In] {
	return engine.Reader[In]{Version: c.Version, Migrate: c.Migrate, Field: "Migrate"}
}

// engine returns the settings of the execution engine. LazyAlarm spares a write
// for each task that begins, because a partition with running tasks already has
// an alarm for its next lease check.
func (c *untyped) engine() engine.Options {
	retry := c.Retry
	retry.RetryIf = retryable(retry.RetryIf)
	return engine.Options{
		Retry: retry, Timeout: c.Timeout, Lease: c.Lease, Heartbeat: c.Heartbeat,
		LossIsFailure: true, LazyAlarm: true, Quiet: !c.Events, TellSuccess: len(c.Phases) > 0,
	}
}

// settings is a Config without its type parameters, so that partition needs
// none.
type settings struct {
	name        string
	version     string // names the form of the inputs stored now
	partitions  int
	concurrency int
	perKey      int
	maxQueued   int
	queues      []*line // names and weights; each partition makes lines of its own
	phases      []string
	retention   jobs.Retention
	webhooks    Webhooks
	window      int // the most entries of a window; tests make it small
	engine      engine.Options

	work    func(ctx context.Context, p *partition, r *row, x engine.Execution, version string) ([]byte, error) // nil: tasks are claimed
	onDead  func(ctx context.Context, p *partition, r *row, version string) error
	onEmpty func(ctx context.Context, partition int) error
	widest  call[int, int] // set by newPool
	pool    any            // the *Pool, which Task.Pool returns
}
