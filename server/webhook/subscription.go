package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

const (
	// MaxSubscriptions is how many a host has at most, because each relay reads the feed.
	MaxSubscriptions = 1000
	// MaxKinds is how many Kinds a Subscription has at most.
	MaxKinds = 100
	// KeptAttempts is how many attempts of a subscription are kept.
	KeptAttempts = 100
)

// maxKindBytes bounds a kind of a Subscription.
const maxKindBytes = 256

// Subscription says which events go where. Only URL is required, or Pool without any other field.
type Subscription struct {
	// URL takes the deliveries. It begins with https:// and has no port but 443, unless Config.AllowPrivate is set, and
	// at most 2,048 bytes.
	URL string `json:"url,omitempty"`
	// Class has the objects of which events are sent. Default: all but those of Holdfast itself.
	Class string `json:"class,omitempty"`
	// Prefix begins the names of the objects. Default: all.
	Prefix string `json:"prefix,omitempty"`
	// Kinds are those of the events, at most MaxKinds. Default: all.
	Kinds []string `json:"kinds,omitempty"`
	// Pool is the name of a worker pool with Config.Webhooks: the subscription has the secret and the attempts for the
	// outcomes of its tasks, which go to the URLs of the tasks. Its id is the name behind "pool."; its Status counts a
	// delivery once it has ended. The status 410 ends a delivery and disables nothing. Default: none.
	Pool string `json:"pool,omitempty"`
}

// check returns the first mistake, as an ErrInvalid.
func (w *Webhooks) check(s Subscription) error {
	if s.Pool != "" {
		return s.checkPool()
	}
	if err := w.checkURL(s.URL); err != nil {
		return err
	}
	switch {
	case system(s.Class):
		return fmt.Errorf("%w: the class %q is one of Holdfast itself", ErrInvalid, s.Class)
	case s.Class != "" && (storage.ID{Class: s.Class, Name: "x"}).Validate() != nil:
		return fmt.Errorf("%w: no class can have the name %q", ErrInvalid, s.Class)
	case s.Prefix != "" && (storage.ID{Class: "x", Name: s.Prefix}).Validate() != nil:
		return fmt.Errorf("%w: no object can have a name that begins with %q", ErrInvalid, s.Prefix)
	case len(s.Kinds) > MaxKinds:
		return fmt.Errorf("%w: %d kinds, at most %d", ErrInvalid, len(s.Kinds), MaxKinds)
	}
	for _, kind := range s.Kinds {
		if kind == "" || len(kind) > maxKindBytes || !utf8.ValidString(kind) {
			return fmt.Errorf("%w: the kind %q is not 1 to %d bytes of text", ErrInvalid, kind, maxKindBytes)
		}
	}
	return nil
}

// system reports whether a class is one of Holdfast itself.
func system(class string) bool { return strings.HasPrefix(class, "holdfast.") }

// wants reports whether an event that the filters of the feed have let through is sent.
func (s Subscription) wants(e object.TapEvent) bool {
	return !system(e.ID.Class) || e.ID.Class == Class && slices.Contains(s.Kinds, e.Kind)
}

// Status is a subscription and how it is. Its JSON is that of the server.
type Status struct {
	ID string `json:"id"`
	Subscription
	Created time.Time `json:"created"`
	// Disabled is why nothing is sent: "" if it is enabled, else DisabledByHand or DisabledByReceiver.
	Disabled string `json:"disabled,omitempty"`
	// FailingSince is the time of the first delivery that was given up since the last success.
	FailingSince time.Time `json:"failingSince,omitzero"`
	// Place is how far the relay is in the feed.
	Place uint64 `json:"place"`
	// Made are the deliveries so far, also those of replays. Waiting are those that have not ended, Delivered those that the receiver has taken, and Dead those that were
	// given up. After a crash a delivery that was sent twice may count twice as Delivered.
	Made      uint64 `json:"made"`
	Waiting   uint64 `json:"waiting"`
	Delivered uint64 `json:"delivered"`
	Dead      uint64 `json:"dead"`
	// Gaps is how often events were missed, and LastGap has the places of the last time.
	Gaps    uint64 `json:"gaps,omitempty"`
	LastGap *Gap   `json:"lastGap,omitempty"`
	// Rotated is when the last secret was made, and OldUntil until when the one before signs too.
	Rotated  time.Time `json:"rotated,omitzero"`
	OldUntil time.Time `json:"oldUntil,omitzero"`
	// Replay is the replay that is under way.
	Replay *Replay `json:"replay,omitempty"`
}

// The reasons of Status.Disabled.
const (
	DisabledByHand     = "by hand"
	DisabledByReceiver = "by the receiver: 410"
)

// Gap is a part of the feed that a subscription has missed, because the events had expired: all that lay behind From, up to To.
type Gap struct {
	From uint64    `json:"from"`
	To   uint64    `json:"to"`
	At   time.Time `json:"at"`
}

// Replay sends the events of a time span again, from Since on and before Until.
type Replay struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Sent  uint64    `json:"sent"`  // deliveries made so far
	Place uint64    `json:"place"` // how far it is in the feed
	End   uint64    `json:"end"`   // where in the feed it ends at the latest
}

// Attempt is one attempt at a delivery.
type Attempt struct {
	ID      string        `json:"id"` // the header webhook-id
	Kind    string        `json:"kind"`
	Class   string        `json:"class"`
	Name    string        `json:"name"`
	Attempt int           `json:"attempt"` // from 1 on
	At      time.Time     `json:"at"`
	Took    time.Duration `json:"tookNs"`
	Status  int           `json:"status,omitempty"` // of HTTP; 0: there was no answer
	Error   string        `json:"error,omitempty"`  // why there was none
	Answer  string        `json:"answer,omitempty"` // its first KiB
	Next    time.Time     `json:"next,omitzero"`    // of the next attempt; zero: there is none
}

// OK reports whether the receiver has taken the delivery.
func (a Attempt) OK() bool { return a.Error == "" && success(a.Status) }

// text says how an attempt has ended, without the answer.
func (a Attempt) text() string {
	if a.Error != "" {
		return a.Error
	}
	return fmt.Sprintf("status %d", a.Status)
}

// Add makes a subscription to the events from now on, and returns its secret, which is not shown again. Errors: ErrInvalid, ErrTooMany,
// ErrNoFeed.
func (w *Webhooks) Add(ctx context.Context, host *object.Host, s Subscription) (Status, string, error) {
	s.Kinds = slices.Clone(s.Kinds)
	if err := w.check(s); err != nil {
		return Status{}, "", err
	}
	place, err := feedEnd(ctx, host, s)
	if err != nil {
		return Status{}, "", err
	}
	list, err := host.Objects(ctx, Class, object.ObjectsOptions{Limit: MaxSubscriptions})
	if err != nil {
		return Status{}, "", err
	}
	if len(list) >= MaxSubscriptions {
		return Status{}, "", fmt.Errorf("%w: at most %d", ErrTooMany, MaxSubscriptions)
	}
	id := poolPrefix + s.Pool
	if s.Pool == "" {
		if id, err = w.newID(); err != nil {
			return Status{}, "", err
		}
	}
	secret, sealed, err := w.newSecret(id)
	if err != nil {
		return Status{}, "", err
	}
	status, err := w.calls.add.Call(ctx, host, id, addition{s, sealed, place})
	return status, secret, err
}

// feedEnd is the place of the newest event, at which a subscription begins. That of a pool reads none.
func feedEnd(ctx context.Context, host *object.Host, s Subscription) (uint64, error) {
	if s.Pool != "" {
		return 0, nil
	}
	tap, err := host.Tap(object.TapOptions{})
	if err != nil {
		return 0, err
	}
	defer tap.Close()
	if _, err := host.Feed(ctx, object.FeedOptions{After: tap.Cursor(), Limit: 1}); err != nil && !errors.Is(err, object.ErrEventsMissed) {
		return 0, fmt.Errorf("%w: %w", ErrNoFeed, err)
	}
	return tap.Cursor(), nil
}

// List returns up to limit subscriptions, in the order of their ids, behind the id after. The limit is 1 to MaxSubscriptions.
func (w *Webhooks) List(ctx context.Context, host *object.Host, after string, limit int) ([]Status, error) {
	list, err := host.Objects(ctx, Class, object.ObjectsOptions{After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(list))
	for _, info := range list {
		status, err := w.Status(ctx, host, info.ID.Name)
		switch {
		case errors.Is(err, ErrNotFound): // it was removed meanwhile
		case err != nil:
			return nil, err
		default:
			all = append(all, status)
		}
	}
	return all, nil
}

// Status returns a subscription. Error: ErrNotFound.
func (w *Webhooks) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return w.calls.show.Call(ctx, from, id, struct{}{})
}

// Attempts returns the newest KeptAttempts attempts of a subscription, the newest first. Error: ErrNotFound.
func (w *Webhooks) Attempts(ctx context.Context, from object.Caller, id string) ([]Attempt, error) {
	return w.calls.attempts.Call(ctx, from, id, struct{}{})
}

// Disable stops the relay and the deliveries of a subscription. Those that have begun end. Nothing is lost until
// the events expire. Error: ErrNotFound.
func (w *Webhooks) Disable(ctx context.Context, from object.Caller, id string) error {
	_, err := w.calls.disable.Call(ctx, from, id, DisabledByHand)
	return err
}

// Enable lets a subscription go on where it was; deliveries that wait go on within a minute. Error: ErrNotFound.
func (w *Webhooks) Enable(ctx context.Context, from object.Caller, id string) error {
	_, err := w.calls.disable.Call(ctx, from, id, "")
	return err
}

// Rotate gives a subscription a new secret, which is not shown again. The old one signs too for the time keep, so that
// the receiver can change over; it is 0 to 30 days. Errors: ErrNotFound, ErrInvalid.
func (w *Webhooks) Rotate(ctx context.Context, from object.Caller, id string, keep time.Duration) (string, error) {
	if keep < 0 || keep > maxKeep {
		return "", fmt.Errorf("%w: the old secret may be kept for 0 to 30 days, not %v", ErrInvalid, keep)
	}
	secret, sealed, err := w.newSecret(id)
	if err != nil {
		return "", err
	}
	_, err = w.calls.rotate.Call(ctx, from, id, rotation{sealed, keep})
	return secret, err
}

// maxKeep bounds how long an old secret signs.
const maxKeep = 30 * 24 * time.Hour

// Replay sends the events of a time span again, from since on and before until, if they are still kept, with the ids that
// they have had. It returns at once; Status.Replay tells how far it is. Errors: ErrNotFound, ErrInvalid, ErrReplaying.
func (w *Webhooks) Replay(ctx context.Context, from object.Caller, id string, since, until time.Time) error {
	if !since.Before(until) {
		return fmt.Errorf("%w: the replay ends before it begins", ErrInvalid)
	}
	_, err := w.calls.replay.Call(ctx, from, id, Replay{Since: since, Until: until})
	return err
}

// Resend sends one event again, by the id of its delivery. Error: ErrNotFound.
func (w *Webhooks) Resend(ctx context.Context, from object.Caller, id, delivery string) error {
	_, err := w.calls.resend.Call(ctx, from, id, delivery)
	return err
}

// Remove removes a subscription. Its deliveries that wait are dropped. Error: ErrNotFound.
func (w *Webhooks) Remove(ctx context.Context, from object.Caller, id string) error {
	_, err := w.calls.remove.Call(ctx, from, id, struct{}{})
	return err
}
