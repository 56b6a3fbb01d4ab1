package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The answers of a service that has reports.
var (
	errGone  = errors.New("the report was deleted")
	errBusy  = errors.New("too many requests")
	errEarly = errors.New("the report is not ready")
)

// download stands for a request to the service.
func download(_ context.Context, report string) error {
	return map[string]error{"gone": errGone, "busy": errBusy, "early": errEarly}[report]
}

// Downloads gets a report once a day.
var Downloads = continuous.New(continuous.Config[struct{}]{
	Name:     "download",
	Schedule: jobs.Every(24 * time.Hour),
	Retry: jobs.Retry{
		MaxAttempts: 5,                                                           // failures; crashes are counted apart
		Backoff:     jobs.Exponential(time.Second, time.Minute).WithJitter(0.25), // 1, 2, 4, 8 s, each plus 0 to 25 %
		MaxElapsed:  time.Hour,                                                   // from the first attempt to the last
	},
	Run: func(ctx context.Context, run *continuous.Run[struct{}]) error {
		switch err := download(ctx, run.ID); {
		case errors.Is(err, errGone):
			return jobs.Permanent(err) // give the run up now
		case errors.Is(err, errBusy):
			return jobs.RetryAfter(10*time.Minute, err) // a failure, tried again at this time
		case errors.Is(err, errEarly):
			return jobs.Snooze(time.Hour) // no failure: run this run again then
		default:
			return err // nil, or a failure that Retry decides about
		}
	},
})

// A run says with its error how it goes on.
func ExampleConfig_answers() {
	ctx := context.Background()
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New()}, // a program gives a Dir
		Logger:  slog.New(slog.DiscardHandler),
	}, Downloads)
	if err != nil {
		log.Fatal(err)
	}
	for _, report := range []string{"gone", "busy", "early", "fine"} {
		if _, err := Downloads.Start(ctx, host, report, struct{}{}); err != nil {
			log.Fatal(err)
		}
		for e, err := range host.Watch(ctx, Downloads.ID(report), 0) {
			if err != nil {
				log.Fatal(err)
			}
			if e.Kind != jobs.EventCreated && e.Kind != jobs.EventStart && e.Kind != jobs.EventFailure {
				fmt.Println(report, e.Kind)
				break
			}
		}
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// gone exhausted
	// busy retry
	// early snooze
	// fine success
}
