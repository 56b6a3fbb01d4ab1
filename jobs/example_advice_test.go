package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// runOnce starts a job with the given work and returns the event that tells how its
// run ended.
func runOnce(work func() error) (kind string, told jobs.Event) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	job := continuous.New(continuous.Config[int]{
		Name: "poll", Retry: jobs.Retry{MaxAttempts: 5},
		Run: func(context.Context, *continuous.Run[int]) error { return work() },
	})
	host, err := object.Open(object.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}, job)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)
	if _, err := job.Start(ctx, host, "a", 0); err != nil {
		log.Fatal(err)
	}
	for e, err := range host.Watch(ctx, job.ID("a"), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == jobs.EventExhausted || e.Kind == jobs.EventRetry || e.Kind == jobs.EventSnooze {
			if err := json.Unmarshal(e.Data, &told); err != nil {
				log.Fatal(err)
			}
			return e.Kind, told
		}
	}
	return "", told
}

// An account that is closed stays closed: to try again is of no use.
func ExamplePermanent() {
	kind, told := runOnce(func() error { return jobs.Permanent(errors.New("account is closed")) })
	fmt.Println(kind, told.Attempt, told.Reason)
	// Output: exhausted 1 permanent
}

// A server says when it may be asked again.
func ExampleRetryAfter() {
	now := time.Now()
	kind, told := runOnce(func() error { return jobs.RetryAfter(time.Hour, errors.New("too many requests")) })
	fmt.Println(kind, "in an hour:", !told.At.Before(now.Add(time.Hour)))
	// Output: retry in an hour: true
}

// A report that is not ready yet is no failure.
func ExampleSnooze() {
	now := time.Now()
	kind, told := runOnce(func() error { return jobs.Snooze(time.Hour) })
	fmt.Println(kind, told.Error == "", "in an hour:", !told.At.Before(now.Add(time.Hour)))
	// Output: snooze true in an hour: true
}
