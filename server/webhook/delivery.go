package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// schedule is the default of Config.Waits. Retry-After asks for as much as its last at most.
var schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// jitter is the part of a wait that is added at most, as 1/jitter.
const jitter = 10

const (
	// perStage is how many deliveries of a subscription are under way at a time that have failed equally often.
	perStage = 8
	// parked is how soon a delivery looks again whether its subscription is enabled, or its secret can be read.
	parked = time.Minute
	// repeated is how soon an attempt is made again that the host has cut off.
	repeated = 5 * time.Second
	// marked is how long it is known that a failed attempt was noted, and its retry made.
	marked = 24 * time.Hour
)

// delivery is a task: one attempt at sending an event. If it fails, the subscription makes the task of the next attempt, which waits
// among those that have failed as often. Tasks of one key run in order, so the deliveries that wait would
// otherwise hold up the new ones.
type delivery struct {
	To     string          `json:"to"`             // the subscription
	ID     string          `json:"id"`             // the header webhook-id
	Number uint64          `json:"number"`         // of the delivery in its subscription
	URL    string          `json:"url,omitempty"`  // of the outcome of a task; empty: that of the subscription
	Host   string          `json:"host,omitempty"` // of URL
	Stage  int             `json:"stage,omitempty"`
	Kind   string          `json:"kind"`
	Class  string          `json:"class"`
	Name   string          `json:"name"`
	Body   json.RawMessage `json:"body"`
	// Failed are the attempts so far, without the answers.
	Failed []Attempt `json:"failed,omitempty"`
}

// options are those of the task.
func (d delivery) options(wait time.Duration) []workerpool.Option {
	key := fmt.Sprintf("%s/%d", d.To, d.Stage)
	if d.Host != "" { // tasks of one pool have many receivers
		key = fmt.Sprintf("%s/%d", d.Host, d.Stage)
	}
	return []workerpool.Option{workerpool.Key(key), workerpool.Delay(wait)}
}

// work makes one attempt, and has the subscription note it before the task ends.
func (w *Webhooks) work(ctx context.Context, t *workerpool.Task[delivery]) (struct{}, error) {
	d := t.In
	to, err := w.calls.target.Call(ctx, t, d.To, struct{}{})
	switch {
	case err != nil:
		return struct{}{}, cutOff(ctx, err)
	case to.Gone && d.URL == "":
		return struct{}{}, nil
	case to.Gone, to.Disabled: // a pool without a subscription has no secret yet
		return struct{}{}, jobs.Snooze(parked)
	}
	seams := to.State.Driver().Seams()
	a := Attempt{ID: d.ID, Kind: d.Kind, Class: d.Class, Name: d.Name, Attempt: d.Stage + 1, At: seams.Clock.Now().UTC()}
	began := seams.Steady()
	r := request{URL: cmp.Or(d.URL, to.URL), ID: d.ID, At: a.At, Body: d.Body}
	for _, sealed := range to.Sealed {
		secret, err := w.unsealed(d.To, sealed)
		if err != nil {
			to.State.Log().Error("webhook: a delivery waits", "delivery", d.ID, "error", err)
			return struct{}{}, jobs.Snooze(parked)
		}
		r.Secrets = append(r.Secrets, secret)
	}
	got, err := w.send(ctx, r)
	if ctx.Err() != nil {
		return struct{}{}, context.Cause(ctx)
	}
	a.Took, a.Status = seams.Steady().Sub(began), got.Status
	if err != nil {
		a.Error = err.Error()
	}
	if !w.config.AllowPrivate {
		a.Answer = got.Text
	}
	return struct{}{}, w.ended(ctx, t, a, got)
}

// ended has the subscription note an attempt. The error is that of the task.
func (w *Webhooks) ended(ctx context.Context, t *workerpool.Task[delivery], a Attempt, got answer) error {
	n := note{Attempt: a, Delivery: t.In}
	key := fmt.Sprintf("%d/%d", t.In.Number, t.In.Stage)
	if t.In.URL != "" { // it has no number, and is sent under its id once
		key = fmt.Sprintf("%s/%d", t.In.ID, t.In.Stage)
	}
	options := []object.CallOption{object.Idempotent(key, marked)}
	var failure error
	switch {
	case a.OK():
		// If the commit of the note is lost, so is the later one that ends the task, and the delivery is sent once more.
		n.Delivery, options = delivery{}, []object.CallOption{object.Unconfirmed()}
	case a.Status == http.StatusGone && t.In.URL == "":
		n.Disable, failure, options = true, jobs.Snooze(parked), nil
	case t.In.Stage < len(w.config.Waits) && a.Status != http.StatusGone:
		n.Wait = max(w.config.Waits[t.In.Stage], min(got.RetryAfter, schedule[len(schedule)-1]))
	default:
		n.Dead, failure, options = true, jobs.Permanent(errors.New(a.text())), nil
	}
	if _, err := w.calls.note.Call(ctx, t, t.In.To, n, options...); err != nil {
		return cutOff(ctx, err)
	}
	return failure
}

// cutOff is the error of a task that cannot reach its subscription: it is tried again, and no attempt is counted.
func cutOff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return jobs.Snooze(repeated)
}

// note tells a subscription of an attempt.
type note struct {
	Attempt  Attempt       `json:"attempt"`
	Delivery delivery      `json:"delivery,omitzero"` // of a failed attempt
	Wait     time.Duration `json:"wait,omitempty"`    // until the next attempt, without the jitter
	Dead     bool          `json:"dead,omitempty"`    // it was the last
	Disable  bool          `json:"disable,omitempty"` // the receiver wants no more
}

// note stores an attempt, and makes the next one, in one commit.
func (o *subscription) note(ctx context.Context, n note) (struct{}, error) {
	if o.rec == nil {
		return struct{}{}, nil // it was removed meanwhile
	}
	rec, a := *o.rec, n.Attempt
	kind := ""
	switch {
	case a.OK():
		kind, rec.Failing = EventDelivered, time.Time{}
		rec.Delivered++
		rec.ended()
	case n.Disable:
		if rec.Disabled == "" {
			o.st.Log().Warn("webhook: the receiver has answered 410, and its subscription is disabled", "delivery", a.ID)
			rec.Disabled = DisabledByReceiver
		}
	case n.Dead:
		kind = EventFailed
		rec.Dead++
		rec.ended()
		if rec.Failing.IsZero() {
			rec.Failing = o.st.Now()
		}
		o.st.Log().Error("webhook: a delivery was given up", "delivery", a.ID, "attempt", a.Attempt, "error", a.text())
	default:
		wait := n.Wait + time.Duration(seam.Uint64n(o.st.Driver().Seams().Rand, uint64(n.Wait/jitter)))
		if err := o.retry(ctx, n, wait); err != nil {
			return struct{}{}, err
		}
		a.Next = o.st.Now().Add(wait).UTC()
	}
	if rec.Pool != "" {
		if kind != "" {
			rec.Made++
		}
		if err := o.noteOutcome(ctx, a, kind); err != nil {
			return struct{}{}, err
		}
	}
	rec.Noted++
	raw, err := json.Marshal(a)
	if err == nil {
		err = o.st.Storage().PutBytes(ctx, attemptKey(rec.Noted), raw)
	}
	if err == nil && kind != "" && a.Class != Class {
		a.Answer = ""
		err = o.st.Emit(ctx, kind, a)
	}
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.put(ctx, rec)
}

// ended counts a delivery that has ended. It is at least 0, because one that is cut off just before its end is counted twice.
func (r *record) ended() { r.Waiting -= min(r.Waiting, 1) }

// retry makes the task of the next attempt.
func (o *subscription) retry(ctx context.Context, n note, wait time.Duration) error {
	d, a := n.Delivery, n.Attempt
	a.Answer = ""
	d.Stage++
	d.Failed = append(d.Failed, a)
	_, err := o.w.pool.Enqueue(ctx, o.st.Outbox(), d, d.options(wait)...)
	return err
}
