package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// outside takes the messages. One that begins with "bad" is always refused, and one
// that begins with "shy" the first time.
func outside(s *harness.Sim) Deliver {
	return func(_ context.Context, key, message string) error {
		again := s.World().Count("tried/"+key) > 0
		s.World().Do("tried/"+key, nil)
		if strings.HasPrefix(message, "bad") || strings.HasPrefix(message, "shy") && !again {
			return errors.New("refused")
		}
		s.World().Do("taken/"+message, nil)
		return nil
	}
}

// scenario posts some messages and waits until nothing is left of them. The harness
// runs it once without a crash, and then again from the start for each crash.
func scenario(messages []string, deliver func(*harness.Sim) Deliver) harness.Scenario {
	return func(s *harness.Sim) {
		retry := jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)}
		mail := NewOutbox("mail", retry, deliver(s))
		s.Host(mail)
		for _, message := range messages {
			s.OK(s.Retry(func() error { // as a client does that got no answer
				_, err := mail.Post(s.Context(), s, "alice", message, object.Idempotent(message, 24*time.Hour))
				return err
			}))
		}
		s.Advance(time.Minute)
		s.Finally("all is taken or given up", func() error {
			st, err := mail.Status(s.Context(), s, "alice")
			if err != nil || st.Posted != uint64(len(messages)) || st.Waiting != 0 {
				return fmt.Errorf("%+v, %v", st, err)
			}
			return inOrder(s, messages, st.GivenUp)
		})
	}
}

// inOrder checks the messages that the outside has taken: each good message, the first
// time after those before it.
func inOrder(s *harness.Sim, messages []string, givenUp uint64) error {
	var want, got []string
	for _, message := range messages {
		if !strings.HasPrefix(message, "bad") {
			want = append(want, message)
		}
	}
	for _, e := range s.World().Log() {
		if message, ok := strings.CutPrefix(e.Key, "taken/"); ok && !slices.Contains(got, message) {
			got = append(got, message)
		}
	}
	if !slices.Equal(got, want) || givenUp != uint64(len(messages)-len(want)) {
		return fmt.Errorf("taken %q and %d given up, want %q", got, givenUp, want)
	}
	return nil
}

// promises are checked in all runs.
var promises = []harness.Option{
	harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned,
	harness.AtMostOncePerCrash("taken/"), harness.RecoversWithin(time.Minute),
}

// The promises of an outbox hold after a crash at each point, after two crashes at
// pairs of points, in other orders of concurrent tasks, and on Pebble.
func TestOutboxSurvivesEveryCrash(t *testing.T) {
	messages := []string{"one", "shy two", "bad three", "four"}
	for _, c := range []struct {
		name     string
		messages []string
		options  []harness.Option
	}{
		{"every point", messages, nil},
		{"pairs of points", messages[:2], []harness.Option{harness.Depth(2), harness.Budget(400)}},
		{"another order", messages, []harness.Option{harness.Seed(42)}},
		{"on Pebble", messages, []harness.Option{harness.PebbleStore()}},
		{"down for hours", messages, []harness.Option{harness.Downtime(5 * time.Hour)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Exhaust(t, scenario(c.messages, outside), append(c.options, promises...)...)
		})
	}
}

// They hold for messages and crashes drawn at random too. A failure shrinks to the
// fewest messages and crashes that show it.
func TestRandomMessages(t *testing.T) {
	some := rapid.SampledFrom([]string{"one", "two", "three", "shy one", "shy two", "bad one", "bad two"})
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		messages := rapid.SliceOfNDistinct(some, 1, 5, rapid.ID[string]).Draw(rt, "messages")
		scenario(messages, outside)(s)
	}, promises...)
}

// hasty answers before it delivers: it keeps a message in memory until the next one
// comes. Without a crash it does not show, because the last message flushes.
func hasty(s *harness.Sim) Deliver {
	deliver := outside(s)
	var kept string
	boot := 0
	return func(ctx context.Context, key, message string) error {
		if boot != s.Crashes() {
			boot, kept = s.Crashes(), "" // memory does not survive
		}
		before := kept
		if kept = message; message == "last" {
			return errors.Join(deliverKept(ctx, deliver, key, before), deliver(ctx, key, message))
		}
		return deliverKept(ctx, deliver, key, before)
	}
}

func deliverKept(ctx context.Context, deliver Deliver, key, message string) error {
	if message == "" {
		return nil
	}
	return deliver(ctx, key, message)
}

// The harness finds the mistake of a hasty delivery, and its place.
func TestHastyDeliveryIsFound(t *testing.T) {
	sound := scenario([]string{"one", "last"}, hasty)
	harness.Run(t, sound)
	_, err := harness.Explore(sound)
	var found *harness.Failure
	if !errors.As(err, &found) {
		t.Fatalf("a lost message was not found: %v", err)
	}
	if !strings.Contains(found.Problem, "all is taken or given up") || !strings.Contains(found.Schedule, "crash=") {
		t.Errorf("found %s with the plan %s", found.Problem, found.Schedule)
	}
	t.Logf("%s\nreplay with %s", found.Problem, found.Schedule)
}
