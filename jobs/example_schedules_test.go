package jobs_test

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// schedules are of each kind.
var schedules = []jobs.Schedule{
	jobs.Every(30 * time.Minute),                  // 30 minutes after the end of the last run
	jobs.Rate(time.Hour),                          // at whole hours after the start of the job
	jobs.Cron("0 30 2 * * *", "Europe/Paris"),     // each day at 2:30 by the clocks of Paris
	jobs.Cron("@daily", "").WithJitter(time.Hour), // each job at its own time from 0:00 to 1:00 UTC
}

// On the day on which clocks go from 2:00 to 3:00, a run at 2:30 happens at 3:30.
func ExampleSchedule() {
	for _, s := range schedules {
		fmt.Println(s)
	}
	paris := schedules[2]
	c := jobs.StartCursor(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	for range 2 {
		c.Last = paris.Next(c)
		fmt.Println(c.Last.Format(time.DateTime), "UTC")
	}
	// Output:
	// every 30m0s
	// rate 1h0m0s
	// cron 0 30 2 * * * Europe/Paris
	// cron @daily
	// 2026-03-29 01:30:00 UTC
	// 2026-03-30 00:30:00 UTC
}
