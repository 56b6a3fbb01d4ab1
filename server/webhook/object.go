package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// record is a subscription as it is stored, in the row recordKey.
type record struct {
	Subscription
	Created  time.Time `json:"created"`
	Disabled string    `json:"disabled,omitempty"`
	Failing  time.Time `json:"failing,omitzero"`
	Secret   []byte    `json:"secret"` // sealed
	Rotated  time.Time `json:"rotated,omitzero"`
	Old      []byte    `json:"old,omitempty"` // the secret before, sealed
	OldUntil time.Time `json:"oldUntil,omitzero"`

	Place     uint64  `json:"place"`
	Made      uint64  `json:"made"` // deliveries, the number of the newest
	Waiting   uint64  `json:"waiting"`
	Delivered uint64  `json:"delivered"`
	Dead      uint64  `json:"dead"`
	Noted     uint64  `json:"noted"` // attempts
	Gaps      uint64  `json:"gaps,omitempty"`
	LastGap   *Gap    `json:"lastGap,omitempty"`
	Replay    *Replay `json:"replay,omitempty"`
}

// Rows of a subscription.
const recordKey = "subscription"

// attemptKey is the row of an attempt, by its number.
func attemptKey(n uint64) string { return fmt.Sprintf("attempt/%02d", n%KeptAttempts) }

// The events of a subscription. A delivery of one of them emits none.
const (
	EventDelivered = "webhook.delivered" // the receiver has taken a delivery; the payload is an Attempt without Answer
	EventFailed    = "webhook.failed"    // a delivery was given up; the payload is an Attempt without Answer
	EventGap       = "webhook.gap"       // events have expired before they were sent; the payload is a Gap
)

// subscription is the object. Its turns own the fields up to rec.
type subscription struct {
	w   *Webhooks
	st  *object.State
	rec *record // nil: there is no such subscription

	// Turns and the relay share these: whether the relay runs, that there is something new for it, that it is to
	// store its place, and the end of its wait.
	relaying, news, save atomic.Bool
	wake                 atomic.Pointer[context.CancelFunc]
}

// methods are those of the class.
type methods struct {
	add      *object.Method[addition, Status]
	show     *object.Method[struct{}, Status]
	target   *object.Method[struct{}, target]
	attempts *object.Method[struct{}, []Attempt]
	disable  *object.Method[string, struct{}]
	rotate   *object.Method[rotation, struct{}]
	replay   *object.Method[Replay, struct{}]
	resend   *object.Method[string, struct{}]
	note     *object.Method[note, struct{}]
	remove   *object.Method[struct{}, struct{}]
	outcome  *object.Method[askedOutcome, workerpool.WebhookStatus]
}

func handle(c *object.Class[subscription]) methods {
	return methods{
		add:      object.Handle(c, "add", (*subscription).add),
		show:     object.Handle(c, "show", (*subscription).show),
		target:   object.Handle(c, "target", (*subscription).target),
		attempts: object.Handle(c, "attempts", (*subscription).attempts),
		disable:  object.Handle(c, "disable", (*subscription).disable),
		rotate:   object.Handle(c, "rotate", (*subscription).rotate),
		replay:   object.Handle(c, "replay", (*subscription).replay),
		resend:   object.Handle(c, "resend", (*subscription).resend),
		note:     object.Handle(c, "note", (*subscription).note),
		remove:   object.Handle(c, "remove", (*subscription).remove),
		outcome:  object.Handle(c, "outcome", (*subscription).outcome),
	}
}

// open is the constructor. The relay of a subscription begins with it.
func (w *Webhooks) open(ctx context.Context, st *object.State) (*subscription, error) {
	o := &subscription{w: w, st: st}
	raw, ok, err := st.Storage().Get(ctx, recordKey)
	if err != nil || !ok {
		return o, err
	}
	o.rec = new(record)
	if err := json.Unmarshal(raw, o.rec); err != nil {
		return nil, fmt.Errorf("%s: %w", st.ID(), err)
	}
	if o.rec.Pool != "" {
		return o, nil
	}
	return o, o.begin(ctx)
}

// put stores a record.
func (o *subscription) put(ctx context.Context, rec record) error {
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := o.st.Storage().PutBytes(ctx, recordKey, raw); err != nil {
		return err
	}
	o.rec = &rec
	o.poke()
	return nil
}

// found returns a copy of the record to change, or ErrNotFound.
func (o *subscription) found() (record, error) {
	if o.rec == nil {
		return record{}, fmt.Errorf("%w: there is no subscription %q", ErrNotFound, o.st.Name())
	}
	return *o.rec, nil
}

// addition is a new subscription.
type addition struct {
	Subscription Subscription `json:"subscription"`
	Secret       []byte       `json:"secret"`
	Place        uint64       `json:"place"`
}

func (o *subscription) add(ctx context.Context, a addition) (Status, error) {
	if o.rec != nil {
		return Status{}, fmt.Errorf("%w: there is a subscription %q", ErrInvalid, o.st.Name())
	}
	if err := o.put(ctx, record{Subscription: a.Subscription, Created: o.st.Now(), Secret: a.Secret, Place: a.Place}); err != nil {
		return Status{}, err
	}
	if a.Subscription.Pool != "" {
		return o.show(ctx, struct{}{}) // it has no relay
	}
	if err := o.st.Driver().OpenExecution(ctx, nil); err != nil { // so that each opening of the store begins the relay
		return Status{}, err
	}
	if err := o.begin(ctx); err != nil {
		return Status{}, err
	}
	return o.show(ctx, struct{}{})
}

func (o *subscription) show(context.Context, struct{}) (Status, error) {
	r, err := o.found()
	if err != nil {
		return Status{}, err
	}
	s := Status{
		ID: o.st.Name(), Subscription: r.Subscription, Created: r.Created, Disabled: r.Disabled, FailingSince: r.Failing, Place: r.Place,
		Made: r.Made, Waiting: r.Waiting, Delivered: r.Delivered, Dead: r.Dead, Gaps: r.Gaps, LastGap: r.LastGap, Rotated: r.Rotated, Replay: r.Replay,
	}
	if o.st.Now().Before(r.OldUntil) {
		s.OldUntil = r.OldUntil
	}
	return s, nil
}

// target describes the receiver to an attempt.
type target struct {
	Gone     bool // the subscription was removed
	Disabled bool
	URL      string
	Sealed   [][]byte      // the secrets that sign
	State    *object.State // for its clock and its log
}

func (o *subscription) target(context.Context, struct{}) (target, error) {
	if o.rec == nil {
		return target{Gone: true}, nil
	}
	t := target{Disabled: o.rec.Disabled != "", URL: o.rec.URL, Sealed: [][]byte{o.rec.Secret}, State: o.st}
	if o.st.Now().Before(o.rec.OldUntil) {
		t.Sealed = append(t.Sealed, o.rec.Old)
	}
	return t, nil
}

func (o *subscription) attempts(ctx context.Context, _ struct{}) ([]Attempt, error) {
	r, err := o.found()
	if err != nil {
		return nil, err
	}
	all := []Attempt{}
	for n := r.Noted; n > 0 && r.Noted-n < KeptAttempts; n-- {
		raw, ok, err := o.st.Storage().Get(ctx, attemptKey(n))
		if err != nil || !ok {
			return nil, errors.Join(err, ctx.Err())
		}
		var a Attempt
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// disable disables the subscription for a reason, or enables it without one.
func (o *subscription) disable(ctx context.Context, why string) (struct{}, error) {
	r, err := o.found()
	if err != nil || r.Disabled == why {
		return struct{}{}, err
	}
	r.Disabled = why
	return struct{}{}, o.put(ctx, r)
}

// rotation is a new secret, and how long the one before signs too.
type rotation struct {
	Secret []byte        `json:"secret"`
	Keep   time.Duration `json:"keep"`
}

func (o *subscription) rotate(ctx context.Context, n rotation) (struct{}, error) {
	r, err := o.found()
	if err != nil {
		return struct{}{}, err
	}
	r.Old, r.OldUntil = nil, time.Time{}
	if n.Keep > 0 {
		r.Old, r.OldUntil = r.Secret, o.st.Now().Add(n.Keep)
	}
	r.Secret, r.Rotated = n.Secret, o.st.Now()
	return struct{}{}, o.put(ctx, r)
}

// replay begins a replay, which the relay does.
func (o *subscription) replay(ctx context.Context, p Replay) (struct{}, error) {
	r, err := o.found()
	if err != nil {
		return struct{}{}, err
	}
	if r.Pool != "" {
		return struct{}{}, fmt.Errorf("%w: the subscription of a pool sends no events", ErrInvalid)
	}
	if r.Replay != nil {
		return struct{}{}, fmt.Errorf("%w: since %s", ErrReplaying, r.Replay.Since.Format(time.RFC3339))
	}
	tap, err := o.st.Driver().Tap(object.TapOptions{})
	if err != nil {
		return struct{}{}, err
	}
	p.Place, p.End, p.Sent = 0, tap.Cursor(), 0
	tap.Close()
	r.Replay = &p
	return struct{}{}, o.put(ctx, r)
}

// resend makes a delivery of one event once more.
func (o *subscription) resend(ctx context.Context, delivery string) (struct{}, error) {
	r, err := o.found()
	if err != nil {
		return struct{}{}, err
	}
	unknown := fmt.Errorf("%w: the subscription has no delivery %q, or its event has expired", ErrNotFound, delivery)
	place, ok := placeOf(o.st.Name(), delivery)
	if !ok {
		return struct{}{}, unknown
	}
	page, err := o.st.Driver().Feed(ctx, r.filter(place-1, 1))
	if errors.Is(err, object.ErrEventsMissed) || err == nil && (len(page.Events) == 0 || page.Events[0].Cursor != place || !r.wants(page.Events[0])) {
		return struct{}{}, unknown
	}
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.deliver(ctx, r, page.Events)
}

// remove removes the subscription. The relay ends with the instance.
func (o *subscription) remove(ctx context.Context, _ struct{}) (struct{}, error) {
	if _, err := o.found(); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.st.Driver().Purge(ctx)
}
