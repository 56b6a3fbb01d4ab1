package server

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// outcomeOffice is a server with a pool of which tasks may have a URL on the loopback, and a receiver.
type outcomeOffice struct {
	*fixture
	target string
	got    chan posted
}

// posted is a request to the receiver.
type posted struct {
	header http.Header
	body   []byte
}

func openOutcomeOffice(t *testing.T) *outcomeOffice {
	t.Helper()
	o := &outcomeOffice{got: make(chan posted, 10)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			o.got <- posted{r.Header.Clone(), body}
		}
	}))
	t.Cleanup(receiver.Close)
	o.target = receiver.URL + "/hook"
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32), AllowPrivate: true, Timeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	posts, err := hooks.Tasks("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	thumbs := workerpool.New(workerpool.Config[thumb, string]{
		Name: "thumb", Webhooks: posts, Work: func(_ context.Context, t *workerpool.Task[thumb]) (string, error) { return "small " + t.In.Name, nil },
	})
	o.fixture = startOn(t, memory(), func(c *Config) {
		c.Auth, c.Jobs, c.Webhooks = staff, []verbs.Described{thumbs}, hooks
	}, append(hooks.Definitions(), thumbs)...)
	return o
}

// take is the next request to the receiver, whose signature it checks.
func (o *outcomeOffice) take(secret string) posted {
	o.t.Helper()
	p := <-o.got
	verifier, err := standard.NewWebhook(secret)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := verifier.Verify(p.body, p.header); err != nil {
		o.t.Error(err)
	}
	return p
}

// enqueued is the id of a task that the caller adds with a URL.
func (o *outcomeOffice) enqueued(name, to string) string {
	o.t.Helper()
	body, err := json.Marshal(map[string]any{"in": thumb{Name: name}, "webhook": to})
	if err != nil {
		o.t.Fatal(err)
	}
	a := o.ask("caller", "POST", "/v1/pools/thumb/tasks", string(body))
	if a.status != 201 {
		o.t.Fatalf("%d %s", a.status, a.body)
	}
	var ref workerpool.TaskRef
	if err := json.Unmarshal([]byte(a.body), &ref); err != nil {
		o.t.Fatal(err)
	}
	return ref.ID.String()
}

// The field webhook of a new task is the URL of its outcome, and the status of the task tells how that is. A URL with another host is
// refused, with the task. Proves W13, U11.
func TestTaskWithWebhook(t *testing.T) {
	o := openOutcomeOffice(t)
	for to, want := range map[string]string{"http://localhost/hook": "none that the pool names", "ftp://127.0.0.1/": "does not begin with", o.target + strings.Repeat("x", 2048): "longer than 2048 bytes"} {
		body, _ := json.Marshal(map[string]any{"in": thumb{Name: "cat"}, "webhook": to})
		if a := o.ask("caller", "POST", "/v1/pools/thumb/tasks", string(body)); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("U11: %s: %d %s", to, a.status, a.body)
		}
	}
	task := o.enqueued("cat", o.target)
	if a := o.ask("reader", "GET", "/v1/pools/thumb/tasks/"+task, ""); !strings.Contains(a.body, `"webhook":{"state":"pending"`) {
		t.Errorf("W13: before there is a secret: %d %s", a.status, a.body)
	}
	var made newWebhook
	if a := o.ask("admin", "POST", "/v1/webhooks", `{"pool":"thumb"}`); a.status != 201 || json.Unmarshal([]byte(a.body), &made) != nil || made.ID != "pool.thumb" {
		t.Fatalf("U11: %d %s", a.status, a.body)
	}
	if second := o.enqueued("dog", o.target); second == task {
		t.Errorf("a second task is %s too", second)
	}
	p := o.take(made.Secret)
	if strings.Contains(string(p.body), `"small cat"`) { // its work has ended after the secret was there; else it looks once a minute
		p = o.take(made.Secret)
	}
	if !strings.Contains(string(p.body), `"small dog"`) {
		t.Errorf("U11: %s", p.body)
	}
}

// A form of the page adds the subscription of a pool and shows its secret once. Its page links to the tasks, and offers no replay, because there
// are no events. Proves U10, U11.
func TestPoolWebhookPage(t *testing.T) {
	o := openOutcomeOffice(t)
	if b := o.ask("admin", "GET", "/ui/webhooks", "").body; !strings.Contains(b, `name="pool"`) {
		t.Fatalf("U10: the page has no form for a pool: %s", b)
	}
	add := func(form url.Values) reply {
		return o.ask("admin", "POST", "/ui/webhookadd", form.Encode(), "Content-Type", formType)
	}
	a := add(url.Values{"pool": {" thumb "}})
	_, rest, ok := strings.Cut(a.body, `<pre id="secret">`)
	secret, _, ends := strings.Cut(rest, "<")
	secret = html.UnescapeString(secret)
	if a.status != 200 || !ok || !ends {
		t.Fatalf("U10: no secret on the page: %d %s", a.status, a.body)
	}
	for _, form := range []url.Values{{"pool": {"thumb"}}, {"pool": {"prints"}, "url": {o.target}}, {"pool": {"prints"}, "class": {"cart"}}, {"pool": {webhook.Pool}}, {"pool": {" "}}} {
		if a := add(form); a.status != 400 {
			t.Errorf("U11: %v: %d %s", form, a.status, a.body)
		}
	}
	task := o.enqueued("cat", o.target)
	o.take(secret)
	for into[webhook.Status](t, o.ask("admin", "GET", "/v1/webhooks/pool.thumb", "")).Delivered != 1 {
	}
	b := o.ask("admin", "GET", "/ui/webhook?id=pool.thumb", "").body
	if !strings.Contains(b, "outcomes of tasks of") || !strings.Contains(b, "task?pool=thumb&amp;task="+task) || strings.Contains(b, secret) || strings.Contains(b, "webhookreplay") || strings.Contains(b, "webhookresend") {
		t.Errorf("U10: page: %s", b)
	}
	if b := o.ask("admin", "GET", "/ui/webhooks", "").body; !strings.Contains(b, "the URL of each task of thumb") || strings.Contains(b, secret) {
		t.Errorf("U10: list: %s", b)
	}
}
