package jobs_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ExampleEvery() {
	s := jobs.Every(30 * time.Minute)
	c := s.Ended(jobs.StartCursor(start), start.Add(4*time.Minute)) // a run that took four minutes
	fmt.Println(s.Next(c).Format(time.TimeOnly))
	// Output: 12:34:00
}

func ExampleRate() {
	s := jobs.Rate(30 * time.Minute)
	c := s.Ended(jobs.StartCursor(start), start.Add(4*time.Minute))
	fmt.Println(s.Next(c).Format(time.TimeOnly))
	// Output: 12:30:00
}

func ExampleCron() {
	s := jobs.Cron("30 0 9 * * MON-FRI", "Europe/Paris")
	fmt.Println(s.Validate(), s.Next(jobs.StartCursor(start)).Format(time.DateTime))
	fmt.Println(jobs.Cron("0 0 25 * * *", "").Validate() != nil)
	// Output:
	// <nil> 2026-03-02 08:00:30
	// true
}

func ExampleSchedule_Take() {
	s, c := jobs.Rate(time.Hour), jobs.StartCursor(start)
	late := start.Add(5*time.Hour + time.Minute) // the process was down
	for _, missed := range []jobs.Missed{jobs.RunOnce, jobs.RunEach, jobs.Skip} {
		moved, scheduled, run := s.Take(c, "id", late, missed)
		fmt.Println(run, scheduled.Format(time.TimeOnly), s.Next(moved).Format(time.TimeOnly))
	}
	// Output:
	// true 13:00:00 18:00:00
	// true 13:00:00 14:00:00
	// false 13:00:00 18:00:00
}

func ExampleSchedule_WithJitter() {
	s, c := jobs.Cron("0 0 * * * *", "").WithJitter(10*time.Minute), jobs.StartCursor(start)
	late := s.Due(c, "north").Sub(s.Next(c))
	fmt.Println(late >= 0 && late <= 10*time.Minute, s.Due(c, "north").Equal(s.Due(c, "north")))
	// Output: true true
}

func ExampleRetry() {
	r := jobs.Retry{MaxAttempts: 5, Backoff: jobs.Exponential(time.Second, 5*time.Second), MaxElapsed: time.Hour}
	for failure := 1; failure < r.MaxAttempts; failure++ {
		fmt.Print(r.Backoff.Delay(failure, nil), " ")
	}
	// Output: 1s 2s 4s 5s
}

func ExampleConstant() {
	b := jobs.Constant(3 * time.Second)
	fmt.Println(b.Delay(1, nil), b.Delay(9, nil))
	// Output: 3s 3s
}

func ExampleLinear() {
	b := jobs.Linear(time.Second, 5*time.Second)
	fmt.Println(b.Delay(1, nil), b.Delay(3, nil), b.Delay(9, nil))
	// Output: 1s 3s 5s
}

func ExampleExponential() {
	b := jobs.Exponential(time.Second, time.Minute)
	fmt.Println(b.Delay(1, nil), b.Delay(3, nil), b.Delay(9, nil))
	// Output: 1s 4s 1m0s
}

func ExampleStatus_Move() {
	err := jobs.Paused.Move(jobs.Executing)
	fmt.Println(err, errors.Is(err, jobs.ErrIllegalMove))
	fmt.Println(jobs.Paused.Move(jobs.Running))
	// Output:
	// jobs: illegal move from paused to executing: Resume it first true
	// <nil>
}
