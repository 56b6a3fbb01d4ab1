package workerpool

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Pool is a durable queue of tasks and what runs them. It is a value of the
// program, made once at package level and given to object.Open as a Definition;
// it holds nothing of any host. Its methods may be called from any task, with a
// *object.Host as the caller from outside of objects, and the *object.State
// inside of one. From outside they return when what they tell of is durable.
type Pool[In, Out any] struct {
	*object.Class[partition]
	config    Config[In, Out]
	set       *settings
	reader    jobs.Reader[In]
	validates bool // some In is a Validator

	enqueue     *object.Method[submission[In], TaskRef]
	batch       *object.Method[[]submission[In], []TaskRef]
	info        *object.Method[uint64, Info[Out]]
	wait        *object.Method[uint64, Info[Out]]
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

// receipt is an Ack.
type receipt[Out any] struct {
	Lease Lease
	Out   Out
}

// New makes a pool. Mistakes in c are reported by object.Open.
func New[In, Out any](c Config[In, Out]) *Pool[In, Out] {
	p := &Pool[In, Out]{config: c.withDefaults(), validates: mayValidate[In]()}
	p.reader = p.config.reader()
	p.set = p.settings()
	p.Class = object.Define(c.Name, func(ctx context.Context, st *object.State) (*partition, error) {
		return newPartition(ctx, st, p.set)
	}, jobs.ClassOptions(object.ClassOptions{}))
	if err := p.config.validate(); err != nil {
		p.Class.Reject(jobs.Invalidf(strings.TrimSpace("workerpool "+c.Name), "%w", err))
	}
	p.handle()
	p.set.widest = p.widest
	return p
}

func (p *Pool[In, Out]) settings() *settings {
	c := &p.config
	set := &settings{
		name: c.Name, version: c.Version, partitions: c.Partitions, concurrency: c.Concurrency, perKey: c.PerKey,
		maxQueued: c.MaxQueued, keepDone: c.KeepDone, window: windowMax, engine: c.engine(), onEmpty: c.OnEmpty,
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

// work runs a task and encodes its output. The version is that of the stored input.
func (p *Pool[In, Out]) work(ctx context.Context, part *partition, r *row, x jobs.Execution, version string) ([]byte, error) {
	t, err := p.taskOf(part, r, &x, version)
	if err != nil {
		return nil, err
	}
	out, err := p.config.Work(ctx, t)
	if err != nil || part.set.keepDone < 0 { // an output that is not kept is not encoded
		return nil, err
	}
	return part.encode("output", out)
}

// handle adds the methods of a partition to the class.
func (p *Pool[In, Out]) handle() {
	c := p.Class
	p.enqueue = object.Handle(c, "enqueue", func(part *partition, ctx context.Context, s submission[In]) (TaskRef, error) {
		input, err := part.encode("input", s.In)
		if err != nil {
			return TaskRef{}, err
		}
		return turn(ctx, part, func(ctx context.Context) (TaskRef, error) { return part.submit(ctx, input, s.Options) })
	})
	p.batch = object.Handle(c, "enqueueBatch", enqueueBatch[In])
	p.info = object.Handle(c, "info", func(part *partition, ctx context.Context, num uint64) (Info[Out], error) {
		r, err := part.look(ctx, num)
		return infoOf[Out](part, r, err)
	})
	p.wait = object.Handle(c, "wait", func(part *partition, ctx context.Context, num uint64) (Info[Out], error) {
		r, err := part.wait(ctx, num)
		return infoOf[Out](part, r, err)
	})
	p.waitEmpty = object.Handle(c, "waitEmpty", (*partition).waitEmpty)
	p.stats = object.Handle(c, "stats", (*partition).stats)
	p.mode = object.Handle(c, "mode", (*partition).setMode)
	p.cancel = object.Handle(c, "cancel", (*partition).cancel)
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

// enqueueBatch submits tasks in one turn: all or none.
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

// objects calls f with the name of each partition that the pool has ever had.
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

func (p *Pool[In, Out]) partitions(ctx context.Context, from object.Caller) (int, error) {
	n, err := p.widest.Call(ctx, from, "0", 0)
	return max(n, p.config.Partitions), err
}
