package alarm_test

import (
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
)

// An alarm of a class with this policy is tried four times.
func ExampleRetry() {
	retry := alarm.Retry{MaxAttempts: 4, Backoff: alarm.Exponential(time.Second, time.Minute)}
	for failed := 1; failed < retry.MaxAttempts; failed++ {
		fmt.Println("after failure", failed, "wait", retry.Backoff.Delay(failed, nil))
	}
	// Output:
	// after failure 1 wait 1s
	// after failure 2 wait 2s
	// after failure 3 wait 4s
}

func ExampleRetry_Validate() {
	fmt.Println(alarm.Retry{}.Validate())
	fmt.Println(alarm.Retry{MaxAttempts: -1}.Validate())
	// Output:
	// <nil>
	// Retry.MaxAttempts must not be negative: -1
}

func ExampleConstant() {
	b := alarm.Constant(3 * time.Second)
	fmt.Println(b.Delay(1, nil), b.Delay(9, nil))
	// Output: 3s 3s
}

func ExampleLinear() {
	b := alarm.Linear(time.Second, 5*time.Second)
	fmt.Println(b.Delay(1, nil), b.Delay(3, nil), b.Delay(9, nil))
	// Output: 1s 3s 5s
}

func ExampleExponential() {
	b := alarm.Exponential(time.Second, time.Minute)
	fmt.Println(b.Delay(1, nil), b.Delay(3, nil), b.Delay(9, nil))
	// Output: 1s 4s 1m0s
}

func ExampleBackoff_WithFactor() {
	b := alarm.Exponential(time.Second, time.Hour).WithFactor(10)
	fmt.Println(b.Delay(1, nil), b.Delay(2, nil), b.Delay(3, nil))
	// Output: 1s 10s 1m40s
}

func ExampleDecodeRow() {
	due := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	stored := alarm.AppendRow(nil, alarm.Row{Due: due, Gen: 7, Scheduled: due, Attempt: 1, LastError: "timeout"})
	row, err := alarm.DecodeRow(stored)
	fmt.Println(row.Due, row.Attempt, row.LastError, err)
	// Output: 2030-01-02 03:04:05 +0000 UTC 1 timeout <nil>
}

func ExampleDecodeIndex() {
	gen, class, name, err := alarm.DecodeIndex(alarm.AppendIndex(nil, 7, "cart", "alice"))
	fmt.Println(gen, class, name, err)
	// Output: 7 cart alice <nil>
}

// stored is an index that holds the alarms stored when the process started.
type stored []alarm.Entry

func (s stored) Scan(shard int, after alarm.Position, limit int) ([]alarm.Entry, error) {
	var found []alarm.Entry
	for _, e := range s {
		if e.Shard == shard && e.Due.After(after.Due) && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}

func ExampleScheduler() {
	fired := make(chan alarm.Entry, 1)
	scheduler, err := alarm.NewScheduler(alarm.Config{
		Shards: 1,
		Source: stored{{Due: time.Now().Add(-time.Hour), Object: 1, Class: "cart", Name: "alice"}},
		Fire: func(due []alarm.Entry) { // a host would queue a turn for each
			for _, e := range due {
				fired <- e
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	defer scheduler.Stop()

	e := <-fired // it was due while the process was down
	fmt.Println(e.Class, e.Name)

	// The turn has set the next alarm in its commit; now the scheduler learns of it.
	next := alarm.Entry{Due: time.Now().Add(time.Millisecond), Object: 1, Gen: 2, Class: "cart", Name: "alice"}
	scheduler.Set(next)
	scheduler.Done(e)

	e = <-fired
	fmt.Println(e.Gen, time.Now().Before(e.Due))
	scheduler.Clear(e.Shard, e.Object)
	scheduler.Done(e)
	fmt.Println(scheduler.Stats().Held)
	// Output:
	// cart alice
	// 2 false
	// 0
}
