package workerpool

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// maxURLBytes bounds the URL of a task.
const maxURLBytes = 2048

// Webhook has the outcome of the task posted to a URL, once it is done, dead or cancelled (W13). Enqueue returns
// a jobs.ErrInvalid with the reason if the pool has no Config.Webhooks, or if those do not allow the URL. A dead
// letter that is replayed has another outcome, which is posted too; what happens to a dead letter otherwise is not.
func Webhook(url string) Option { return func(o *options) { o.Webhook = url } }

// Webhooks posts the outcomes of tasks with the option Webhook. Method Tasks of package server/webhook makes one. All
// methods are safe for concurrent use.
type Webhooks interface {
	// Allow returns the reason for which no task may have the URL; nil: a task may.
	Allow(url string) error
	// Send has an outcome posted if, and only if, the turn of st commits. It returns the error of Method.Send, and
	// has changed nothing then.
	Send(ctx context.Context, st *object.State, url string, o Outcome) error
	// State tells how the posting of an outcome is. The answer is stored for 90 days at least.
	State(ctx context.Context, from object.Caller, o Outcome) (WebhookStatus, error)
}

// Outcome is how a task has ended.
type Outcome struct {
	Pool    string    // the name of the pool
	Task    TaskID    // in that pool
	State   State     // Done, Dead or Cancelled
	Ended   time.Time // with Pool and Task it names the outcome among all of the store
	Attempt int       // the number of attempts
	Result  []byte    // of a done task: the output as the host's codec has encoded it
	Error   string    // of a dead task: that of the last attempt
	Reason  string    // of a dead task: why it is not tried again
}

// WebhookStatus is how the posting of an outcome is.
type WebhookStatus struct {
	State   string    `json:"state"`             // "pending", "delivered" or "failed"
	At      time.Time `json:"at,omitzero"`       // of the last attempt
	Attempt int       `json:"attempt,omitempty"` // how many there were
}

// WebhookPending is the WebhookStatus.State of an outcome that is to be posted, or of a task that has not ended.
const WebhookPending = "pending"

// allows returns a jobs.ErrInvalid for a URL that no task of the pool may have. None is none.
func (p *pool) allows(url string) error {
	switch {
	case url == "":
		return nil
	case len(url) > maxURLBytes:
		return engine.Invalidf("workerpool", "the URL of a webhook is longer than %d bytes", maxURLBytes)
	case p.set.webhooks == nil:
		return engine.Invalidf("workerpool", "the pool %s posts no outcomes: set Config.Webhooks", p.set.name)
	}
	if err := p.set.webhooks.Allow(url); err != nil {
		return engine.Invalidf("workerpool", "webhook of a task of the pool %s: %w", p.set.name, err)
	}
	return nil
}

// post has the outcome of a task posted with the commit of the turn, if the task has a URL. A pool without
// Config.Webhooks, which it had when the task was added, posts nothing.
func (p *partition) post(ctx context.Context, r *row, s State) error {
	if r.rare.Webhook == nil || p.set.webhooks == nil {
		return nil
	}
	return p.set.webhooks.Send(ctx, p.st, r.url(), p.outcomeOf(r, s))
}

// url is that of Webhook; empty: the task has none.
func (r *row) url() string {
	if r.rare.Webhook == nil {
		return ""
	}
	return *r.rare.Webhook
}

// webhookBytes is about how many bytes the posting of an outcome adds to a batch; 0: the task has no URL.
func (r *row) webhookBytes(output int) int {
	if r.rare.Webhook == nil {
		return 0
	}
	return 2*output + 2*len(r.url()) + 4096
}

// outcomeOf is the outcome of a task that has ended.
func (p *partition) outcomeOf(r *row, s State) Outcome {
	o := Outcome{Pool: p.set.name, Task: p.id(r.num), State: s, Ended: timeOf(r.endedAt), Attempt: r.seen()}
	switch s {
	case Done:
		o.Result = r.output
	case Dead:
		o.Error, o.Reason = r.rare.Run.LastError, string(r.rare.Reason)
	}
	return o
}

// webhookStatus is that of a task with a URL, as far as its row tells; nil: the task has none.
func (r *row) webhookStatus() *WebhookStatus {
	if r.rare.Webhook == nil {
		return nil
	}
	return &WebhookStatus{State: WebhookPending}
}

// webhookOf sets *s to how the posting of an outcome is, once the task has ended.
func (p *pool) webhookOf(ctx context.Context, from object.Caller, o Outcome, s *WebhookStatus) (err error) {
	if !o.State.Ended() || p.set.webhooks == nil {
		return nil
	}
	o.Pool = p.set.name
	*s, err = p.set.webhooks.State(ctx, from, o)
	return err
}
