package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/server/webhook"
)

// webhookRoutes are the routes of subscriptions.
func (s *Server) webhookRoutes() []route {
	one := func(method, rest string, request, answer any, handle func(*exchange) error, help string) route {
		return route{method: method, pattern: "/v1/webhooks/{id}" + rest, access: admin, request: request, answer: answer, handle: handle, help: help}
	}
	return []route{
		{method: "GET", pattern: "/v1/webhooks", access: admin, answer: webhookPage{}, handle: (*exchange).listWebhooks, params: []param{afterParam, limitParam},
			help: "List the subscriptions of webhooks, in the order of their ids."},
		{method: "POST", pattern: "/v1/webhooks", access: admin, request: webhook.Subscription{}, answer: newWebhook{}, handle: (*exchange).addWebhook,
			help: "Add a subscription to the events from now on. The answer alone has its secret."},
		one("GET", "", nil, webhook.Status{}, (*exchange).showWebhook, "Show a subscription: how far it is, what waits, and what has failed."),
		one("GET", "/attempts", nil, webhookAttempts{}, (*exchange).webhookAttempts, "Show the newest attempts of a subscription, the newest first."),
		one("POST", "/enable", nil, nil, (*exchange).enableWebhook, "Let a subscription go on where it was. Its deliveries that wait go on within a minute."),
		one("POST", "/disable", nil, nil, (*exchange).disableWebhook, "Stop the deliveries of a subscription. Its events stay in the feed until they expire."),
		one("POST", "/rotate", webhookRotation{}, webhookSecret{}, (*exchange).rotateWebhook, "Give a subscription a new secret, which the answer alone has. The old one signs too for the time keep."),
		one("POST", "/replay", webhookSpan{}, nil, (*exchange).replayWebhook, "Send all kept events of a time span again, with the ids that they have had. Status.replay tells how far it is."),
		one("POST", "/resend", webhookDelivery{}, nil, (*exchange).resendWebhook, "Send the event of one delivery again, with the same id."),
		one("DELETE", "", nil, nil, (*exchange).removeWebhook, "Remove a subscription, and drop its deliveries that wait."),
	}
}

// webhookPage is a page of the list.
type webhookPage struct {
	Webhooks []webhook.Status `json:"webhooks"`
	Next     string           `json:"next,omitempty"`
}

// newWebhook is a subscription with its secret.
type newWebhook struct {
	webhook.Status
	Secret string `json:"secret"`
}

type webhookSecret struct {
	Secret string `json:"secret"`
}

type webhookAttempts struct {
	Attempts []webhook.Attempt `json:"attempts"`
}

// webhookRotation says how long the old secret signs too, as time.ParseDuration reads it. Default: 24h.
type webhookRotation struct {
	Keep string `json:"keep,omitempty"`
}

// webhookSpan is the time span of a replay. Until is now if it is zero.
type webhookSpan struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

type webhookDelivery struct {
	Delivery string `json:"delivery"`
}

// webhookRules are the rules of the errors of webhooks.
var webhookRules = []rule{
	{is: webhook.ErrNotFound, problem: problem{Type: "not-found", Title: "There is no such thing here.", Status: http.StatusNotFound, Outcome: none}, tell: true},
	{is: webhook.ErrInvalid, problem: problem{Type: "bad-webhook", Title: "The subscription cannot be as it is asked for.", Status: http.StatusBadRequest, Outcome: none}, tell: true},
	{is: webhook.ErrReplaying, problem: problem{Type: "replay-running", Title: "A replay is under way.", Status: http.StatusConflict, Outcome: none}, tell: true},
	{is: webhook.ErrTooMany, problem: problem{Type: "too-many-webhooks", Title: "There are too many subscriptions.", Status: http.StatusConflict, Outcome: none}, tell: true},
	{is: webhook.ErrNoFeed, problem: problem{Type: "no-feed", Title: "The host keeps no feed.", Status: http.StatusConflict, Outcome: none, Detail: "open it with object.Options.Feed"}},
}

// withWebhooks runs f with the subscriptions, within the time of the request.
func (x *exchange) withWebhooks(f func(ctx context.Context, w *webhook.Webhooks) error) error {
	if x.config.Webhooks == nil {
		return &problem{Type: "no-webhooks", Title: "The server has no webhooks.", Status: http.StatusNotFound, Outcome: none, Detail: "set Config.Webhooks"}
	}
	ctx, cancel, err := x.within()
	if err != nil {
		return err
	}
	defer cancel()
	return f(ctx, x.config.Webhooks)
}

// changeWebhook runs a verb between its two entries in the audit. id is that of the subscription; empty: a new one.
func (x *exchange) changeWebhook(verb, id string, f func(ctx context.Context, w *webhook.Webhooks) error) error {
	return x.withWebhooks(func(ctx context.Context, w *webhook.Webhooks) error {
		audit, err := x.beginAudit(auditEntry{Verb: "webhook " + verb, Class: webhook.Class, Object: id})
		if err != nil {
			return err
		}
		err = f(ctx, w)
		audit.end(err, 0)
		return err
	})
}

// done answers a verb that has nothing to tell.
func (x *exchange) done(err error) error {
	if err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (x *exchange) listWebhooks() error {
	page, err := x.webhookPage()
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, page)
}

// webhookPage is the page that the parameters after and limit choose.
func (x *exchange) webhookPage() (page webhookPage, err error) {
	limit, err := x.limit()
	if err != nil {
		return page, err
	}
	after, err := x.after()
	if err != nil {
		return page, err
	}
	err = x.withWebhooks(func(ctx context.Context, w *webhook.Webhooks) (err error) {
		page.Webhooks, err = w.List(ctx, x.host, after, limit)
		return err
	})
	if n := len(page.Webhooks); n == limit {
		page.Next = cursor(page.Webhooks[n-1].ID)
	}
	return page, err
}

func (x *exchange) addWebhook() error {
	var s webhook.Subscription
	if err := x.decode(&s); err != nil {
		return err
	}
	made, err := x.newWebhook(s)
	if err != nil {
		return err
	}
	return x.json(http.StatusCreated, made)
}

// newWebhook adds a subscription.
func (x *exchange) newWebhook(s webhook.Subscription) (made newWebhook, err error) {
	err = x.changeWebhook("add", "", func(ctx context.Context, w *webhook.Webhooks) (err error) {
		made.Status, made.Secret, err = w.Add(ctx, x.host, s)
		return err
	})
	return made, err
}

func (x *exchange) showWebhook() error {
	s, err := x.webhook(x.path("id"))
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, s)
}

// webhook is a subscription.
func (x *exchange) webhook(id string) (s webhook.Status, err error) {
	err = x.withWebhooks(func(ctx context.Context, w *webhook.Webhooks) (err error) {
		s, err = w.Status(ctx, x.host, id)
		return err
	})
	return s, err
}

func (x *exchange) webhookAttempts() error {
	list, err := x.attempts(x.path("id"))
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, webhookAttempts{list})
}

// attempts are the newest attempts of a subscription.
func (x *exchange) attempts(id string) (list []webhook.Attempt, err error) {
	err = x.withWebhooks(func(ctx context.Context, w *webhook.Webhooks) (err error) {
		list, err = w.Attempts(ctx, x.host, id)
		return err
	})
	return list, err
}

func (x *exchange) enableWebhook() error  { return x.done(x.setWebhook("enable", x.path("id"))) }
func (x *exchange) disableWebhook() error { return x.done(x.setWebhook("disable", x.path("id"))) }
func (x *exchange) removeWebhook() error  { return x.done(x.setWebhook("remove", x.path("id"))) }

// setWebhook runs a verb without an argument.
func (x *exchange) setWebhook(verb, id string) error {
	return x.changeWebhook(verb, id, func(ctx context.Context, w *webhook.Webhooks) error {
		switch verb {
		case "enable":
			return w.Enable(ctx, x.host, id)
		case "disable":
			return w.Disable(ctx, x.host, id)
		case "remove":
			return w.Remove(ctx, x.host, id)
		}
		return badRequest(fmt.Sprintf("a subscription has no verb %q", verb))
	})
}

// defaultKeep is how long an old secret signs too unless the request says otherwise.
const defaultKeep = 24 * time.Hour

func (x *exchange) rotateWebhook() error {
	var b webhookRotation
	if err := x.decode(&b); err != nil {
		return err
	}
	secret, err := x.rotate(x.path("id"), b.Keep)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, webhookSecret{secret})
}

// rotate gives a subscription a new secret.
func (x *exchange) rotate(id, keep string) (secret string, err error) {
	d := defaultKeep
	if keep != "" {
		if d, err = time.ParseDuration(keep); err != nil {
			return "", badRequest("keep is a duration such as 24h, or 0s")
		}
	}
	err = x.changeWebhook("rotate", id, func(ctx context.Context, w *webhook.Webhooks) (err error) {
		secret, err = w.Rotate(ctx, x.host, id, d)
		return err
	})
	return secret, err
}

func (x *exchange) replayWebhook() error {
	var b webhookSpan
	if err := x.decode(&b); err != nil {
		return err
	}
	return x.done(x.replaySpan(x.path("id"), b))
}

// replaySpan begins a replay.
func (x *exchange) replaySpan(id string, b webhookSpan) error {
	if b.Until.IsZero() {
		b.Until = x.host.Seams().Clock.Now()
	}
	return x.changeWebhook("replay", id, func(ctx context.Context, w *webhook.Webhooks) error {
		return w.Replay(ctx, x.host, id, b.Since, b.Until)
	})
}

func (x *exchange) resendWebhook() error {
	var b webhookDelivery
	if err := x.decode(&b); err != nil {
		return err
	}
	return x.done(x.resend(x.path("id"), b.Delivery))
}

// resend sends one event again.
func (x *exchange) resend(id, delivery string) error {
	return x.changeWebhook("resend", id, func(ctx context.Context, w *webhook.Webhooks) error {
		return w.Resend(ctx, x.host, id, delivery)
	})
}
