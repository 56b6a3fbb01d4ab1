package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// The types of the deliveries of outcomes of tasks.
const (
	TaskCompleted = "task.completed" // the task is done
	TaskFailed    = "task.failed"    // it is a dead letter
	TaskCancelled = "task.cancelled"
)

// poolPrefix begins the id of the subscription of a pool.
const poolPrefix = "pool."

// keptStates is how long a subscription of a pool knows how a delivery is.
const keptStates = 90 * 24 * time.Hour

// maxHosts bounds the hosts of Tasks.
const maxHosts = 100

// Tasks makes the Config.Webhooks of pools with tasks that have a URL of their own: the option workerpool.Webhook. Such a URL has
// one of the hosts: at least 1 and at most 100, each a name as in example.com, or *.example.com for all names below it, and is else one that a
// Subscription may have. The deliveries are signed with the secret of the pool, which Add makes for a Subscription with that Pool;
// until then they wait. Error: ErrInvalid.
func (w *Webhooks) Tasks(hosts ...string) (workerpool.Webhooks, error) {
	if len(hosts) == 0 || len(hosts) > maxHosts {
		return nil, fmt.Errorf("%w: %d hosts for the URLs of tasks, want 1 to %d", ErrInvalid, len(hosts), maxHosts)
	}
	t := taskHooks{w: w}
	for _, h := range hosts {
		name := strings.TrimPrefix(h, "*.")
		if u, err := url.Parse("https://" + name); err != nil || name == "" || u.Host != name || u.Hostname() != name || strings.ContainsAny(name, "*") {
			return nil, fmt.Errorf("%w: %q is no host for the URLs of tasks", ErrInvalid, h)
		}
		t.hosts = append(t.hosts, hostName(h))
	}
	return t, nil
}

// hostName is the name of a host as two names are compared.
func hostName(h string) string { return strings.TrimSuffix(strings.ToLower(h), ".") }

// taskHooks is the Webhooks of a pool.
type taskHooks struct {
	w     *Webhooks
	hosts []string
}

// Allow implements workerpool.Webhooks.
func (t taskHooks) Allow(text string) error {
	if err := t.w.checkURL(text); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	host := hostName(u.Hostname())
	for _, h := range t.hosts {
		if below, all := strings.CutPrefix(h, "*"); h == host || all && len(host) > len(below) && strings.HasSuffix(host, below) {
			return nil
		}
	}
	return fmt.Errorf("%w: the host %q is none that the pool names", ErrInvalid, u.Hostname())
}

// Send implements workerpool.Webhooks: the task of the delivery is a message of the turn.
func (t taskHooks) Send(ctx context.Context, st *object.State, to string, o workerpool.Outcome) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	d := delivery{To: poolPrefix + o.Pool, URL: to, Host: hostName(u.Host), ID: outcomeID(o), Kind: outcomeKind(o.State), Class: o.Pool, Name: o.Task.String()}
	if d.Body, err = outcomeBody(d.Kind, o, min(maxBodyBytes, st.Driver().MaxValueBytes()/8)); err != nil {
		return err
	}
	_, err = t.w.pool.Enqueue(ctx, st.Outbox(), d, d.options(0)...)
	return err
}

// State implements workerpool.Webhooks.
func (t taskHooks) State(ctx context.Context, from object.Caller, o workerpool.Outcome) (workerpool.WebhookStatus, error) {
	return t.w.calls.outcome.Call(ctx, from, poolPrefix+o.Pool, askedOutcome{outcomeID(o), o.Ended})
}

// outcomeID is the header webhook-id of an outcome, the same in each attempt.
func outcomeID(o workerpool.Outcome) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", o.Pool, o.Task, o.Ended.UnixNano()))
	return "msg_" + lower.EncodeToString(sum[:idBytes])
}

func outcomeKind(s workerpool.State) string {
	switch s {
	case workerpool.Done:
		return TaskCompleted
	case workerpool.Dead:
		return TaskFailed
	}
	return TaskCancelled
}

// outcomeData is the data of the body of such a delivery. Result is that of the codec if it is JSON, and ResultBytes if not.
type outcomeData struct {
	Pool        string           `json:"pool"`
	Task        string           `json:"task"`
	State       workerpool.State `json:"state"`
	Attempt     int              `json:"attempt"`
	Result      json.RawMessage  `json:"result,omitempty"`
	ResultBytes []byte           `json:"resultBytes,omitempty"`
	SizeBytes   int              `json:"sizeBytes,omitempty"` // of the result
	Omitted     bool             `json:"omitted,omitempty"`   // the result is too large
	Error       string           `json:"error,omitempty"`
	Reason      string           `json:"reason,omitempty"`
}

// outcomeBody encodes the body of a delivery, without the result if it is larger than limit bytes with it.
func outcomeBody(kind string, o workerpool.Outcome, limit int) ([]byte, error) {
	b := struct {
		Type      string      `json:"type"`
		Timestamp time.Time   `json:"timestamp"`
		Data      outcomeData `json:"data"`
	}{kind, o.Ended.UTC(), outcomeData{
		Pool: o.Pool, Task: o.Task.String(), State: o.State, Attempt: o.Attempt, SizeBytes: len(o.Result), Error: o.Error, Reason: o.Reason,
	}}
	if json.Valid(o.Result) && utf8.Valid(o.Result) {
		b.Data.Result = o.Result
	} else {
		b.Data.ResultBytes = o.Result
	}
	raw, err := json.Marshal(b)
	if err == nil && len(raw) > limit {
		b.Data.Result, b.Data.ResultBytes, b.Data.Omitted = nil, nil, true
		raw, err = json.Marshal(b)
	}
	return raw, err
}

// checkPool returns the first mistake in the Subscription of a pool, as an ErrInvalid.
func (s Subscription) checkPool() error {
	switch {
	case s.URL != "" || s.Class != "" || s.Prefix != "" || len(s.Kinds) > 0:
		return fmt.Errorf("%w: the subscription of a pool has no other field, because each task has its URL", ErrInvalid)
	case system(s.Pool) || (storage.ID{Class: s.Pool, Name: "x"}).Validate() != nil:
		return fmt.Errorf("%w: no pool can have the name %q", ErrInvalid, s.Pool)
	}
	return nil
}

// askedOutcome asks how a delivery is.
type askedOutcome struct {
	ID    string    `json:"id"`
	Ended time.Time `json:"ended"`
}

// outcome tells how the delivery of an outcome is.
func (o *subscription) outcome(ctx context.Context, a askedOutcome) (s workerpool.WebhookStatus, err error) {
	raw, ok, err := o.st.Marked(ctx, outcomeMark+a.ID)
	switch {
	case err != nil:
		return s, err
	case ok:
		return s, json.Unmarshal(raw, &s)
	case o.st.Now().Sub(a.Ended) < keptStates:
		s.State = workerpool.WebhookPending
	}
	return s, nil
}

// outcomeMark begins the marks of deliveries in the subscription of a pool.
const outcomeMark = "task/"

// noteOutcome stores how the delivery of an outcome is, after an attempt.
func (o *subscription) noteOutcome(ctx context.Context, a Attempt, kind string) error {
	s := workerpool.WebhookStatus{State: workerpool.WebhookPending, At: a.At, Attempt: a.Attempt}
	switch kind {
	case EventDelivered:
		s.State = "delivered"
	case EventFailed:
		s.State = "failed"
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return o.st.Mark(ctx, outcomeMark+a.ID, raw, keptStates)
}
