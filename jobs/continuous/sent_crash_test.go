package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// house is an object that starts a job for each of its rooms, in the commit that has
// the room's row.
type house struct{ st *object.State }

// newHouses returns the class of houses, with a method that adds a room and one that closes a room.
func newHouses(j *continuous.Job[tally]) (class *object.Class[house], add, closed *object.Method[string, none]) {
	class = object.Define("house", func(_ context.Context, st *object.State) (*house, error) { return &house{st}, nil })
	add = object.Handle(class, "add", func(h *house, ctx context.Context, room string) (none, error) {
		started, err := j.Start(ctx, h.st.Outbox(), room, tally{})
		if err == nil && started != (continuous.Started{Sent: true}) {
			err = fmt.Errorf("the answer is %+v", started)
		}
		return none{}, errors.Join(err, h.st.Storage().Put(ctx, room, "open"))
	})
	closed = object.Handle(class, "close", func(h *house, ctx context.Context, room string) (none, error) {
		return none{}, errors.Join(h.st.Storage().Put(ctx, room, "closed"), j.Stop(ctx, h.st.Outbox(), room, "closed"))
	})
	return class, add, closed
}

type none struct{}

// jobOrMessage is checked in each stored state: an open room has a job, or the message
// that starts it; a closed room has a stopped job, or the message that stops it.
func jobOrMessage(store *storage.Store) error {
	sent, err := crashes.UnderWay(store, "counter")
	if err != nil {
		return err
	}
	need := 0
	for _, room := range []string{"a", "b"} {
		var row string
		var meta jobs.Meta
		if _, err := harness.Stored(store, storage.ID{Class: "house", Name: "h"}, room, &row); err != nil {
			return err
		}
		if _, err := harness.Stored(store, storage.ID{Class: "counter", Name: room}, jobs.MetaKey, &meta); err != nil {
			return err
		}
		switch {
		case row == "" && meta.Status != jobs.None:
			return fmt.Errorf("room %s is not stored, and its job is %s", room, meta.Status)
		case row == "open" && meta.Status == jobs.None, row == "closed" && meta.Status != jobs.Stopped:
			need++
		}
	}
	if sent < need {
		return fmt.Errorf("%d rooms have no job as they should, and %d messages are under way", need, sent)
	}
	return nil
}

// Proves J19, M3. Case JB15. A row and the start of the job that belongs to it are one commit, and so
// are its change and the stop of the job. The stop comes after the start, over any number of crashes.
func TestCrashStartIsSentWithTheTurn(t *testing.T) {
	checks := []harness.Option{
		harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, harness.Invariant("a job or its message", jobOrMessage),
	}
	crashes.Try(t, roomsOpenAndClose(0), checks...)
	t.Run("one by one", func(t *testing.T) { crashes.Try(t, roomsOpenAndClose(10*time.Minute), checks...) })
}

// roomsOpenAndClose is a story of two rooms that open and one that closes, with a wait after each.
func roomsOpenAndClose(wait time.Duration) harness.Scenario {
	return func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
		houses, add, closed := newHouses(j)
		s.Host(houses, j)
		for _, step := range []struct {
			m    *object.Method[string, none]
			room string
		}{{add, "a"}, {add, "b"}, {closed, "a"}} {
			s.OK(s.Retry(func() error {
				_, err := step.m.Call(s.Context(), s, "h", step.room)
				return err
			}))
			s.Advance(wait)
		}
		s.Advance(time.Minute)
		s.Finally("each room has its job", func() error {
			a, _ := know(s, j, "a")
			b, state := know(s, j, "b")
			if a.Meta.Status != jobs.Stopped || a.Meta.StopReason != "closed" || b.Meta.Status != jobs.Running {
				return fmt.Errorf("J19: the jobs are %+v and %+v", a, b)
			}
			if b.Meta.RunCount != 1 || state.Runs != 1 {
				return fmt.Errorf("J19: job b has run %d times", b.Meta.RunCount)
			}
			if n, err := crashes.UnderWay(s.Store(), "counter"); n != 0 || err != nil {
				return fmt.Errorf("%d messages never arrived, %v", n, err)
			}
			return nil
		})
	}
}
