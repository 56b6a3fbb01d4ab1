package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// post office is a server with webhooks, of a host with carts that emit events, and a receiver that passes on the ids of its requests.
type postOffice struct {
	*fixture
	target string
	ids    chan string
	emit   *object.Method[string, struct{}]
}

func openPostOffice(t *testing.T) *postOffice {
	t.Helper()
	p := &postOffice{ids: make(chan string, 100)}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		p.ids <- r.Header.Get("webhook-id")
		_, _ = io.WriteString(w, "an answer that is private")
	}))
	t.Cleanup(receiver.Close)
	p.target = receiver.URL
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32), AllowPrivate: true, Timeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	carts := object.Define("cart", func(_ context.Context, st *object.State) (*struct{ *object.State }, error) {
		return &struct{ *object.State }{st}, nil
	})
	p.emit = object.Handle(carts, "emit", func(c *struct{ *object.State }, ctx context.Context, kind string) (struct{}, error) {
		return struct{}{}, c.Emit(ctx, kind, 1)
	})
	p.fixture = startOn(t, object.Options{Storage: storage.Options{Engine: memstore.New()}, Feed: true}, func(c *Config) { c.Webhooks = hooks }, append(hooks.Definitions(), carts)...)
	return p
}

// next is the id of the next delivery.
func (p *postOffice) next() string {
	p.t.Helper()
	return <-p.ids
}

// status is that of a subscription, once f holds.
func (p *postOffice) status(id string, f func(webhook.Status) bool) (s webhook.Status) {
	p.t.Helper()
	for {
		if s = into[webhook.Status](p.t, p.ask("admin", "GET", "/v1/webhooks/"+id, "")); f(s) {
			return s
		}
	}
}

// An admin adds, lists, shows, disables, rotates, replays, resends and removes a subscription; each is in the audit, and
// no secret is. Proves U10.
func TestWebhooks(t *testing.T) {
	p := openPostOffice(t)
	body, _ := json.Marshal(webhook.Subscription{URL: p.target, Class: "cart", Kinds: []string{"paid"}})
	a := p.ask("admin", "POST", "/v1/webhooks", string(body))
	var made newWebhook
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != 201 || !strings.HasPrefix(made.Secret, "whsec_") || made.ID == "" {
		t.Fatalf("%d %s %v", a.status, a.body, err)
	}
	one := "/v1/webhooks/" + made.ID
	for _, who := range []string{"operator", "acme"} {
		for _, path := range []string{"/v1/webhooks", one, one + "/attempts"} {
			if a := p.ask(who, "GET", path, ""); a.status != 403 && a.status != 404 {
				t.Errorf("%s sees %s: %d %s", who, path, a.status, a.body)
			}
		}
	}
	if _, err := p.emit.Call(t.Context(), p.host, "alice", "paid"); err != nil {
		t.Fatal(err)
	}
	id := p.next()
	p.status(made.ID, func(s webhook.Status) bool { return s.Delivered == 1 })
	attempts := into[webhookAttempts](t, p.ask("admin", "GET", one+"/attempts", "")).Attempts
	if len(attempts) != 1 || attempts[0].ID != id || attempts[0].Status != 200 || attempts[0].Answer != "" {
		t.Errorf("attempts %+v", attempts)
	}
	list := into[webhookPage](t, p.ask("admin", "GET", "/v1/webhooks", ""))
	if len(list.Webhooks) != 1 || list.Webhooks[0].ID != made.ID || list.Next != "" {
		t.Errorf("list %+v", list)
	}
	if list := into[webhookPage](t, p.ask("admin", "GET", "/v1/webhooks?limit=1", "")); list.Next == "" {
		t.Errorf("list %+v has no next page, though it is full", list)
	} else if list := into[webhookPage](t, p.ask("admin", "GET", "/v1/webhooks?after="+list.Next, "")); len(list.Webhooks) != 0 {
		t.Errorf("second page %+v", list)
	}
	does := func(method, rest, body string) {
		t.Helper()
		if a := p.ask("admin", method, one+rest, body); a.status != 204 {
			t.Errorf("%s %s: %d %s", method, rest, a.status, a.body)
		}
	}
	does("POST", "/resend", `{"delivery":"`+id+`"}`)
	if again := p.next(); again != id {
		t.Errorf("resend sent %q, want %q", again, id)
	}
	does("POST", "/replay", `{"since":"2020-01-01T00:00:00Z"}`)
	if again := p.next(); again != id {
		t.Errorf("replay sent %q, want %q", again, id)
	}
	does("POST", "/disable", "")
	p.status(made.ID, func(s webhook.Status) bool { return s.Disabled == webhook.DisabledByHand })
	does("POST", "/enable", "")
	p.status(made.ID, func(s webhook.Status) bool { return s.Disabled == "" && s.Delivered == 3 })
	second := into[webhookSecret](t, p.ask("admin", "POST", one+"/rotate", `{"keep":"1h"}`)).Secret
	if second == made.Secret || !strings.HasPrefix(second, "whsec_") {
		t.Errorf("the new secret is %q", second)
	}
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v1/webhooks", `{"url":"ftp://x"}`, "bad-webhook"}, {"POST", "/v1/webhooks", `{"url":"http://x","kind":"x"}`, "bad-request"},
		{"POST", one + "/replay", `{"since":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}`, "bad-webhook"}, {"POST", one + "/resend", `{"delivery":"x"}`, "not-found"},
		{"POST", one + "/rotate", `{"keep":"soon"}`, "bad-request"}, {"POST", one + "/rotate", `{"keep":"721h"}`, "bad-webhook"}, {"GET", "/v1/webhooks/x", "", "not-found"},
	} {
		if got := p.ask("admin", c.method, c.path, c.body).problem(t).Type; got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.body, got, c.want)
		}
	}
	does("DELETE", "", "")
	if got := p.ask("admin", "GET", one, "").problem(t).Type; got != "not-found" {
		t.Errorf("after the removal: %s", got)
	}
	audit := p.ask("admin", "GET", "/v1/audit?limit=100", "").body
	for _, verb := range []string{"add", "resend", "replay", "disable", "enable", "rotate", "remove"} {
		if !strings.Contains(audit, `"webhook `+verb+`"`) {
			t.Errorf("the audit has no %s", verb)
		}
	}
	for _, secret := range []string{made.Secret, second} {
		if strings.Contains(audit, secret) || strings.Contains(p.log.String(), secret) || strings.Contains(audit, url.QueryEscape(secret)) {
			t.Error("the audit or the log has a secret")
		}
	}
}

// The pool of the deliveries is one for operators, so that its dead letters are replayed, and its generic routes are not open to a caller without a grant.
func TestDeliveryPool(t *testing.T) {
	p := openPostOffice(t)
	if a := p.ask("viewer", "GET", "/v1/pools", ""); !strings.Contains(a.body, webhook.Pool) {
		t.Errorf("pools: %s", a.body)
	}
	path := "/v1/pools/" + webhook.Pool
	if a := p.ask("operator", "POST", path+"/pause", ""); a.status != 200 && a.status != 204 {
		t.Errorf("pause: %d %s", a.status, a.body)
	}
	if a := p.ask("operator", "POST", path+"/resume", ""); a.status != 200 && a.status != 204 {
		t.Errorf("resume: %d %s", a.status, a.body)
	}
	for _, who := range []string{"admin", "caller", "acme"} {
		if a := p.ask(who, "POST", path+"/tasks", `{"in":{"to":"x"}}`); a.status != 404 && a.status != 403 {
			t.Errorf("%s enqueues: %d %s", who, a.status, a.body)
		}
	}
}

// A host without the classes of its webhooks, and a server without webhooks, say so.
func TestNoWebhooks(t *testing.T) {
	f := start(t, nil)
	if got := f.ask("admin", "GET", "/v1/webhooks", "").problem(t).Type; got != "no-webhooks" {
		t.Errorf("%s", got)
	}
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(f.host, Config{Auth: everyone, Webhooks: hooks}); err == nil || !strings.Contains(err.Error(), "Config.Webhooks") {
		t.Errorf("New: %v", err)
	}
}

// The pages agree with the API, show a new secret once, and run the verbs by forms. Proves U10.
func TestWebhookPages(t *testing.T) {
	p := openPostOffice(t)
	form := func(path, body string) reply {
		t.Helper()
		a := p.ask("admin", "POST", path, body, "Content-Type", formType)
		if a.status != 200 && a.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		return a
	}
	a := form("/ui/webhookadd", url.Values{"url": {p.target}, "class": {"cart"}, "kinds": {"paid, <b>seen"}}.Encode())
	_, rest, ok := strings.Cut(a.body, "whsec_")
	if !ok {
		t.Fatalf("no secret on the page: %s", a.body)
	}
	secret := rest[:40]
	list := p.ask("admin", "GET", "/ui/webhooks", "")
	if !strings.Contains(list.body, p.target) || !strings.Contains(list.body, "&lt;b&gt;seen") || strings.Contains(list.body, secret) {
		t.Errorf("list: %s", list.body)
	}
	id := into[webhookPage](t, p.ask("admin", "GET", "/v1/webhooks", "")).Webhooks[0].ID
	if _, err := p.emit.Call(t.Context(), p.host, "alice", "paid"); err != nil {
		t.Fatal(err)
	}
	delivery := p.next()
	p.status(id, func(s webhook.Status) bool { return s.Delivered == 1 })
	one := "?id=" + id
	if b := p.ask("admin", "GET", "/ui/webhook"+one, "").body; !strings.Contains(b, delivery) || strings.Contains(b, secret) || !strings.Contains(b, "cart/alice") {
		t.Errorf("page: %s", b)
	}
	form("/ui/webhookresend"+one, "delivery="+delivery)
	form("/ui/webhookreplay"+one, "last=1h")
	if a, b := p.next(), p.next(); a != delivery || b != delivery {
		t.Errorf("sent %s and %s again, want %s", a, b, delivery)
	}
	if a := p.ask("admin", "POST", "/ui/webhookreplay"+one, "last=soon", "Content-Type", formType); a.status != 400 {
		t.Errorf("replay of soon: %d", a.status)
	}
	form("/ui/webhookset"+one+"&verb=disable", "")
	if b := p.ask("admin", "GET", "/ui/webhook"+one, "").body; !strings.Contains(b, "disabled") || !strings.Contains(b, "Enable") {
		t.Errorf("page: %s", b)
	}
	if a := form("/ui/webhookrotate"+one, "keep=0s"); !strings.Contains(a.body, "whsec_") || strings.Contains(a.body, secret) {
		t.Errorf("page: %s", a.body)
	}
	form("/ui/webhookset"+one+"&verb=remove", "")
	if list := into[webhookPage](t, p.ask("admin", "GET", "/v1/webhooks", "")); len(list.Webhooks) != 0 {
		t.Errorf("list %+v", list)
	}
	if a := p.ask("admin", "POST", "/ui/webhookset"+one+"&verb=explode", "", "Content-Type", formType); a.status != 400 {
		t.Errorf("verb explode: %d", a.status)
	}
}
