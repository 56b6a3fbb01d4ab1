package workerpool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Pool is a durable queue of tasks, together with the Work that runs them. Make
// it once, at package level, and pass it to object.Open as a Definition. It
// holds no connection and no goroutine, so one Pool may serve several hosts.
//
// All methods are safe for concurrent use. from is a *object.Host in a program,
// or the *object.State, Task, Run or Flush of the code that calls. A call from
// a host returns when its effect is durable.
type Pool[In, Out any] struct {
	*object.Class[partition]
	control
	config    Config[In, Out]
	reader    engine.Reader[In]
	validates bool // whether a value of type In can be a Validator

	enqueue call[submission[In], TaskRef]
	batch   call[[]submission[In], []TaskRef]
	info    call[uint64, Status[Out]]
	wait    call[uint64, Status[Out]]
	letters call[page, lettersPage[In]]
	claim   call[claimPart, []Claim[In]]
	ack     call[receipt[Out], struct{}]
}

// control has the methods of a Pool that have none of its types. The compiler makes the code of a Pool again for each In
// and Out, in each package that uses one, so a Pool itself has only what needs them.
// The methods here are not inlined, because each Pool has wrappers of them.
type control struct{ pool *pool }

// pool is a Pool without its types.
type pool struct {
	set   *settings
	calls calls
}

// calls are the methods of a partition that have no type of the Pool. They are functions, because the compiler would make an
// object.Method again in each package to whose types it belongs.
type calls struct {
	phaseResult  call[phaseName, phaseValue]
	phaseResults call[uint64, []PhaseResult]
	waitEmpty    call[struct{}, struct{}]
	stats        call[struct{}, Stats]
	mode         call[Mode, struct{}]
	cancel       call[uint64, State]
	discard      call[discardPart, discarded]
	widest       call[int, int]
	replay       call[lettersPart, lettersTaken]
	discardDead  call[lettersPart, lettersTaken]
	heartbeat    call[Lease, Lease]
	nack         call[refusal, struct{}]
}

// call is what object.HandleCall returns.
type call[A, R any] = func(ctx context.Context, from object.Caller, name string, arg A, opts ...object.CallOption) (R, error)

// submission is a task on its way to its partition.
type submission[In any] struct {
	In      In
	Options options
}

// receipt is an Ack on its way to the partition.
type receipt[Out any] struct {
	Lease Lease
	Out   Out
}

// New makes a pool. It does not fail: object.Open returns the mistakes in c.
func New[In, Out any](c Config[In, Out]) *Pool[In, Out] {
	p := &Pool[In, Out]{control: control{&pool{}}, config: c, reader: c.reader(), validates: mayValidate(reflect.TypeFor[In]())}
	p.Class = p.pool.open(c.untyped(), c.OverlapWhileUnconfirmed)
	p.handle()
	p.pool.set.pool = p
	if c.Work != nil {
		p.pool.set.work = p.work
	}
	if c.OnDead != nil {
		p.pool.set.onDead = func(ctx context.Context, part *partition, r *row, version string) error {
			return p.config.OnDead(ctx, p.letterOf(part, r, version))
		}
	}
	return p
}

// open makes the class of a pool with the methods that have none of its types.
func (p *pool) open(c *untyped, overlap bool) *object.Class[partition] {
	c = c.withDefaults()
	set := c.settings()
	p.set = set
	class := object.Define(c.Name, func(ctx context.Context, st *object.State) (*partition, error) {
		return newPartition(ctx, st, set)
	}, engine.ClassOptions(object.ClassOptions{OverlapWhileUnconfirmed: overlap}))
	class.Reject(c.invalid())
	p.calls = calls{
		phaseResult:  object.HandleCall(class, "phaseResult", (*partition).phaseResult),
		phaseResults: object.HandleCall(class, "phaseResults", (*partition).phaseResults),
		waitEmpty:    object.HandleCall(class, "waitEmpty", (*partition).waitEmpty),
		stats:        object.HandleCall(class, "stats", (*partition).stats),
		mode:         object.HandleCall(class, "mode", (*partition).setMode),
		cancel:       object.HandleCall(class, "cancel", (*partition).cancel, object.Sent(func(uint64) State { return Sent })),
		discard:      object.HandleCall(class, "discard", (*partition).discard),
		widest:       object.HandleCall(class, "widest", (*partition).known),
		replay:       object.HandleCall(class, "replay", (*partition).replay),
		discardDead:  object.HandleCall(class, "discardDead", (*partition).discardDead),
		heartbeat:    object.HandleCall(class, "heartbeat", (*partition).heartbeat),
		nack:         object.HandleCall(class, "nack", (*partition).nack),
	}
	set.widest = p.calls.widest
	return class
}

// settings returns those of a partition, for a Config that has its defaults.
func (c *untyped) settings() *settings {
	set := &settings{
		name: c.Name, version: c.Version, partitions: c.Partitions, concurrency: c.Concurrency, perKey: c.PerKey,
		maxQueued: c.MaxQueued, retention: c.Retention, webhooks: c.Webhooks, window: windowMax, engine: c.engine(), onEmpty: c.OnEmpty,
		phases: slices.Clone(c.Phases),
		queues: []*line{{name: "", weight: 1}},
	}
	for name, weight := range c.Queues {
		if name == "" {
			set.queues[0].weight = uint64(weight)
			continue
		}
		set.queues = append(set.queues, &line{name: name, weight: uint64(weight)})
	}
	slices.SortFunc(set.queues, func(a, b *line) int { return strings.Compare(a.name, b.name) })
	return set
}

// Errors of the methods of a Pool, besides jobs.ErrNotFound, jobs.ErrInvalid
// and jobs.ErrStaleExecution. A call that returns one has changed nothing.
var (
	// ErrQueueFull refuses a task because Config.MaxQueued tasks are pending.
	// Submit it again later. A task that was sent with an Outbox waits.
	ErrQueueFull error = busy("workerpool: queue is full")
	// ErrDraining refuses a task because Drain was called. Resume ends that. A
	// task that was sent with an Outbox waits.
	ErrDraining error = busy("workerpool: pool is draining")
	// ErrFailed is the error of Wait for a dead letter.
	ErrFailed = errors.New("workerpool: task is dead")
	// ErrCancelled is the error of Wait for a cancelled task. It is also the
	// cause of the context of a running task that Cancel was called for.
	ErrCancelled = errors.New("workerpool: task is cancelled")
)

// busy is the error of a pool that takes no tasks for a while.
type busy string

func (b busy) Error() string { return string(b) }

// Retryable says that a message which is refused waits, in its order, and costs no attempt.
func (busy) Retryable() bool { return true }

// Kinds of the events of a partition, besides those that the engine emits for
// each execution. jobs.Event.Subject is "task/" and the number for a task,
// "dead/" and the number for a call of OnDead, "OnStale/" or "OnDelete/" and the number for
// one of the Retention, and "empty" for a call of OnEmpty. jobs.EventStale and
// jobs.EventRetentionFailed are of a dead letter.
const (
	EventCancelled = "cancelled" // a task was cancelled
	EventReplayed  = "replayed"  // a dead letter became pending again
	EventDeleted   = "deleted"   // a dead letter is gone, because its time under Config.Retention was over
	EventMode      = "mode"      // the partition has the mode in jobs.Event.Reason
	// EventPhase tells of a phase of a task, as jobs.Event.Reason says: "start",
	// "progress", "success", "failure" or "cancelled". Beside the fields of
	// jobs.Event it has the PhaseStatus as "phase" and Status.Percent as "percent".
	EventPhase = "phase"
)

// work decodes the input, runs Config.Work and encodes the output. version is
// that of the stored input.
func (p *Pool[In, Out]) work(ctx context.Context, part *partition, r *row, x engine.Execution, version string) ([]byte, error) {
	t, err := p.taskOf(part, r, &x, version)
	if err != nil {
		return nil, err
	}
	t.attempt = part.attempt(r, x)
	out, err := p.config.Work(ctx, t)
	if err != nil || !part.keepsOutput(r) { // an output that is not kept need not be encoded
		return nil, err
	}
	return part.encode("output", out)
}

// attempt is the execution of a task as its Work sees it; nil in a pool without phases.
func (p *partition) attempt(r *row, x engine.Execution) *attempt {
	if len(p.set.phases) == 0 {
		return nil
	}
	return &attempt{part: p, num: r.num, token: x.Token}
}

// keepsOutput reports whether the output of a task is stored or posted.
func (p *partition) keepsOutput(r *row) bool { return p.set.keeps(Done) != 0 || r.rare.Webhook != nil }

// handle registers the methods of a partition that have types of the pool.
func (p *Pool[In, Out]) handle() {
	c := p.Class
	p.enqueue = object.HandleCall(c, "enqueue", func(part *partition, ctx context.Context, s submission[In]) (TaskRef, error) {
		input, err := part.encode("input", s.In)
		if err != nil {
			return TaskRef{}, err
		}
		return part.submitOne(ctx, input, s.Options)
	}, object.Sent(func(submission[In]) TaskRef { return TaskRef{Sent: true} }))
	p.batch = object.HandleCall(c, "enqueueBatch", enqueueBatch[In], object.Sent(func(all []submission[In]) []TaskRef { return allSent(len(all)) }))
	p.info = object.HandleCall(c, "info", func(part *partition, ctx context.Context, num uint64) (Status[Out], error) {
		r, err := part.look(ctx, num)
		s, err := statusOf[Out](part, r, err)
		if err == nil {
			s.Phases, s.Percent, err = part.phasesOf(ctx, r)
		}
		return s, err
	})
	p.wait = object.HandleCall(c, "wait", func(part *partition, ctx context.Context, num uint64) (Status[Out], error) {
		r, err := part.wait(ctx, num)
		return statusOf[Out](part, r, err)
	})
	p.letters = object.HandleCall(c, "deadLetters", p.pageOf)
	p.claim = object.HandleCall(c, "claim", p.claimAll)
	p.ack = object.HandleCall(c, "ack", func(part *partition, ctx context.Context, r receipt[Out]) (struct{}, error) {
		output, err := part.encode("output", r.Out)
		if err != nil {
			return struct{}{}, err
		}
		return part.ack(ctx, r.Lease, output)
	})
}

// enqueueBatch submits the tasks of one partition in one turn: all of them or
// none.
func enqueueBatch[In any](part *partition, ctx context.Context, all []submission[In]) ([]TaskRef, error) {
	inputs, options := make([][]byte, len(all)), make([]options, len(all))
	for i, s := range all {
		var err error
		if inputs[i], err = part.encode("input", s.In); err != nil {
			return nil, &refusedTask{i, err}
		}
		options[i] = s.Options
	}
	return part.submitBatch(ctx, inputs, options)
}

// allSent is the answer of a batch of n tasks that is sent.
func allSent(n int) []TaskRef {
	refs := make([]TaskRef, n)
	for i := range refs {
		refs[i].Sent = true
	}
	return refs
}

// objects calls f with the name of each partition that the pool ever had, one
// after another, until f returns an error.
func (p *pool) objects(ctx context.Context, from object.Caller, f func(name string) error) error {
	n, err := p.partitions(ctx, from)
	if err != nil {
		return err
	}
	for i := range n {
		if err := f(strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

// partitions is the largest number of partitions that the pool ever had.
func (p *pool) partitions(ctx context.Context, from object.Caller) (int, error) {
	n, err := p.calls.widest(ctx, from, "0", 0)
	return max(n, p.set.partitions), err
}

// Conversions between rows, which the partition handles, and the user's types
// In and Out. The partition itself is not generic, so these are functions of
// the Pool.

// encode encodes an input or an output with the host's codec.
func (p *partition) encode(what string, v any) ([]byte, error) {
	b, err := p.st.Driver().Codec().Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%s: encode %s: %w", p.st.ID(), what, err)
	}
	return b, nil
}

// input decodes the input of a task that was stored under the given version.
func (p *Pool[In, Out]) input(part *partition, r *row, version string, in *In) error {
	return part.undecodable(r, p.reader.Read(part.st.Driver().Codec(), version, r.input, in))
}

// undecodable is the error of an input that cannot be decoded; nil: it can.
func (p *partition) undecodable(r *row, bad *jobs.DecodeError) error {
	if bad == nil {
		return nil
	}
	return &undecodable{bad.Of(p.st.ID(), "input of task "+p.id(r.num).String())}
}

// undecodable wraps the error of an input that cannot be decoded. Such a task
// is not retried, because the stored bytes stay the same.
type undecodable struct{ err error }

func (u *undecodable) Error() string { return u.err.Error() }
func (u *undecodable) Unwrap() error { return u.err }

// retryable is the RetryIf of the engine: it refuses inputs that cannot be
// decoded and otherwise asks Config.Retry.RetryIf.
func retryable(asked func(error) bool) func(error) bool {
	return func(err error) bool {
		bad := (*undecodable)(nil)
		return !errors.As(err, &bad) && (asked == nil || asked(err))
	}
}

// timeOf converts stored nanoseconds to a time; 0 is the zero time.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// taskOf makes the Task that Work or Claim gets. With an error, all fields but
// In are set.
func (p *Pool[In, Out]) taskOf(part *partition, r *row, x *engine.Execution, version string) (*Task[In], error) {
	t := &Task[In]{part: part}
	t.ID, t.Key, t.Queue, t.Priority, t.Enqueued = part.id(r.num), r.key, r.queue, r.priority, timeOf(r.enqueued)
	t.Attempt, t.OutsideKey = x.Run.Failed()+1, x.Key
	return t, p.input(part, r, version, &t.In)
}
