package workerpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	config    Config[In, Out]
	set       *settings
	reader    engine.Reader[In]
	validates bool // whether a value of type In can be a Validator

	enqueue     *object.Method[submission[In], TaskRef]
	batch       *object.Method[[]submission[In], []TaskRef]
	info        *object.Method[uint64, Status[Out]]
	phaseResult *object.Method[phaseName, phaseValue]
	allResults  *object.Method[uint64, []PhaseResult]
	wait        *object.Method[uint64, Status[Out]]
	waitEmpty   *object.Method[struct{}, struct{}]
	stats       *object.Method[struct{}, Stats]
	mode        *object.Method[Mode, struct{}]
	cancel      *object.Method[uint64, State]
	discard     *object.Method[discardPart, discarded]
	widest      *object.Method[int, int]
	letters     *object.Method[page, lettersPage[In]]
	replay      *object.Method[lettersPart, lettersTaken]
	discardDead *object.Method[lettersPart, lettersTaken]
	claim       *object.Method[claimPart, []Claim[In]]
	heartbeat   *object.Method[Lease, Lease]
	ack         *object.Method[receipt[Out], struct{}]
	nack        *object.Method[refusal, struct{}]
}

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
	p := &Pool[In, Out]{config: c.withDefaults(), validates: mayValidate[In]()}
	p.reader = p.config.reader()
	p.set = p.settings()
	p.Class = object.Define(c.Name, func(ctx context.Context, st *object.State) (*partition, error) {
		return newPartition(ctx, st, p.set)
	}, engine.ClassOptions(object.ClassOptions{OverlapWhileUnconfirmed: c.OverlapWhileUnconfirmed}))
	if err := c.Validate(); err != nil {
		p.Class.Reject(err)
	}
	p.handle()
	p.set.widest = p.widest
	return p
}

// settings strips the type parameters from the Config.
func (p *Pool[In, Out]) settings() *settings {
	c := &p.config
	set := &settings{
		name: c.Name, version: c.Version, partitions: c.Partitions, concurrency: c.Concurrency, perKey: c.PerKey,
		maxQueued: c.MaxQueued, retention: c.Retention, webhooks: c.Webhooks, window: windowMax, engine: c.engine(), onEmpty: c.OnEmpty,
		phases: slices.Clone(c.Phases), pool: p,
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
	if c.Work != nil {
		set.work = p.work
	}
	if c.OnDead != nil {
		set.onDead = func(ctx context.Context, part *partition, r *row, version string) error {
			return c.OnDead(ctx, p.letterOf(part, r, version))
		}
	}
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
	if len(part.set.phases) > 0 {
		t.attempt = &attempt{part: part, num: r.num, token: x.Token}
	}
	out, err := p.config.Work(ctx, t)
	if err != nil || part.set.keeps(Done) == 0 && r.rare.Webhook == nil { // an output that is not kept need not be encoded
		return nil, err
	}
	return part.encode("output", out)
}

// handle registers the methods of a partition with the class.
func (p *Pool[In, Out]) handle() {
	c := p.Class
	p.enqueue = object.Handle(c, "enqueue", func(part *partition, ctx context.Context, s submission[In]) (TaskRef, error) {
		input, err := part.encode("input", s.In)
		if err != nil {
			return TaskRef{}, err
		}
		return turn(ctx, part, func(ctx context.Context) (TaskRef, error) { return part.submit(ctx, input, s.Options) })
	}, object.Sent(func(submission[In]) TaskRef { return TaskRef{Sent: true} }))
	p.batch = object.Handle(c, "enqueueBatch", enqueueBatch[In], object.Sent(allSent[In]))
	p.info = object.Handle(c, "info", func(part *partition, ctx context.Context, num uint64) (Status[Out], error) {
		r, err := part.look(ctx, num)
		s, err := statusOf[Out](part, r, err)
		if err == nil {
			s.Phases, s.Percent, err = part.phasesOf(ctx, r)
		}
		return s, err
	})
	p.phaseResult = object.Handle(c, "phaseResult", (*partition).phaseResult)
	p.allResults = object.Handle(c, "phaseResults", (*partition).phaseResults)
	p.wait = object.Handle(c, "wait", func(part *partition, ctx context.Context, num uint64) (Status[Out], error) {
		r, err := part.wait(ctx, num)
		return statusOf[Out](part, r, err)
	})
	p.waitEmpty = object.Handle(c, "waitEmpty", (*partition).waitEmpty)
	p.stats = object.Handle(c, "stats", (*partition).stats)
	p.mode = object.Handle(c, "mode", (*partition).setMode)
	p.cancel = object.Handle(c, "cancel", (*partition).cancel, object.Sent(func(uint64) State { return Sent }))
	p.discard = object.Handle(c, "discard", (*partition).discard)
	p.widest = object.Handle(c, "widest", (*partition).known)
	p.letters = object.Handle(c, "deadLetters", p.pageOf)
	p.replay = object.Handle(c, "replay", (*partition).replay)
	p.discardDead = object.Handle(c, "discardDead", (*partition).discardDead)
	p.claim = object.Handle(c, "claim", p.claimAll)
	p.heartbeat = object.Handle(c, "heartbeat", (*partition).heartbeat)
	p.ack = object.Handle(c, "ack", func(part *partition, ctx context.Context, r receipt[Out]) (struct{}, error) {
		output, err := part.encode("output", r.Out)
		if err != nil {
			return struct{}{}, err
		}
		return part.ack(ctx, r.Lease, output)
	})
	p.nack = object.Handle(c, "nack", (*partition).nack)
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
	return turn(ctx, part, func(ctx context.Context) ([]TaskRef, error) { return part.submitAll(ctx, inputs, options) })
}

// allSent is the answer of a batch that is sent.
func allSent[In any](all []submission[In]) []TaskRef {
	refs := make([]TaskRef, len(all))
	for i := range refs {
		refs[i].Sent = true
	}
	return refs
}

// objects calls f with the name of each partition that the pool ever had, one
// after another, until f returns an error.
func (p *Pool[In, Out]) objects(ctx context.Context, from object.Caller, f func(name string) error) error {
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
func (p *Pool[In, Out]) partitions(ctx context.Context, from object.Caller) (int, error) {
	n, err := p.widest.Call(ctx, from, "0", 0)
	return max(n, p.config.Partitions), err
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
	if bad := p.reader.Read(part.st.Driver().Codec(), version, r.input, in); bad != nil {
		return &undecodable{bad.Of(part.st.ID(), "input of task "+part.id(r.num).String())}
	}
	return nil
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
	t := &Task[In]{
		ID: part.id(r.num), Key: r.key, Queue: r.queue, Priority: r.priority,
		Attempt: x.Run.Failed() + 1, OutsideKey: x.Key, Enqueued: timeOf(r.enqueued), part: part,
	}
	return t, p.input(part, r, version, &t.In)
}
