package engine_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

func ExampleSnoozeDelay() {
	fmt.Println(engine.SnoozeDelay(fmt.Errorf("poll: %w", jobs.Snooze(time.Minute))))
	fmt.Println(engine.SnoozeDelay(errors.New("boom")))
	// Output:
	// 1m0s true
	// 0s false
}
