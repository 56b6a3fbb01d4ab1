package webhook_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

type thumbs = workerpool.Pool[string, string]

// thumbPool is a pool with tasks that have URLs of these hosts. Each works for the time takes. A task "bad" dies then, and one "slow" works for an hour.
func thumbPool(t testing.TB, hooks *webhook.Webhooks, takes time.Duration, hosts ...string) *thumbs {
	t.Helper()
	posts, err := hooks.Tasks(hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return workerpool.New(workerpool.Config[string, string]{
		Name: "thumb", Webhooks: posts, Retry: jobs.Retry{MaxAttempts: 1},
		Retention: jobs.Retention{Completed: workerpool.AtOnce}, // the outcome has the result all the same
		Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			switch t.In {
			case "slow":
				return "", t.Sleep(ctx, time.Hour)
			case "bad":
				return "", cmp.Or(t.Sleep(ctx, takes), errors.New("no picture"))
			}
			return "small " + t.In, t.Sleep(ctx, takes)
		},
	})
}

func openThumbs(t testing.TB, dir string, hooks *webhook.Webhooks, p *thumbs) *object.Host {
	t.Helper()
	host, err := object.Open(object.Options{Dir: dir}, append(hooks.Definitions(), p)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Shutdown(context.Background()) })
	return host
}

// Proves U11: a task may have the URL of a host that its pool names, or of one below it, and no other; nor one that no subscription may have.
// A refused task is not added.
func TestHostsOfTasks(t *testing.T) {
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	p := thumbPool(t, hooks, 0, "example.com", "*.Hooks.example.org", "other.example.")
	host := openThumbs(t, t.TempDir(), hooks, p)
	for url, want := range map[string]string{
		"https://example.com/a?b": "", "https://EXAMPLE.com.": "", "https://example.com:443/": "", "https://other.example/": "",
		"https://a.hooks.example.org/": "", "https://a.b.hooks.example.org": "",
		"https://hooks.example.org":                        "none that the pool names",
		"https://.hooks.example.org":                       "none that the pool names",
		"https://ahooks.example.org":                       "none that the pool names",
		"https://www.example.com":                          "none that the pool names",
		"https://example.com.evil.net":                     "none that the pool names",
		"https://evil.net/example.com":                     "none that the pool names",
		"https://evil.net?example.com":                     "none that the pool names",
		"http://example.com":                               "does not begin with https://",
		"https://user@example.com":                         "has a user name",
		"https://example.com:8443":                         "has a port",
		"https://127.0.0.1":                                "is refused",
		"://":                                              "cannot be read",
		"https://example.com/" + strings.Repeat("x", 2028): "",
		"https://example.com/" + strings.Repeat("x", 2029): "longer than 2048 bytes",
	} {
		_, err := p.Enqueue(t.Context(), host, "later", workerpool.Webhook(url), workerpool.Delay(time.Hour))
		if want == "" && err != nil || want != "" && (!errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("U11: %s: %v, want %q", url, err, want)
		}
	}
	if s, err := p.Stats(t.Context(), host); err != nil || s.Submitted != 7 {
		t.Errorf("U11: %+v, %v", s, err)
	}
	bare := workerpool.New(workerpool.Config[string, string]{Name: "bare"})
	if _, err := bare.Enqueue(t.Context(), host, "x", workerpool.Webhook("https://example.com")); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "Config.Webhooks") {
		t.Errorf("U11: a pool without hosts: %v", err)
	}
	for _, hosts := range [][]string{nil, {""}, {"*."}, {"*"}, {"a b"}, {"https://a"}, {"a:443"}, {"a/b"}, {"*.*.a"}, make([]string, 101)} {
		if _, err := hooks.Tasks(hosts...); !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("U11: the hosts %q: %v", hosts, err)
		}
	}
}

// addPool makes the subscription of the pool thumb and returns the verifier of its signatures.
func addPool(t testing.TB, host *object.Host, hooks *webhook.Webhooks) *standard.Webhook {
	t.Helper()
	status, secret, err := hooks.Add(t.Context(), host, webhook.Subscription{Pool: "thumb"})
	if err != nil || status.ID != "pool.thumb" {
		t.Fatal(status, err)
	}
	verifier, err := standard.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return verifier
}

// Proves U11, W13: the outcome of a task that is done, dead or cancelled is posted to its URL, signed with the secret of
// its pool, with its result or its error, and the status of the task tells of it. Tasks without a URL post nothing.
func TestOutcomesOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		hooks := newHooks(t)
		p := thumbPool(t, hooks, 0, "127.0.0.1")
		host := openThumbs(t, t.TempDir(), hooks, p)
		verifier := addPool(t, host, hooks)
		to := newReceiver(t)
		if _, err := p.Enqueue(ctx, host, "silent"); err != nil {
			t.Fatal(err)
		}
		ids := map[string]workerpool.TaskID{}
		for _, in := range []string{"good", "bad", "later"} {
			opts := []workerpool.Option{workerpool.Webhook(to.URL + "/hook")}
			if in == "later" {
				opts = append(opts, workerpool.Delay(time.Hour))
			}
			ref, err := p.Enqueue(ctx, host, in, opts...)
			if err != nil {
				t.Fatal(err)
			}
			ids[in] = ref.ID
		}
		if s, err := p.Status(ctx, host, ids["later"]); err != nil || s.Webhook == nil || s.Webhook.State != workerpool.WebhookPending {
			t.Errorf("W13: the status of a task that waits: %+v, %v", s, err)
		}
		if _, err := p.Cancel(ctx, host, ids["later"]); err != nil {
			t.Fatal(err)
		}
		seen := map[string]string{}
		for _, g := range to.take(t, 3) {
			if err := verifier.Verify(g.body, g.header); err != nil {
				t.Errorf("U11: %v", err)
			}
			var b struct {
				Type string
				Data struct {
					Pool, Task, State, Error, Reason string
					Attempt                          int
					Result                           json.RawMessage
				}
			}
			if err := json.Unmarshal(g.body, &b); err != nil {
				t.Fatal(err)
			}
			seen[b.Data.Task] = fmt.Sprintf("%s %s %s %d %s %s %s", b.Type, b.Data.Pool, b.Data.State, b.Data.Attempt, b.Data.Result, b.Data.Error, b.Data.Reason)
		}
		for in, want := range map[string]string{
			"good": `task.completed thumb done 1 "small good"  `, "bad": "task.failed thumb dead 1  no picture attempts", "later": "task.cancelled thumb cancelled 0   ",
		} {
			if got := seen[ids[in].String()]; got != want {
				t.Errorf("U11: the outcome of %s is %q, want %q", in, got, want)
			}
		}
		until(t, host, hooks, "pool.thumb", func(s webhook.Status) bool { return s.Delivered == 3 && s.Made == 3 })
		for _, in := range []string{"bad", "later"} {
			if s, err := p.Status(ctx, host, ids[in]); err != nil || s.Webhook == nil || s.Webhook.State != "delivered" || s.Webhook.Attempt != 1 || s.Webhook.At.IsZero() {
				t.Errorf("W13: the status of %s: %+v, %v", in, s.Webhook, err)
			}
		}
		if err := hooks.Replay(ctx, host, "pool.thumb", time.Now().Add(-time.Hour), time.Now()); !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("U11: a replay: %v", err)
		}
		if _, _, err := hooks.Add(ctx, host, webhook.Subscription{Pool: "thumb"}); !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("U11: a second subscription of a pool: %v", err)
		}
		for _, s := range []webhook.Subscription{{Pool: "thumb2", URL: to.URL}, {Pool: "thumb2", Kinds: []string{"a"}}, {Pool: webhook.Pool}, {Pool: "\xff"}} {
			if _, _, err := hooks.Add(ctx, host, s); !errors.Is(err, webhook.ErrInvalid) {
				t.Errorf("U11: %+v: %v", s, err)
			}
		}
	})
}

// Proves U11: a result that is too large for a delivery is left out, and its size is told.
func TestLargeResultOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := newHooks(t)
		p := thumbPool(t, hooks, 0, "127.0.0.1")
		host := openThumbs(t, t.TempDir(), hooks, p)
		addPool(t, host, hooks)
		to := newReceiver(t)
		if _, err := p.Enqueue(t.Context(), host, strings.Repeat("x", 300<<10), workerpool.Webhook(to.URL)); err != nil {
			t.Fatal(err)
		}
		var b struct {
			Data struct {
				SizeBytes int
				Omitted   bool
				Result    json.RawMessage
			}
		}
		if err := json.Unmarshal(to.take(t, 1)[0].body, &b); err != nil || !b.Data.Omitted || b.Data.SizeBytes != 300<<10+len(`"small "`) || b.Data.Result != nil {
			t.Errorf("U11: %+v, %v", b, err)
		}
	})
}

// thumbWorld is a story: three tasks with URLs end, done, dead and cancelled, while their pool has no secret yet. Each outcome is answered with an
// error first, and with 410 for good if gone is set.
func thumbWorld(t testing.TB, s *harness.Sim, gone bool) {
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32)})
	s.OK(err)
	hooks.SetRandom(bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), 100)))
	sent := map[string]map[string]string{} // states by task and id
	early := true
	hooks.SetSender(func(_ context.Context, url, id string, body []byte, signatures int) (int, error) {
		status := http.StatusOK
		err := s.World().Do("post/"+id, func() {
			var b struct{ Data struct{ Task, State string } }
			s.OK(json.Unmarshal(body, &b))
			if early || url != "https://example.com/hook" || signatures != 1 {
				s.Errorf("U11: task %s is posted to %s with %d signatures, before there is a secret: %t", b.Data.Task, url, signatures, early)
			}
			if sent[b.Data.Task] == nil {
				sent[b.Data.Task] = map[string]string{}
			}
			sent[b.Data.Task][id] = b.Data.State
			switch {
			case gone:
				status = http.StatusGone
			case s.World().Count("post/"+id) == 1:
				status = http.StatusInternalServerError
			}
		})
		return status, err
	})
	p := thumbPool(t, hooks, time.Second, "example.com") // so that an attempt that is repeated ends later, with another id
	s.Host(append(hooks.Definitions(), p)...)
	for _, in := range []string{"good", "bad", "slow"} {
		s.OK(s.Retry(func() error {
			_, err := p.Enqueue(s.Context(), s, in, workerpool.Webhook("https://example.com/hook"), workerpool.Idempotent(in, time.Hour))
			return err
		}))
	}
	s.Advance(10 * time.Second)
	s.OK(s.Retry(func() error {
		_, err := p.Cancel(s.Context(), s, workerpool.TaskID{Number: 3})
		return err
	}))
	s.Advance(90 * time.Second)
	// Each outcome waits for the secret as one delivery. A repeat with the same id shows here alone, because the receiver may get a delivery twice.
	s.OK(s.Retry(func() error {
		made, err := hooks.Made(s.Context(), s)
		if err == nil && made != 3 {
			s.Errorf("U11: three outcomes have %d deliveries", made)
		}
		return err
	}))
	early = false
	s.OK(s.Retry(func() error {
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			_, _, err := hooks.Add(ctx, h, webhook.Subscription{Pool: "thumb"})
			if errors.Is(err, webhook.ErrInvalid) {
				return nil // the answer was lost
			}
			return err
		})
	}))
	s.Advance(3 * time.Minute)
	s.Finally("each outcome is posted with one id, and the task tells it", func() error {
		for task, state := range map[string]string{"0-1": "done", "0-2": "dead", "0-3": "cancelled"} {
			if states := slices.Collect(maps.Values(sent[task])); !slices.Equal(states, []string{state}) {
				return fmt.Errorf("U11: of task %s the outcomes %v are posted, want one: %s", task, states, state)
			}
		}
		want := "delivered"
		if gone {
			want = "failed"
		}
		for number, state := range map[uint64]workerpool.State{2: workerpool.Dead, 3: workerpool.Cancelled} {
			status, err := p.Status(s.Context(), s, workerpool.TaskID{Number: number})
			if err != nil {
				return err
			}
			if status.State != state || status.Webhook == nil || status.Webhook.State != want {
				return fmt.Errorf("W13: task %d is %s with the webhook %+v, want %s and %s", number, status.State, status.Webhook, state, want)
			}
		}
		return nil
	})
}

// Proves U11, W13: a crash at any point loses no outcome of a task and gives none two ids. Nothing is sent before the pool has a secret.
func TestCrashOutcome(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) { thumbWorld(t, s, false) })
}

// Proves U11 and W13: the status 410 ends the delivery of an outcome at once, and disables nothing. The outcome of a dead task is sent.
func TestGoneForAnOutcome(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) { thumbWorld(t, s, true) })
}
