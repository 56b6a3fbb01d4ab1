package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// deliveries are those that a receiver has got, by subscription and event. It lives on when the host dies.
type deliveries struct {
	ids map[string]map[string]int // of an event, and how often each came
}

func (d *deliveries) note(url, id string, body []byte) error {
	var b struct {
		Data struct {
			Class, Name string
			Seq         int
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return err
	}
	event := fmt.Sprintf("%s/%s/%d of %s", b.Data.Class, b.Data.Name, b.Data.Seq, id[:strings.LastIndex(id, "_")])
	if d.ids[event] == nil {
		d.ids[event] = map[string]int{}
	}
	d.ids[event][id]++
	return nil
}

// webhookWorld is a scenario: carts emit events while a subscription sends them. The first answer to each
// delivery with an even place is an error. made is how many deliveries there are in all; 0: it depends on the crash.
func webhookWorld(s *harness.Sim, events, made int, during func(hooks *webhook.Webhooks, id string)) {
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32)})
	s.OK(err)
	hooks.SetRandom(bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), 100)))
	seen := &deliveries{ids: map[string]map[string]int{}}
	hooks.SetSender(func(_ context.Context, url, id string, body []byte, _ int) (int, error) {
		key := "post/" + id
		status := http.StatusOK
		if err := s.World().Do(key, func() {
			if s.World().Count(key) == 1 && (id[len(id)-1]-'0')%2 == 0 {
				status = http.StatusInternalServerError
				return
			}
			s.OK(seen.note(url, id, body))
		}); err != nil {
			return 0, err
		}
		return status, nil
	})
	s.Host(append(hooks.Definitions(), carts)...)
	id := ""
	s.OK(s.Retry(func() error {
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			if list, err := hooks.List(ctx, h, "", 10); err != nil || len(list) > 0 { // the answer of the call was lost
				if len(list) > 0 {
					id = list[0].ID
				}
				return err
			}
			added, _, err := hooks.Add(ctx, h, webhook.Subscription{URL: "https://example.com", Class: "cart", Kinds: []string{"paid"}})
			id = added.ID
			return err
		})
	}))
	for i := range events {
		s.OK(s.Retry(func() error {
			_, err := pay.Call(s.Context(), s, fmt.Sprint("c", i%2), paid{Kind: "paid", Cents: i}, object.Idempotent(fmt.Sprint(i), time.Hour))
			return err
		}))
	}
	if during != nil {
		during(hooks, id)
	}
	s.Advance(time.Minute)
	s.Finally("each event is delivered, always with one id", func() error {
		if len(seen.ids) != events {
			return fmt.Errorf("U1: %d events were delivered, want %d: %v", len(seen.ids), events, seen.ids)
		}
		for event, ids := range seen.ids {
			if len(ids) != 1 {
				return fmt.Errorf("U1: event %s was delivered with the ids %v", event, ids)
			}
		}
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			status, err := hooks.Status(ctx, h, id)
			if err == nil && (status.Waiting != 0 || status.Dead != 0 || status.Delivered < uint64(events) || status.Replay != nil) {
				err = fmt.Errorf("U2: %+v", status)
			}
			if err == nil && made > 0 && status.Made != uint64(made) {
				err = fmt.Errorf("U1: %d deliveries were made of %d events", status.Made, made)
			}
			return err
		})
	})
}

// A crash at any point loses no event and gives none two ids. Proves U1, U2.
func TestCrashDelivery(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) { webhookWorld(s, 3, 3, nil) }, withFeed)
}

// A crash at any point of a replay sends no event with another id.
func TestCrashReplay(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		webhookWorld(s, 2, 0, func(hooks *webhook.Webhooks, id string) {
			s.OK(s.Retry(func() error {
				return s.WithHost(func(ctx context.Context, h *object.Host) error {
					err := hooks.Replay(ctx, h, id, s.Now().Add(-time.Hour), s.Now().Add(time.Hour))
					if errors.Is(err, webhook.ErrReplaying) { // the answer to the first was lost
						return nil
					}
					return err
				})
			}))
		})
	}, withFeed)
}

var withFeed = harness.HostOptions(func(o *object.Options) { o.Feed = true })

// The same with two events and one crash, which takes less time. Proves U1.
func TestCrashPlace(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) { webhookWorld(s, 2, 2, nil) }, withFeed, harness.Seed(1))
}
