package server

import (
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// webhookPages are the pages of the subscriptions, and their forms.
func (s *Server) webhookPages() []route {
	id := param{name: "id", help: "of the subscription"}
	return []route{
		shows("webhooks", admin, (*exchange).showWebhooks, afterParam, limitParam),
		shows("webhook", admin, (*exchange).showOneWebhook, id),
		acts("webhookadd", admin, (*exchange).webhookAddForm),
		acts("webhookset", admin, (*exchange).webhookSetForm, id, param{name: "verb", help: "enable, disable or remove"}),
		acts("webhookrotate", admin, (*exchange).webhookRotateForm, id),
		acts("webhookreplay", admin, (*exchange).webhookReplayForm, id),
		acts("webhookresend", admin, (*exchange).webhookResendForm, id),
	}
}

// shownWebhook is a subscription for the page.
func shownWebhook(s webhook.Status) dashboard.Webhook {
	v := dashboard.Webhook{
		ID: s.ID, URL: s.URL, Pool: s.Pool, Class: s.Class, Prefix: s.Prefix, Kinds: s.Kinds, Created: s.Created, Disabled: s.Disabled, FailingSince: s.FailingSince,
		Waiting: s.Waiting, Delivered: s.Delivered, Dead: s.Dead, Gaps: s.Gaps, Rotated: s.Rotated, OldUntil: s.OldUntil,
	}
	if s.Pool != "" {
		v.URL = "the URL of each task of " + s.Pool
	}
	if s.LastGap != nil {
		v.GapAt, v.GapFrom, v.GapTo = s.LastGap.At, s.LastGap.From, s.LastGap.To
	}
	if s.Replay != nil {
		v.Replaying, v.Replayed, v.ReplaySince, v.ReplayUntil = true, s.Replay.Sent, s.Replay.Since, s.Replay.Until
	}
	return v
}

func (x *exchange) showWebhooks() error {
	list, err := x.webhookPage()
	if err != nil {
		return err
	}
	p := dashboard.Webhooks{Next: list.Next}
	for _, s := range list.Webhooks {
		p.List = append(p.List, shownWebhook(s))
	}
	return x.page(p)
}

// showOneWebhook shows a subscription with its attempts.
func (x *exchange) showOneWebhook() error {
	s, err := x.webhook(x.param("id"))
	if err != nil {
		return err
	}
	list, err := x.attempts(s.ID)
	if err != nil {
		return err
	}
	p := dashboard.OneWebhook{Webhook: shownWebhook(s)}
	for _, a := range list {
		p.Attempts = append(p.Attempts, dashboard.WebhookAttempt{
			ID: a.ID, Kind: a.Kind, Class: a.Class, Name: a.Name, Attempt: a.Attempt, At: a.At, Took: a.Took, Status: a.Status, Error: a.Error, Answer: a.Answer, Next: a.Next, OK: a.OK(),
		})
	}
	if s.Replay != nil {
		x.w.Header().Set("Refresh", "1")
	}
	return x.page(p)
}

// webhookAddForm adds a subscription, and shows its secret, which no other page does.
func (x *exchange) webhookAddForm() error {
	form, err := x.form(x.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	s := webhook.Subscription{URL: strings.TrimSpace(form.Get("url")), Class: form.Get("class"), Prefix: form.Get("prefix"), Pool: strings.TrimSpace(form.Get("pool"))}
	for kind := range strings.SplitSeq(form.Get("kinds"), ",") {
		if kind = strings.TrimSpace(kind); kind != "" {
			s.Kinds = append(s.Kinds, kind)
		}
	}
	made, err := x.newWebhook(s)
	if err != nil {
		return err
	}
	return x.page(dashboard.WebhookSecret{ID: made.ID, Secret: made.Secret})
}

func (x *exchange) webhookSetForm() error {
	verb, id := x.param("verb"), x.param("id")
	if err := x.setWebhook(verb, id); err != nil {
		return err
	}
	if verb == "remove" {
		return x.see("webhooks")
	}
	return x.see("webhook", "id", id)
}

func (x *exchange) webhookRotateForm() error {
	form, err := x.form(x.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	id := x.param("id")
	secret, err := x.rotate(id, form.Get("keep"))
	if err != nil {
		return err
	}
	return x.page(dashboard.WebhookSecret{ID: id, Secret: secret})
}

// webhookReplayForm begins a replay of the time before now that the form asks for.
func (x *exchange) webhookReplayForm() error {
	form, err := x.form(x.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	last, err := time.ParseDuration(strings.TrimSpace(form.Get("last")))
	if err != nil || last <= 0 {
		return badRequest("write how much of the time before now is sent again, for example 2h or 30m")
	}
	now := x.host.Seams().Clock.Now()
	id := x.param("id")
	if err := x.replaySpan(id, webhookSpan{Since: now.Add(-last), Until: now}); err != nil {
		return err
	}
	return x.see("webhook", "id", id)
}

func (x *exchange) webhookResendForm() error {
	form, err := x.form(x.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	id := x.param("id")
	if err := x.resend(id, form.Get("delivery")); err != nil {
		return err
	}
	return x.see("webhook", "id", id)
}
