package webhook

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// The classes of this package. No generic route of the server reaches them.
const (
	// Class is that of the subscriptions.
	Class = "holdfast.webhook"
	// Pool is the name of the worker pool of the deliveries.
	Pool = "holdfast.delivery"
)

// Config says how Webhooks work. Only Key is required.
type Config struct {
	// Key seals the secrets of the subscriptions in the store, so that the store and its backups do not tell them. It has
	// 32 random bytes, from a file or from the environment. With another key the stored secrets cannot be used, and
	// each delivery waits until the old key is back or Rotate has made a new secret.
	Key []byte
	// AllowPrivate permits plain http, all ports, and addresses that are not public, for tests and for
	// receivers on the same machine. The bodies of answers are not stored then, because they
	// may be of a service that is not public. Default: false.
	AllowPrivate bool
	// Concurrency is how many deliveries are under way at a time, of all subscriptions. Default: 128.
	Concurrency int
	// Timeout is how long a receiver may take for its answer. Default: 15 s.
	Timeout time.Duration
	// Waits are how long a delivery waits after each failed attempt, each plus up to a tenth; after one attempt more it is a
	// dead letter. At most MaxWaits, each from 0 to 30 days. Default: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h.
	Waits []time.Duration
}

// Webhooks are the subscriptions of a host and their deliveries. One value may serve several hosts. All methods are
// safe for concurrent use.
type Webhooks struct {
	config Config
	seal   cipher.AEAD
	random io.Reader // of secrets and ids
	send   sender
	class  *object.Class[subscription]
	pool   *workerpool.Pool[delivery, struct{}]
	calls  methods
}

// MaxWaits is how many Config.Waits there are at most.
const MaxWaits = 100

// Described is the pool of the deliveries, for lists and verbs.
func (w *Webhooks) Described() verbs.Described { return w.pool }

// sender makes one attempt. The error says why there is no answer.
type sender func(ctx context.Context, r request) (answer, error)

// New makes Webhooks. It returns an error that names the wrong field of c. Nothing runs before the host is open.
func New(c Config) (*Webhooks, error) {
	switch {
	case len(c.Key) != keyBytes:
		return nil, fmt.Errorf("webhook: Config.Key has %d bytes, want %d", len(c.Key), keyBytes)
	case c.Concurrency < 0:
		return nil, fmt.Errorf("webhook: Config.Concurrency is %d", c.Concurrency)
	case c.Timeout < 0:
		return nil, fmt.Errorf("webhook: Config.Timeout is %v", c.Timeout)
	case len(c.Waits) > MaxWaits:
		return nil, fmt.Errorf("webhook: Config.Waits has %d waits, at most %d", len(c.Waits), MaxWaits)
	}
	for i, wait := range c.Waits {
		if wait < 0 || wait > maxKeep {
			return nil, fmt.Errorf("webhook: Config.Waits[%d] is %v", i, wait)
		}
	}
	if c.Waits = slices.Clone(c.Waits); len(c.Waits) == 0 {
		c.Waits = schedule
	}
	if c.Concurrency == 0 {
		c.Concurrency = 128
	}
	if c.Timeout == 0 {
		c.Timeout = 15 * time.Second
	}
	seal, err := newSeal(c.Key)
	if err != nil {
		return nil, fmt.Errorf("webhook: Config.Key: %w", err)
	}
	w := &Webhooks{config: c, seal: seal, random: rand.Reader, send: newSender(c)}
	w.class = object.Define(Class, w.open, object.ClassOptions{Internal: true})
	w.calls = handle(w.class)
	w.pool = workerpool.New(workerpool.Config[delivery, struct{}]{
		Name: Pool, Work: w.work, PerKey: perStage, Concurrency: c.Concurrency,
		Partitions: min(partitions, c.Concurrency), Retry: jobs.Retry{MaxAttempts: 1}, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce},
	})
	return w, nil
}

// partitions is how many objects share the deliveries.
const partitions = 4

// Definitions are for object.Open. The host needs object.Options.Feed.
func (w *Webhooks) Definitions() []object.Definition {
	return []object.Definition{w.class, w.pool}
}

// Errors of the methods of Webhooks.
var (
	// ErrNotFound: there is no such subscription, or the delivery that is to be sent again is not of it or its event has expired.
	ErrNotFound = errors.New("webhook: not found")
	// ErrInvalid: the subscription, or the time span of a replay, is wrong. The text names the fault.
	ErrInvalid = errors.New("webhook: invalid")
	// ErrReplaying: a replay of the subscription is under way. Wait until it has ended.
	ErrReplaying = errors.New("webhook: a replay is under way")
	// ErrTooMany: the host has MaxSubscriptions already.
	ErrTooMany = errors.New("webhook: too many subscriptions")
	// ErrNoFeed: the host was opened without object.Options.Feed.
	ErrNoFeed = errors.New("webhook: the host keeps no feed: set Options.Feed")
)
