package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// bounded runs a scenario in virtual time without a crash, with a receiver of the test.
func bounded(t *testing.T, options func(*object.Options), send func(s *harness.Sim, url string, signatures int) (int, error), do func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string)) {
	t.Helper()
	boundedBy(t, nil, options, send, do)
}

// taking is a receiver that takes each delivery and counts them.
func taking(sent *int) func(*harness.Sim, string, int) (int, error) {
	return func(*harness.Sim, string, int) (int, error) {
		*sent++
		return http.StatusOK, nil
	}
}

// boundedBy is bounded with Config.Waits.
func boundedBy(t *testing.T, waits []time.Duration, options func(*object.Options), send func(s *harness.Sim, url string, signatures int) (int, error), do func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string)) {
	t.Helper()
	harness.Run(t, func(s *harness.Sim) {
		hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32), Waits: waits})
		s.OK(err)
		random := make([]byte, 0, 4096)
		for i := range 4096 {
			random = append(random, byte(i*i>>3))
		}
		hooks.SetRandom(bytes.NewReader(random))
		hooks.SetSender(func(_ context.Context, url, _ string, _ []byte, n int) (int, error) { return send(s, url, n) })
		s.Host(append(hooks.Definitions(), carts)...)
		do(s, hooks, func(sub webhook.Subscription) (id string) {
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				status, _, err := hooks.Add(ctx, h, sub)
				id = status.ID
				return err
			}))
			return id
		})
	}, harness.HostOptions(func(o *object.Options) {
		if o.Feed = true; options != nil {
			options(o)
		}
	}))
}

func status(s *harness.Sim, hooks *webhook.Webhooks, id string) (status webhook.Status) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
		status, err = hooks.Status(ctx, h, id)
		return err
	}))
	return status
}

func emit(s *harness.Sim, n int) {
	for i := range n {
		_, err := pay.Call(s.Context(), s, fmt.Sprint("c", i%3), paid{Kind: "paid", Cents: i})
		s.OK(err)
	}
}

// A delivery is tried once more after each wait of Config.Waits plus up to a tenth, and is then a dead letter, which
// a replay of it sends once more. Proves U2.
func TestSchedule(t *testing.T) {
	schedule(t, []time.Duration{5 * time.Second, time.Minute, 30 * time.Minute})
}

// Without Config.Waits there are ten attempts in three days. Proves U2.
func TestDefaultSchedule(t *testing.T) {
	if got := fmt.Sprint(webhook.Schedule); got != "[5s 5m0s 30m0s 2h0m0s 5h0m0s 10h0m0s 14h0m0s 20h0m0s 24h0m0s]" {
		t.Errorf("the waits are %s", got)
	}
	schedule(t, nil)
}

// schedule fails all attempts at a delivery, and compares the times between them with the waits; nil: those by default.
func schedule(t *testing.T, waits []time.Duration) {
	t.Helper()
	given, all := waits, time.Minute
	if waits == nil {
		waits = webhook.Schedule
	}
	for _, wait := range waits {
		all += wait + wait/10 + time.Minute
	}
	var at []time.Time
	answer := http.StatusInternalServerError
	boundedBy(t, given, nil, func(s *harness.Sim, _ string, _ int) (int, error) {
		at = append(at, s.Now())
		return answer, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		at, answer = nil, http.StatusInternalServerError
		id := add(webhook.Subscription{URL: "https://example.com"})
		emit(s, 1)
		s.Advance(all)
		if len(at) != len(waits)+1 {
			s.Fatalf("%d attempts, want %d", len(at), len(waits)+1)
		}
		for i, wait := range waits {
			if d := at[i+1].Sub(at[i]); d < wait || d > wait+wait/10+2*time.Second {
				s.Errorf("wait %d took %v, want %v plus up to a tenth", i, d, wait)
			}
		}
		if st := status(s, hooks, id); st.Dead != 1 || st.Waiting != 0 || st.FailingSince.IsZero() {
			s.Errorf("status %+v", st)
		}
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			letters, err := h.DeadLetters(ctx, object.DeadLettersOptions{Class: webhook.Pool})
			if err == nil && len(letters.Letters) != 1 {
				err = fmt.Errorf("%d dead letters, want 1", len(letters.Letters))
			}
			if answer = http.StatusOK; err == nil {
				_, err = hooks.ReplayAll(ctx, h)
			}
			return err
		}))
		s.Advance(time.Minute)
		if st := status(s, hooks, id); st.Delivered != 1 || st.Waiting != 0 || !st.FailingSince.IsZero() || len(at) != len(waits)+2 {
			s.Errorf("after a replay: %d attempts, status %+v", len(at), st)
		}
	})
}

// Eight deliveries of a subscription are under way at a time, and a slow receiver holds up none of
// another. Proves U9.
func TestSlowReceiver(t *testing.T) {
	running, most, fast := 0, 0, 0
	bounded(t, nil, func(s *harness.Sim, url string, _ int) (int, error) {
		if url == "https://fast.example.com" {
			fast++
			return http.StatusOK, nil
		}
		running++
		most = max(most, running)
		s.Sleep(10 * time.Second)
		running--
		return http.StatusOK, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		running, most, fast = 0, 0, 0
		slow := add(webhook.Subscription{URL: "https://slow.example.com"})
		add(webhook.Subscription{URL: "https://fast.example.com"})
		emit(s, 30)
		s.Advance(time.Second)
		emit(s, 10) // behind those of the slow receiver, if all stood in one row
		s.Advance(4 * time.Second)
		if fast != 40 {
			s.Errorf("the fast receiver has %d, want 40", fast)
		}
		if most != webhook.PerStage {
			s.Errorf("%d deliveries of one subscription at a time, want %d", most, webhook.PerStage)
		}
		s.Advance(2 * time.Minute)
		if st := status(s, hooks, slow); st.Delivered != 40 {
			s.Errorf("status %+v", st)
		}
	})
}

// A subscription that was disabled until events expired is told of the gap, and goes on behind it. One that
// was disabled for less has missed nothing. Proves U4.
func TestGap(t *testing.T) {
	for _, c := range []struct {
		down time.Duration
		gaps uint64
	}{{30 * time.Minute, 0}, {3 * time.Hour, 1}} {
		sent := 0
		bounded(t, func(o *object.Options) { o.EventRetention = time.Hour }, func(*harness.Sim, string, int) (int, error) {
			sent++
			return http.StatusOK, nil
		}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
			sent = 0
			id := add(webhook.Subscription{URL: "https://example.com"})
			emit(s, 1)
			s.Advance(time.Minute)
			disable := func(f func(context.Context, object.Caller, string) error) {
				s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error { return f(ctx, h, id) }))
			}
			disable(hooks.Disable)
			emit(s, 2)
			s.Advance(c.down)
			emit(s, 1)
			disable(hooks.Enable)
			s.Advance(2 * time.Minute)
			st := status(s, hooks, id)
			want := 4 - 2*int(c.gaps)
			if st.Gaps != c.gaps || sent != want || st.Delivered != uint64(want) || (st.LastGap != nil) != (c.gaps > 0) {
				s.Errorf("disabled for %v: sent %d, want %d; status %+v", c.down, sent, want, st)
			}
			if g := st.LastGap; g != nil && g.From >= g.To {
				s.Errorf("gap %+v", g)
			}
		})
	}
}

// A subscription to a quiet class has missed nothing, though all events of the others expire. Proves U4.
func TestQuiet(t *testing.T) {
	bounded(t, func(o *object.Options) { o.EventRetention = time.Hour }, func(*harness.Sim, string, int) (int, error) {
		return http.StatusOK, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		id := add(webhook.Subscription{URL: "https://example.com", Class: "cart", Kinds: []string{"never"}})
		emit(s, 3)
		for range 6 {
			s.Advance(30 * time.Minute)
			emit(s, 3)
		}
		s.Restart()
		emit(s, 1)
		s.Advance(10 * time.Minute)
		if st := status(s, hooks, id); st.Gaps != 0 || st.Waiting != 0 {
			s.Errorf("status %+v", st)
		}
	})
}

// verb runs a verb of a subscription.
func verb(s *harness.Sim, f func(context.Context, object.Caller, string) error, id string) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error { return f(ctx, h, id) }))
}

// While a subscription is disabled nothing of it is sent, also no retry that is due; afterwards the waiting deliveries go out within a minute. Proves U7.
func TestDisabled(t *testing.T) {
	sent := 0
	bounded(t, nil, func(*harness.Sim, string, int) (int, error) {
		if sent++; sent == 1 {
			return http.StatusInternalServerError, nil
		}
		return http.StatusOK, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		sent = 0
		id := add(webhook.Subscription{URL: "https://example.com"})
		emit(s, 1)
		s.Advance(time.Second)
		verb(s, hooks.Disable, id)
		emit(s, 2)
		s.Advance(10 * time.Minute)
		if sent != 1 {
			s.Errorf("%d requests, want the one before", sent)
		}
		verb(s, hooks.Enable, id)
		s.Advance(time.Minute + time.Second)
		if st := status(s, hooks, id); sent != 4 || st.Delivered != 3 || st.Waiting != 0 {
			s.Errorf("%d requests, want 4; status %+v", sent, st)
		}
	})
}

// An old secret signs for as long as Rotate says, and not longer. Proves U3.
func TestOldSecret(t *testing.T) {
	var signatures []int
	bounded(t, nil, func(_ *harness.Sim, _ string, n int) (int, error) {
		signatures = append(signatures, n)
		return http.StatusOK, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		signatures = nil
		id := add(webhook.Subscription{URL: "https://example.com"})
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			_, err := hooks.Rotate(ctx, h, id, time.Hour)
			return err
		}))
		for range 2 { // a minute before the hour, and a minute after it
			s.Advance(59 * time.Minute)
			emit(s, 1)
			s.Advance(2 * time.Minute)
		}
		if fmt.Sprint(signatures) != "[2 1]" {
			s.Errorf("signatures %v, want 2 and then 1", signatures)
		}
	})
}

// A subscription with so many deliveries that wait takes no more events from the feed until some have ended. Proves U4.
func TestBackPressure(t *testing.T) {
	webhook.SetMaxWaiting(t, 20)
	sent := 0
	bounded(t, nil, func(s *harness.Sim, _ string, _ int) (int, error) {
		s.Sleep(10 * time.Second)
		sent++
		return http.StatusOK, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		sent = 0
		id := add(webhook.Subscription{URL: "https://example.com"})
		verb(s, hooks.Disable, id)
		emit(s, 60)
		verb(s, hooks.Enable, id)
		s.Advance(5 * time.Second)
		if st := status(s, hooks, id); st.Made != 20 || st.Waiting != 20 {
			s.Errorf("while 20 wait: status %+v", st)
		}
		s.Advance(5 * time.Minute)
		if st := status(s, hooks, id); sent != 60 || st.Delivered != 60 || st.Waiting != 0 {
			s.Errorf("%d requests, want 60; status %+v", sent, st)
		}
	})
}

// The events of Holdfast itself are left out, and a delivery of webhook.delivered emits none. Proves U6.
func TestNoLoop(t *testing.T) {
	sent := map[string]int{}
	bounded(t, nil, func(s *harness.Sim, url string, _ int) (int, error) {
		s.Sleep(time.Second) // so that a loop has an end in each span of time
		sent[url]++
		return http.StatusOK, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		clear(sent)
		add(webhook.Subscription{URL: "https://all.example.com"})
		add(webhook.Subscription{URL: "https://own.example.com", Kinds: []string{webhook.EventDelivered}})
		emit(s, 3)
		s.Advance(time.Minute)
		if got := fmt.Sprint(sent); got != "map[https://all.example.com:3 https://own.example.com:3]" {
			s.Errorf("sent %s, want 3 events, and 3 that tell of them", got)
		}
	})
}

// The status 410 disables a subscription, and nothing is lost of it. Proves U7.
func TestGone(t *testing.T) {
	sent, answer := 0, http.StatusGone
	bounded(t, nil, func(*harness.Sim, string, int) (int, error) {
		sent++
		return answer, nil
	}, func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		sent, answer = 0, http.StatusGone
		id := add(webhook.Subscription{URL: "https://example.com"})
		emit(s, 1)
		s.Advance(10 * time.Minute)
		if st := status(s, hooks, id); sent != 1 || st.Disabled != webhook.DisabledByReceiver || st.Waiting != 1 || st.Dead != 0 {
			s.Errorf("%d requests, want 1; status %+v", sent, st)
		}
		emit(s, 2)
		answer = http.StatusOK
		verb(s, hooks.Enable, id)
		s.Advance(time.Minute + time.Second)
		if st := status(s, hooks, id); sent != 4 || st.Disabled != "" || st.Delivered != 3 || st.Waiting != 0 {
			s.Errorf("%d requests, want 4; status %+v", sent, st)
		}
	})
}

// A replay sends the events of its time span alone: from its beginning on, and before its end. Proves U8.
func TestReplaySpan(t *testing.T) {
	sent := 0
	bounded(t, nil, taking(&sent), func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		sent = 0
		id := add(webhook.Subscription{URL: "https://example.com"})
		var since, until time.Time
		for i := range 4 {
			switch i {
			case 1:
				since = s.Now()
			case 3:
				until = s.Now()
			}
			emit(s, 1)
			s.Advance(time.Minute)
		}
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error { return hooks.Replay(ctx, h, id, since, until) }))
		s.Advance(time.Minute)
		if st := status(s, hooks, id); sent != 6 || st.Replay != nil || st.Made != 6 {
			s.Errorf("%d requests, want 4 and 2 again; status %+v", sent, st)
		}
	})
}

// An opening of the store begins the relays without a call, and at once. Proves U1.
func TestOpening(t *testing.T) {
	sent := 0
	bounded(t, nil, taking(&sent), func(s *harness.Sim, hooks *webhook.Webhooks, add func(webhook.Subscription) string) {
		sent = 0
		add(webhook.Subscription{URL: "https://example.com"})
		s.Restart()
		emit(s, 1)
		s.Advance(10 * time.Second)
		if sent != 1 {
			s.Errorf("%d requests within 10 s of the event, want 1", sent)
		}
	})
}
