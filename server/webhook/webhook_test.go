package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// cart is an object that emits events.
type cart struct{ st *object.State }

var carts = object.Define("cart", func(_ context.Context, st *object.State) (*cart, error) { return &cart{st}, nil })

type paid struct {
	Kind  string
	Cents int
	Bytes int // of the payload, beyond a few
}

var pay = object.Handle(carts, "pay", func(c *cart, ctx context.Context, p paid) (struct{}, error) {
	return struct{}{}, c.st.Emit(ctx, p.Kind, map[string]any{"cents": p.Cents, "more": strings.Repeat("x", p.Bytes)})
})

// receiver is an endpoint in memory that keeps its requests, and answers as told.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []got
	news chan struct{} // has a value after each request
	next func(w http.ResponseWriter, n int)
}

type got struct {
	header http.Header
	body   []byte
	parsed struct {
		Type      string
		Timestamp time.Time
		Data      struct {
			Class, Name string
			Seq         uint64
			Data        json.RawMessage
			SizeBytes   int
			Omitted     bool
		}
	}
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{news: make(chan struct{}, 10_000)}
	r.Server = memnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return // the sender has gone
		}
		g := got{header: q.Header.Clone(), body: body}
		if err := json.Unmarshal(body, &g.parsed); err != nil {
			t.Errorf("body %s: %v", body, err)
		}
		r.mu.Lock()
		r.got = append(r.got, g)
		n, next := len(r.got), r.next
		r.mu.Unlock()
		if next != nil {
			next(w, n)
		}
		r.news <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// take waits until there are n requests, and returns them.
func (r *receiver) take(t testing.TB, n int) []got {
	t.Helper()
	for {
		r.mu.Lock()
		all := r.got
		r.mu.Unlock()
		if len(all) >= n {
			return all
		}
		<-r.news
	}
}

// newHooks makes Webhooks that send over connections in memory.
func newHooks(t testing.TB) *webhook.Webhooks {
	t.Helper()
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32), AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	hooks.SetMemory()
	return hooks
}

func open(t testing.TB, dir string, hooks *webhook.Webhooks) *object.Host {
	t.Helper()
	host, err := object.Open(object.Options{Dir: dir, Feed: true}, append(hooks.Definitions(), carts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Shutdown(context.Background()) })
	return host
}

// until waits until f holds for the status of a subscription, for an hour at most.
func until(t testing.TB, host *object.Host, hooks *webhook.Webhooks, id string, f func(webhook.Status) bool) (s webhook.Status) {
	t.Helper()
	for range 3600 {
		synctest.Wait()
		var err error
		if s, err = hooks.Status(t.Context(), host, id); err != nil {
			t.Fatal(err)
		}
		if f(s) {
			return s
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("status %+v", s)
	return s
}

func call(t testing.TB, host *object.Host, name string, p paid) {
	t.Helper()
	if _, err := pay.Call(t.Context(), host, name, p); err != nil {
		t.Fatal(err)
	}
}

// A subscription gets the events that it asks for, each once, signed for the library of the specification, and
// goes on after a restart of the host. Proves U1, U3.
func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, hooks, r := t.TempDir(), newHooks(t), newReceiver(t)
		host := open(t, dir, hooks)
		call(t, host, "before", paid{Kind: "paid", Cents: 1})
		status, secret, err := hooks.Add(t.Context(), host, webhook.Subscription{URL: r.URL, Class: "cart", Prefix: "a", Kinds: []string{"paid"}})
		if err != nil {
			t.Fatal(err)
		}
		verifier, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		call(t, host, "alice", paid{Kind: "paid", Cents: 7})
		call(t, host, "alice", paid{Kind: "seen", Cents: 7})
		call(t, host, "bob", paid{Kind: "paid", Cents: 7})
		r.take(t, 1)
		until(t, host, hooks, status.ID, func(s webhook.Status) bool { return s.Delivered == 1 && s.Waiting == 0 })
		if err := host.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		host = open(t, dir, hooks)
		call(t, host, "anna", paid{Kind: "paid", Cents: 8})
		all := r.take(t, 2)
		until(t, host, hooks, status.ID, func(s webhook.Status) bool { return s.Delivered == 2 && s.Waiting == 0 })
		for i, want := range []string{"alice", "anna"} {
			g := all[i]
			if err := verifier.Verify(g.body, g.header); err != nil {
				t.Errorf("delivery %d: %v", i, err)
			}
			if d := g.parsed.Data; g.parsed.Type != "paid" || d.Class != "cart" || d.Name != want || d.Seq == 0 || g.parsed.Timestamp.IsZero() || !strings.Contains(string(d.Data), `"cents":`) {
				t.Errorf("delivery %d: %s", i, g.body)
			}
		}
		attempts, err := hooks.Attempts(t.Context(), host, status.ID)
		if err != nil || len(attempts) != 2 || !attempts[0].OK() || attempts[0].Name != "anna" || attempts[0].ID != all[1].header.Get("webhook-id") {
			t.Errorf("attempts %+v, %v", attempts, err)
		}
		if len(r.take(t, 2)) != 2 {
			t.Errorf("%d requests, want 2", len(r.take(t, 2)))
		}
	})
}

// A delivery that failed is sent again, with the same id. Proves U2.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks, r := newHooks(t), newReceiver(t)
		host := open(t, t.TempDir(), hooks)
		r.next = func(w http.ResponseWriter, n int) {
			if n == 1 {
				http.Error(w, "not now", http.StatusInternalServerError)
			}
		}
		status, _, err := hooks.Add(t.Context(), host, webhook.Subscription{URL: r.URL})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		call(t, host, "alice", paid{Kind: "paid"})
		all := r.take(t, 2)
		if d := time.Since(began); d < 5*time.Second || d > 5500*time.Millisecond {
			t.Errorf("the second attempt came after %v, want 5 s plus up to a tenth", d)
		}
		if a, b := all[0].header.Get("webhook-id"), all[1].header.Get("webhook-id"); a != b || a == "" {
			t.Errorf("ids %q and %q", a, b)
		}
		until(t, host, hooks, status.ID, func(s webhook.Status) bool { return s.Delivered == 1 && s.Waiting == 0 && s.Dead == 0 })
		attempts, err := hooks.Attempts(t.Context(), host, status.ID)
		if err != nil || len(attempts) != 2 || attempts[1].Status != 500 || attempts[1].Next.IsZero() || attempts[1].Attempt != 1 || attempts[0].Attempt != 2 || attempts[1].Answer != "" {
			t.Errorf("attempts %+v, %v", attempts, err)
		}
	})
}

// All events of a time span, or one of them, are sent again with the ids that they have had. Proves U8.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks, r := newHooks(t), newReceiver(t)
		host := open(t, t.TempDir(), hooks)
		status, _, err := hooks.Add(t.Context(), host, webhook.Subscription{URL: r.URL, Class: "cart"})
		if err != nil {
			t.Fatal(err)
		}
		call(t, host, "alice", paid{Kind: "paid"})
		r.take(t, 1)
		time.Sleep(time.Nanosecond)
		since := host.Seams().Clock.Now()
		call(t, host, "bob", paid{Kind: "paid"})
		id := r.take(t, 2)[1].header.Get("webhook-id")
		if err := hooks.Replay(t.Context(), host, status.ID, since, since.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if again := r.take(t, 3)[2].header.Get("webhook-id"); again != id {
			t.Errorf("replayed %q, want %q", again, id)
		}
		if err := hooks.Resend(t.Context(), host, status.ID, id); err != nil {
			t.Fatal(err)
		}
		if again := r.take(t, 4)[3].header.Get("webhook-id"); again != id {
			t.Errorf("sent %q again, want %q", again, id)
		}
		s := until(t, host, hooks, status.ID, func(s webhook.Status) bool { return s.Delivered == 4 })
		if s.Replay != nil || s.Waiting != 0 {
			t.Errorf("status %+v", s)
		}
		for _, bad := range []string{"", "msg_1", id + "0", strings.Replace(id, "_", "_x", 1), id[:strings.LastIndex(id, "_")] + "_0"} {
			if err := hooks.Resend(t.Context(), host, status.ID, bad); !errors.Is(err, webhook.ErrNotFound) {
				t.Errorf("resend %q: %v", bad, err)
			}
		}
		if err := hooks.Replay(t.Context(), host, status.ID, since, since); !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("an empty span: %v", err)
		}
	})
}

// A rotated secret signs beside the old one for as long as that is kept. Proves U3.
func TestRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks, r := newHooks(t), newReceiver(t)
		host := open(t, t.TempDir(), hooks)
		status, first, err := hooks.Add(t.Context(), host, webhook.Subscription{URL: r.URL, Class: "cart"})
		if err != nil {
			t.Fatal(err)
		}
		signedBy := func(g got, secret string) bool {
			v, err := standard.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			return v.Verify(g.body, g.header) == nil
		}
		second, err := hooks.Rotate(t.Context(), host, status.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		call(t, host, "alice", paid{Kind: "paid"})
		if g := r.take(t, 1)[0]; !signedBy(g, first) || !signedBy(g, second) {
			t.Errorf("signatures %q", g.header.Get("webhook-signature"))
		}
		third, err := hooks.Rotate(t.Context(), host, status.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		call(t, host, "alice", paid{Kind: "paid"})
		if g := r.take(t, 2)[1]; signedBy(g, first) || signedBy(g, second) || !signedBy(g, third) {
			t.Errorf("signatures %q", g.header.Get("webhook-signature"))
		}
		for _, keep := range []time.Duration{-1, 30*24*time.Hour + 1} {
			if _, err := hooks.Rotate(t.Context(), host, status.ID, keep); !errors.Is(err, webhook.ErrInvalid) {
				t.Errorf("keep %v: %v", keep, err)
			}
		}
	})
}

// A payload that is too large is left out. A removed subscription is gone, and so are its waiting deliveries.
func TestLargeAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks, r := newHooks(t), newReceiver(t)
		host := open(t, t.TempDir(), hooks)
		status, _, err := hooks.Add(t.Context(), host, webhook.Subscription{URL: r.URL, Class: "cart"})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{100_000, 300_000} {
			call(t, host, "alice", paid{Kind: "paid", Bytes: n})
		}
		for _, g := range r.take(t, 2) {
			if d := g.parsed.Data; d.Omitted != (d.SizeBytes > 256<<10) || d.Omitted != (len(d.Data) == 0) {
				t.Errorf("data of %d bytes: omitted %v, %d bytes", d.SizeBytes, d.Omitted, len(d.Data))
			}
		}
		if err := hooks.Remove(t.Context(), host, status.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := hooks.Status(t.Context(), host, status.ID); !errors.Is(err, webhook.ErrNotFound) {
			t.Errorf("status: %v", err)
		}
		if list, err := hooks.List(t.Context(), host, "", 10); err != nil || len(list) != 0 {
			t.Errorf("list %v, %v", list, err)
		}
	})
}

// A wrong subscription is refused with its reason.
func TestRefused(t *testing.T) {
	strict, err := webhook.New(webhook.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	host := open(t, t.TempDir(), strict)
	for _, s := range []webhook.Subscription{
		{}, {URL: "http://example.com/"}, {URL: "https://"}, {URL: "https://a:b@example.com"}, {URL: "https://example.com:8443"},
		{URL: "https://127.0.0.1/"}, {URL: "https://[::1]/"}, {URL: "https://10.0.0.1/"}, {URL: "https://169.254.169.254/latest"}, {URL: "https://localhost/"},
		{URL: "https://x.localhost./"}, {URL: "https://example.com/#a"}, {URL: "https://example.com/" + strings.Repeat("a", 2048)}, {URL: "ftp://example.com"}, {URL: "https://exa mple.com"},
		{URL: "https://example.com", Class: "holdfast.audit"}, {URL: "https://example.com", Kinds: []string{""}}, {URL: "https://example.com", Kinds: make([]string, 101)}, {URL: "https://example.com", Class: "a\x00"},
	} {
		if _, _, err := strict.Add(t.Context(), host, s); !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, _, err := strict.Add(t.Context(), host, webhook.Subscription{URL: "https://example.com:443/hook?a=b"}); err != nil {
		t.Error(err)
	}
	for _, c := range []webhook.Config{{}, {Key: make([]byte, 31)}, {Key: make([]byte, 32), Concurrency: -1}, {Key: make([]byte, 32), Timeout: -1}, {Key: make([]byte, 32), Waits: []time.Duration{-1}}, {Key: make([]byte, 32), Waits: []time.Duration{30*24*time.Hour + 1}}, {Key: make([]byte, 32), Waits: make([]time.Duration, 101)}} {
		if _, err := webhook.New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	plain, err := object.Open(object.Options{Dir: t.TempDir()}, append(strict.Definitions(), carts)...)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Shutdown(context.Background())
	if _, _, err := strict.Add(t.Context(), plain, webhook.Subscription{URL: "https://example.com"}); !errors.Is(err, webhook.ErrNoFeed) {
		t.Errorf("without a feed: %v", err)
	}
}
