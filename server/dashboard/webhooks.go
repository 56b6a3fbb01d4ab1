package dashboard

import "time"

// Webhooks is a page of the subscriptions, with a form for a new one.
type Webhooks struct {
	List []Webhook // in the order of their ids
	Next string    // the parameter after of the next page; empty: this is the last
}

func (Webhooks) page() (name, title string) { return "webhooks", "Webhooks" }

// Webhook is a subscription.
type Webhook struct {
	ID, URL, Class, Prefix   string
	Pool                     string // of which it has the outcomes of tasks; empty: it has events
	Kinds                    []string
	Created                  time.Time
	Disabled                 string // why; empty: it is enabled
	FailingSince             time.Time
	Waiting, Delivered, Dead uint64

	Gaps, GapFrom, GapTo uint64
	GapAt                time.Time
	Rotated, OldUntil    time.Time

	Replaying                bool
	Replayed                 uint64
	ReplaySince, ReplayUntil time.Time
}

// OneWebhook is the page of a subscription.
type OneWebhook struct {
	Webhook
	Attempts []WebhookAttempt // the newest first
}

func (OneWebhook) page() (name, title string) { return "webhook", "Webhook" }

// WebhookAttempt is one attempt at a delivery.
type WebhookAttempt struct {
	ID, Kind, Class, Name string
	Attempt               int
	At, Next              time.Time
	Took                  time.Duration
	Status                int
	Error, Answer         string
	OK                    bool
}

// WebhookSecret is the page with a new secret, which no other page shows.
type WebhookSecret struct{ ID, Secret string }

func (WebhookSecret) page() (name, title string) { return "webhooksecret", "Secret of the webhook" }
