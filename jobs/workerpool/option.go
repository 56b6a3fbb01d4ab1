package workerpool

import (
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
)

// Option shapes one task.
type Option func(*options)

// options is what a task is submitted with, beside its input.
type options struct {
	Key      string        `json:",omitempty"`
	Queue    string        `json:",omitempty"`
	Priority int           `json:",omitempty"`
	Delay    time.Duration `json:",omitempty"`
	At       time.Time     `json:",omitzero"`
	Once     string        `json:",omitempty"`
	OnceFor  time.Duration `json:",omitempty"`
	Unique   string        `json:",omitempty"`
}

// onceFor is how long an idempotency key is remembered by default.
const onceFor = 24 * time.Hour

// Key puts the task behind the tasks with the same key that have not ended: they
// run in the order of their submission. At most 512 bytes; empty is no key.
func Key(key string) Option { return func(o *options) { o.Key = key } }

// Queue puts the task in one of Config.Queues. Default: the queue "".
func Queue(name string) Option { return func(o *options) { o.Queue = name } }

// Priority puts the task before those of its queue with less, from -1000 to
// 1000. It does not change the order of a key. Default: 0.
func Priority(n int) Option { return func(o *options) { o.Priority = n } }

// Delay lets the task run no earlier than d after its submission.
func Delay(d time.Duration) Option { return func(o *options) { o.Delay = d } }

// At lets the task run no earlier than t. A past time means now.
func At(t time.Time) Option { return func(o *options) { o.At = t } }

// Idempotent gives the submission a key, of at most 512 bytes: a repeat with the
// same key (and the same Key) within ttl adds nothing and returns the same task,
// whatever has become of it. Default of ttl: a day. See Unique for a key that is free
// again as soon as its task has ended.
func Idempotent(key string, ttl time.Duration) Option {
	return func(o *options) { o.Once, o.OnceFor = key, ttl }
}

// Unique gives the submission a key, of at most 512 bytes, that its task holds until it
// is done, dead or cancelled: a repeat with the same key (and the same Key) meanwhile
// adds nothing and returns the task that is pending or running, or waits for a retry.
// After that the key is free for a new task. A dead letter that is replayed takes its
// key again, unless another task holds it by then: then both run.
func Unique(key string) Option { return func(o *options) { o.Unique = key } }

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

func (o *options) validate() error {
	switch {
	case len(o.Key) > maxKeyBytes || len(o.Once) > maxKeyBytes || len(o.Unique) > maxKeyBytes:
		return jobs.Invalidf("workerpool", "a key is longer than %d bytes", maxKeyBytes)
	case o.Priority < -maxPriority || o.Priority > maxPriority:
		return jobs.Invalidf("workerpool", "priority %d is not from %d to %d", o.Priority, -maxPriority, maxPriority)
	case o.Delay < 0:
		return jobs.Invalidf("workerpool", "the delay must not be negative: %v", o.Delay)
	case o.OnceFor < 0:
		return jobs.Invalidf("workerpool", "the time of an idempotency key must not be negative: %v", o.OnceFor)
	case !o.At.IsZero() && alarm.Nanos(o.At) <= 0:
		return jobs.Invalidf("workerpool", "time %v is not after 1970", o.At)
	}
	return nil
}

// notBefore is when a task that is submitted now may run; 0: at once.
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
