package workerpool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"reflect"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Option sets one property of a task for Enqueue.
type Option func(*options)

// options holds the properties of a task besides its input. It travels to the
// partition as JSON.
type options struct {
	Key      string        `json:",omitempty"`
	Queue    string        `json:",omitempty"`
	Priority int           `json:",omitempty"`
	Delay    time.Duration `json:",omitempty"`
	At       time.Time     `json:",omitzero"`
	Once     string        `json:",omitempty"`
	OnceFor  time.Duration `json:",omitempty"`
	Unique   string        `json:",omitempty"`
	Webhook  string        `json:",omitempty"`
}

// onceFor is the default time for which an idempotency key is kept.
const onceFor = 24 * time.Hour

// Key orders tasks: tasks with the same key run in the order of their
// submission, Config.PerKey at a time. For example, Key(customerID) runs one
// customer's tasks one after another. At most 512 bytes; the empty key orders
// nothing.
func Key(key string) Option { return func(o *options) { o.Key = key } }

// Queue puts the task in one of Config.Queues. Enqueue returns jobs.ErrInvalid
// for an unknown name. Default: the queue "".
func Queue(name string) Option { return func(o *options) { o.Queue = name } }

// Priority moves the task before tasks of the same queue with a lower priority,
// from -1000 to 1000. Tasks with the same key keep their order. Default: 0.
func Priority(n int) Option { return func(o *options) { o.Priority = n } }

// Delay makes the task run no earlier than d after its submission. It must not
// be negative.
func Delay(d time.Duration) Option { return func(o *options) { o.Delay = d } }

// At makes the task run no earlier than t. A time in the past means now.
func At(t time.Time) Option { return func(o *options) { o.At = t } }

// Idempotent gives the submission an idempotency key of at most 512 bytes.
// Within ttl, another submission with this key (and the same Key option) adds
// nothing and returns the first task, even if that has ended. Use it to repeat
// an Enqueue after a lost answer. The default of ttl is a day. See Unique for a
// key that is free again once its task has ended.
func Idempotent(key string, ttl time.Duration) Option {
	return func(o *options) { o.Once, o.OnceFor = key, ttl }
}

// Unique gives the task a key of at most 512 bytes that it holds until it is
// done, dead or cancelled. Meanwhile another submission with this key (and the
// same Key option) adds nothing and returns that task, whether it is pending or
// running. For example, Unique("rebuild-index") keeps at most one rebuild in
// the pool.
//
// A replayed dead letter takes its key again unless another task holds it; then
// both run.
func Unique(key string) Option { return func(o *options) { o.Unique = key } }

// optionsOf applies the options of a call.
func optionsOf(opts []Option) options {
	if len(opts) == 0 {
		return options{}
	}
	var o options
	for _, f := range opts {
		f(&o)
	}
	return o
}

// validate returns a jobs.ErrInvalid for a property out of its range.
func (o *options) validate() error {
	switch {
	case len(o.Key) > maxKeyBytes || len(o.Once) > maxKeyBytes || len(o.Unique) > maxKeyBytes:
		return engine.Invalidf("workerpool", "a key is longer than %d bytes", maxKeyBytes)
	case o.Priority < -maxPriority || o.Priority > maxPriority:
		return engine.Invalidf("workerpool", "priority %d is not from %d to %d", o.Priority, -maxPriority, maxPriority)
	case o.Delay < 0:
		return engine.Invalidf("workerpool", "the delay must not be negative: %v", o.Delay)
	case o.OnceFor < 0:
		return engine.Invalidf("workerpool", "the time of an idempotency key must not be negative: %v", o.OnceFor)
	case !o.At.IsZero() && alarm.Nanos(o.At) <= 0:
		return engine.Invalidf("workerpool", "time %v is not after 1970", o.At)
	}
	return nil
}

// notBefore is the earliest time at which the task may run, in nanoseconds; 0
// means at once.
func (o *options) notBefore(now time.Time) int64 {
	at := o.At
	if o.Delay > 0 {
		at = now.Add(o.Delay)
	}
	if !at.After(now) {
		return 0
	}
	return alarm.Nanos(at)
}

// Validator is implemented by inputs that can check themselves. Enqueue returns
// the error of Validate and does not add the task.
type Validator interface{ Validate() error }

// Enqueue adds a task. When it returns without an error, the task is stored and
// will end as done, dead or cancelled, whatever crashes. If the outcome of a
// call is unknown, for example after a timeout, repeat it with the option
// Idempotent.
//
// Errors: the error of In's Validate, jobs.ErrInvalid, ErrQueueFull,
// ErrDraining, and object.ErrValueTooLarge if the encoded input exceeds seven
// eighths of MaxValueBytes. A refused task changes nothing.
//
// With the Outbox of a State as from, the task is part of the turn's commit, and the
// answer has Sent alone:
//
//	_, err := mails.Enqueue(ctx, st.Outbox(), mail)
//
// The pool adds it a little later. It waits, with those behind it, while the pool is
// draining or full, and is a dead letter of its partition if the pool refuses it for
// another reason. Delay and the time of Idempotent count from then on.
func (p *Pool[In, Out]) Enqueue(ctx context.Context, from object.Caller, in In, opts ...Option) (TaskRef, error) {
	s := submission[In]{in, optionsOf(opts)}
	if err := p.check(&s); err != nil {
		return TaskRef{}, err
	}
	return p.enqueue(ctx, from, p.route(from, &s), s)
}

// check validates a task before it is sent to its partition.
func (p *Pool[In, Out]) check(s *submission[In]) error {
	if p.validates {
		if v, ok := any(s.In).(Validator); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	return p.pool.checkOptions(&s.Options)
}

// checkOptions validates the options of a task.
func (p *pool) checkOptions(o *options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := p.set.known(o); err != nil {
		return err
	}
	return p.allows(o.Webhook)
}

// mayValidate reports whether a value of type t can be a Validator.
func mayValidate(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t.Implements(reflect.TypeFor[Validator]())
}

// Item is a task of an EnqueueBatch.
type Item[In any] struct {
	In      In
	Options []Option
}

// EnqueueBatch adds up to 10,000 tasks and returns their refs in the order of
// items. The tasks of one partition are one commit: they are all added or all
// refused, and the error names the index of the first refused item. Partitions
// succeed or fail independently, so in a pool of several partitions an error
// may leave other tasks added; the refs of tasks that are not known to be added
// are zero. With the option Idempotent the whole call can be repeated.
//
// Errors: those of Enqueue, and object.ErrBatchTooLarge if the part of one
// partition exceeds seven eighths of MaxBatchBytes.
//
// With the Outbox of a State as from, all tasks are part of the turn's commit; see
// Enqueue. Then the encoded part of one partition must not exceed MaxValueBytes. After an
// error the turn should fail, because it may have sent the parts of other partitions.
func (p *Pool[In, Out]) EnqueueBatch(ctx context.Context, from object.Caller, items []Item[In]) ([]TaskRef, error) {
	if len(items) > maxBatch {
		return nil, engine.Invalidf("workerpool", "%d tasks in a batch, the most are %d", len(items), maxBatch)
	}
	all := make([]submission[In], len(items))
	var parts []batchPart
	for i, item := range items {
		all[i] = submission[In]{item.In, optionsOf(item.Options)}
		if err := p.check(&all[i]); err != nil {
			return nil, &refusedTask{i, err}
		}
		parts = addToPart(parts, p.route(from, &all[i]), i)
	}
	return inParts(parts, len(items), func(part batchPart) ([]TaskRef, error) {
		if len(parts) == 1 {
			return p.batch(ctx, from, part.object, all)
		}
		tasks := make([]submission[In], len(part.index))
		for k, i := range part.index {
			tasks[k] = all[i]
		}
		return p.batch(ctx, from, part.object, tasks)
	})
}

// batchPart is the part of a batch that goes to one partition.
type batchPart struct {
	object string
	index  []int // positions of the tasks in the batch
}

// addToPart adds the task at i to the part of its partition.
func addToPart(parts []batchPart, object string, i int) []batchPart {
	for k := range parts {
		if p := &parts[k]; p.object == object {
			p.index = append(p.index, i)
			return parts
		}
	}
	return append(parts, batchPart{object, []int{i}})
}

// inParts submits the parts of a batch of n tasks. It returns the refs in the order of the batch.
func inParts(parts []batchPart, n int, submit func(batchPart) ([]TaskRef, error)) ([]TaskRef, error) {
	refs := make([]TaskRef, n)
	var errs error
	for _, part := range parts {
		got, err := submit(part)
		if bad := (*refusedTask)(nil); errors.As(err, &bad) {
			err = &refusedTask{part.index[bad.index], bad.err}
		}
		errs = errors.Join(errs, err)
		for i, ref := range got {
			refs[part.index[i]] = ref
		}
	}
	return refs, errs
}

// route names the partition of a task. Tasks with the same Key go to the same
// partition, because their order holds there. Without a Key, the Unique or
// Idempotent key decides, so that a repeated submission finds the first one.
// Without any key the partition is random.
func (p *Pool[In, Out]) route(from object.Caller, s *submission[In]) string {
	if p.pool.set.partitions == 1 {
		return "0"
	}
	h, ok := s.Options.hash(from)
	if !ok {
		b, _ := json.Marshal(s.In) // any bytes will do, because they only seed the choice
		h = hash(b)
	}
	return strconv.Itoa(jump(h, p.pool.set.partitions))
}

// hash is that of the key by which a task is routed, or a random number. It reports false if the caller has none.
func (o *options) hash(from object.Caller) (h uint64, ok bool) {
	if key := cmp.Or(o.Key, o.Unique, o.Once); key != "" {
		return hash([]byte(key)), true
	}
	h = random(from)
	return h, h != 0
}

// random is a random number from the caller's host, or 0 if the caller has
// none.
func random(from object.Caller) uint64 {
	if s, ok := from.(interface{ Seams() *seam.Seams }); ok {
		return s.Seams().Rand.Uint64()
	}
	return 0
}

// hash is FNV-1a followed by a mixing step, because jump needs all bits to be
// equally good and FNV's high bits of short keys are not.
func hash(b []byte) uint64 {
	f := fnv.New64a()
	f.Write(b)
	h := f.Sum64()
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// jump maps a hash to [0, n). When n becomes n+1, only 1 of n+1 hashes moves
// (Lamping, Veach: A Fast, Minimal Memory, Consistent Hash Algorithm).
func jump(h uint64, n int) int {
	b, j := int64(-1), int64(0)
	for j < int64(n) {
		b = j
		h = h*2862933555777941757 + 1
		j = int64(float64(b+1) * (float64(int64(1)<<31) / float64(h>>33+1)))
	}
	return int(b)
}
