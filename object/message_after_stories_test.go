package object_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves M1, M3, M4. Case MS8: delayed letters beside others, crashed everywhere, with a restart
// before their time and one after it. None is early, all arrive once, and the others pass.
func TestDelayedMessagesAcrossCrashes(t *testing.T) {
	story(t, storyPlans, harness.Faults{DupMessage: 1, LateMessage: 1}, func(s *harness.Sim) {
		o := newOffice(s, true)
		s.Host(o.desks)
		o.post("1", "a", "b", "delayed", "", "delayed", "")
		s.Advance(lettersDelay / 2)
		s.Restart()
		o.post("2", "b", "b", "delayed", "")
		o.post("3", "a", "b", plain(2)...)
		s.Advance(lettersDelay)
		s.Restart()
		s.Advance(time.Minute)
		o.arrived("a", "b", 4, 3)
		o.arrived("b", "b", 1, 3)
	})
}

// Proves M4, M6. Case MS9: delayed letters that come due while the program has not their class or
// their method, and reach the code of a later process.
func TestDelayedMessagesToCodeThatComesBack(t *testing.T) {
	story(t, storyPlans, harness.Faults{}, func(s *harness.Sim) {
		o := newOffice(s, false)
		s.Host(o.desks)
		o.post("1", "a", "b", "delayed, to later code", "delayed", "", "delayed, to the annex")
		s.Advance(time.Minute)
		newer := newOffice(s, true)
		s.Restart(harness.WithCode(newer.desks, newer.annex))
		newer.post("2", "a", "b", "delayed", "delayed, to the annex")
		s.Advance(time.Minute)
		newer.arrived("a", "b", 1, 3)
		newer.arrivedAt(newer.annex.ID("b"), "a", 0, 2)
	})
}

// clerk is an object with an alarm that gets a delayed note at the same moment. It is deleted
// meanwhile, and made again.
type clerk struct {
	st *object.State
	clerkState
}

type clerkState struct {
	Due   time.Time
	Notes int
	Rings int
	Early int
}

func (c *clerk) store(ctx context.Context) error {
	return c.st.Storage().Put(ctx, "clerk", c.clerkState)
}

func (c *clerk) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	c.Rings++
	return c.store(ctx)
}

// Proves M4. Case MS10: the receiver of a delayed note is deleted before its time, and an alarm of the
// fresh object is due at the same moment. Both come, once each, over any crash.
func TestDelayedMessageToADeletedReceiver(t *testing.T) {
	checks := []harness.Option{harness.NoLostAck, harness.NoTornBatch, harness.NoLostMessage, harness.AllowFaults(harness.Faults{DupMessage: 1})}
	for name, option := range map[string]harness.Option{"map": harness.Depth(2), "pebble": harness.PebbleStore()} {
		t.Run(name, func(t *testing.T) {
			harness.Exhaust(t, deletedClerk, slices.Concat(checks, []harness.Option{crashes.Budget(storyPlans), option})...)
		})
	}
}

func deletedClerk(s *harness.Sim) {
	clerks := object.Define("clerk", func(ctx context.Context, st *object.State) (*clerk, error) {
		c := &clerk{st: st}
		_, err := st.Storage().GetInto(ctx, "clerk", &c.clerkState)
		return c, err
	}, exactly(10))
	note := object.Handle(clerks, "note", func(c *clerk, ctx context.Context, not time.Time) (int, error) {
		if c.Notes++; c.st.Now().Before(not) {
			c.Early++
		}
		return 0, c.store(ctx)
	})
	send := object.Handle(clerks, "send", func(c *clerk, ctx context.Context, to string) (int, error) {
		c.Due = c.st.Now().Add(lettersDelay)
		if err := note.Send(ctx, c.st, to, c.Due, object.After(lettersDelay)); err != nil {
			return 0, err
		}
		return 0, c.store(ctx)
	})
	wake := object.Handle(clerks, "wake", func(c *clerk, ctx context.Context, at time.Time) (int, error) { return 0, c.st.SetAlarm(ctx, at) })
	remove := object.Handle(clerks, "remove", func(c *clerk, ctx context.Context, _ struct{}) (int, error) { return 0, c.st.Driver().Purge(ctx) })
	s.Host(clerks)
	once := func(key string) object.CallOption { return object.Idempotent(key, time.Hour) }
	due := s.Now().Add(lettersDelay)
	s.OK(s.Retry(func() error { _, err := send.Call(s.Context(), s, "a", "b", once("1")); return err }))
	s.OK(s.Retry(func() error { _, err := send.Call(s.Context(), s, "b", "c", once("2")); return err }))
	s.Advance(5 * time.Second)
	s.OK(s.Retry(func() error { _, err := remove.Call(s.Context(), s, "b", struct{}{}); return err }))
	s.OK(s.Retry(func() error { _, err := wake.Call(s.Context(), s, "b", due, once("3")); return err }))
	s.Advance(time.Minute)
	s.Finally("both came", func() error {
		for name, want := range map[string]clerkState{"b": {Notes: 1, Rings: 1}, "c": {Notes: 1}} {
			var got clerkState
			if _, err := harness.Stored(s.Store(), clerks.ID(name), "clerk", &got); err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("%s has %+v, want %+v", name, got, want)
			}
		}
		return nil
	})
}
