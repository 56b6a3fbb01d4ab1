package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// docs/TESTING.md shows code of this file. A test of internal/lint compares the two.

// Letter is the input of a task.
type Letter struct{ To, Text string }

// newLetters makes a pool that posts letters. In a program post is the service; in a test
// it is a part of the simulation.
func newLetters(post func(key string, l Letter) error) *workerpool.Pool[Letter, string] {
	return workerpool.New(workerpool.Config[Letter, string]{
		Name:  "letters",
		Retry: jobs.Retry{MaxAttempts: 5},
		Work: func(_ context.Context, t *workerpool.Task[Letter]) (string, error) {
			return "posted", post(t.OutsideKey, t.In)
		},
	})
}

func twoLetters(s *harness.Sim) {
	letters := newLetters(func(key string, _ Letter) error {
		return s.World().Do("post/"+key, nil) // here a crash can come before and after
	})
	s.Host(letters)
	for _, to := range []string{"alice", "bob"} {
		s.OK(s.Retry(func() error {
			_, err := letters.Enqueue(s.Context(), s, Letter{To: to}, workerpool.Idempotent(to, time.Hour))
			return err
		}))
	}
	s.Advance(time.Minute)
	s.Finally("both letters are done, and no third one", func() error {
		stats, err := letters.Stats(s.Context(), s)
		if err == nil && (stats.Done != 2 || stats.Submitted != 2) {
			err = fmt.Errorf("%d of %d tasks are done", stats.Done, stats.Submitted)
		}
		return err
	})
}

func TestLettersSurviveEveryCrash(t *testing.T) {
	harness.Exhaust(t, twoLetters, harness.NoLostAck, harness.NeverOrphaned, harness.AtMostOncePerCrash("post/"))
}
